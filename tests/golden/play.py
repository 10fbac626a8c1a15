"""Two small worlds made of NumPy alone, and how a policy plays them: every decision, by hand, through ask and tell.

`plain`: 20 arms in the unit square, the reward function is mirrored in round 1,000, every reward comes at once.
`rough`: the same arms, a slow drift and a jump in round 700; two arms in five are not on offer in each round, rewards
come up to 30 rounds late and out of order, a few are forgotten, and some rounds are asked in batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from driftbandits import ArmSet
from driftbandits.policies import Policy

ROUNDS = 2_000
ARMS = 20
EVERY = 25  # rounds from one law that is recorded to the next


def arm_set() -> ArmSet:
    """The arms of both worlds."""
    return ArmSet(np.random.default_rng(1).random((ARMS, 2)), kernel=RBF(0.3))


def _bump(points, centre):
    return np.exp(-np.square(points - centre).sum(axis=1) / 0.18)


def _plain_means():
    points = arm_set().points
    first = _bump(points, (0.2, 0.3)) - 0.7 * _bump(points, (0.8, 0.8))
    return np.where(np.arange(ROUNDS)[:, None] < 1_000, first, -first) * 0.8


def _rough_means():
    points = arm_set().points
    turns = 2.0 * np.pi * np.arange(ROUNDS) / ROUNDS
    centres = np.stack([0.5 + 0.4 * np.cos(turns), 0.5 + 0.4 * np.sin(turns)], axis=1)
    means = 0.8 * np.stack([_bump(points, centre) for centre in centres])
    means[700:] = means[700:, ::-1]
    return means - 0.2


def _noise():
    return np.random.default_rng(2).uniform(-0.1, 0.1, ROUNDS)


@dataclass
class Run:
    """What a policy decided in a world, and what it believed on the way.

    `arms`, `probabilities`: one per round. `laws`, `estimates`: every `EVERY` rounds, before the decision. `regret`: in
    all. Along given decisions, `differing` rounds would have been drawn otherwise, and `largest` is the largest
    difference between a probability and the given one.
    """

    arms: Any
    probabilities: Any
    laws: list[Any] = field(default_factory=list)
    estimates: list[Any] = field(default_factory=list)
    regret: float = 0.0
    differing: int = 0
    largest: float = 0.0

    def decide(self, policy: Policy, size: int, allowed: Any, given: Run | None) -> Any:
        """The next decisions: the policy's own, or those of `given`."""
        now = policy.rounds
        if now // EVERY >= len(self.laws):
            self.laws.append(np.array(policy.law(allowed)))
            self.estimates.append(np.array(policy.estimate()))
        if given is None:
            made = policy.ask(size=size, allowed=allowed)
        else:
            here = slice(now, now + size)
            found = policy.impose(given.arms[here].astype(np.int64), given.probabilities[here], allowed)
            self.differing += found.differing
            self.largest = max(self.largest, found.largest)
            made = found.decisions
        self.arms[made.ids], self.probabilities[made.ids] = made.arms, made.probabilities
        return made


def _new_run() -> Run:
    return Run(np.empty(ROUNDS, dtype=np.int64), np.empty(ROUNDS))


def play_plain(policy: Policy, given: Run | None = None) -> Run:
    """One decision after the other, each with its reward."""
    means, noise, run = _plain_means(), _noise(), _new_run()
    for now in range(ROUNDS):
        arm = run.decide(policy, 1, None, given).arms[0]
        policy.tell(now, float(means[now, arm] + noise[now]))
    run.regret = float((means.max(axis=1) - means[np.arange(ROUNDS), run.arms]).sum())
    return run


def play_rough(policy: Policy, given: Run | None = None) -> Run:
    """Batches, masks, delays; the best arm is the best of those on offer."""
    means, noise, run = _rough_means(), _noise(), _new_run()
    rng = np.random.default_rng(3)
    offered = rng.random((ROUNDS, ARMS)) < 0.6
    offered[np.arange(ROUNDS), rng.integers(ARMS, size=ROUNDS)] = True
    offered[: ROUNDS // 4] = True  # and everything at first, so that blocks of whole laws are seen too
    delays = rng.integers(0, 30, ROUNDS)
    lost = rng.random(ROUNDS) < 0.03
    due: dict[int, list[int]] = {}
    now = 0
    while now < ROUNDS:
        size = min(1 if rng.random() < 0.9 else 7, ROUNDS - now)
        offered[now : now + size] = offered[now]
        batch = run.decide(policy, size, None if offered[now].all() else offered[now], given)
        for ident in batch.ids.tolist():
            due.setdefault(ident + int(delays[ident]), []).append(ident)
        now += size
        ready = [ident for then in range(now - size, now) for ident in due.pop(then, [])]
        gone = [ident for ident in ready if lost[ident]]
        told = np.array([ident for ident in ready if not lost[ident]], dtype=np.int64)
        policy.forget(gone)
        policy.tell(told, means[told, run.arms[told]] + noise[told])
    best = np.where(offered, means, -np.inf).max(axis=1)
    run.regret = float((best - means[np.arange(ROUNDS), run.arms]).sum())
    return run


PLAY: dict[str, Callable[..., Run]] = {"plain": play_plain, "rough": play_rough}
