"""Panels placed to the hundredth of an inch, so that the axes of neighbours line up, with one legend below them all.

Also text for matplotlib: labels as they are, and symbols such as L_T as formulas.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

_SYMBOL = re.compile(r"\b(?:([LV])_T|gamma_T)\b")


def plain(text: str) -> str:
    """Text that matplotlib shows as it stands: no formula between dollars, no label hidden by an underscore.

    >>> plain("_costs $5")
    '\\u200b_costs \\\\$5'
    """
    hidden = "\u200b" if text.startswith("_") else ""
    return hidden + text.replace("$", r"\$")


def in_formulas(text: str) -> str:
    """The text for matplotlib, with raw symbols as formulas.

    >>> in_formulas("log L_T for $5"), in_formulas("gamma_T")
    ('log $L_T$ for \\\\$5', '$\\\\gamma_T$')
    """
    return _SYMBOL.sub(lambda found: f"${found[1]}_T$" if found[1] else r"$\gamma_T$", plain(text))


LEGEND_LINE_INCHES = 0.175
LABEL_POINTS = 8  # of ticks and legends
TITLE_POINTS = 9.5
Key = Mapping[str, Line2D]  # the legend of a figure: samples of lines and marks by their labels
DPI = 200
SCREEN_DPI = 144  # sharp on most screens, and light


class ShownFigure(Figure):
    """A figure that a notebook shows where it stands last in a cell; matplotlib does so for figures of pyplot alone."""

    def _repr_png_(self) -> bytes:
        return png(self)


def png(figure: Figure) -> bytes:
    """The figure as a picture for screens."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=SCREEN_DPI)
    return buffer.getvalue()


def columns_of(panels: int) -> int:
    """In how many columns so many panels stand.

    >>> [columns_of(panels) for panels in (1, 2, 3, 4, 7)]
    [1, 2, 3, 2, 3]
    """
    return 2 if panels == 4 else max(1, min(panels, 3))


@dataclass(frozen=True)
class Frame:
    """Sizes of one panel in inches: the axes, and what is around them."""

    width: float = 3.9
    height: float = 2.45  # of the axes
    left: float = 0.66
    right: float = 0.24
    title: float = 0.3
    below: float = 0.5  # ticks and the axis's name

    @property
    def total(self) -> float:
        """Height of the whole panel."""
        return self.title + self.height + self.below + 0.06

    def figure(self, panels: int, key: Key | None = None) -> Figure:
        """An empty figure with room for so many panels; below them all stands one legend, if there is a key."""
        columns = columns_of(panels)
        rows = -(-panels // columns)
        lines = -(-len(key or ()) // columns)
        below = lines * LEGEND_LINE_INCHES + 0.12 if lines else 0.0
        figure = ShownFigure(figsize=(self.width * columns, self.total * rows + below), dpi=DPI)
        if key:
            self._draw_legend(figure, key, columns)
        return figure

    def axes(self, figure: Figure, number: int, *, left: float | None = None) -> Axes:
        """The axes of panel `number`, counted in rows from the top left; `left`: another margin, for long labels."""
        across, top = self._corner(figure, number)
        width, height = figure.get_size_inches()
        margin = self.left if left is None else left
        wide = self.width - margin - self.right
        bottom = top - self.title - self.height
        return figure.add_axes(((across + margin) / width, bottom / height, wide / width, self.height / height))

    @staticmethod
    def _draw_legend(figure: Figure, key: Key, columns: int) -> None:
        width, height = figure.get_size_inches()
        figure.legend(
            list(key.values()),
            [plain(label) for label in key],
            loc="lower left",
            bbox_to_anchor=(0.16 / width, 0.08 / height),
            ncols=columns,
            borderaxespad=0.0,
            borderpad=0.0,
            labelspacing=0.35,
            handlelength=3.2,
            frameon=False,
            fontsize=LABEL_POINTS,
        )

    def _corner(self, figure: Figure, number: int) -> tuple[float, float]:
        """Left and top of panel `number` in inches from the figure's bottom left."""
        width, height = figure.get_size_inches()
        columns = round(width / self.width)
        return self.width * (number % columns), height - self.total * (number // columns)


def tidy(axes: Axes, *, title: str, xlabel: str, ylabel: str = "", outdent: float = 0.0) -> None:
    """The look all panels share; long titles begin `outdent` inches to the left of the axes."""
    width = axes.bbox.width / axes.figure.dpi
    axes.set_title(in_formulas(title), fontsize=TITLE_POINTS, loc="left", x=-outdent / width)
    axes.set_xlabel(xlabel, fontsize=LABEL_POINTS + 0.5)
    axes.set_ylabel(ylabel, fontsize=LABEL_POINTS + 0.5)
    axes.tick_params(labelsize=LABEL_POINTS)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


WITH_COMMAS = FuncFormatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 1 or value == 0 else f"{value:g}")
WITH_K = FuncFormatter(lambda value, _: f"{value / 1000:g}k" if value >= 1000 else f"{value:g}")
