"""One policy's regret over another's in every world of the suite: `ratio_rows` computes, `ratio_figure` draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from driftbandits.plots.frame import Frame, tidy
from driftbandits.plots.words import plain

# A dimension's colour and mark: Okabe and Ito's, and told apart without colour too.
MARK_OF_DIMENSION = {"d10": ("#0072B2", "o"), "d3": ("#D55E00", "s"), "d2": ("#009E73", "^")}
MARK_OF_OTHERS = ("#555555", "D")
AXIS_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
AXIS_BEYOND_DOTS = 1.25  # a factor, on both sides


@dataclass(frozen=True)
class RatioRow:
    """One world: its name, and the ratio in every dimension it was played in."""

    world: str
    ratios: Mapping[str, float]


def ratio_rows(worlds: pd.DataFrame, column: str) -> list[RatioRow]:
    """The rows of a table with columns world ("flip-3/d2") and `column`; the world with the largest ratio first.

    >>> table = pd.DataFrame({"world": ["slow/d2", "flip-1/d3", "slow/d3"], "over_window": [0.8, 1.1, 1.4]})
    >>> [(row.world, dict(row.ratios)) for row in ratio_rows(table, "over_window")]
    [('slow', {'d2': 0.8, 'd3': 1.4}), ('flip-1', {'d3': 1.1})]
    """
    found: dict[str, dict[str, float]] = {}
    played = worlds.dropna(subset=[column])
    for name, ratio in zip(played["world"], played[column], strict=True):
        world, _, dimension = str(name).rpartition("/")
        found.setdefault(world, {})[dimension] = float(ratio)
    rows = [RatioRow(world, ratios) for world, ratios in found.items()]
    return sorted(rows, key=lambda row: -max(row.ratios.values()))


def ratio_figure(rows: Sequence[RatioRow], *, limit: float, subject: str, rival: str, legend: bool = True) -> Figure:
    """A dot per world and dimension, logarithmic, losses on top; lines at 1 and at `limit`, the most allowed."""
    frame = Frame(left=0.95, right=0.15, height=0.19 * len(rows) + 0.12)
    figure = frame.figure(1, ratio_key(rows, limit=limit) if legend else None)
    axes = frame.axes(figure, 0)
    for dimension in _dimensions(rows):
        _draw_dots(axes, rows, dimension)
    axes.axvline(1.0, color="0.35", linewidth=1.0, zorder=1)
    axes.axvline(limit, color="0.35", linewidth=1.0, linestyle=":", zorder=1)
    _scale(axes, [*(ratio for row in rows for ratio in row.ratios.values()), 1.0, limit])
    axes.set_yticks(range(len(rows)), [plain(row.world) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    tidy(axes, title=f"{subject} over {rival}, worst on top", xlabel="ratio of mean final regret (log scale)")
    return figure


def ratio_key(rows: Sequence[RatioRow], *, limit: float) -> dict[str, Line2D]:
    """The mark of every dimension, and the line of the limit."""
    key = {}
    for dimension in _dimensions(rows):
        colour, mark = MARK_OF_DIMENSION.get(dimension, MARK_OF_OTHERS)
        key[f"d = {dimension.removeprefix('d')}"] = Line2D(
            [], [], linestyle="", marker=mark, color=colour, markersize=4.2
        )
    most = f"most allowed where the world changes, {limit:g}"
    return {**key, most: Line2D([], [], color="0.35", linewidth=1.0, linestyle=":")}


def _dimensions(rows: Sequence[RatioRow]) -> list[str]:
    known = [d for d in MARK_OF_DIMENSION if any(d in row.ratios for row in rows)]
    return known + sorted({d for row in rows for d in row.ratios} - set(known))


def _draw_dots(axes: Axes, rows: Sequence[RatioRow], dimension: str) -> None:
    colour, mark = MARK_OF_DIMENSION.get(dimension, MARK_OF_OTHERS)
    places = [(row.ratios[dimension], place) for place, row in enumerate(rows) if dimension in row.ratios]
    across, up = zip(*places, strict=True)
    axes.plot(across, up, linestyle="", marker=mark, color=colour, markersize=4.2, alpha=0.9, zorder=3)


def _scale(axes: Axes, ratios: Sequence[float]) -> None:
    axes.set_xscale("log")
    axes.set_xlim(min(ratios) / AXIS_BEYOND_DOTS, max(ratios) * AXIS_BEYOND_DOTS)
    axes.xaxis.set_major_locator(FixedLocator(AXIS_TICKS))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
