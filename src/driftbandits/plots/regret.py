"""Figures of regret over time: the small tables behind them first, then what draws them.

No function shows a window or changes matplotlib's settings. Every figure has one key, drawn below its panels; a page
that shows panels one by one leaves it out (`legend=False`) and shows the key itself.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from driftbandits.plots.frame import LABEL_POINTS, WITH_COMMAS, Frame, LineStyle, plain, tidy
from driftbandits.text import counted
from driftbandits.types import Floats, Ints

CURVES_BEFORE_SPLITTING = 5  # one panel shows as many well
MOST_CURVES_PER_PANEL = 8
TICK_PLACES = 500  # for changes found; more cannot be told apart


@dataclass(frozen=True)
class RegretCurve:
    """Mean cumulative regret of one policy with its standard error, and the rounds at which it found changes."""

    policy: str
    seeds: int
    rounds: Ints
    mean: Floats
    standard_error: Floats
    changes: Ints


def regret_curves(curves: pd.DataFrame, cells: pd.DataFrame, experiment: str) -> list[RegretCurve]:
    """The curves of one experiment, in the order of its policies. One seed alone has the standard error 0."""
    result = []
    here = curves[curves["experiment"] == experiment]
    runs = cells[cells["experiment"] == experiment]
    for policy, group in here.groupby("policy", sort=False):
        table = group.pivot_table(index="round", columns="seed", values="regret")
        found = runs.loc[runs["policy"] == policy, "changes"]
        result.append(
            RegretCurve(
                policy=str(policy),
                seeds=table.shape[1],
                rounds=table.index.to_numpy(dtype=np.int64),
                mean=table.mean(axis=1).to_numpy(),
                standard_error=table.sem(axis=1).fillna(0.0).to_numpy(),
                changes=np.array(sorted(t for changes in found for t in changes), dtype=np.int64),
            )
        )
    return result


def change_spans(rounds: Sequence[int]) -> list[tuple[int, int]]:
    """First and last round of every stretch of changes in consecutive rounds: a jump has both equal, a drift has not.

    >>> change_spans([3, 7, 8, 9])
    [(3, 3), (7, 9)]
    """
    spans: list[tuple[int, int]] = []
    for change in rounds:
        if spans and change == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], change)
        else:
            spans.append((change, change))
    return spans


@dataclass(frozen=True)
class RegretPanel:
    """One panel: `curves` in their colours, `others` of the same world behind them in grey.

    All panels of an experiment have the same `top`, so they can be compared. `spans` are the true changes as first and
    last rounds; `title` says which policies these are and is empty where one panel shows all of them.
    """

    title: str
    curves: tuple[RegretCurve, ...]
    others: tuple[RegretCurve, ...]
    spans: tuple[tuple[int, int], ...]
    horizon: int
    top: float


def regret_panels(
    curves: Sequence[RegretCurve],
    *,
    true_changes: Sequence[int],
    ours: Collection[str] = (),
    beyond: Collection[str] = (),
) -> list[RegretPanel]:
    """Panels of one experiment: all policies together while they are few, else those of the paper apart from the rest.

    `ours` are labels of policies whose algorithm is the paper's own, `beyond` of those that go beyond the paper: they
    stand beside its rivals, and the title says so. No panel holds more than `MOST_CURVES_PER_PANEL` curves.
    """
    parts = _parts(curves, ours, beyond)
    top = max((float((c.mean + c.standard_error).max()) for c in curves), default=1.0)
    return [
        RegretPanel(
            title=title,
            curves=tuple(part),
            others=tuple(c for c in curves if c.policy not in {one.policy for one in part}),
            spans=tuple(change_spans(sorted(true_changes))),
            horizon=max(int(c.rounds[-1]) for c in curves),
            top=top if top > 0 else 1.0,
        )
        for title, part in parts
    ]


def _parts(
    curves: Sequence[RegretCurve], ours: Collection[str], beyond: Collection[str]
) -> list[tuple[str, list[RegretCurve]]]:
    if len(curves) <= CURVES_BEFORE_SPLITTING:
        return [("", list(curves))] if curves else []
    mine = [c for c in curves if c.policy in ours]
    rest = [c for c in curves if c.policy not in ours]
    if not mine or not rest:
        return _split("Policies", list(curves))
    newer = sum(c.policy in beyond for c in rest)
    title = "Beyond the paper" if newer == len(rest) else "Rivals, and beyond the paper" if newer else "Rivals"
    return [*_split("The paper’s algorithms", mine), *_split(title, rest)]


def _split(title: str, curves: list[RegretCurve]) -> list[tuple[str, list[RegretCurve]]]:
    """As few parts of nearly equal size as panels can hold, with a number behind the title."""
    number = -(-len(curves) // MOST_CURVES_PER_PANEL)
    size = -(-len(curves) // number)
    parts = [curves[k : k + size] for k in range(0, len(curves), size)]
    if len(parts) == 1:
        return [(title, parts[0])]
    return [(f"{title} ({k} of {len(parts)})", part) for k, part in enumerate(parts, start=1)]


@dataclass(frozen=True)
class ChangesPanel:
    """When policies reported changes: those that reported any, in their order; `spans` are the true changes."""

    title: str
    curves: tuple[RegretCurve, ...]
    spans: tuple[tuple[int, int], ...]
    horizon: int


def changes_panels(panels: Sequence[RegretPanel]) -> list[ChangesPanel]:
    """One panel of all changes reported in the world of these panels; none if there are no reports."""
    found = tuple(c for panel in panels for c in panel.curves if len(c.changes))
    return [ChangesPanel("When changes were reported", found, panels[0].spans, panels[0].horizon)] if found else []


def tick_rounds(curve: RegretCurve, horizon: int) -> Ints:
    """Rounds at which changes were found, thinned to what can be told apart on `TICK_PLACES` places.

    >>> changes = np.array([100, 101, 9000])
    >>> curve = RegretCurve("any", 1, np.array([1]), np.zeros(1), np.zeros(1), changes)
    >>> tick_rounds(curve, 10_000).tolist()
    [100, 9000]
    """
    places = curve.changes * TICK_PLACES // max(horizon, 1)
    _, first = np.unique(places, return_index=True)
    return curve.changes[first]


GREY = "0.82"
MARKS_PER_CURVE = 6
MARK_POINTS = 4.0
LEAST_ROWS = 5  # of reported changes: with fewer, ticks would be as tall as the panel
INCHES_PER_LETTER = 0.063  # of labels
LONGEST_LINE = 24  # letters of a label


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
        key[curve.policy + seeds + end] = sample(style, linestyle=style.dashes, linewidth=1.5)
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


def sample(style: LineStyle, **more: object) -> Line2D:
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
