"""Estimators of logs: bias, coverage and width on worlds that move, and the variance of `dr` over that of `ips`.

Worlds that stand still, switch and drift, logged by a policy that learns; every log has a world of its own. Targets are
a random law and a random arm, whose values are known. `--quick` has 40 logs instead of 400, and four worlds of the
suite.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np

import driftbandits as db
from driftbandits._util.intervals import share_interval
from driftbandits.environments import Environment
from driftbandits.logs import Log, estimators
from driftbandits.logs.estimators import Estimator
from driftbandits.logs.targets import shares_of
from driftbandits.types import Floats
from reproduction.suite import SUITE_WORLDS, UNBOUNDED_WORLDS

FIRST_SEED = 321_000  # of worlds, laws and logs; local means of 10 rows were chosen on seeds 2,000 to 2,039
LOGS, ROUNDS, ARMS = 400, 1_000, 10
SUITE_LOGS, SUITE_LAWS = 6, 10
NAMES: tuple[Estimator, ...] = ("ips", "snips", "clipped", "dr", "direct")
TARGETS = ("law", "arm")
WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "still": ("switching", {"kind": "redraw", "switches": ()}),
    "switches": ("switching", {"kind": "redraw", "switches": (300, 650)}),
    "drifts": ("cosine", {"phase": [[0, 0.0], [ROUNDS, math.pi]]}),
}


def logged(world: Environment, kind: type[db.Policy], seed: int) -> Log:
    """The log of a policy, which knows the horizon if it needs to."""
    settings: dict[str, Any] = {"horizon": world.horizon} if kind is db.Exp3S else {}
    policy = kind(world.arms, seed=seed, reward_range=world.reward_range, **settings)
    return Log.read(db.simulate(policy, world, seed=seed), arms=world.arms, reward_range=world.reward_range)


def coverage(logs: int) -> None:
    print(
        f"\n## Bias, coverage and width: {logs} logs of Exp3S, each of its own world, {ROUNDS:,} rounds, {ARMS} arms\n"
    )
    print("| world | target | estimator | could tell | mean error (s.e.) | covers, 95 % | width | anytime | width |")
    print("|---|---|---|---:|---:|---:|---:|---:|---:|")
    for name in WORLDS:
        found = {(target, one): np.empty((logs, 6)) for target in TARGETS for one in NAMES}
        for number in range(logs):
            _value(name, FIRST_SEED + number, {key: rows[number] for key, rows in found.items()})
        for (target, one), rows in found.items():
            print(f"| {name} | {target} | {one} | {_covered(rows)} |", flush=True)


def _value(name: str, seed: int, found: dict[tuple[str, Estimator], Floats]) -> None:
    """Put into each row of `found` the truth, the value and the ends of both intervals."""
    kind, settings = WORLDS[name]
    world = db.environments.create(kind, seed=seed, horizon=ROUNDS, size=ARMS, dimension=2, **settings)
    rng = np.random.default_rng([seed, 1])
    laws = {"law": rng.dirichlet(np.ones(ARMS)), "arm": np.eye(ARMS)[rng.integers(ARMS)]}
    means, log = world.means(0, ROUNDS).mean(axis=0), logged(world, db.Exp3S, seed)
    fitted = estimators.fit(log)  # once for all that use it, which is most of the time
    with mock.patch.object(estimators, "fit", return_value=fitted):
        values = {key: db.logs.evaluate(log, laws[key[0]], estimator=key[1]).whole for key in found}
    for (target, one), row in found.items():
        whole = values[target, one]
        row[:] = (means @ laws[target], whole.value, whole.low, whole.high, whole.anytime_low, whole.anytime_high)


def _covered(rows: Floats) -> str:
    """A line of the table; logs that cannot tell give no number and do not count."""
    told = rows[~np.isnan(rows[:, 1])]
    if len(told) < 2:
        return f"{len(told)} | | | | |"
    truth, value, low, high, anytime_low, anytime_high = told.T
    errors = value - truth
    bias = f"{errors.mean():+.4f} ({errors.std(ddof=1) / math.sqrt(len(errors)):.4f})"
    share = share_interval(int(((low <= truth) & (truth <= high)).sum()), len(told))
    anytime = ((anytime_low <= truth) & (truth <= anytime_high)).mean()
    covers = f"{share.estimate:.1%} [{share.low:.1%}, {share.high:.1%}]"
    widths = (float((high - low).mean()), float((anytime_high - anytime_low).mean()))
    return f"{len(told)} | {bias} | {covers} | {widths[0]:.3f} | {anytime:.1%} | {widths[1]:.3f}"


def suite_worlds() -> Iterator[tuple[str, Environment]]:
    """Those whose noise is at most 0.1."""
    for name, (_, kind, settings) in SUITE_WORLDS.items():
        if name not in UNBOUNDED_WORLDS:
            yield name, db.environments.create(kind, seed=FIRST_SEED, horizon=10_000, dimension=3, **settings)


def variance(worlds: int | None) -> None:
    print("\n## Squared error of `dr` over that of `ips`, suite worlds with noise up to 0.1, d = 3\n")
    print("| world | logged by Uniform | logged by Exp3S |\n|---|---:|---:|")
    ratios = []
    for name, world in list(suite_worlds())[:worlds]:
        ratios.append([_ratio(world, kind) for kind in (db.Uniform, db.Exp3S)])
        print(f"| {name} | {ratios[-1][0]:.3f} | {ratios[-1][1]:.3f} |", flush=True)
    means = np.exp(np.log(ratios).mean(axis=0))
    print(f"| geometric mean | {means[0]:.3f} | {means[1]:.3f} |")


def _ratio(world: Environment, kind: type[db.Policy]) -> float:
    """Both are unbiased, so squared errors are variances; laws and logs are averaged over."""
    rng = np.random.default_rng(FIRST_SEED)
    means = world.means(0, world.horizon)
    errors = np.zeros(2)
    for number in range(SUITE_LOGS):
        log = logged(world, kind, FIRST_SEED + number)
        predictions = estimators.fit(log).predictions.mean
        for law in rng.dirichlet(np.full(len(world.arms), 0.3), SUITE_LAWS):
            truth, shares = float((means @ law).mean()), shares_of(log, law)[0]
            terms = (estimators.terms_of(log, shares, "ips", None), estimators.terms_of(log, shares, "dr", predictions))
            errors += [(float(own.values.mean()) - truth) ** 2 for own in terms]
    return float(errors[1] / errors[0])


def run(*, quick: bool = False) -> None:
    coverage(LOGS // 10 if quick else LOGS)
    variance(4 if quick else None)
