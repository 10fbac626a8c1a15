"""Slopes of many policies side by side: what was measured with its interval, and what the bound of each allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from driftbandits.intervals import LEAST_SEEDS
from driftbandits.plots.data import GrowthPanel
from driftbandits.plots.frame import Frame, plain, tidy
from driftbandits.plots.palette import SOLID, LineStyle

ROW_INCHES = 0.19
MEASURED, ALLOWED = "measured, with its 95 % interval", "the most its bound allows"


def slopes_frame(panels: Sequence[GrowthPanel]) -> Frame:
    """Sizes that suit all sweeps."""
    rows = max(len(panel.curves) for panel in panels)
    return Frame(left=1.65, height=ROW_INCHES * rows + 0.1, legend=2)


def slopes_figure(
    panels: Sequence[GrowthPanel], *, palette: Mapping[str, LineStyle], frame: Frame | None = None
) -> Figure:
    """One panel per sweep and one row per policy: a dot left of its bar is within its bound."""
    frame = slopes_frame(panels) if frame is None else frame
    figure = frame.figure(len(panels))
    handles = [
        Line2D([], [], color="0.25", marker="o", markersize=4, linewidth=1),
        Line2D([], [], color="0.25", marker="|", markersize=9, markeredgewidth=1.8, linestyle=""),
    ]
    for number, panel in enumerate(panels):
        axes = frame.axes(figure, number)
        _draw_slopes(axes, panel, palette)
        frame.draw_legend(figure, number, handles, [MEASURED, ALLOWED])
    return figure


def _draw_slopes(axes: Axes, panel: GrowthPanel, palette: Mapping[str, LineStyle]) -> None:
    for place, curve in enumerate(panel.curves):
        if curve.growth is None:
            continue
        style, slope = palette[curve.policy], curve.growth.slope
        if slope.seeds >= LEAST_SEEDS:  # of two seeds it is wider than the panel
            axes.plot([slope.low, slope.high], [place, place], color=style.colour, linewidth=1)
        face = style.colour if style.dashes == SOLID else "white"
        axes.plot(slope.estimate, place, "o", color=style.colour, markerfacecolor=face, markersize=4)
        axes.plot(curve.growth.allowed, place, "|", color="0.25", markersize=9, markeredgewidth=1.8)
    axes.set_yticks(range(len(panel.curves)), [plain(curve.policy) for curve in panel.curves])
    axes.set_ylim(len(panel.curves) - 0.4, -0.6)
    tidy(axes, title=panel.title, xlabel=f"slope of log regret over log {panel.symbol}")
