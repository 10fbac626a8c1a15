"""Runs that can be compared, and the regret of one policy over that of its rivals, world by world."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd


def shared_runs(cells: pd.DataFrame, prefix: str, subject: str) -> pd.DataFrame:
    """Runs of experiments that begin with `prefix`, on seeds that all policies there have played, the subject too."""
    here = cells[cells["experiment"].str.startswith(prefix)]
    kept = []
    for _, group in here.groupby("experiment", sort=False):
        policies = group["policy"].nunique()
        whole = group.groupby("seed")["policy"].transform("nunique") == policies
        if subject in set(group["policy"]):
            kept.append(group[whole])
    return pd.concat(kept) if kept else here.iloc[:0]


def ratio_columns(rivals: Sequence[str]) -> tuple[str, ...]:
    """Columns of a `ratio_table`.

    >>> ratio_columns(["window"])
    ('world', 'seeds', 'regret', 'standard_error', 'window', 'over_window')
    """
    return ("world", "seeds", "regret", "standard_error", *rivals, *(f"over_{rival}" for rival in rivals))


def ratio_table(cells: pd.DataFrame, rivals: Mapping[str, str], *, prefix: str, subject: str) -> pd.DataFrame:
    """One row per world: the subject's mean final regret, that of each rival, its own over it; the worst loss first.

    `rivals` names the columns by the rivals' labels. Losses are over the first of them; one that has not played in a
    world has NaN there.
    """
    rows = []
    for name, group in cells.groupby("experiment", sort=False):
        means = group.groupby("policy")["regret"].mean()
        own = group.loc[group["policy"] == subject, "regret"]
        regrets = {rival: means.get(label, math.nan) for rival, label in rivals.items()}
        rows.append(
            {
                "world": str(name).removeprefix(prefix),
                "seeds": len(own),
                "regret": own.mean(),
                "standard_error": own.sem(),
                **regrets,
                **{f"over_{rival}": own.mean() / regret for rival, regret in regrets.items()},
            }
        )
    columns = ratio_columns(list(rivals))
    table = pd.DataFrame(rows, columns=list(columns)).astype(dict.fromkeys(columns[2:], float))
    return table.sort_values(f"over_{next(iter(rivals))}", ascending=False, kind="stable", ignore_index=True)


def geometric_mean(ratios: pd.Series[float]) -> float:
    """The geometric mean, NaN of nothing.

    >>> round(geometric_mean(pd.Series([0.5, 2.0])), 6)
    1.0
    """
    return float(np.exp(np.log(ratios).mean())) if len(ratios) else math.nan
