"""What the paper says of linear bandits, judged: growth against Table 1, and ADA-OPKB beside the linear rivals.

"Within a factor" compares ADA-OPKB with the rival that has the least mean regret in a world on the seeds both have
played: the mean of its regret minus the factor times that rival's is below 0. Verdicts and intervals are those of
`claims`. Choosing the best rival on the same seeds favours the rival.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from driftbandits.experiments.definitions.bounds import Sweep, sweeps_of
from driftbandits.experiments.definitions.linear import LINEAR, UNTOLD_RIVALS, theory_rivals
from driftbandits.experiments.definitions.linear_growth import LINEAR_GROWTH, LINEAR_SWEEPS, OURS
from driftbandits.experiments.definitions.rows import THEORY_ENDING, TUNED_ENDING
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.experiments.judging.checks import Check, CheckVerdict, Claim, make_check
from driftbandits.experiments.judging.claims_judgement import SweptClaims
from driftbandits.experiments.judging.growth_checks import check_growth
from driftbandits.experiments.judging.results import Results
from driftbandits.experiments.judging.slopes import allowed_slope, measure_growth
from driftbandits.intervals import judge_below, t_interval

FACTOR = 2.0  # of the best rival's regret: what is taken for keeping up with it
_RIVALS = tuple(rival.label.removesuffix(THEORY_ENDING) for rival in theory_rivals(1.0))
RIVAL_SETTINGS = {"told the path of theta": THEORY_ENDING, "tuned alike": TUNED_ENDING}


class LinearJudgement(SweptClaims):
    """The claims about linear bandits."""

    file = "linear.md"


def judge_linear(results: Results) -> LinearJudgement | None:
    """The claims about linear bandits, if anything they are about has been played."""
    if {*LINEAR, *LINEAR_GROWTH}.isdisjoint(results.cells["experiment"]):
        return None
    sweeps = sweeps_of(results.experiments, LINEAR_SWEEPS)
    return LinearJudgement(sweeps, claims=tuple(check_linear_claims(results, sweeps)))


def check_linear_claims(results: Results, sweeps: Sequence[Sweep] = LINEAR_SWEEPS) -> list[Claim]:
    """Every claim, checked against what was played; what was not is "not run".

    LB-1 and LB-2 are what the paper says; LB-3 and LB-4 ask whether the order of its bounds is that of regrets.

    >>> from driftbandits.experiments.judging.results import collect
    >>> [(claim.id, claim.verdict) for claim in check_linear_claims(collect([], []))]
    [('LB-1', 'not run'), ('LB-2', 'not run'), ('LB-3', 'not run'), ('LB-4', 'not run')]
    """
    ours, rivals = [policy.label for policy in OURS], [rival + THEORY_ENDING for rival in _RIVALS]
    regrets = _regrets(results.cells)
    return [
        Claim(
            "LB-1",
            "Table 1",
            "With the linear kernel, ADA-OPKB is nearly minimax optimal: its regret grows no faster than d sqrt(L_T T) "
            "where theta jumps, and than d^(2/3) V_T^(1/3) T^(2/3) where it drifts.",
            tuple(
                check_growth("LB-1", label, results, sweep, label, notes=_with_gain(results, sweep, label))
                for label in ours
                for sweep in sweeps
            ),
        ),
        Claim(
            "LB-2",
            "Table 1",
            "With the sizes of its theory, the regret of every linear rival grows no faster than its own bound.",
            tuple(
                check_growth("LB-2", "sizes of the theory", results, sweep, label)
                for label in rivals
                for sweep in sweeps
            ),
        ),
        Claim(
            "LB-3",
            "Table 1",
            "Table 1 read as a ranking, which is our reading: ADA-OPKB keeps up with the linear rivals, with at most "
            f"{FACTOR:g} times the regret of the best one.",
            tuple(
                _check_factor(f"{label} against rivals {settings}", experiment, regrets, label, ending)
                for label in ours
                for settings, ending in RIVAL_SETTINGS.items()
                for experiment in LINEAR.values()
            ),
        ),
        Claim(
            "LB-4",
            "Table 1",
            "The same reading: of the policies in the linear half of Table 1 that are told nothing, ADA-OPKB has the "
            "least regret.",
            tuple(
                _check_below(experiment, regrets, label, rival.label)
                for label in ours
                for experiment in LINEAR.values()
                for rival in UNTOLD_RIVALS
            ),
        ),
    ]


Regrets = Mapping[tuple[str, str], "pd.Series[float]"]


def _regrets(cells: pd.DataFrame) -> Regrets:
    """Final regrets over seeds, by experiment and label."""
    groups = cells.groupby(["experiment", "policy"], sort=False)
    return {(str(e), str(p)): group.set_index("seed")["regret"] for (e, p), group in groups}


def _with_gain(results: Results, sweep: Sweep, label: str) -> list[str]:
    """What the theorem behind ADA-OPKB's row allows in T, where gamma_T stands in the place of d log T."""
    growth = measure_growth(results.cells, sweep, label) if sweep.symbol == "T" else None
    if growth is None:
        return []
    allowed = allowed_slope(sweep, label, growth.values, gain_power=1.0 - sweep.rate)
    return [f"with the growth of gamma_T {allowed:.2f} would be allowed"]


def _check_factor(variant: str, experiment: Experiment, regrets: Regrets, label: str, ending: str) -> Check:
    """`label` against the best of the rivals whose labels end in `ending`."""
    mine = regrets.get((experiment.id, label))
    labels = [rival + ending for rival in _RIVALS]
    rivals = {rival: regrets[experiment.id, rival] for rival in labels if (experiment.id, rival) in regrets}
    if mine is None or not rivals:
        statement = f"{label} minus {FACTOR:g} times the best rival, {experiment.title}: below 0"
        return make_check("LB-3", [variant], statement, t_interval([]), "not run", unit="regret")
    best = min(rivals, key=lambda rival: float(rivals[rival].mean()))
    seeds = mine.index.intersection(rivals[best].index)
    ours, theirs = mine.loc[seeds], rivals[best].loc[seeds]
    interval = t_interval((ours - FACTOR * theirs).to_numpy())
    ratio = float(ours.mean()) / float(theirs.mean()) if len(seeds) else math.nan
    statement = f"{label} minus {FACTOR:g} times {best}, {experiment.title}: below 0"
    notes = [f"{ratio:.2f} times"]
    return make_check("LB-3", [variant], statement, interval, judge_below(interval), unit="regret", notes=notes)


def _check_below(experiment: Experiment, regrets: Regrets, label: str, rival: str) -> Check:
    nothing: pd.Series[float] = pd.Series(dtype="float64")
    mine, theirs = (regrets.get((experiment.id, name), nothing) for name in (label, rival))
    seeds = mine.index.intersection(theirs.index)
    interval = t_interval((mine.loc[seeds] - theirs.loc[seeds]).to_numpy())
    verdict: CheckVerdict = judge_below(interval) if len(seeds) else "not run"
    statement = f"{label} minus {rival}, {experiment.title}: below 0"
    return make_check("LB-4", [label], statement, interval, verdict, unit="regret")
