"""The first sentence of the advice: how often it is right, for worlds that stand still, switch, drift or have a rhythm.

Five arms and 2,000 rounds, logged by Exp3S; every log has a world of its own. Rewards with normal noise of 0.15, and
rewards of 0 and 1 with the same means, of which a log says much less. `--quick`: 5 logs of each kind instead of 50.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

import driftbandits as db
from driftbandits._util.intervals import share_interval
from driftbandits.logs import Log
from driftbandits.logs.advising import Advice, diagnose, too_short
from driftbandits.types import Floats

FIRST_SEED = 330_000  # nothing was looked at before on these
LOGS, ROUNDS, ARMS, NOISE = 50, 2_000, 5, 0.15
KINDS = ("still", "switch", "drift", "rhythm", "too short")
REWARDS = ("normal noise", "0 and 1")
WORDS = ("cannot tell", "nothing moves", "may move", "changed once", "changed more often", "drifts", "rhythm")
RIGHT = dict(zip(KINDS, ("nothing moves", "changed once", "drifts", "rhythm", "cannot tell"), strict=True))


def means_of(kind: str, rng: np.random.Generator) -> Floats:
    """Mean rewards (T, N) between 0.2 and 0.8, or a little beyond."""
    rounds = 200 if kind == "too short" else ROUNDS
    first, second = rng.uniform(0.2, 0.8, (2, ARMS))
    share = np.linspace(0.0, 1.0, rounds)[:, None]
    if kind == "switch":
        share = (share > rng.uniform(0.25, 0.75)).astype(np.float64)
    elif kind != "drift":
        share = np.zeros_like(share)
    means = (1.0 - share) * first + share * second
    if kind == "rhythm":
        phase = 2.0 * np.pi * np.arange(rounds)[:, None] * 8 / rounds
        means = means + 0.12 * np.sin(phase + rng.uniform(0.0, 2.0 * np.pi, ARMS))
    return np.asarray(means)


def logged(kind: str, seed: int, rewards: str) -> Log:
    """The log of one world."""
    rng = np.random.default_rng(seed)
    arms = db.ArmSet.from_features(np.eye(ARMS))
    normal = rewards == REWARDS[0]
    noise = db.environments.TruncatedGaussianNoise(NOISE) if normal else db.environments.BernoulliNoise()
    world = db.environments.Tabular(arms, means_of(kind, rng), noise=noise)
    policy = db.Exp3S(arms, horizon=world.horizon, seed=seed, reward_range=(-1, 1) if normal else (0, 1))
    return Log.read(db.simulate(policy, world, seed=seed), arms=[f"arm {k}" for k in range(ARMS)])


def said(log: Log) -> str:
    """What the first sentence says."""
    if too_short(log):
        return "cannot tell"
    return _kind(diagnose(log))


def _kind(found: Advice) -> str:
    if found.season is not None:
        return "rhythm"
    if not found.changes:
        return "may move" if found.verdict.startswith("Something may move") else "nothing moves"
    if found.gradual:
        return "drifts"
    return "changed once" if len(found.changes) == 1 else "changed more often"


def run(*, quick: bool = False) -> None:
    logs = LOGS // 10 if quick else LOGS
    print(f"\n## What the advice says first, {logs} logs of each kind\n")
    print(f"| rewards | world | right, 95 % | {' | '.join(WORDS)} |\n|---|---|---:|{'---:|' * len(WORDS)}")
    for rewards in REWARDS:
        for kind in KINDS:
            counts = Counter(said(logged(kind, FIRST_SEED + number, rewards)) for number in range(logs))
            share = share_interval(counts[RIGHT[kind]], logs)
            right = f"{share.estimate:.0%} [{share.low:.0%}, {share.high:.0%}]"
            print(f"| {rewards} | {kind} | {right} | {' | '.join(str(counts[w]) for w in WORDS)} |", flush=True)
