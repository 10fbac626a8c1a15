"""What a figure of regret shows, as small tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from driftbandits.experiments.definitions.bounds import Sweep
from driftbandits.experiments.judging.slopes import Growth, measure_growth, regret_by_seed
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
