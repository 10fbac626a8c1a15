"""Inverse-propensity estimates from per-law sums of rewards.

symbol       name          shape
P            law           (N,)
Phi          features      (N, r)
lambda       regulariser   sigma / T
S(P)         Phi' diag(P) Phi + lambda I, (r, r)
b_m          baselines     (N,) what was expected of every arm before law m was first played, or None for 0
s_m(x)       sums[m, x]: rewards less b_m(x), told of arm x drawn from law m
n_m          counts[m]: how many rewards that were

The estimate of one round is b(x) + phi(x)' S(P_t)^-1 phi(x_t) (y_t - b(x_t)); its mean over rounds needs only the sums:
R(x) = (sum_m n_m b_m(x) + phi(x)' S(P_m)^-1 Phi' s_m) / n. It is biased by its regulariser: with b = 0 (the paper's
IPS) its mean is M diag(P) r with M = Phi S(P)^-1 Phi'; otherwise b + M diag(P) (r - b). A good
baseline leaves little to weight (residual or doubly robust IPS), a wrong one costs variance only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from driftbandits._util.linalg import Cholesky, cholesky
from driftbandits.errors import StateError
from driftbandits.types import Floats, Ints


@dataclass
class Sums:
    """Rewards told of one interval: for every law the sum per arm, and how many rewards.

    Rows are added as laws appear; sums are taken in the order of the rounds, so that telling rewards one by one and
    all at once give the same bits.
    """

    sums: Floats
    counts: Ints

    @classmethod
    def empty(cls, laws: int, arms: int) -> Sums:
        """No reward yet, for `laws` laws over `arms` arms."""
        return cls(sums=np.zeros((laws, arms)), counts=np.zeros(laws, dtype=np.int64))

    @property
    def told(self) -> int:
        """How many rewards in all."""
        return int(self.counts.sum())

    def add(self, laws: Ints, arms: Ints, rewards: Floats) -> None:
        """Add rewards of rounds, in their order."""
        np.add.at(self.sums, (laws, arms), rewards)
        self.counts += np.bincount(laws, minlength=len(self.counts))


def merge(parts: Sequence[Sums]) -> Sums:
    """Sums of several intervals together; a later one may know more laws."""
    laws = max(len(part.sums) for part in parts)
    total = Sums.empty(laws, parts[0].sums.shape[1])
    for part in parts:
        total.sums[: len(part.sums)] += part.sums
        total.counts[: len(part.sums)] += part.counts
    return total


def law_factor(features: Floats, law: Floats, regulariser: float) -> Cholesky:
    """Cholesky factor of S(P) = Phi' diag(P) Phi + lambda I, from the arms with P > 0 only."""
    support = np.flatnonzero(law)
    weighted = features[support] * np.sqrt(law[support])[:, None]
    matrix = weighted.T @ weighted
    matrix[np.diag_indices_from(matrix)] += regulariser
    return cholesky(matrix, what="design matrix of a law")


def ips_estimate(
    features: Floats, factors: Sequence[Cholesky], sums: Sums, baselines: Sequence[Floats | None] = ()
) -> Floats:
    """Mean estimate of every arm's reward over the rounds behind `sums`, shape (N,); zeros if none was told.

    `factors[m]` is the factor of S(P_m) for the law of row m, `baselines[m]` what was taken off its rewards.
    """
    told = sums.told
    if told == 0:
        return np.zeros(len(features))
    weights = np.zeros(features.shape[1])
    for factor, row in zip(factors, sums.sums, strict=False):
        support = np.flatnonzero(row)
        if len(support):
            weights += factor.solve(features[support].T @ row[support])
    estimate: Floats = features @ (weights / told)
    for baseline, count in zip(baselines, sums.counts, strict=False):
        if baseline is not None:
            estimate += (count / told) * baseline
    return estimate


@dataclass(frozen=True, slots=True, order=True)
class Replay:
    """Slots `start` up to but not including `stop` of a block, meant for the law of index `index`."""

    start: int
    stop: int
    index: int


@dataclass(frozen=True)
class Schedule:
    """The replays of one block, and the stretches into which their ends cut it.

    Stretch s covers the slots `edges[s]` up to `edges[s + 1]` and follows the law of index `indices[s]`: the law cannot
    change inside a stretch and no replay ends inside one.
    """

    block: int
    replays: tuple[Replay, ...]
    edges: Ints
    indices: Ints

    def __len__(self) -> int:
        return len(self.indices)

    def starting(self, slot: int) -> tuple[Replay, ...]:
        """Replays that begin at the edge `slot`."""
        return tuple(replay for replay in self.replays if replay.start == slot)


def replay_probability(index: int, block: int) -> float:
    """Chance that one slot of index `index` in block `block` is replayed.

    >>> replay_probability(1, 3)
    0.5
    """
    return float(2.0 ** ((index - block) / 2))


def draw_schedule(block: int, generator: np.random.Generator, *, lowest: int = 0, scale: float = 1.0) -> Schedule:
    """Draw the replays of indices `lowest` to `block` - 1, each with `scale` times its chance, and add the whole block.

    >>> len(draw_schedule(0, np.random.default_rng(0)))
    1
    """
    replays = [Replay(start=0, stop=2**block, index=block)]
    for index in range(lowest, block):
        coins = generator.random(2 ** (block - index))
        starts = np.flatnonzero(coins < scale * replay_probability(index, block)) * 2**index
        replays.extend(Replay(start=int(s), stop=int(s) + 2**index, index=index) for s in starts)
    return build_schedule(block, replays)


def build_schedule(block: int, replays: list[Replay]) -> Schedule:
    """Cut the block at the ends of its replays and find the smallest index of every stretch."""
    ordered = tuple(sorted(replays))
    edges = np.unique([edge for replay in ordered for edge in (replay.start, replay.stop)])
    indices = np.full(len(edges) - 1, block, dtype=np.int64)
    for replay in sorted(ordered, key=lambda r: -r.index):  # smaller indices overwrite larger ones
        first, last = np.searchsorted(edges, [replay.start, replay.stop])
        indices[first:last] = replay.index
    return Schedule(block=block, replays=ordered, edges=edges.astype(np.int64), indices=indices)


def read_replay(row: Sequence[int], block: int) -> Replay:
    """A replay from its saved (start, stop, index), checked to lie where block `block` can have one."""
    if not isinstance(row, Sequence) or len(row) != 3 or not all(isinstance(value, int) for value in row):
        raise StateError(f"a replay must be three whole numbers, got {row!r}")
    start, stop, index = row
    if not (0 <= index <= block and start >= 0 and stop == start + 2**index <= 2**block and start % 2**index == 0):
        raise StateError(f"({start}, {stop}, {index}) is not a replay of block {block}")
    return Replay(start=start, stop=stop, index=index)
