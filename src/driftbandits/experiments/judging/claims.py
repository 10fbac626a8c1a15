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
from typing import Literal

import pandas as pd

from driftbandits.experiments.definitions.growth import GROWTH_POLICIES, SWEEPS, Sweep
from driftbandits.experiments.definitions.ids import ENVIRONMENT_1
from driftbandits.experiments.definitions.paper import PAPER
from driftbandits.experiments.definitions.specs import HORIZON, Experiment, cells_of
from driftbandits.experiments.judging.results import Results
from driftbandits.experiments.judging.slopes import Growth, measure_growth
from driftbandits.experiments.judging.statements import STATEMENTS, Comparison
from driftbandits.intervals import (
    LEAST_SEEDS,
    ConfidenceInterval,
    IntervalVerdict,
    judge_at_most,
    judge_below,
    judge_within,
    t_interval,
)

CheckVerdict = Literal[IntervalVerdict, "not run"]
ClaimVerdict = Literal[CheckVerdict, "depends on the settings"]

NEAR_MARGIN = 0.25  # of the other's mean regret: what the paper's "near" and "comparable" are taken to mean
ROUNDS_BEFORE_SWITCH = 3_000  # of environment 1


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
    verdict: CheckVerdict
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
        return curves[(curves["experiment"] == ENVIRONMENT_1) & (curves["round"] <= ROUNDS_BEFORE_SWITCH)]

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
            return f"regret just before the switch in round {ROUNDS_BEFORE_SWITCH:,}"
        last = int(self._before_switch["round"].max())
        return f"regret after {last:,} rounds, the last checkpoint before the switch in round {ROUNDS_BEFORE_SWITCH:,}"

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
    margin = NEAR_MARGIN * float(second.loc[seeds].mean()) if len(seeds) else math.nan
    sense = "below 0" if comparison.kind == "below" else f"within {NEAR_MARGIN:.0%} of that of {comparison.second}"
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
    interval: ConfidenceInterval,
    unit: str,
    paper_seeds: int,
    verdict: CheckVerdict,
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
    return list(dict.fromkeys(found or [policy.label for policy in GROWTH_POLICIES]))


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
