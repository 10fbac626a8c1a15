"""What a regret figure shows, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from driftbandits.types import Floats, Ints


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
    """The curves of one experiment, in the order of its policies."""
    result = []
    here = curves[curves["experiment"] == experiment]
    for policy, group in here.groupby("policy", sort=False):
        table = group.pivot_table(index="round", columns="seed", values="regret")
        runs = cells[(cells["experiment"] == experiment) & (cells["policy"] == policy)]
        result.append(
            RegretCurve(
                policy=str(policy),
                seeds=table.shape[1],
                rounds=table.index.to_numpy(dtype=np.int64),
                mean=table.mean(axis=1).to_numpy(),
                standard_error=table.sem(axis=1).fillna(0.0).to_numpy(),
                changes=np.array(sorted(t for found in runs["changes"] for t in found), dtype=np.int64),
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
