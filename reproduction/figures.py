"""The figures of the study that a run of one's own does not have: rankings, growth, slopes, ratios, delays.

Each computes a small record first and draws it second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator, PercentFormatter

from driftbandits.plots.frame import LABEL_POINTS, MARKERS, WITH_COMMAS, Frame, LineStyle, in_formulas, plain, tidy
from driftbandits.plots.regret import MARK_POINTS, sample
from driftbandits.types import Floats
from reproduction.claims import LEAST_SEEDS
from reproduction.sweeps import Growth, Sweep, measure_growth, regret_by_seed

WITH_K = FuncFormatter(lambda value, _: f"{value / 1000:g}k" if value >= 1000 else f"{value:g}")


@dataclass(frozen=True)
class RankedRegret:
    """Final regret of every policy in one experiment, best first, with standard errors."""

    title: str
    policies: tuple[str, ...]
    mean: Floats
    standard_error: Floats


def ranked_regret(cells: pd.DataFrame, experiment: str, *, title: str) -> RankedRegret:
    """Policies of one experiment by their mean final regret."""
    here = cells[cells["experiment"] == experiment].groupby("policy")["regret"].agg(["mean", "sem"]).sort_values("mean")
    return RankedRegret(
        title=title,
        policies=tuple(str(name) for name in here.index),
        mean=here["mean"].to_numpy(),
        standard_error=here["sem"].fillna(0.0).to_numpy(),
    )


@dataclass(frozen=True)
class GrowthCurve:
    """Mean final regret of one policy along a sweep with standard errors, and its growth where that can be measured."""

    policy: str
    seeds: int
    values: Floats
    mean: Floats
    standard_error: Floats
    growth: Growth | None


@dataclass(frozen=True)
class GrowthPanel:
    """All policies of one sweep."""

    title: str
    symbol: str
    rate: float
    curves: tuple[GrowthCurve, ...]


def growth_panel(cells: pd.DataFrame, sweep: Sweep) -> GrowthPanel:
    """What was played of a sweep, policy by policy; those without a run are left out."""
    labels = dict.fromkeys(policy.label for e in sweep.experiments for policy in e.policies)
    curves = [_growth_curve(cells, sweep, label) for label in labels]
    return GrowthPanel(sweep.title, sweep.symbol, sweep.rate, tuple(c for c in curves if len(c.values) and c.seeds))


def _growth_curve(cells: pd.DataFrame, sweep: Sweep, label: str) -> GrowthCurve:
    table = regret_by_seed(cells, sweep, label)
    return GrowthCurve(
        policy=label,
        seeds=len(table),
        values=table.columns.to_numpy(dtype=np.float64),
        mean=table.mean().to_numpy(dtype=np.float64),
        standard_error=table.sem().fillna(0.0).to_numpy(dtype=np.float64),
        growth=measure_growth(cells, sweep, label),
    )


def power_law(curve: GrowthCurve, slope: float) -> Floats:
    """The line of this slope on a log-log plot through the middle of the curve's points.

    >>> curve = GrowthCurve("any", 3, np.array([1.0, 4.0]), np.array([2.0, 8.0]), np.zeros(2), None)
    >>> power_law(curve, 1.0).round(6).tolist(), power_law(curve, 0.0).round(6).tolist()
    ([2.0, 8.0], [4.0, 4.0])
    """
    across, up = np.log(curve.values), np.log(curve.mean)
    line: Floats = np.exp(up.mean() + slope * (across - across.mean()))
    return line


AXIS_LABELS = {
    "T": "rounds $T$",
    "L_T": "segments $L_T$",
    "V_T": "variation $V_T$, in turns of the drift",
    "d": "dimension $d$",
    "log N": "arms $N$, spaced by $\\log\\,\\log N$",
}


def axis_label(symbol: str) -> str:
    """A quantity in words, with its symbol.

    >>> axis_label("L_T"), axis_label("x")
    ('segments $L_T$', 'x')
    """
    return AXIS_LABELS.get(symbol) or in_formulas(symbol)


def ticks_of(symbol: str) -> Callable[[float], str] | None:
    """How the values along a sweep are written; None: as numbers."""
    return (lambda value: f"{math.exp(value):.0f}") if symbol == "log N" else None


TITLE_MARGIN = 0.1  # inches


def growth_frame() -> Frame:
    """Sizes that suit all sweeps."""
    return Frame(left=0.76)


def growth_figure(
    panels: Sequence[GrowthPanel],
    *,
    palette: Mapping[str, LineStyle],
    frame: Frame | None = None,
    legend: bool = True,
) -> Figure:
    """Mean final regret along sweeps, both axes logarithmic, with bars of one standard error.

    Solid lines have the fitted slopes, dotted ones the slopes that the paper's rate allows, through the same middle.
    """
    frame = growth_frame() if frame is None else frame
    figure = frame.figure(len(panels), growth_key(panels, palette=palette) if legend else None)
    for number, panel in enumerate(panels):
        axes = frame.axes(figure, number)
        for curve in panel.curves:
            _draw_growth(axes, curve, palette[curve.policy])
        values = sorted({v for c in panel.curves for v in c.values.tolist()})
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_locator(FixedLocator(values))
        axes.xaxis.set_minor_locator(NullLocator())
        shown = ticks_of(panel.symbol)
        axes.xaxis.set_major_formatter(WITH_K if shown is None else FuncFormatter(lambda v, _, shown=shown: shown(v)))
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(WITH_COMMAS)
        axes.yaxis.set_minor_formatter(NullFormatter())
        tidy(axes, title=panel.title, xlabel=axis_label(panel.symbol), ylabel="final regret (log scale)")
    return figure


def growth_key(panels: Sequence[GrowthPanel], *, palette: Mapping[str, LineStyle]) -> dict[str, Line2D]:
    """Policies, then what the lines are."""
    policies = dict.fromkeys(c.policy for panel in panels for c in panel.curves)
    key = {policy: sample(palette[policy], linestyle="") for policy in policies}
    if any(c.growth is not None for panel in panels for c in panel.curves):
        key["fitted slope"] = Line2D([], [], color="0.25", linewidth=1.2)
        key["steepest slope that the bound allows"] = Line2D([], [], color="0.25", linestyle=":", linewidth=1.2)
    return key


def _draw_growth(axes: Axes, curve: GrowthCurve, style: LineStyle) -> None:
    axes.errorbar(
        curve.values,
        curve.mean,
        yerr=curve.standard_error if curve.seeds > 1 else None,
        fmt=style.marker,
        color=style.colour,
        markersize=MARK_POINTS,
        capsize=2,
        linewidth=1,
    )
    if curve.growth is None:
        return
    for slope, dashes in ((curve.growth.slope.estimate, "-"), (curve.growth.allowed, ":")):
        axes.plot(curve.values, power_law(curve, slope), color=style.colour, linestyle=dashes, linewidth=1.2)


def ranking_frame(panels: Sequence[RankedRegret]) -> Frame:
    """Sizes that suit all rankings."""
    policies = max(len(panel.policies) for panel in panels)
    longest = max(len(policy) for panel in panels for policy in panel.policies)
    return Frame(left=max(1.35, 0.062 * longest), height=0.17 * policies + 0.1)


def ranking_figure(
    panels: Sequence[RankedRegret],
    *,
    families: Mapping[str, str],
    palette: Mapping[str, LineStyle],
    frame: Frame | None = None,
    legend: bool = True,
) -> Figure:
    """Final regret of every policy on a logarithmic axis, best on top; one panel per experiment.

    `families` names the family of each label, which has its own mark.
    """
    frame = ranking_frame(panels) if frame is None else frame
    figure = frame.figure(len(panels), ranking_key(families) if legend else None)
    marks = _marks(families)
    for number, panel in enumerate(panels):
        marks_of_policies = [(palette[policy].colour, marks[families[policy]]) for policy in panel.policies]
        _draw_ranking(frame.axes(figure, number), panel, marks_of_policies, outdent=frame.left - TITLE_MARGIN)
    return figure


def ranking_key(families: Mapping[str, str]) -> dict[str, Line2D]:
    """The mark of every family."""
    return {
        family: Line2D([], [], color="0.25", marker=mark, linestyle="", markersize=4.5)
        for family, mark in _marks(families).items()
    }


def _marks(families: Mapping[str, str]) -> dict[str, str]:
    return {kind: MARKERS[number % len(MARKERS)] for number, kind in enumerate(dict.fromkeys(families.values()))}


def _draw_ranking(axes: Axes, panel: RankedRegret, marks: Sequence[tuple[str, str]], *, outdent: float) -> None:
    for place, (colour, mark) in enumerate(marks):
        error = panel.standard_error[place] or None
        axes.errorbar(
            panel.mean[place], place, xerr=error, fmt=mark, color=colour, markersize=4.5, capsize=2, linewidth=1
        )
    axes.set_yticks(range(len(panel.policies)), [plain(policy) for policy in panel.policies])
    axes.set_ylim(len(panel.policies) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.xaxis.set_major_formatter(WITH_COMMAS)
    axes.xaxis.set_minor_formatter(NullFormatter())
    tidy(axes, title=panel.title, xlabel="final cumulative regret (log scale)", outdent=outdent)
    axes.tick_params(axis="y", labelsize=LABEL_POINTS - 0.5)


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
        _draw_ratios(axes, rows, dimension)
    axes.axvline(1.0, color="0.35", linewidth=1.0, zorder=1)
    axes.axvline(limit, color="0.35", linewidth=1.0, linestyle=":", zorder=1)
    _scale_ratios(axes, [*(ratio for row in rows for ratio in row.ratios.values()), 1.0, limit])
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


def _draw_ratios(axes: Axes, rows: Sequence[RatioRow], dimension: str) -> None:
    colour, mark = MARK_OF_DIMENSION.get(dimension, MARK_OF_OTHERS)
    places = [(row.ratios[dimension], place) for place, row in enumerate(rows) if dimension in row.ratios]
    across, up = zip(*places, strict=True)
    axes.plot(across, up, linestyle="", marker=mark, color=colour, markersize=4.2, alpha=0.9, zorder=3)


def _scale_ratios(axes: Axes, ratios: Sequence[float]) -> None:
    axes.set_xscale("log")
    axes.set_xlim(min(ratios) / AXIS_BEYOND_DOTS, max(ratios) * AXIS_BEYOND_DOTS)
    axes.xaxis.set_major_locator(FixedLocator(AXIS_TICKS))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


ROWS_BETWEEN_DOTS = 0.24  # of two policies
AXIS_BEYOND_DELAYS = 1.3  # a factor, on both sides


@dataclass(frozen=True)
class Dot:
    """What one policy did about one change: a value, and a bar from `low` to `high` around it (NaN: none)."""

    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class DelayPanel:
    """Dots by policy, one per change, in the order of `changes`; `shares`: of runs, otherwise delays in rounds."""

    title: str
    changes: tuple[str, ...]
    dots: Mapping[str, tuple[Dot, ...]]
    shares: bool


def delay_panels(delays: pd.DataFrame) -> tuple[DelayPanel, DelayPanel]:
    """Delays with their quartiles, and shares found.

    `delays` has one row per change and policy: columns change, policy, share_found, lower_quartile, median,
    upper_quartile; what was never found has no delay. Changes and policies keep their order.

    >>> row = {"change": "flip", "policy": "A", "share_found": 0.5}
    >>> quartiles = {"lower_quartile": 3, "median": 5, "upper_quartile": 9}
    >>> delay_panels(pd.DataFrame([row | quartiles]))[0].dots
    {'A': (Dot(value=5.0, low=3.0, high=9.0),)}
    """
    changes = tuple(dict.fromkeys(delays["change"].astype(str)))
    found: dict[str, dict[str, Dot]] = {}
    shares: dict[str, dict[str, Dot]] = {}
    for row in delays.to_dict("records"):
        quartiles = (float(row[name]) for name in ("median", "lower_quartile", "upper_quartile"))
        found.setdefault(str(row["policy"]), {})[str(row["change"])] = Dot(*quartiles)
        shares.setdefault(str(row["policy"]), {})[str(row["change"])] = Dot(float(row["share_found"]))
    return (
        DelayPanel("Delay until a change is found", changes, _filled(found, changes), shares=False),
        DelayPanel("How often it is found", changes, _filled(shares, changes), shares=True),
    )


def _filled(dots: Mapping[str, Mapping[str, Dot]], changes: Sequence[str]) -> dict[str, tuple[Dot, ...]]:
    nothing = Dot(math.nan)
    return {policy: tuple(own.get(change, nothing) for change in changes) for policy, own in dots.items()}


def delay_figure(panels: Sequence[DelayPanel], *, palette: Mapping[str, LineStyle], legend: bool = True) -> Figure:
    """Panels side by side with one row per change, and in it one dot per policy; bars are quartiles."""
    first = panels[0]
    frame = Frame(left=0.95, right=0.2, height=0.3 * len(first.changes) + 0.1)
    figure = frame.figure(len(panels), delay_key(panels, palette=palette) if legend else None)
    for number, panel in enumerate(panels):
        axes = frame.axes(figure, number)
        for place, (policy, dots) in enumerate(panel.dots.items()):
            _draw_delays(axes, dots, palette[policy].colour, place, len(panel.dots))
        _scale_delays(axes, panel)
        axes.set_yticks(range(len(panel.changes)), [plain(change) for change in panel.changes])
        axes.set_ylim(len(panel.changes) - 0.4, -0.6)
        unit = "share of runs" if panel.shares else "rounds, median and quartiles (log scale)"
        tidy(axes, title=panel.title, xlabel=unit)
    return figure


def delay_key(panels: Sequence[DelayPanel], *, palette: Mapping[str, LineStyle]) -> dict[str, Line2D]:
    """The mark of every policy."""
    return {
        policy: Line2D([], [], linestyle="", marker=_mark(place), color=palette[policy].colour, markersize=4.2)
        for place, policy in enumerate(panels[0].dots)
    }


def _mark(place: int) -> str:
    return MARKERS[place % len(MARKERS)]


def _draw_delays(axes: Axes, dots: Sequence[Dot], colour: str, place: int, places: int) -> None:
    shift = ROWS_BETWEEN_DOTS * (place - (places - 1) / 2)
    for row, dot in enumerate(dots):
        axes.plot((dot.low, dot.high), (row + shift,) * 2, color=colour, linewidth=1.0, alpha=0.6, zorder=2)
    across, up = [dot.value for dot in dots], [row + shift for row in range(len(dots))]
    axes.plot(across, up, linestyle="", marker=_mark(place), color=colour, markersize=4.2, zorder=3, clip_on=False)


def _scale_delays(axes: Axes, panel: DelayPanel) -> None:
    if panel.shares:
        axes.set_xlim(-0.02, 1.02)
        axes.xaxis.set_major_locator(FixedLocator((0.0, 0.25, 0.5, 0.75, 1.0)))
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        return
    ends = [end for dots in panel.dots.values() for dot in dots for end in (dot.low, dot.value, dot.high)]
    ends = [end for end in ends if end > 0] or [1.0, 1000.0]
    axes.set_xscale("log")
    axes.set_xlim(min(ends) / AXIS_BEYOND_DELAYS, max(ends) * AXIS_BEYOND_DELAYS)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axes.xaxis.set_major_formatter(WITH_COMMAS)
    axes.xaxis.set_minor_formatter(NullFormatter())
