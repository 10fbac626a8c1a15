"""Slopes of many policies side by side: what was measured with its interval, and what the bound of each allows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from driftbandits.intervals import LEAST_SEEDS
from driftbandits.plots.data import GrowthCurve, GrowthPanel
from driftbandits.plots.frame import Frame, tidy
from driftbandits.plots.palette import LineStyle
from driftbandits.plots.words import in_formulas, plain

ROW_INCHES = 0.21
ALLOWED_COLOUR, EDGE_COLOUR = "#DDEBDD", "#4A7A4A"


def slopes_frame(panels: Sequence[GrowthPanel]) -> Frame:
    """Sizes that suit all sweeps."""
    rows = max(len(panel.curves) for panel in panels)
    return Frame(left=1.75, height=ROW_INCHES * rows + 0.1)


def slopes_figure(
    panels: Sequence[GrowthPanel],
    *,
    palette: Mapping[str, LineStyle],
    frame: Frame | None = None,
    legend: bool = True,
) -> Figure:
    """One panel per sweep and one row per policy: a dot inside its green bar is within its bound."""
    frame = slopes_frame(panels) if frame is None else frame
    figure = frame.figure(len(panels), slopes_key() if legend else None)
    for number, panel in enumerate(panels):
        _draw_slopes(frame.axes(figure, number), panel, palette)
    return figure


def slopes_key() -> dict[str, Line2D]:
    """What is drawn in a row."""
    return {
        "measured slope with its 95 % interval": Line2D([], [], color="0.25", marker="o", markersize=4, linewidth=1),
        "green: what its bound allows": Line2D([], [], color=ALLOWED_COLOUR, linewidth=7),
    }


def _draw_slopes(axes: Axes, panel: GrowthPanel, palette: Mapping[str, LineStyle]) -> None:
    low, high = _ends(panel.curves)
    for place, curve in enumerate(panel.curves):
        if curve.growth is None:
            continue
        style, slope, allowed = palette[curve.policy], curve.growth.slope, curve.growth.allowed
        axes.barh(place, allowed - low, left=low, height=0.62, color=ALLOWED_COLOUR, linewidth=0, zorder=1)
        axes.plot(allowed, place, "|", color=EDGE_COLOUR, markersize=9, markeredgewidth=1.6, zorder=2)
        if slope.seeds >= LEAST_SEEDS:  # of two seeds it is wider than the panel
            axes.plot([slope.low, slope.high], [place, place], color=style.colour, linewidth=1.2, zorder=3)
        axes.plot(slope.estimate, place, style.marker, color=style.colour, markersize=4.2, zorder=4)
    axes.set_xlim(low, high)
    axes.set_yticks(range(len(panel.curves)), [plain(curve.policy) for curve in panel.curves])
    axes.set_ylim(len(panel.curves) - 0.4, -0.6)
    tidy(axes, title=panel.title, xlabel=f"slope of log regret over {_logarithm(panel.symbol)}")


def _logarithm(symbol: str) -> str:
    return f"log {in_formulas(symbol)}"


def _ends(curves: Sequence[GrowthCurve]) -> tuple[float, float]:
    """The ends of the axis: 0 and all that is drawn, with some room."""
    growths = [curve.growth for curve in curves if curve.growth is not None]
    places = [x for g in growths for x in (g.slope.estimate, g.allowed)]
    places += [x for g in growths if g.slope.seeds >= LEAST_SEEDS for x in (g.slope.low, g.slope.high)]
    places = [0.0, *(x for x in places if not math.isnan(x))]
    room = 0.06 * (max(places) - min(places)) or 0.1
    return min(places) - room, max(places) + room
