"""What a claim is: checks, each with its interval and verdict, under one or several settings.

- "below": holds if the whole interval lies below 0, does not hold if it lies above, else undecided.
- "near": holds if the whole interval lies within 25 % of the other's mean regret, does not hold if it lies outside,
  else undecided. The margin is taken as known, though that mean is itself measured. Being far better is not near.
- slopes: hold if the whole interval is at most the slope of the bound, do not hold if it is more.

Fewer than three seeds decide nothing. Under one setting a claim holds if all its checks do, and does not as soon as one
does not. The claim as a whole has the verdict of its settings where they agree; it "depends on the settings" where it
holds under one and not under another; else it is undecided. A check that belongs to several settings, because the row
it is about is the same in them, is computed and counted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from driftbandits.intervals import LEAST_SEEDS, ConfidenceInterval, IntervalVerdict

CheckVerdict = Literal[IntervalVerdict, "not run"]
ClaimVerdict = Literal[CheckVerdict, "depends on the settings"]


@dataclass(frozen=True)
class Check:
    """One computed statement.

    `settings` says under which it belongs to the claim; `estimate`, `low` and `high` are in `unit` ("regret" or
    "slope") and NaN where there is nothing to compute them from; `paper_seeds` is 0 where the paper has no experiment,
    but a theorem. `brief` is the statement in a few words.
    """

    claim: str
    settings: tuple[str, ...]
    statement: str
    estimate: float
    low: float
    high: float
    unit: str
    seeds: int
    paper_seeds: int
    verdict: CheckVerdict
    note: str
    brief: str = ""


@dataclass(frozen=True)
class SettingsVerdict:
    """What became of a claim under some settings: `settings` in words, and the checks that decide."""

    settings: str
    verdict: CheckVerdict
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper in our words, and what became of it."""

    id: str
    figure: str
    text: str
    checks: tuple[Check, ...]

    @property
    def by_settings(self) -> tuple[SettingsVerdict, ...]:
        """The verdict under each of its settings; those with the very same checks are one."""
        members: dict[tuple[int, ...], list[str]] = {}  # settings by the places of their checks
        for name in dict.fromkeys(name for check in self.checks for name in check.settings):
            places = tuple(place for place, check in enumerate(self.checks) if name in check.settings)
            members.setdefault(places, []).append(name)
        return tuple(self._under(names, [self.checks[place] for place in places]) for places, names in members.items())

    @staticmethod
    def _under(names: Sequence[str], checks: Sequence[Check]) -> SettingsVerdict:
        return SettingsVerdict(join_settings(names), _all_of(check.verdict for check in checks), tuple(checks))

    @property
    def verdict(self) -> ClaimVerdict:
        """What the checks say together; the rule is at the head of this module."""
        return _agree([found.verdict for found in self.by_settings])


def join_settings(names: Sequence[str]) -> str:
    """Settings in one phrase, without repeating what they have in common.

    >>> join_settings(["published against published rivals", "published against tuned rivals"])
    'published against published and tuned rivals'
    """
    halves = [name.partition(" against ") for name in names]
    ours, rivals = {first for first, _, _ in halves}, [last.removesuffix(" rivals") for _, _, last in halves]
    if len(names) > 1 and len(ours) == 1 and all(rivals):
        return f"{ours.pop()} against {' and '.join(rivals)} rivals"
    return "; ".join(names)


def _all_of(verdicts: Iterable[CheckVerdict]) -> CheckVerdict:
    """Verdict of a conjunction."""
    given = set(verdicts)
    if "does not hold" in given:
        return "does not hold"
    return given.pop() if len(given) == 1 else "undecided"


def _agree(verdicts: Sequence[CheckVerdict]) -> ClaimVerdict:
    """Verdict over several settings."""
    given = set(verdicts)
    if len(given) <= 1:
        return verdicts[0] if verdicts else "not run"
    return "depends on the settings" if {"holds", "does not hold"} <= given else "undecided"


def make_check(
    claim: str,
    settings: Sequence[str],
    statement: str,
    interval: ConfidenceInterval,
    verdict: CheckVerdict,
    *,
    unit: Literal["regret", "slope"],
    paper_seeds: int = 0,
    notes: Sequence[str] = (),
    brief: str = "",
) -> Check:
    """A check from its interval; that seeds are few is added to the notes."""
    seeds = interval.seeds
    few = [f"{seeds} of the paper's {paper_seeds} seeds"] if 0 < seeds < paper_seeds else []
    too_few = [f"fewer than {LEAST_SEEDS} seeds"] if 0 < seeds < LEAST_SEEDS else []
    return Check(
        claim=claim,
        settings=tuple(settings),
        statement=statement,
        estimate=interval.estimate,
        low=interval.low,
        high=interval.high,
        unit=unit,
        seeds=seeds,
        paper_seeds=paper_seeds,
        verdict=verdict,
        note="; ".join([*notes, *few, *too_few]),
        brief=brief or statement,
    )
