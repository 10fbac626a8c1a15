"""The paper's claims as statements computed from results, each with its interval and its verdict.

Two policies are compared by the mean of their difference over the seeds both have played; a seed fixes the world and
its noise, so the differences are paired. Their interval is Student's, at 95 %, one comparison at a time. What an
interval decides, and how checks make up a claim, is said in `checks`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import cached_property

import pandas as pd

from driftbandits.experiments.definitions.best_sizes import BEST_SIZES
from driftbandits.experiments.definitions.bounds import Sweep
from driftbandits.experiments.definitions.growth import GROWTH_POLICIES, STEADY_POLICIES, SWEEPS, kernel_rivals
from driftbandits.experiments.definitions.ids import ENVIRONMENT_1
from driftbandits.experiments.definitions.paper import PAPER
from driftbandits.experiments.definitions.specs import HORIZON, Experiment, cells_of
from driftbandits.experiments.judging.checks import Check, Claim, make_check
from driftbandits.experiments.judging.growth_checks import check_growth
from driftbandits.experiments.judging.results import Results
from driftbandits.experiments.judging.statements import STATEMENTS, Comparison
from driftbandits.intervals import judge_below, judge_within, t_interval

NEAR_MARGIN = 0.25  # of the other's mean regret: what the paper's "near" and "comparable" are taken to mean
ROUNDS_BEFORE_SWITCH = 3_000  # of environment 1
CLAIMED: dict[str, Experiment] = {**PAPER, **BEST_SIZES}  # what comparisons are made in


def check_claims(results: Results, *, sweeps: Sequence[Sweep] = SWEEPS) -> list[Claim]:
    """Every claim of the paper, checked against what was played; what was not is "not run".

    >>> from driftbandits.experiments.judging.results import collect
    >>> [claim.id for claim in check_claims(collect([], []))]
    ['F1a-1', 'F1a-2', 'F1a-3', 'F1a-4', 'F1b-1', 'F1b-2', 'F2a-1', 'F2a-2', 'F2b-1', 'F2b-2', 'T1', 'T2', 'T3']
    """
    played = _Played(results)
    claims = [
        Claim(s.id, s.figure, s.text, tuple(_compare(s.id, comparison, played) for comparison in s.comparisons))
        for s in STATEMENTS
    ]
    return [*claims, *_growth_claims(results, sweeps)]


def _growth_claims(results: Results, sweeps: Sequence[Sweep]) -> list[Claim]:
    """What the theorems say, policy by policy; of the rivals all must keep to their bounds."""

    def checks(claim: str, settings: dict[str, str]) -> tuple[Check, ...]:
        return tuple(
            check_growth(claim, settings[label], results, sweep, label)
            for label in settings
            for sweep in sweeps
            if label in sweep.labels
        )

    ours = {policy.label: policy.label for policy in GROWTH_POLICIES}
    steady = {policy.label: policy.label for policy in STEADY_POLICIES}
    rivals = {rival.label: "sizes of the theory" for rival in kernel_rivals(1.0)}
    return [
        Claim(
            "T1",
            "Table 1",
            "ADA-OPKB's regret grows with T, L_T, V_T and d no faster than the paper's bound.",
            checks("T1", ours),
        ),
        Claim(
            "T2",
            "Theorem 2",
            "Where nothing changes, the regret of OPKB and OPNN grows with T and log N no faster than "
            "sqrt(gamma_T T log N).",
            checks("T2", steady),
        ),
        Claim(
            "T3",
            "Table 1",
            "With the sizes of its theory, the regret of every kernel rival grows no faster than its own bound.",
            checks("T3", rivals),
        ),
    ]


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
            experiment = self.experiments.get(comparison.experiment, CLAIMED[comparison.experiment])
            return f"regret after {experiment.settings.get('horizon', HORIZON):,} rounds"
        if self._before_switch.empty:
            return f"regret just before the switch in round {ROUNDS_BEFORE_SWITCH:,}"
        last = int(self._before_switch["round"].max())
        return f"regret after {last:,} rounds, the last checkpoint before the switch in round {ROUNDS_BEFORE_SWITCH:,}"

    @cached_property
    def _keys(self) -> dict[str, dict[str, str]]:
        return {name: _keys_of(experiment) for name, experiment in self.experiments.items() if name in CLAIMED}

    def altered(self, comparison: Comparison) -> list[str]:
        """Which of the two policies did not play as the catalogue has it."""
        given, paper = self._keys[comparison.experiment], _keys_of(CLAIMED[comparison.experiment])
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
    paper_seeds = len(CLAIMED[comparison.experiment].seeds)
    if not len(seeds):
        return make_check(
            claim,
            comparison.settings,
            statement,
            interval,
            "not run",
            unit="regret",
            paper_seeds=paper_seeds,
            brief=comparison.brief,
        )
    notes = [
        *([f"margin ±{margin:,.0f}"] if comparison.kind == "near" else []),
        *(f"{label} not as in the catalogue" for label in played.altered(comparison)),
    ]
    return make_check(
        claim,
        comparison.settings,
        statement,
        interval,
        judge_below(interval) if comparison.kind == "below" else judge_within(interval, margin),
        unit="regret",
        paper_seeds=paper_seeds,
        notes=notes,
        brief=comparison.brief,
    )
