"""The checked claims as tables to read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import get_args

from driftbandits.experiments.judging.claims import Check, CheckVerdict, Claim


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
