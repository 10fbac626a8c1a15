"""The paper's claims judged once for all who show them, and their tables to read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from driftbandits.experiments.definitions.growth import GROWTH, Sweep, sweeps_of, without_guests
from driftbandits.experiments.definitions.paper import PAPER
from driftbandits.experiments.judging.claims import Check, CheckVerdict, Claim, check_claims
from driftbandits.experiments.judging.judgement import Judgement
from driftbandits.experiments.judging.results import Results


@dataclass(frozen=True, eq=False)
class ClaimsJudgement(Judgement):
    """All claims, also those that nothing was played for; `sweeps` are those whose growth is measured."""

    sweeps: tuple[Sweep, ...]

    def markdown(self) -> str:
        """Two tables, of the claims that something was played for."""
        played = [claim for claim in self.claims if claim.verdict != "not run"]
        return claims_markdown(played) if played else ""

    @property
    def files(self) -> Mapping[str, str]:
        """The same."""
        return {"claims.md": self.markdown()}


def judge_claims(results: Results) -> ClaimsJudgement | None:
    """The paper's claims, if anything they are about has been played."""
    if {*PAPER, *GROWTH}.isdisjoint(results.cells["experiment"]):
        return None
    sweeps = sweeps_of(results.experiments)
    return ClaimsJudgement(sweeps, claims=tuple(check_claims(results, sweeps=without_guests(sweeps))))


def claims_markdown(claims: Sequence[Claim]) -> str:
    """Two tables to read: the verdict on every claim, and every check with its interval.

    >>> from driftbandits.experiments.judging.claims import check_claims
    >>> from driftbandits.experiments.judging.results import collect
    >>> print(claims_markdown(check_claims(collect([], [])))[:66])
    | claim | figure | what it says | verdict | checks |
    |---|---|---|
    """
    lines = ["| claim | figure | what it says | verdict | checks |", "|---|---|---|---|---|"]
    lines += [f"| {c.id} | {c.figure} | {c.text} | **{c.verdict}** | {_counts(c)} |" for c in claims]
    lines += ["", "| claim | settings | statement | estimate [95 % interval] | seeds | verdict | note |"]
    lines += ["|---|---|---|---:|---:|---|---|"]
    lines += [
        f"| {c.claim} | {c.variant} | {c.statement} | {_shown(c)} | {c.seeds or '–'} | {c.verdict} | {c.note} |"
        for claim in claims
        for c in claim.checks
    ]
    return "\n".join(lines) + "\n"


def _counts(claim: Claim) -> str:
    verdicts = [check.verdict for check in claim.checks]
    return ", ".join(f"{verdicts.count(v)} {v}" for v in get_args(CheckVerdict) if v in verdicts)


def _shown(check: Check) -> str:
    form = "{:.2f}" if check.unit == "slope" else "{:,.0f}"
    if math.isnan(check.estimate):
        return "–"
    estimate = form.format(check.estimate)
    if math.isnan(check.low):
        return estimate
    return f"{estimate} [{form.format(check.low)}, {form.format(check.high)}]"
