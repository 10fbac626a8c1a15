"""Verdicts on targets that were set beforehand, and their table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from driftbandits.escaping import markdown

TargetStatus = Literal["met", "not met", "not played", "reported"]
REPORTED_ONLY = math.nan  # the limit of what has no target


@dataclass(frozen=True)
class TargetVerdict:
    """One target: what was measured, the most it may be (NaN where it is only reported), and what it is taken over."""

    target: str
    value: float
    limit: float
    note: str

    @property
    def status(self) -> TargetStatus:
        """Whether it is met."""
        if math.isnan(self.value):
            return "not played"
        if math.isnan(self.limit):
            return "reported"
        return "met" if self.value <= self.limit else "not met"


def judge_worst_world(target: str, table: pd.DataFrame, column: str, limit: float) -> TargetVerdict:
    """The verdict on the largest of a column, by the world that has it; `table` has columns world and `column`."""
    largest = table.dropna(subset=[column]).nlargest(1, column).to_dict("records")
    if not largest:
        return TargetVerdict(target, math.nan, limit, "no such world")
    return TargetVerdict(target, float(largest[0][column]), limit, f"{largest[0]['world']}, of {len(table)}")


def verdict_lines(verdicts: Sequence[TargetVerdict]) -> list[str]:
    """The verdicts as lines of a Markdown table."""
    lines = ["| target | measured | at most | verdict | of |", "|---|---:|---:|---|---|"]
    for verdict in verdicts:
        value, limit = _number(verdict.value), _number(verdict.limit)
        target, note = markdown(verdict.target), markdown(verdict.note)
        lines.append(f"| {target} | {value} | {limit} | **{verdict.status}** | {note} |")
    return lines


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def with_standard_error(regret: float, standard_error: float) -> str:
    """A mean regret and its standard error, which one seed does not have.

    >>> with_standard_error(1234.5, 9.8), with_standard_error(1234.5, math.nan)
    ('1,234 ± 10', '1,234')
    """
    return f"{regret:,.0f}" + ("" if math.isnan(standard_error) else f" ± {standard_error:.0f}")
