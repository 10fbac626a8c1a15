"""What judgements are made of: a verdict on a target set beforehand, runs that can be compared, ratios over worlds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from driftbandits.escaping import markdown

Status = Literal["met", "not met", "not played", "reported"]


@dataclass(frozen=True)
class Verdict:
    """One target: what was measured, the most it may be (NaN where it is only reported), and what it is taken over."""

    target: str
    value: float
    limit: float
    note: str

    @property
    def status(self) -> Status:
        """Whether it is met."""
        if math.isnan(self.value):
            return "not played"
        if math.isnan(self.limit):
            return "reported"
        return "met" if self.value <= self.limit else "not met"


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


def table_columns(rivals: Sequence[str]) -> tuple[str, ...]:
    """Columns of a `ratio_table`.

    >>> table_columns(["window"])
    ('world', 'seeds', 'regret', 'standard_error', 'window', 'over_window')
    """
    return ("world", "seeds", "regret", "standard_error", *rivals, *(f"over_{rival}" for rival in rivals))


def ratio_table(cells: pd.DataFrame, rivals: Mapping[str, str], *, prefix: str, subject: str) -> pd.DataFrame:
    """One row a world: the subject's mean final regret, that of each rival, its own over it; the worst loss first.

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
    columns = table_columns(list(rivals))
    table = pd.DataFrame(rows, columns=list(columns)).astype(dict.fromkeys(columns[2:], float))
    return table.sort_values(f"over_{next(iter(rivals))}", ascending=False, kind="stable", ignore_index=True)


def typical(ratios: pd.Series[float]) -> float:
    """Geometric mean, NaN of nothing.

    >>> round(typical(pd.Series([0.5, 2.0])), 6)
    1.0
    """
    return float(np.exp(np.log(ratios).mean())) if len(ratios) else math.nan


def worst(target: str, table: pd.DataFrame, column: str, limit: float) -> Verdict:
    """The verdict on the largest of a column, by the world that has it; `table` has columns world and `column`."""
    largest = table.dropna(subset=[column]).nlargest(1, column).to_dict("records")
    if not largest:
        return Verdict(target, math.nan, limit, "no such world")
    return Verdict(target, float(largest[0][column]), limit, f"{largest[0]['world']}, of {len(table)}")


def verdict_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """The verdicts as lines of a Markdown table."""
    lines = ["| target | measured | at most | verdict | of |", "|---|---:|---:|---|---|"]
    for verdict in verdicts:
        value, limit = _number(verdict.value), _number(verdict.limit)
        target, note = markdown(verdict.target), markdown(verdict.note)
        lines.append(f"| {target} | {value} | {limit} | **{verdict.status}** | {note} |")
    return lines


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
