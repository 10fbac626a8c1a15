"""The paper's claims judged once for all who show them, and their tables to read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, get_args

from driftbandits.experiments.definitions.bounds import Sweep, sweeps_of
from driftbandits.experiments.definitions.growth import GROWTH, SWEEPS, without_guests
from driftbandits.experiments.judging.checks import Check, CheckVerdict, Claim, join_settings
from driftbandits.experiments.judging.claims import CLAIMED, check_claims
from driftbandits.experiments.judging.judgement import Judgement
from driftbandits.experiments.judging.results import Results

MOST_CHECKS_NAMED = 4  # of a claim under one setting, in a row of a table


@dataclass(frozen=True, eq=False)
class SweptClaims(Judgement):
    """Claims, also those that nothing was played for, and the `sweeps` whose growth is measured."""

    sweeps: tuple[Sweep, ...]
    file: ClassVar[str]  # where its tables are written

    def markdown(self) -> str:
        """Three tables, of the claims that something was played for."""
        played = [claim for claim in self.claims if claim.verdict != "not run"]
        return claims_markdown(played) if played else ""

    @property
    def files(self) -> Mapping[str, str]:
        """The same."""
        return {self.file: self.markdown()}


class ClaimsJudgement(SweptClaims):
    """The claims of the paper's figures, and of the kernel half of Table 1."""

    file = "claims.md"


def judge_claims(results: Results) -> ClaimsJudgement | None:
    """The paper's claims, if anything they are about has been played."""
    if {*CLAIMED, *GROWTH}.isdisjoint(results.cells["experiment"]):
        return None
    sweeps = sweeps_of(results.experiments, SWEEPS)
    return ClaimsJudgement(sweeps, claims=tuple(check_claims(results, sweeps=without_guests(sweeps))))


def claims_markdown(claims: Sequence[Claim]) -> str:
    """Three tables to read: the verdict on every claim, what holds under which settings, and every check.

    >>> from driftbandits.experiments.judging.claims import check_claims
    >>> from driftbandits.experiments.judging.results import collect
    >>> print(claims_markdown(check_claims(collect([], [])))[:66])
    | claim | figure | what it says | verdict | checks |
    |---|---|---|
    """
    lines = ["| claim | figure | what it says | verdict | checks |", "|---|---|---|---|---|"]
    lines += [f"| {c.id} | {c.figure} | {c.text} | **{c.verdict}** | {_counts(c.checks)} |" for c in claims]
    lines += ["", "| claim | under which settings | verdict | what holds |", "|---|---|---|---|"]
    lines += [
        f"| {claim.id} | {found.settings} | **{found.verdict}** | {_each(found.checks)} |"
        for claim in claims
        for found in claim.by_settings
    ]
    lines += ["", "| claim | settings | statement | estimate [95 % interval] | seeds | verdict | note |"]
    lines += ["|---|---|---|---:|---:|---|---|"]
    lines += [
        f"| {c.claim} | {join_settings(c.settings)} | {c.statement} | {_shown(c)} | {c.seeds or '–'} | {c.verdict} "
        f"| {c.note} |"
        for claim in claims
        for c in claim.checks
    ]
    return "\n".join(lines) + "\n"


def _each(checks: Sequence[Check]) -> str:
    """What became of every check, or how many have which verdict where they are many."""
    if len(checks) > MOST_CHECKS_NAMED:
        return _counts(checks)
    return "; ".join(f"{check.brief}: {check.verdict}" for check in checks)


def _counts(checks: Sequence[Check]) -> str:
    verdicts = [check.verdict for check in checks]
    return ", ".join(f"{verdicts.count(v)} {v}" for v in get_args(CheckVerdict) if v in verdicts)


def _shown(check: Check) -> str:
    form = "{:.2f}" if check.unit == "slope" else "{:,.0f}"
    if math.isnan(check.estimate):
        return "–"
    estimate = form.format(check.estimate)
    if math.isnan(check.low):
        return estimate
    return f"{estimate} [{form.format(check.low)}, {form.format(check.high)}]"
