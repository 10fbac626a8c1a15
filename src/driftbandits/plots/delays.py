"""How soon, and how often, changes are found: `delay_panels` computes, `delay_figure` draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, PercentFormatter

from driftbandits.plots.frame import WITH_COMMAS, Frame, tidy
from driftbandits.plots.palette import MARKERS, LineStyle
from driftbandits.plots.words import plain

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
            _draw_dots(axes, dots, palette[policy].colour, place, len(panel.dots))
        _scale(axes, panel)
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


def _draw_dots(axes: Axes, dots: Sequence[Dot], colour: str, place: int, places: int) -> None:
    shift = ROWS_BETWEEN_DOTS * (place - (places - 1) / 2)
    for row, dot in enumerate(dots):
        axes.plot((dot.low, dot.high), (row + shift,) * 2, color=colour, linewidth=1.0, alpha=0.6, zorder=2)
    across, up = [dot.value for dot in dots], [row + shift for row in range(len(dots))]
    axes.plot(across, up, linestyle="", marker=_mark(place), color=colour, markersize=4.2, zorder=3, clip_on=False)


def _scale(axes: Axes, panel: DelayPanel) -> None:
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
