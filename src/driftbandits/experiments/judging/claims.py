"""The paper's claims as statements computed from results, each with its interval and its verdict.

Two policies are compared by the mean of their difference over the seeds both have played; a seed fixes the world and
its noise, so the differences are paired. Their interval is Student's, at 95 %, one comparison at a time.

- "below": holds if the whole interval lies below 0, does not hold if it lies above, else undecided.
- "near": holds if the whole interval lies within 25 % of the other's mean regret, does not hold if it lies outside,
  else undecided. The margin is taken as known, though that mean is itself measured. Being far better is not near.
- slopes: hold if the whole interval is at most the slope of the paper's bound, do not hold if it is more.

Fewer than three seeds decide nothing. A claim is several comparisons, each under several settings. Under one setting
it holds if all its comparisons do, and does not as soon as one does not. The claim has the verdict of its settings
where they agree; it "depends on the settings" where it holds under one and not under another; else it is undecided.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import pandas as pd

from driftbandits.experiments.definitions.catalogue import HORIZON, PAPER
from driftbandits.experiments.definitions.growth import POLICIES, SWEEPS, Sweep
from driftbandits.experiments.definitions.specs import Experiment, cells_of
from driftbandits.experiments.judging.results import Results
from driftbandits.experiments.judging.slopes import Growth, measure_growth
from driftbandits.intervals import (
    LEAST_SEEDS,
    Interval,
    Verdict,
    judge_at_most,
    judge_below,
    judge_within,
    t_interval,
)

ClaimVerdict = Literal["holds", "does not hold", "depends on the settings", "undecided", "not run"]

MARGIN = 0.25  # of the other's mean regret: what "near" and "comparable" are taken to mean
SWITCH = 3_000  # rounds before the switch of environment 1


@dataclass(frozen=True)
class Check:
    """One computed statement.

    `variant` says under which settings; `estimate`, `low` and `high` are in `unit` ("regret" or "slope") and NaN where
    there is nothing to compute them from; `paper_seeds` is 0 where the paper has no experiment, but a theorem.
    """

    claim: str
    variant: str
    statement: str
    estimate: float
    low: float
    high: float
    unit: str
    seeds: int
    paper_seeds: int
    verdict: Verdict
    note: str


@dataclass(frozen=True)
class Claim:
    """A claim of the paper in our words, and what became of it."""

    id: str
    figure: str
    text: str
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> ClaimVerdict:
        """What the checks say together; the rule is at the head of this module."""
        variants = dict.fromkeys(check.variant for check in self.checks)
        return _agree([_all_of(c.verdict for c in self.checks if c.variant == variant) for variant in variants])


def _all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Verdict of a conjunction."""
    given = set(verdicts)
    if "does not hold" in given:
        return "does not hold"
    return given.pop() if len(given) == 1 else "undecided"


def _agree(verdicts: Sequence[Verdict]) -> ClaimVerdict:
    """Verdict over several settings."""
    given = set(verdicts)
    if len(given) <= 1:
        return verdicts[0] if verdicts else "not run"
    return "depends on the settings" if {"holds", "does not hold"} <= given else "undecided"


# --- what is compared -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """`first` against `second` in one experiment; `when` is the end of the run or just before the switch."""

    variant: str
    experiment: str
    first: str
    second: str
    kind: Literal["below", "near"] = "below"
    when: Literal["end", "switch"] = "end"


@dataclass(frozen=True)
class Statement:
    """A claim before any results: its comparisons."""

    id: str
    figure: str
    text: str
    comparisons: tuple[Comparison, ...]


