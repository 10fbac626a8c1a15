"""One line style per policy, the same everywhere: colours tell algorithms apart; shade, mark and dashes variants."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from driftbandits.policies import LABELS

# Okabe and Ito's, with Tol's where those run out: told apart with any kind of colour vision.
_COLOURS_OF_CLASSES = {
    "AutoBandit": "#EE3377",
    "CalibratedOPKB": "#117733",
    "AdaOPKB": "#0072B2",
    "OPKB": "#56B4E9",
    "AdaOPNN": "#D55E00",
    "OPNN": "#E69F00",
    "DetectionAugmentedGPUCB": "#77AADD",
    "EventTriggeredGPUCB": "#CC6677",
    "GPUCB": "#222222",
    "SlidingWindowGPUCB": "#009E73",
    "TimeVaryingGPUCB": "#999933",
    "WeightedGPUCB": "#AA4499",
    "GLRklUCB": "#882255",
    "Uniform": "#888888",
}
COLOURS = {
    **_COLOURS_OF_CLASSES,
    **{LABELS.get(name, name): colour for name, colour in _COLOURS_OF_CLASSES.items()},
    "OPNN0": "#6A3D9A",  # OPNN that is not trained
    "GPUCB+MASTER": "#332288",
}
OTHER_COLOURS = ("#44AA99", "#661100", "#6699CC", "#DDAA33", "#AA4466", "#4477AA", "#7F7FBF", "#BB5566")
Dashes = str | tuple[int, tuple[float, ...]]
SOLID: Dashes = "-"
DASHES: tuple[Dashes, ...] = (
    SOLID,
    (0, (4.5, 1.6)),
    (0, (1.2, 1.2)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (6, 1.5, 1.2, 1.5, 1.2, 1.5)),
    (0, (9, 2)),
)
# Places in DASHES; where two want the same, the first listed here gets it.
WANTED_DASHES = {
    "": 0,
    "tuned": 0,
    "plain": 0,
    "published, tuned": 0,
    "published": 1,
    "published, length scale 1": 2,
    "window 1000": 3,
    "infinite width": 0,
    "theory": 0,
}
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")  # by the places in DASHES too
# How far the colour of a variant goes from its algorithm's, by the places in DASHES: below 0 to black, above to white.
SHADES = (0.0, -0.45, 0.4, -0.7, 0.6, -0.25)
SHADES_OF_DARK = (0.0, 0.45, 0.6, 0.3, 0.7, 0.15)
DARK = 0.05  # relative luminance, below which black is no other shade


@dataclass(frozen=True)
class LineStyle:
    """How a policy is drawn: its algorithm's colour in the variant's shade, and the variant's dashes and mark."""

    colour: str
    dashes: Dashes
    marker: str = MARKERS[0]


def shade(colour: str, place: int) -> str:
    """The colour of the variant at this place in DASHES.

    >>> shade("#0072B2", 0), shade("#0072B2", 1), shade("#222222", 1)
    ('#0072B2', '#003F62', '#858585')
    """
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    luminance = sum(share * part**2.2 for share, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))
    step = (SHADES_OF_DARK if luminance < DARK else SHADES)[place]
    end = 1.0 if step > 0 else 0.0
    mixed = [part + abs(step) * (end - part) for part in parts]
    return "#" + "".join(f"{round(255 * part):02X}" for part in mixed) if step else colour


def algorithm(label: str) -> str:
    """What comes before the first bracket or comma of a label.

    >>> algorithm("ADA-OPKB (published, length scale 1)"), algorithm("OPNN, five matrices"), algorithm("(mine)")
    ('ADA-OPKB', 'OPNN', '(mine)')
    """
    return label.partition(" (")[0].partition(",")[0].strip() or label


def variant(label: str) -> str:
    """The rest of a label, without brackets and commas around it.

    >>> variant("SW-GPUCB (window 1000)"), variant("OPNN, five matrices"), variant("OPKB")
    ('window 1000', 'five matrices', '')
    """
    return label.removeprefix(algorithm(label)).strip(" ,()")


def line_styles(*figures: Iterable[str]) -> dict[str, LineStyle]:
    """A line style for each label; every argument holds the labels that stand in one figure.

    Solid with circles is the plain or tuned variant, dashed with squares the published one. Known algorithms always
    have the same colour; others take spare ones in their order, and share them again when there are too many. Two
    variants of one algorithm never share shade, mark and dashes in a figure while there are any left.

    >>> found = line_styles(["OPKB", "OPKB (published)", "mine"])
    >>> found["OPKB"], found["OPKB (published)"].marker, found["mine"].colour
    (LineStyle(colour='#56B4E9', dashes='-', marker='o'), 's', '#44AA99')
    """
    together = [dict.fromkeys(labels) for labels in figures]
    distinct = list(dict.fromkeys(label for labels in together for label in labels))
    unknown = [a for a in dict.fromkeys(map(algorithm, distinct)) if a not in COLOURS]
    colours = COLOURS | {a: OTHER_COLOURS[number % len(OTHER_COLOURS)] for number, a in enumerate(unknown)}
    order = {variant: place for place, variant in enumerate(WANTED_DASHES)}
    dashes: dict[str, int] = {}
    # known variants choose first, so that a published one is dashed whoever else is there
    for label in sorted(distinct, key=lambda name: order.get(variant(name), len(order))):
        near = {other for labels in together if label in labels for other in labels}
        used = {dashes[other] for other in near & dashes.keys() if algorithm(other) == algorithm(label)}
        dashes[label] = _free_dashes(WANTED_DASHES.get(variant(label), 2), used)
    return {
        label: LineStyle(shade(colours[algorithm(label)], place), DASHES[place], MARKERS[place])
        for label, place in ((label, dashes[label]) for label in distinct)
    }


def _free_dashes(wish: int, used: set[int]) -> int:
    order = [wish, *range(2, len(DASHES)), 1, 0]
    return next((number for number in order if number not in used), wish)


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
