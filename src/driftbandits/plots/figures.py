"""Draws what `data` computed. No function shows a window or changes matplotlib's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from driftbandits.plots.data import RankedRegret, RegretCurve, change_spans

# Okabe and Ito: told apart with any kind of colour vision; line styles repeat the distinction in grey.
# The last three are for figures with more than seven policies.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255", "#999999", "#44AA99")
STYLES = (
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1)),
    (0, (3, 1, 1, 1)),
    (0, (1, 1)),
    (0, (6, 2, 1, 2)),
    (0, (2, 2)),
    (0, (8, 2)),
)


def draw_regret(
    axes: Axes, curves: Sequence[RegretCurve], *, title: str, true_changes: Sequence[int], colours: dict[str, int]
) -> None:
    """Mean cumulative regret with bands of one standard error; jumps dotted, drifts shaded, ticks at changes found."""
    for first, last in change_spans(true_changes):
        if first == last:
            axes.axvline(first, color="0.45", linestyle=":", linewidth=1.0, zorder=0)
        else:
            axes.axvspan(first, last, color="0.93", linewidth=0, zorder=0)
    top = max(float((c.mean + c.standard_error).max()) for c in curves)
    row = 0
    for curve in curves:
        number = colours[curve.policy] % len(COLOURS)
        colour, style = COLOURS[number], STYLES[number]
        label = f"{curve.policy}, {curve.seeds} seeds"
        axes.plot(curve.rounds, curve.mean, color=colour, linestyle=style, label=label, linewidth=1.6)
        axes.fill_between(
            curve.rounds,
            curve.mean - curve.standard_error,
            curve.mean + curve.standard_error,
            color=colour,
            alpha=0.2,
            linewidth=0,
        )
        if len(curve.changes):
            row += 1
            height = [-0.055 * top * row] * len(curve.changes)
            axes.plot(curve.changes, height, "|", color=colour, markersize=6, markeredgewidth=0.9, clip_on=False)
    # room above for the legend, one line a policy, so that it hides no curve
    axes.set_ylim(-0.055 * top * (row + 0.8), (1.06 + 0.085 * len(curves)) * top)
    axes.set_xlim(0, int(curves[0].rounds[-1]))
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("round")
    axes.set_ylabel("cumulative regret (reward units)")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 0 else ""))
    axes.grid(alpha=0.25, linewidth=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def regret_figure(panels: Sequence[dict[str, Any]]) -> Figure:
    """One panel an experiment, two a row; a panel holds `curves`, `title` and `true_changes` of `draw_regret`."""
    labels: dict[str, int] = {}
    for panel in panels:
        for curve in panel["curves"]:
            labels.setdefault(curve.policy, len(labels))
    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.1 * columns, 3.3 * rows + 0.1), layout="constrained", dpi=200)
    for number, panel in enumerate(panels):
        axes = figure.add_subplot(rows, columns, number + 1)
        draw_regret(axes, panel["curves"], title=panel["title"], true_changes=panel["true_changes"], colours=labels)
        axes.legend(framealpha=0.8, edgecolor="none", fontsize=7, loc="upper left", borderaxespad=0.2)
    figure.supxlabel(
        f"mean over seeds, bands: one standard error;{chr(10) if columns == 1 else ' '}dotted lines: true jumps; "
        "shaded: drift; ticks: changes found",
        fontsize=7,
        color="0.3",
    )
    return figure


def ranking_figure(
    panels: Sequence[RankedRegret], *, columns: int, families: dict[str, int], names: Sequence[str]
) -> Figure:
    """Final regret of every policy, one panel an experiment, best on top; `families` gives each its colour."""
    rows = -(-len(panels) // columns)
    height = 0.155 * max(len(panel.policies) for panel in panels) + 0.75
    figure = Figure(figsize=(3.5 * columns, height * rows + 0.3), layout="constrained", dpi=200)
    for number, panel in enumerate(panels):
        axes = figure.add_subplot(rows, columns, number + 1)
        for place, (policy, mean, error) in enumerate(
            zip(panel.policies, panel.mean, panel.standard_error, strict=True)
        ):
            colour = COLOURS[families[policy] % len(COLOURS)]
            axes.errorbar(mean, place, xerr=error, fmt="o", color=colour, markersize=3.5, capsize=2, linewidth=1.0)
        axes.set_yticks(range(len(panel.policies)), panel.policies, fontsize=6.5)
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_title(panel.title, fontsize=9)
        axes.tick_params(axis="x", labelsize=7)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.25, linewidth=0.5)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        if number >= len(panels) - columns:
            axes.set_xlabel("final cumulative regret (log scale)", fontsize=8)
    handles = [
        Line2D([], [], color=COLOURS[k % len(COLOURS)], marker="o", linestyle="", markersize=4)
        for k in range(len(names))
    ]
    figure.legend(handles, list(names), loc="outside lower center", ncols=len(names), frameon=False, fontsize=7)
    return figure