TEXT, PUBLISHED, TUNED = "paper's text", "published", "tuned"
# (ADA-OPKB, ADA-OPNN) in the switching worlds, and on slow drift, where the authors gave ADA-OPKB another kernel
OURS = {TEXT: ("ADA-OPKB", "ADA-OPNN"), PUBLISHED: ("ADA-OPKB (published)", "ADA-OPNN (published)")}
OURS_SLOW = {**OURS, PUBLISHED: ("ADA-OPKB (published, length scale 1)", "ADA-OPNN (published)")}
OPNN = {TEXT: ("OPNN", "OPNN0"), PUBLISHED: ("OPNN (published)", "OPNN0 (published)")}
RIVALS = (PUBLISHED, TUNED)
RETUNED = "SW-GPUCB (window 1000)"
ENVIRONMENT_1, ENVIRONMENT_2, STATIONARY, SLOW = "switching/1", "switching/2", "cosine/stationary", "cosine/slow"


def _against(ours: str, rivals: str) -> str:
    return f"{ours} against {rivals} rivals"


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        "F1a-1",
        "1a",
        "On environment 1, SW-GPUCB has lost less than ADA-OPKB and ADA-OPNN by the time of the switch.",
        tuple(
            Comparison(_against(ours, how), ENVIRONMENT_1, f"SW-GPUCB ({how})", label, when="switch")
            for ours, labels in OURS.items()
            for how in RIVALS
            for label in labels
        ),
    ),
    Statement(
        "F1a-2",
        "1a",
        "On environment 1, ADA-OPKB has less regret in the end than ADA-OPNN.",
        tuple(Comparison(ours, ENVIRONMENT_1, opkb, opnn) for ours, (opkb, opnn) in OURS.items()),
    ),
    Statement(
        "F1b-1",
        "1b",
        "With settings from environment 1, SW-GPUCB has more regret on environment 2 than ADA-OPKB and ADA-OPNN.",
        tuple(
            Comparison(_against(ours, how), ENVIRONMENT_2, label, f"SW-GPUCB ({how})")
            for ours, labels in OURS.items()
            for how in RIVALS
            for label in labels
        ),
    ),
    Statement(
        "F1b-2",
        "1b",
        "With settings from environment 1, WGPUCB has more regret on environment 2 than ADA-OPKB, and about as much "
        "as ADA-OPNN.",
        tuple(
            comparison
            for ours, (opkb, opnn) in OURS.items()
            for how in RIVALS
            for comparison in (
                Comparison(_against(ours, how), ENVIRONMENT_2, opkb, f"WGPUCB ({how})"),
                Comparison(_against(ours, how), ENVIRONMENT_2, f"WGPUCB ({how})", opnn, kind="near"),
            )
        ),
    ),
    Statement(
        "F2a-1",
        "2a",
        "On the stationary cosine bandit, training helps: OPNN has less regret than OPNN0.",
        tuple(Comparison(ours, STATIONARY, opnn, opnn0) for ours, (opnn, opnn0) in OPNN.items()),
    ),
    Statement(
        "F2a-2",
        "2a",
        "On the stationary cosine bandit, OPNN has about as much regret as GPUCB and OPKB.",
        tuple(
            Comparison(_against(ours, how), STATIONARY, opnn, rival, kind="near")
            for ours, (opnn, _) in OPNN.items()
            for how in RIVALS
            for rival in (f"GPUCB ({how})", "OPKB")  # OPKB has one setting, and stands in both
        ),
    ),
    Statement(
        "F2b-1",
        "2b",
        "On slow drift, ADA-OPKB and ADA-OPNN have less regret than SW-GPUCB and WGPUCB with settings from "
        "environment 1.",
        tuple(
            Comparison(_against(ours, how), SLOW, label, f"{rival} ({how})")
            for ours, labels in OURS_SLOW.items()
            for how in RIVALS
            for label in labels
            for rival in ("SW-GPUCB", "WGPUCB")
        ),
    ),
    Statement(
        "F2b-2",
        "2b",
        "On slow drift, SW-GPUCB with its window set to 1000 for it has the least regret of all.",
        tuple(
            Comparison(variant, SLOW, RETUNED, other)
            for variant, others in {
                "against published settings": (
                    *OURS_SLOW[PUBLISHED],
                    OURS[PUBLISHED][0],  # on its usual kernel too: the claim is about all
                    "SW-GPUCB (published)",
                    "WGPUCB (published)",
                ),
                "against the paper's text and tuned settings": (*OURS[TEXT], "SW-GPUCB (tuned)", "WGPUCB (tuned)"),
            }.items()
            for other in others
        ),
    ),
)


