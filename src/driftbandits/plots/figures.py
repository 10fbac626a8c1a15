"""Draws what `data` computed. No function shows a window or changes matplotlib's settings.

Every figure has one key, which is drawn below its panels; a page that shows panels one by one leaves it out
(`legend=False`) and shows the key for itself.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from driftbandits.plots.data import (
    ChangesPanel,
    GrowthCurve,
    GrowthPanel,
    RankedRegret,
    RegretCurve,
    RegretPanel,
    power_law,
    tick_rounds,
)
from driftbandits.plots.frame import LABEL_POINTS, WITH_COMMAS, WITH_K, Frame, tidy
from driftbandits.plots.palette import MARKERS, LineStyle
from driftbandits.plots.words import axis_label, plain, ticks_of
from driftbandits.showing import counted

GREY = "0.82"
MARKS_PER_CURVE = 6
MARK_POINTS = 4.0
LEAST_ROWS = 5  # of reported changes: with fewer, ticks would be as tall as the panel
INCHES_PER_LETTER = 0.063  # of labels
LONGEST_LINE = 24  # letters of a label
TITLE_MARGIN = 0.1  # inches


def regret_frame(panels: Sequence[RegretPanel | ChangesPanel]) -> Frame:
    """Sizes that suit all panels of an experiment, drawn together or one by one."""
    alone = len(panels) == 1
    return Frame(width=5.2 if alone else 3.9, height=2.9 if alone else 2.45)


def regret_figure(
    panels: Sequence[RegretPanel | ChangesPanel],
    *,
    palette: Mapping[str, LineStyle],
    frame: Frame | None = None,
    legend: bool = True,
) -> Figure:
    """Mean cumulative regret in panels side by side, with bands of one standard error, and the changes reported.

    Dotted lines are true jumps, shades true drift; curves in grey are those of the other panels. The key has the final
    mean, and the seeds where they are not those that most policies have.
    """
    frame = regret_frame(panels) if frame is None else frame
    figure = frame.figure(len(panels), regret_key(panels, palette=palette) if legend else None)
    for number, panel in enumerate(panels):
        if isinstance(panel, ChangesPanel):
            longest = min(LONGEST_LINE, max(len(c.policy) for c in panel.curves))
            left = max(frame.left, INCHES_PER_LETTER * longest + 0.2)
            _draw_changes(frame.axes(figure, number, left=left), panel, palette)
        else:
            _draw_panel(frame.axes(figure, number), panel, palette, seeds=_usual_seeds(panels))
    return figure


def regret_key(panels: Sequence[RegretPanel | ChangesPanel], *, palette: Mapping[str, LineStyle]) -> dict[str, Line2D]:
    """Policies panel by panel in the order in which their curves end, then what else is drawn."""
    shown = [c for panel in panels if isinstance(panel, RegretPanel) for c in _by_end(panel.curves)]
    times = Counter(c.policy for c in shown)
    usual = _usual_seeds(panels)
    key = {}
    for curve in shown:
        seeds = "" if curve.seeds == usual else f", {counted(curve.seeds, 'seed')}"
        end = f": {curve.mean[-1]:,.0f}" if times[curve.policy] == 1 else ""
        style = palette[curve.policy]
        key[curve.policy + seeds + end] = _sample(style, linestyle=style.dashes, linewidth=1.5)
    if any(isinstance(panel, RegretPanel) and panel.others for panel in panels):
        key["the curves of the other panel"] = Line2D([], [], color=GREY, linewidth=0.9)
    spans = [span for panel in panels for span in panel.spans]
    if any(first == last for first, last in spans):
        key["the world jumps"] = Line2D([], [], color="0.4", linestyle=":", linewidth=1.0)
    if any(first < last for first, last in spans):
        key["the world drifts"] = Line2D([], [], color="0.90", linewidth=7)
    return key


def _usual_seeds(panels: Sequence[RegretPanel | ChangesPanel]) -> int:
    """The number of seeds that most curves have."""
    return Counter(c.seeds for panel in panels for c in panel.curves).most_common(1)[0][0]


def _sample(style: LineStyle, **more: object) -> Line2D:
    """What a key shows of a policy."""
    return Line2D([], [], color=style.colour, marker=style.marker, markersize=MARK_POINTS, **more)  # type: ignore[arg-type]


def _by_end(curves: Sequence[RegretCurve]) -> list[RegretCurve]:
    """Highest end first, so that a legend has the order in which curves end."""
    return sorted(curves, key=lambda c: -c.mean[-1])


def _draw_panel(axes: Axes, panel: RegretPanel, palette: Mapping[str, LineStyle], *, seeds: int) -> None:
    _draw_spans(axes, panel.spans)
    for curve in panel.others:
        axes.plot(curve.rounds, curve.mean, color=GREY, linewidth=0.9, zorder=1)
    for place, curve in enumerate(_by_end(panel.curves)):
        style = palette[curve.policy]
        step = max(1, len(curve.rounds) // MARKS_PER_CURVE)
        axes.plot(
            curve.rounds,
            curve.mean,
            color=style.colour,
            linestyle=style.dashes,
            linewidth=1.5,
            marker=style.marker,
            markersize=MARK_POINTS,
            markevery=(step * (place + 1) // (len(panel.curves) + 1), step),  # marks of neighbours stand apart
            zorder=3,
        )
        low, high = curve.mean - curve.standard_error, curve.mean + curve.standard_error
        if curve.seeds > 1:
            axes.fill_between(curve.rounds, low, high, color=style.colour, alpha=0.18, linewidth=0, zorder=2)
    lowest = min(0.0, *(float(c.mean.min()) for c in (*panel.curves, *panel.others)))
    axes.set_ylim(1.05 * lowest, 1.05 * panel.top)
    axes.set_xlim(0, panel.horizon)
    axes.xaxis.set_major_formatter(WITH_COMMAS)
    axes.yaxis.set_major_formatter(WITH_COMMAS)
    tidy(axes, title=panel.title, xlabel="round", ylabel=f"cumulative regret, {_mean_over(seeds)}")


def _mean_over(seeds: int) -> str:
    return "one seed" if seeds == 1 else f"mean of {seeds:,} seeds"


def _draw_spans(axes: Axes, spans: Sequence[tuple[int, int]]) -> None:
    """True jumps and true drift."""
    for first, last in spans:
        if first == last:
            axes.axvline(first, color="0.4", linestyle=":", linewidth=1.0, zorder=0.5)
        else:
            axes.axvspan(first, last, color="0.94", linewidth=0, zorder=0)


def _draw_changes(axes: Axes, panel: ChangesPanel, palette: Mapping[str, LineStyle]) -> None:
    """One row per policy that reported changes, with its name, and one tick per report in any run."""
    _draw_spans(axes, panel.spans)
    labels = []
    for row, curve in enumerate(panel.curves):
        rounds = tick_rounds(curve, panel.horizon).astype(np.float64)
        across = np.repeat(rounds, 3)
        across[2::3] = np.nan  # one broken line, not a thousand marks
        up = np.tile([row - 0.3, row + 0.3, np.nan], len(rounds))
        axes.plot(across, up, color=palette[curve.policy].colour, linewidth=0.9, solid_capstyle="butt")
        name = textwrap.fill(curve.policy, LONGEST_LINE, break_on_hyphens=False)
        labels.append(f"{plain(name)}\n{len(curve.changes) / curve.seeds:.1f} per run")
    axes.set_xlim(0, panel.horizon)
    axes.set_ylim(max(len(labels), LEAST_ROWS) - 0.5, -0.5)
    axes.xaxis.set_major_formatter(WITH_COMMAS)
    axes.xaxis.set_major_locator(FixedLocator([panel.horizon * k // 4 for k in range(5)]))
    tidy(axes, title=panel.title, xlabel="round (one tick per report, all runs)")
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", labelsize=LABEL_POINTS - 0.5, length=0)
    axes.grid(visible=False, axis="y")


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
    key = {policy: _sample(palette[policy], linestyle="") for policy in policies}
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
