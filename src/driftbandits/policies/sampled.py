"""Thompson sampling with a law that is known: votes of samples from the posterior."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.linalg.lapack

from driftbandits._util.checks import check_count
from driftbandits.arms.arm_set import ArmSet
from driftbandits.errors import KernelError
from driftbandits.policies.base import Policy
from driftbandits.types import Bools, Floats

_JITTER = 1e-9  # relative to the largest variance: arms alike have a singular covariance


class PosteriorSampling(Policy):
    """Plays an arm with the probability that it is best, found as the share of `samples` in which it is.

    Thompson sampling draws one sample and plays its best arm, with a probability that is an integral. Here the law is
    the share of votes among `samples` samples, drawn anew in every round; the arm is drawn from it, so its probability
    is exact, and over the samples it is played as often as Thompson sampling plays it. To be named before the class
    whose beliefs are sampled, of which it takes the place of the law.
    """

    _numbers_rounds = True
    _pick = Policy._pick
    _weigh = Policy._weigh
    _choose_one = Policy._choose_one

    def __init__(self, arms: ArmSet, *, samples: int = 64, **settings: Any) -> None:
        super().__init__(arms, **settings)
        self.samples = check_count("samples", samples)

    @abstractmethod
    def _sampled(self, rng: np.random.Generator, count: int) -> Floats:
        """Rewards of all arms drawn from the posterior, (count, N)."""

    def _votes(self, allowed: Bools | None = None) -> tuple[Floats, bool]:
        """The share of samples in which each allowed arm is best, and whether one that is not allowed ever is."""
        sampled = self._sampled(self._generator("samples"), self.samples)
        best, removed = sampled.argmax(axis=1), False
        if allowed is not None and not allowed[best].all():
            best, removed = np.where(allowed, sampled, -np.inf).argmax(axis=1), True
        return np.bincount(best, minlength=len(self.arms)) / self.samples, removed

    def _law(self) -> Floats:
        return self._votes()[0]

    def _law_within(self, mask: Bools) -> tuple[Floats, bool]:
        return self._votes(mask)

    def _stamp(self) -> tuple[int, int]:
        return self.rounds, 0

    def _quiet_rounds(self) -> int:
        return 1

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "samples": self.samples}


def correlated(rng: np.random.Generator, count: int, covariance: Floats, features: Floats | None) -> Floats:
    """Normal numbers, (count, N), of this covariance, (r, r), in the coordinates of the features (None: the arms).

    >>> drawn = correlated(np.random.default_rng(0), 2, np.zeros((2, 2)), np.eye(3)[:, :2])
    >>> drawn.shape, bool(np.abs(drawn).max() < 1e-3)
    ((2, 3), True)
    """
    matrix = np.array(covariance, order="F")
    matrix.flat[:: len(matrix) + 1] += _JITTER * max(float(covariance.diagonal().max()), 1.0)
    factor, info = scipy.linalg.lapack.dpotrf(matrix, lower=1, clean=1, overwrite_a=1)
    if info != 0:
        raise KernelError(f"the posterior could not be sampled: its covariance is not one (LAPACK info {info})")
    drawn = rng.standard_normal((count, len(matrix))) @ factor.T
    return np.asarray(drawn if features is None else drawn @ features.T)
