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
IPS) its mean is M diag(P) r with M = Phi S(P)^-1 Phi', see `expected_estimate`; otherwise b + M diag(P) (r - b). A good
baseline leaves little to weight (residual or doubly robust IPS), a wrong one costs variance only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from driftbandits.linalg import Cholesky, cholesky
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


def expected_estimate(features: Floats, law: Floats, regulariser: float, rewards: Floats) -> Floats:
    """Mean of the IPS estimate when arms are drawn from `law` and have mean `rewards`: Phi S(P)^-1 Phi' diag(P) r.

    As lambda goes to 0 this becomes r on the span of the played arms; otherwise it is shrunk.

    >>> expected_estimate(np.eye(2), np.array([0.5, 0.5]), 0.5, np.array([1.0, -1.0])).tolist()
    [0.5, -0.5]
    """
    solved = law_factor(features, law, regulariser).solve(features.T @ (law * rewards))
    return np.asarray(features @ solved)
