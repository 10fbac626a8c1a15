"""Figures of the advice page: rewards over time, arms over time, regrets in the twins. Computed first, drawn second."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from driftbandits.intervals import share_interval
from driftbandits.logs.estimators import local_variance
from driftbandits.logs.log import Log
from driftbandits.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from driftbandits.logs.advising import Advice

_POINTS = 60
MOST_ARMS = 8
_COLOURS = ("#EE3377", "#0077BB", "#009988", "#EE7733", "#33BBEE", "#CC3311", "#332288", "#999933")
WIDE, NARROW = 9.4, 4.0  # inches: of a page, and of a telephone
_HIGH = 2.9
_MARGIN = 0.05  # of the range of rewards, which bands of the model may leave
_NAME_LETTERS = 16  # of a line of a player's name, on narrow screens


@dataclass(frozen=True)
class Course:
    """A value over time with a band: `clock`, `value`, `low`, `high`, each (points,)."""

    clock: Floats
    value: Floats
    low: Floats
    high: Floats


def reward_course(log: Log) -> Course:
    """Mean reward of the policy that logged in up to 60 stretches of rows, with 95 % intervals."""
    number = max(min(_POINTS, len(log) // 20), 1)
    ends = np.linspace(0, len(log), number + 1).astype(int)
    parts = [slice(ends[k], ends[k + 1]) for k in range(number)]
    value = np.array([log.reward[part].mean() for part in parts])
    clock = np.array([log.clock[part].mean() for part in parts])
    low, high = float(log.reward.min()), float(log.reward.max())
    if (
        low < high and np.isin(log.reward, (low, high)).all()
    ):  # shares of successes: no band beyond them, none of width 0
        shares = [share_interval(int((log.reward[p] == high).sum()), p.stop - p.start) for p in parts]
        below, above = (np.array([getattr(share, end) for share in shares]) for end in ("low", "high"))
        return Course(clock, value, low + (high - low) * below, low + (high - low) * above)
    half = np.array([1.96 * math.sqrt(local_variance(log.reward[p])) / (p.stop - p.start) for p in parts])
    return Course(clock, value, value - half, value + half)


def arm_courses(advice: Advice) -> dict[str, Course]:
    """Estimated rewards of the arms that were best, on average or at any time; at most 8."""
    beliefs = advice.beliefs
    if beliefs is None:
        return {}
    low, mean, high = beliefs.paths
    firsts = np.searchsorted(beliefs.bins.of_row, np.arange(len(beliefs.bins)))
    clock = advice.log.clock[firsts]
    ever = np.bincount(mean.argmax(axis=1), minlength=mean.shape[1])
    order = np.lexsort((-mean.mean(axis=0), -ever))[:MOST_ARMS]
    return {beliefs.names[k]: Course(clock, mean[:, k], low[:, k], high[:, k]) for k in order}


def draw_rewards(advice: Advice, width: float = WIDE) -> Figure:
    """Reward over time with its band, a mark and its interval at every change."""
    figure, axes = _empty(advice, "mean reward", width)
    _band(axes, reward_course(advice.log), "#0077BB", "")
    for change in advice.changes:
        axes.axvspan(change.low, change.high, color="#EE7733", alpha=0.25, linewidth=0)
        axes.axvline(change.when, color="#CC3311", linewidth=1.0)
    return figure


def draw_arms(advice: Advice, width: float = WIDE) -> Figure:
    """Estimated rewards of the best arms over time, with bands."""
    from driftbandits.plots.frame import plain

    figure, axes = _empty(advice, "estimated reward", width)
    for (name, course), colour in zip(arm_courses(advice).items(), _COLOURS, strict=False):
        _band(axes, course, colour, plain(name[:30]))
    low, high = float(advice.log.reward.min()), float(advice.log.reward.max())
    bottom, top = axes.get_ylim()
    axes.set_ylim(max(bottom, low - _MARGIN * (high - low)), min(top, high + _MARGIN * (high - low)))
    if width < WIDE:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncol=2, frameon=False, fontsize=8)
    else:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    return figure


def draw_regrets(advice: Advice, width: float = WIDE) -> Figure:
    """Regret per round in the twins, one row per player, with intervals."""
    from matplotlib.figure import Figure

    from driftbandits.plots.frame import tidy

    regrets = advice.regrets
    names = [] if regrets is None else regrets.ranked()
    figure = Figure(figsize=(width, 0.4 * len(names) + 0.9), layout="constrained")
    axes = figure.subplots()
    for row, name in enumerate(names):
        if regrets is None:
            break
        interval = regrets.interval(name)
        axes.plot((interval.low, interval.high), (row, row), color="#0077BB", linewidth=1.4)
        axes.plot(regrets.by_twin[name], [row] * len(regrets.by_twin[name]), ".", color="#99BBDD", markersize=4)
        axes.plot([interval.estimate], [row], "o", color="#0077BB", markersize=5)
    words = names if width == WIDE else [textwrap.fill(name, _NAME_LETTERS) for name in names]
    axes.set_yticks(range(len(names)), words)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(left=0)
    label = "regret per round in the twins: mean, 95 % interval, every twin"
    tidy(axes, title="", xlabel=label if width == WIDE else textwrap.fill(label, 2 * _NAME_LETTERS))
    return figure


def _empty(advice: Advice, ylabel: str, width: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    from driftbandits.plots.frame import WITH_COMMAS, tidy

    figure = Figure(figsize=(width, _HIGH), layout="constrained")
    axes = figure.subplots()
    axes.locator_params(axis="x", nbins=7 if width == WIDE else 4)
    tidy(axes, title="", xlabel="round" if advice.log.time is None else "time", ylabel=ylabel)
    if advice.log.time is None:
        axes.xaxis.set_major_formatter(WITH_COMMAS)
    elif advice.log.time[0] > 1e8:
        from matplotlib.ticker import FuncFormatter

        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: str(np.datetime64(int(x), "s"))[:10]))
    return figure, axes


def _band(axes: Axes, course: Course, colour: str, name: str) -> None:
    axes.fill_between(course.clock, course.low, course.high, color=colour, alpha=0.15, linewidth=0)
    axes.plot(course.clock, course.value, color=colour, linewidth=1.3, label=name)
