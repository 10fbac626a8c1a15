"""What judgements are made of: a verdict on a target set beforehand, runs that can be compared, ratios over worlds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

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
        lines.append(f"| {verdict.target} | {value} | {limit} | **{verdict.status}** | {verdict.note} |")
    return lines


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
