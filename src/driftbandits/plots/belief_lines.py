"""What a policy believed over time: one line per arm with its band, changes as marks.

Computed first (`belief_lines`), drawn second (`draw_beliefs`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from driftbandits.plots.frame import LABEL_POINTS, WITH_COMMAS, Frame, plain, tidy
from driftbandits.policies import Policy, policy_label
from driftbandits.policies.records import History
from driftbandits.text import counted, label
from driftbandits.types import Floats, Ints

MOST_COLOURED = 8  # arms; more colours cannot be told apart
# Okabe and Ito's, told apart with any kind of colour vision; the last is Tol's
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222", "#882255")
GREY = "0.8"
_LONGEST_LABEL = 24
_LEAST_GAP = 0.052  # between labels at the right, as a share of the axis's height


@dataclass(frozen=True, eq=False)
class BeliefLine:
    """One arm: name, estimates and interval at the rounds, whether it has a colour of its own."""

    name: str
    estimate: Floats
    low: Floats | None
    high: Floats | None
    colour: str | None


@dataclass(frozen=True, eq=False)
class BeliefPanel:
    """What is drawn: lines in grey first, and the changes found, as (began, found)."""

    title: str
    rounds: Ints
    lines: tuple[BeliefLine, ...]
    changes: tuple[tuple[int, int], ...]
    grey: int


def belief_lines(policy: Policy, *, coloured: int) -> BeliefPanel:
    """The panel of a policy; the arms it plays now, and those it played most, have colours."""
    history = policy.history
    chosen = _chosen(history, min(coloured, MOST_COLOURED))
    last = history.estimate[-1]
    order = sorted(chosen, key=lambda place: -last[place])  # the legend has the order in which lines end
    colours = {place: COLOURS[number] for number, place in enumerate(order)}
    places = [*(k for k in range(len(history.arms)) if k not in colours), *reversed(order)]
    lines = tuple(
        BeliefLine(
            name=str(history.arms[k]) if history.names is None else history.names[k],
            estimate=history.estimate[:, k],
            low=None if history.low is None or k not in colours else history.low[:, k],
            high=None if history.high is None or k not in colours else history.high[:, k],
            colour=colours.get(k),
        )
        for k in places
    )
    changes = tuple((change.interval[0], change.round) for change in policy.changes)
    found = counted(policy.changes_found, "change")
    title = f"{policy_label(type(policy))}: {counted(int(history.rounds[-1]), 'round')}, {found} found"
    return BeliefPanel(title, history.rounds, lines, changes, len(places) - len(order))


def _chosen(history: History, most: int) -> list[int]:
    """Places of the arms to colour: by their share of probability, recent moments counting more."""
    moments = len(history)
    weights = np.linspace(0.2, 1.0, moments)[:, None]
    share = np.nansum(history.law * weights, axis=0)
    return [int(k) for k in np.argsort(-share, kind="stable")[:most]]


def draw_beliefs(panel: BeliefPanel) -> Figure:
    """One panel; names stand at the right end of the lines, moved apart where they would overlap."""
    frame = Frame(width=7.2, height=3.4, right=1.6)
    figure = frame.figure(1, _key(panel))
    axes = frame.axes(figure, 0)
    for began, found in panel.changes:
        axes.axvspan(began, found, color="0.93", linewidth=0, zorder=0)
        axes.axvline(began, color="0.35", linestyle=":", linewidth=1.0, zorder=0.5)
    for line in panel.lines:
        _draw_line(axes, panel.rounds, line)
    first, last = int(panel.rounds[0]), int(panel.rounds[-1])
    axes.set_xlim(min(first, 0), max(last, 1))
    axes.set_ylim(*_limits(panel))
    axes.xaxis.set_major_formatter(WITH_COMMAS)
    tidy(axes, title=panel.title, xlabel="round", ylabel="estimated reward, 95 % interval")
    _draw_names(axes, panel)
    return figure


def _draw_line(axes: Axes, rounds: Ints, line: BeliefLine) -> None:
    if line.colour is None:
        axes.plot(rounds, line.estimate, color=GREY, linewidth=0.7, zorder=1)
        return
    axes.plot(rounds, line.estimate, color=line.colour, linewidth=1.5, zorder=3)
    if line.low is not None and line.high is not None:
        axes.fill_between(rounds, line.low, line.high, color=line.colour, alpha=0.12, linewidth=0, zorder=2)


def _limits(panel: BeliefPanel) -> tuple[float, float]:
    """Of the axis: all coloured lines but their first moments, when nothing was known."""
    settled = slice(len(panel.rounds) // 20, None)
    values = [line.estimate[settled] for line in panel.lines if line.colour is not None]
    for line in panel.lines:
        if line.colour is not None and line.low is not None and line.high is not None:
            values += [line.low[-1:], line.high[-1:]]
    low, high = (float(ends) for ends in np.nanquantile(np.concatenate(values), [0.0, 1.0]))
    margin = 0.06 * (high - low) or 0.05 * max(abs(high), 1e-9)
    return low - margin, high + margin


def _draw_names(axes: Axes, panel: BeliefPanel) -> None:
    """Names at the ends of lines, highest first, none nearer to the one above than can be read."""
    bottom, top = axes.get_ylim()
    ends = [(line, (line.estimate[-1] - bottom) / (top - bottom)) for line in panel.lines if line.colour is not None]
    ends.sort(key=lambda item: -item[1])
    places: list[float] = []
    for _, height in ends:
        places.append(min(height, places[-1] - _LEAST_GAP if places else 1.0))
    below = max(0.0, -min(places, default=0.0))
    for (line, _), place in zip(ends, places, strict=True):
        name = label(line.name)
        short = name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 3]}..."
        text = f"{plain(short)}  {line.estimate[-1]:.3g}"
        style = {"transform": axes.transAxes, "va": "center", "fontsize": LABEL_POINTS, "color": line.colour}
        axes.text(1.02, place + below, text, **style)  # type: ignore[arg-type]


def _key(panel: BeliefPanel) -> dict[str, Line2D]:
    """What is not named at the end of its line."""
    key = {}
    if panel.changes:
        key["a change began; shaded until it was found"] = Line2D([], [], color="0.35", linestyle=":", linewidth=1.0)
    if panel.grey:
        key[counted(panel.grey, "other arm")] = Line2D([], [], color=GREY, linewidth=1.0)
    return key