# --- checking -------------------------------------------------------------------------------------------------------


def check_claims(results: Results, *, sweeps: Sequence[Sweep] = SWEEPS) -> list[Claim]:
    """Every claim of the paper, checked against what was played; what was not is "not run".

    >>> from driftbandits.experiments.judging.results import collect
    >>> [claim.id for claim in check_claims(collect([], []))]
    ['F1a-1', 'F1a-2', 'F1b-1', 'F1b-2', 'F2a-1', 'F2a-2', 'F2b-1', 'F2b-2', 'T1']
    """
    played = _Played(results)
    claims = [
        Claim(s.id, s.figure, s.text, tuple(_compare(s.id, comparison, played) for comparison in s.comparisons))
        for s in STATEMENTS
    ]
    rates = "Regret grows with T, L_T and V_T no faster than the paper's bound."
    checks = [_check_growth(results, sweep, label) for label in _labels(sweeps) for sweep in sweeps]
    return [*claims, Claim("T1", "Table 1", rates, tuple(checks))]


class _Played:
    """Regrets by experiment and policy, as series over seeds."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self.experiments = {experiment.id: experiment for experiment in results.experiments}

    @cached_property
    def _final(self) -> dict[tuple[str, str], pd.Series[float]]:
        groups = self._results.cells.groupby(["experiment", "policy"], sort=False)
        return {(str(e), str(p)): group.set_index("seed")["regret"] for (e, p), group in groups}

    @cached_property
    def _before_switch(self) -> pd.DataFrame:
        curves = self._results.curves
        return curves[(curves["experiment"] == ENVIRONMENT_1) & (curves["round"] <= SWITCH)]

    def regrets(self, comparison: Comparison, label: str) -> pd.Series[float]:
        """Regret of a policy on each seed it has played."""
        if comparison.when == "end":
            return self._final.get((comparison.experiment, label), pd.Series(dtype="float64"))
        here = self._before_switch[self._before_switch["policy"] == label]
        return here.sort_values("round").groupby("seed")["regret"].last()

    def moment(self, comparison: Comparison) -> str:
        """When the regret is taken, in words. Between checkpoints nothing is made up: after the switch all differs."""
        if comparison.when == "end":
            experiment = self.experiments.get(comparison.experiment, PAPER[comparison.experiment])
            return f"regret after {experiment.settings.get('horizon', HORIZON):,} rounds"
        if self._before_switch.empty:
            return f"regret just before the switch in round {SWITCH:,}"
        last = int(self._before_switch["round"].max())
        return f"regret after {last:,} rounds, the last checkpoint before the switch in round {SWITCH:,}"

    @cached_property
    def _keys(self) -> dict[str, dict[str, str]]:
        return {name: _keys_of(experiment) for name, experiment in self.experiments.items() if name in PAPER}

    def altered(self, comparison: Comparison) -> list[str]:
        """Which of the two policies did not play as the catalogue has it."""
        given, paper = self._keys[comparison.experiment], _keys_of(PAPER[comparison.experiment])
        return [label for label in (comparison.first, comparison.second) if given.get(label) != paper.get(label)]


def _keys_of(experiment: Experiment) -> dict[str, str]:
    """What every policy of an experiment plays, by label."""
    return {cell.policy.label: cell.key for cell in cells_of(dataclasses.replace(experiment, seeds=(0,)))}


def _compare(claim: str, comparison: Comparison, played: _Played) -> Check:
    first, second = (played.regrets(comparison, label) for label in (comparison.first, comparison.second))
    seeds = first.index.intersection(second.index)
    interval = t_interval((first.loc[seeds] - second.loc[seeds]).to_numpy())
    margin = MARGIN * float(second.loc[seeds].mean()) if len(seeds) else math.nan
    sense = "below 0" if comparison.kind == "below" else f"within {MARGIN:.0%} of that of {comparison.second}"
    statement = f"{comparison.first} minus {comparison.second}, {played.moment(comparison)}: {sense}"
    paper_seeds = len(PAPER[comparison.experiment].seeds)
    if not len(seeds):
        return _check(claim, comparison.variant, statement, interval, "regret", paper_seeds, "not run", "")
    verdict = judge_below(interval) if comparison.kind == "below" else judge_within(interval, margin)
    notes = [
        *([f"margin ±{margin:,.0f}"] if comparison.kind == "near" else []),
        *_few(len(seeds), paper_seeds),
        *(f"{label} not as in the catalogue" for label in played.altered(comparison)),
    ]
    return _check(claim, comparison.variant, statement, interval, "regret", paper_seeds, verdict, "; ".join(notes))


def _few(seeds: int, paper_seeds: int) -> list[str]:
    notes = [f"{seeds} of the paper's {paper_seeds} seeds"] if seeds < paper_seeds else []
    return [*notes, f"fewer than {LEAST_SEEDS} seeds"] if seeds < LEAST_SEEDS else notes


def _check(
    claim: str,
    variant: str,
    statement: str,
    interval: Interval,
    unit: str,
    paper_seeds: int,
    verdict: Verdict,
    note: str,
) -> Check:
    return Check(
        claim=claim,
        variant=variant,
        statement=statement,
        estimate=interval.estimate,
        low=interval.low,
        high=interval.high,
        unit=unit,
        seeds=interval.seeds,
        paper_seeds=paper_seeds,
        verdict=verdict,
        note=note,
    )


def _labels(sweeps: Sequence[Sweep]) -> list[str]:
    """Policies of the sweeps, each once; those of the catalogue for sweeps cut down to nothing."""
    found = [policy.label for sweep in sweeps for experiment in sweep.experiments for policy in experiment.policies]
    return list(dict.fromkeys(found or [policy.label for policy in POLICIES]))


def _check_growth(results: Results, sweep: Sweep, label: str) -> Check:
    growth = measure_growth(results.cells, sweep, label)
    what = f"slope of log regret over log {sweep.symbol} ({sweep.title})"
    if growth is None:
        statement = f"{what}: at most that of the bound (plain exponent {sweep.rate:.2f})"
        nothing = t_interval([])
        return _check("T1", label, statement, nothing, "slope", 0, "not run", "fewer than three points")
    statement = f"{what}: at most {growth.allowed:.2f} (plain exponent {sweep.rate:.2f})"
    verdict = judge_at_most(growth.slope, growth.allowed)
    return _check("T1", label, statement, growth.slope, "slope", 0, verdict, "; ".join(_growth_notes(sweep, growth)))


def _growth_notes(sweep: Sweep, growth: Growth) -> list[str]:
    points = len(growth.values)
    last = points - points // 2
    return [
        f"slope {growth.late:.2f} over the last {last} of {points} points",
        *(["above the plain exponent"] if growth.slope.low > sweep.rate else []),
        *([f"the sweep has {len(sweep.values)} points"] if points < len(sweep.values) else []),
        *([f"fewer than {LEAST_SEEDS} seeds"] if growth.slope.seeds < LEAST_SEEDS else []),
    ]


# --- reading --------------------------------------------------------------------------------------------------------


def claims_markdown(claims: Sequence[Claim]) -> str:
    """Two tables to read: the verdict on every claim, and every check with its interval.

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
    return ", ".join(f"{verdicts.count(v)} {v}" for v in get_args(Verdict) if v in verdicts)


def _shown(check: Check) -> str:
    form = "{:.2f}" if check.unit == "slope" else "{:,.0f}"
    if math.isnan(check.estimate):
        return "–"
    estimate = form.format(check.estimate)
    if math.isnan(check.low):
        return estimate
    return f"{estimate} [{form.format(check.low)}, {form.format(check.high)}]"
