"""Estimators of logs: bias and coverage on worlds that move, and the variance of `dr` over that of `ips` on the suite.

Worlds that switch and that drift, logged by a policy that learns; targets are random laws, whose values are known.
`--quick` has 40 logs instead of 400, and four worlds of the suite.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import driftbandits as db
from driftbandits.environments import Environment
from driftbandits.experiments.definitions.suite import SUITE_WORLDS, UNBOUNDED_WORLDS
from driftbandits.logs import Log, estimators
from driftbandits.logs.estimators import Estimator
from driftbandits.logs.targets import shares_of
from driftbandits.types import Floats

FIRST_SEED = 2_000  # of worlds and logs: nothing was looked at before on these
LOGS, ROUNDS, ARMS = 400, 1_000, 10
SUITE_LOGS, SUITE_LAWS = 6, 10
NAMES: tuple[Estimator, ...] = ("ips", "snips", "clipped", "dr")
MOVING: dict[str, tuple[str, dict[str, Any]]] = {
    "switches": ("switching", {"kind": "redraw", "switches": (300, 650)}),
    "drifts": ("cosine", {"phase": [[0, 0.0], [ROUNDS, math.pi]]}),
}


def logged(world: Environment, kind: type[db.Policy], seed: int) -> Log:
    """The log of a policy, which knows the horizon if it needs to."""
    settings: dict[str, Any] = {"horizon": world.horizon} if kind is db.Exp3S else {}
    policy = kind(world.arms, seed=seed, reward_range=world.reward_range, **settings)
    return Log.read(db.simulate(policy, world, seed=seed), arms=world.arms, reward_range=world.reward_range)


def coverage(logs: int) -> None:
    print(f"\n## Bias and coverage, {logs} logs of Exp3S, {ROUNDS:,} rounds, {ARMS} arms, one world each\n")
    print("| world | estimator | mean error, in standard errors | 95 % interval covers | anytime covers |")
    print("|---|---|---:|---:|---:|")
    for name, (kind, settings) in MOVING.items():
        world = db.environments.create(kind, seed=FIRST_SEED, horizon=ROUNDS, size=ARMS, dimension=2, **settings)
        law = np.random.default_rng(FIRST_SEED).dirichlet(np.ones(ARMS))
        truth = float((world.means(0, ROUNDS) @ law).mean())
        found = {one: np.empty((logs, 5)) for one in NAMES}
        for number in range(logs):
            log = logged(world, db.Exp3S, FIRST_SEED + number)
            for one in NAMES:
                whole = db.logs.evaluate(log, law, estimator=one).whole
                found[one][number] = (whole.value, whole.low, whole.high, whole.anytime_low, whole.anytime_high)
        for one in NAMES:
            print(f"| {name} | {one} | {_covered(found[one], truth)} |", flush=True)


def _covered(rows: Floats, truth: float) -> str:
    value, low, high, anytime_low, anytime_high = rows.T
    errors = value - truth
    bias = errors.mean() / (errors.std(ddof=1) / math.sqrt(len(errors)))
    share, anytime = ((a <= truth) & (truth <= b) for a, b in ((low, high), (anytime_low, anytime_high)))
    return f"{bias:+.2f} | {share.mean():.1%} | {anytime.mean():.1%}"


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
