"""How fast regret grows along a sweep, as a check: at most as the policy's bound lets it."""

from __future__ import annotations

from collections.abc import Sequence

from driftbandits.experiments.definitions.bounds import Sweep
from driftbandits.experiments.judging.checks import Check, make_check
from driftbandits.experiments.judging.results import Results
from driftbandits.experiments.judging.slopes import measure_growth
from driftbandits.intervals import judge_at_most, t_interval


def check_growth(
    claim: str, settings: str, results: Results, sweep: Sweep, label: str, *, notes: Sequence[str] = ()
) -> Check:
    """The slope of `label` along the sweep against that of its bound on the same points."""
    growth = measure_growth(results.cells, sweep, label)
    what = f"{label}, slope of log regret over log {sweep.symbol} ({sweep.title})"
    brief = f"{label} in {sweep.symbol} ({sweep.title})"
    if growth is None:
        statement = f"{what}: at most that of its bound"
        nothing = t_interval([])
        return make_check(
            claim,
            [settings],
            statement,
            nothing,
            "not run",
            unit="slope",
            notes=["fewer than three points"],
            brief=brief,
        )
    points, lasting = len(growth.values), sum(any(p.label == label for p in e.policies) for e in sweep.experiments)
    found = [
        f"slope {growth.late:.2f} over the last {points - points // 2} of {points} points",
        *([f"the sweep has {lasting} points"] if points < lasting else []),
        *notes,
    ]
    verdict = judge_at_most(growth.slope, growth.allowed)
    statement = f"{what}: at most {growth.allowed:.2f}"
    return make_check(claim, [settings], statement, growth.slope, verdict, unit="slope", notes=found, brief=brief)
