"""Panels placed to the hundredth of an inch, so that the axes of neighbours are in line whatever their legends hold."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

LEGEND_LINE_INCHES = 0.165
LABEL_POINTS = 7.5  # of ticks and legends
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


@dataclass(frozen=True)
class Frame:
    """Sizes of one panel in inches: the axes, and what is around them."""

    width: float = 3.9
    height: float = 2.45  # of the axes
    left: float = 0.62
    right: float = 0.24
    title: float = 0.3
    strip: float = 0.0  # above the axes
    below: float = 0.5  # ticks and the axis's name
    legend: int = 0  # lines

    @property
    def total(self) -> float:
        """Height of the whole panel."""
        return self.title + self.strip + self.height + self.below + self.legend * LEGEND_LINE_INCHES + 0.06

    def figure(self, panels: int, *, columns: int = 2) -> Figure:
        """An empty figure with room for so many panels."""
        columns = min(panels, columns)
        rows = -(-panels // columns)
        return ShownFigure(figsize=(self.width * columns, self.total * rows), dpi=DPI)

    def axes(self, figure: Figure, number: int) -> Axes:
        """The axes of panel `number`, counted in rows from the top left."""
        left, top = self._corner(figure, number)
        bottom = top - self.title - self.strip - self.height
        return self._add(figure, left + self.left, bottom, self.height)

    def strip_axes(self, figure: Figure, number: int, height: float) -> Axes:
        """Axes of the strip that lies on top of those of panel `number`."""
        left, top = self._corner(figure, number)
        axes = self._add(figure, left + self.left, top - self.title - self.strip, height)
        axes.set_axis_off()
        return axes

    def draw_legend(self, figure: Figure, number: int, handles: Sequence[Line2D], labels: Sequence[str]) -> None:
        """A legend below panel `number`, one line per entry."""
        left, top = self._corner(figure, number)
        width, height = figure.get_size_inches()
        place = top - self.title - self.strip - self.height - self.below
        figure.legend(
            handles,
            [plain(label) for label in labels],
            loc="upper left",
            bbox_to_anchor=((left + 0.16) / width, place / height),
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

    def _add(self, figure: Figure, left: float, bottom: float, high: float) -> Axes:
        width, height = figure.get_size_inches()
        wide = self.width - self.left - self.right
        return figure.add_axes((left / width, bottom / height, wide / width, high / height))


def plain(text: str) -> str:
    """Text that matplotlib shows as it stands: no formula between dollars, no label hidden by an underscore.

    >>> plain("_costs $5")
    '\\u200b_costs \\\\$5'
    """
    hidden = "\u200b" if text.startswith("_") else ""
    return hidden + text.replace("$", r"\$")


def tidy(axes: Axes, *, title: str, xlabel: str, ylabel: str = "") -> None:
    """The look all panels share."""
    axes.set_title(plain(title), fontsize=9, loc="left")
    axes.set_xlabel(xlabel, fontsize=8)
    axes.set_ylabel(ylabel, fontsize=8)
    axes.tick_params(labelsize=LABEL_POINTS)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


WITH_COMMAS = FuncFormatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 1 or value == 0 else f"{value:g}")
WITH_K = FuncFormatter(lambda value, _: f"{value / 1000:g}k" if value >= 1000 else f"{value:g}")
