"""Draws what `data` computed. No function shows a window or changes matplotlib's settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

from driftbandits.plots.data import (
    GrowthCurve,
    GrowthPanel,
    RankedRegret,
    RegretCurve,
    RegretPanel,
    power_law,
    tick_rounds,
)
from driftbandits.plots.frame import LABEL_POINTS, WITH_COMMAS, WITH_K, Frame, plain, tidy
from driftbandits.plots.palette import MARKERS, SOLID, LineStyle
from driftbandits.showing import counted

TICK_ROW_INCHES = 0.115
GREY = "0.80"
AXIS_LABELS = {"T": "rounds T", "L_T": "segments $L_T$", "V_T": "turns of the drift, to which $V_T$ is proportional"}


def regret_frame(panels: Sequence[RegretPanel]) -> Frame:
    """Sizes that suit all panels of an experiment, drawn together or one by one."""
    detecting = max(sum(len(c.changes) > 0 for c in panel.curves) for panel in panels)
    return Frame(
        width=3.9 if len(panels) > 1 else 5.2,
        height=2.45 if len(panels) > 1 else 2.9,
        strip=TICK_ROW_INCHES * detecting + 0.16 if detecting else 0.0,
        legend=max(len(panel.curves) + bool(panel.others) for panel in panels),
    )


def regret_figure(
    panels: Sequence[RegretPanel], *, palette: Mapping[str, LineStyle], frame: Frame | None = None
) -> Figure:
    """Mean cumulative regret in panels side by side, with bands of one standard error.

    Dotted lines are true jumps, shades true drift, ticks on top the changes that each policy found on any seed; curves
    in grey are those of the other panels. The legend gives the seeds and the final mean.
    """
    frame = regret_frame(panels) if frame is None else frame
    figure = frame.figure(len(panels))
    for number, panel in enumerate(panels):
        axes = frame.axes(figure, number)
        handles = _draw_panel(axes, panel, palette)
        frame.draw_legend(figure, number, list(handles.values()), list(handles))
        found = [c for c in _by_end(panel.curves) if len(c.changes)]
        if found:
            axes.set_title("", loc="left")  # the strip carries it
            strip = frame.strip_axes(figure, number, TICK_ROW_INCHES * len(found))
            _draw_ticks(strip, found, panel, palette)
    return figure


def _by_end(curves: Sequence[RegretCurve]) -> list[RegretCurve]:
    """Highest end first, so that a legend has the order in which curves end."""
    return sorted(curves, key=lambda c: -c.mean[-1])


def _draw_panel(axes: Axes, panel: RegretPanel, palette: Mapping[str, LineStyle]) -> dict[str, Line2D]:
    for first, last in panel.spans:
        if first == last:
            axes.axvline(first, color="0.4", linestyle=":", linewidth=1.0, zorder=0.5)
        else:
            axes.axvspan(first, last, color="0.94", linewidth=0, zorder=0)
    for curve in panel.others:
        axes.plot(curve.rounds, curve.mean, color=GREY, linewidth=0.9, zorder=1)
    handles = {}
    for curve in _by_end(panel.curves):
        style = palette[curve.policy]
        (line,) = axes.plot(
            curve.rounds, curve.mean, color=style.colour, linestyle=style.dashes, linewidth=1.5, zorder=3
        )
        low, high = curve.mean - curve.standard_error, curve.mean + curve.standard_error
        if curve.seeds > 1:
            axes.fill_between(curve.rounds, low, high, color=style.colour, alpha=0.18, linewidth=0, zorder=2)
        seeds = counted(curve.seeds, "seed")
        handles[f"{curve.policy}, {seeds}: {curve.mean[-1]:,.0f}"] = line
    if panel.others:
        handles["the others, for comparison"] = Line2D([], [], color=GREY, linewidth=0.9)
    lowest = min(0.0, *(float(c.mean.min()) for c in (*panel.curves, *panel.others)))
    axes.set_ylim(1.05 * lowest, 1.05 * panel.top)
    axes.set_xlim(0, panel.horizon)
    axes.xaxis.set_major_formatter(WITH_COMMAS)
    axes.yaxis.set_major_formatter(WITH_COMMAS)
    tidy(axes, title=panel.title, xlabel="round", ylabel="cumulative regret")
    return handles


def _draw_ticks(
    axes: Axes, curves: Sequence[RegretCurve], panel: RegretPanel, palette: Mapping[str, LineStyle]
) -> None:
    """One row per policy that found changes, in the order of the legend; true jumps go through."""
    for row, curve in enumerate(curves):
        rounds = tick_rounds(curve, panel.horizon).astype(np.float64)
        across = np.repeat(rounds, 3)
        across[2::3] = np.nan  # one broken line, not a thousand marks
        up = np.tile([row + 0.12, row + 0.88, np.nan], len(rounds))
        style = palette[curve.policy]
        axes.plot(across, up, color=style.colour, linewidth=0.8, solid_capstyle="butt")
        sample = (-0.115 * panel.horizon, -0.02 * panel.horizon)  # in the margin: whose row it is, as in the legend
        axes.plot(sample, (row + 0.5,) * 2, color=style.colour, linestyle=style.dashes, linewidth=1.5, clip_on=False)
    for first, last in panel.spans:
        if first == last:
            axes.axvline(first, color="0.4", linestyle=":", linewidth=1.0)
    axes.set_xlim(0, panel.horizon)
    axes.set_ylim(len(curves), 0)
    axes.set_title(plain(panel.title), fontsize=9, loc="left", pad=12 if panel.title else 4)
    axes.text(0, 1.02, "changes found", transform=axes.transAxes, fontsize=6.5, color="0.35", ha="left", va="bottom")


def growth_frame(panels: Sequence[GrowthPanel]) -> Frame:
    """Sizes that suit all sweeps."""
    return Frame(left=0.72, legend=max(2 * len(panel.curves) for panel in panels))


def growth_figure(
    panels: Sequence[GrowthPanel], *, palette: Mapping[str, LineStyle], frame: Frame | None = None
) -> Figure:
    """Mean final regret along sweeps, both axes logarithmic, with bars of one standard error.

    Solid lines are the fitted slopes, dotted ones the slopes that the paper's rate allows, through the same middle; the
    legend states both.
    """
    frame = growth_frame(panels) if frame is None else frame
    figure = frame.figure(len(panels))
    for number, panel in enumerate(panels):
        axes = frame.axes(figure, number)
        handles: list[Line2D] = []
        labels: list[str] = []
        for curve in panel.curves:
            handles += _draw_growth(axes, curve, palette[curve.policy])
            labels += _growth_labels(curve)
        frame.draw_legend(figure, number, handles, labels)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_locator(FixedLocator(sorted({v for c in panel.curves for v in c.values.tolist()})))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(WITH_K)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(WITH_COMMAS)
        axes.yaxis.set_minor_formatter(NullFormatter())
        tidy(axes, title=panel.title[:1].upper() + panel.title[1:], xlabel=AXIS_LABELS.get(panel.symbol, panel.symbol))
        axes.set_ylabel("final regret", fontsize=8)
    return figure


def _draw_growth(axes: Axes, curve: GrowthCurve, style: LineStyle) -> list[Line2D]:
    axes.errorbar(
        curve.values,
        curve.mean,
        yerr=curve.standard_error if curve.seeds > 1 else None,
        fmt="o",
        color=style.colour,
        markersize=3.5,
        capsize=2,
        linewidth=1,
        markerfacecolor=style.colour if style.dashes == SOLID else "white",
    )
    fitted = Line2D([], [], color=style.colour, marker="o", markersize=3.5, linestyle="")
    if curve.growth is not None:
        for slope, dashes, width in ((curve.growth.slope.estimate, "-", 1.2), (curve.growth.allowed, ":", 1.0)):
            axes.plot(curve.values, power_law(curve, slope), color=style.colour, linestyle=dashes, linewidth=width)
        fitted.set_linestyle("-")
    if style.dashes != SOLID:
        fitted.set_markerfacecolor("white")
    return [fitted, Line2D([], [], color=style.colour, linestyle=":", linewidth=1.0)][: 1 + (curve.growth is not None)]


def _growth_labels(curve: GrowthCurve) -> list[str]:
    seeds = counted(curve.seeds, "seed")
    if curve.growth is None:
        return [f"{curve.policy}, {seeds}: too few points for a slope"]
    slope = curve.growth.slope
    around = "" if math.isnan(slope.low) else f" ({slope.low:.2f} to {slope.high:.2f})"
    return [f"{curve.policy}, {seeds}: slope {slope.estimate:.2f}{around}", f"allowed: {curve.growth.allowed:.2f}"]


def ranking_frame(panels: Sequence[RankedRegret], families: Mapping[str, str]) -> Frame:
    """Sizes that suit all rankings."""
    policies = max(len(panel.policies) for panel in panels)
    longest = max(len(policy) for panel in panels for policy in panel.policies)
    return Frame(left=max(1.35, 0.06 * longest), height=0.17 * policies + 0.1, legend=len(_marks(families)))


def ranking_figure(
    panels: Sequence[RankedRegret],
    *,
    families: Mapping[str, str],
    palette: Mapping[str, LineStyle],
    columns: int = 3,
    frame: Frame | None = None,
) -> Figure:
    """Final regret of every policy on a logarithmic axis, best on top; one panel per experiment.

    `families` names the family of each label, which has its own mark.
    """
    frame = ranking_frame(panels, families) if frame is None else frame
    figure = frame.figure(len(panels), columns=columns)
    marks = _marks(families)
    handles = [Line2D([], [], color="0.25", marker=mark, linestyle="", markersize=4.5) for mark in marks.values()]
    for number, panel in enumerate(panels):
        axes = frame.axes(figure, number)
        marks_of_policies = [(palette[policy].colour, marks[families[policy]]) for policy in panel.policies]
        _draw_ranking(axes, panel, marks_of_policies)
        frame.draw_legend(figure, number, handles, list(marks))
    return figure


def _marks(families: Mapping[str, str]) -> dict[str, str]:
    return {kind: MARKERS[number % len(MARKERS)] for number, kind in enumerate(dict.fromkeys(families.values()))}


def _draw_ranking(axes: Axes, panel: RankedRegret, marks: Sequence[tuple[str, str]]) -> None:
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
    tidy(axes, title=panel.title, xlabel="final cumulative regret (log scale)")
    axes.tick_params(axis="y", labelsize=LABEL_POINTS - 0.5)
