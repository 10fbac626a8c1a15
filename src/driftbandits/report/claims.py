"""The paper's claims and what became of them: verdicts at a glance, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driftbandits.experiments.judging.checks import Check, Claim
from driftbandits.report.formats import NOTHING, interval, listed

VERDICT_ORDER = ("holds", "does not hold", "depends on the settings", "undecided", "not run")
SYMBOLS = dict(zip(VERDICT_ORDER, ("✓", "✗", "◐", "?", "○"), strict=True))
CSS_CLASSES = dict(zip(VERDICT_ORDER, ("holds", "fails", "depends", "undecided", "not-run"), strict=True))


@dataclass(frozen=True)
class ShownVerdict:
    """A verdict as the page shows it."""

    word: str
    symbol: str
    css_class: str


@dataclass(frozen=True)
class CheckRow:
    """One check of a claim in words."""

    statement: str
    estimate: str
    interval: str
    seeds: str
    few: bool
    verdict: ShownVerdict
    note: str


@dataclass(frozen=True)
class SettingsRow:
    """What became of a claim under some settings."""

    settings: str
    verdict: ShownVerdict
    checks: tuple[CheckRow, ...]


@dataclass(frozen=True)
class ClaimRow:
    """One claim: its verdict, and under each of its settings the verdict and the checks that decide it."""

    id: str
    anchor: str
    figure: str
    text: str
    verdict: ShownVerdict
    settings: tuple[SettingsRow, ...]
    few: bool


def claim_rows(claims: Sequence[Claim]) -> list[ClaimRow]:
    """All claims as the page shows them."""
    return [_claim_row(claim) for claim in claims]


# What one claim does, and what several do.
VERDICT_WORDS = {
    "holds": ("holds", "hold"),
    "does not hold": ("does not hold", "do not hold"),
    "depends on the settings": ("depends on the settings", "depend on the settings"),
    "undecided": ("is undecided", "are undecided"),
    "not run": ("was not played", "were not played"),
}


def counted(claims: Sequence[Claim]) -> str:
    """How many claims have which verdict, in words.

    >>> counted([Claim("F1", "1", "Something.", ())] * 2)
    '2 were not played'
    """
    verdicts: list[str] = [claim.verdict for claim in claims]
    amounts = {verdict: verdicts.count(verdict) for verdict in VERDICT_ORDER}
    return listed([f"{n} {VERDICT_WORDS[verdict][n > 1]}" for verdict, n in amounts.items() if n])


def claim_anchor(name: str) -> str:
    """Where the numbers behind a claim stand on the page."""
    return f"claim-{name.lower()}"


def shown_verdict(verdict: str) -> ShownVerdict:
    """A verdict in a word, with its symbol."""
    return ShownVerdict(verdict, SYMBOLS[verdict], CSS_CLASSES[verdict])


def _claim_row(claim: Claim) -> ClaimRow:
    return ClaimRow(
        id=claim.id,
        anchor=claim_anchor(claim.id),
        figure=f"Figure {claim.figure}" if claim.figure[:1].isdigit() else claim.figure,
        text=claim.text,
        verdict=shown_verdict(claim.verdict),
        settings=tuple(
            SettingsRow(found.settings, shown_verdict(found.verdict), tuple(map(_check_row, found.checks)))
            for found in claim.by_settings
        ),
        few=any(0 < check.seeds < check.paper_seeds for check in claim.checks),
    )


def _check_row(check: Check) -> CheckRow:
    estimate, around = interval(check.estimate, check.low, check.high, check.unit)
    seeds = f"{check.seeds:,}" if check.seeds else NOTHING
    return CheckRow(
        statement=check.statement,
        estimate=estimate,
        interval=around,
        seeds=f"{seeds} of {check.paper_seeds:,}" if check.paper_seeds else seeds,
        few=0 < check.seeds < check.paper_seeds,
        verdict=shown_verdict(check.verdict),
        note=check.note,
    )
