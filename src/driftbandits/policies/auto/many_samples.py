"""Samples where there are very many arms: kept in the coordinates, their best arms sought among some arms at a time.

To read every sample at every arm in every round would cost more than all else together. So a sample is R coordinates,
and the best arm that has been found for it is kept. At every reward the next slice of the arms is read, and all arms
that are the best of some sample: a sample takes the best of these. Samples of one posterior are alike, so what is best
in one is a good guess for the others, and for those drawn anew, which read the representatives too. Every arm is read
once in `_ROUNDS_TO_READ_ALL` rewards. The law is that of the best arms kept: whatever they are, it is drawn from.

symbol  name     shape           meaning
X       values   (k, m + 1, R)   coordinates of m samples of each of k hypotheses, the mean before them
        best     (k, m)          the best arm found of every sample
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.policies.auto.beliefs import LARGEST_BELIEF, Beliefs
from driftbandits.policies.auto.samples import Samples
from driftbandits.ties import SLACK, first_largest
from driftbandits.types import Bools, Floats, Ints

LEAST_SLICE = 512  # arms read at every reward
_ROUNDS_TO_READ_ALL = 128  # at most
MOST_ALLOWED_READ = 1024  # of the arms that a mask allows


class ManySamples(Samples):
    """`Samples` in the coordinates, for arms that are linear in features."""

    def __init__(self, beliefs: Beliefs, number: int, generator: np.random.Generator) -> None:
        super().__init__(beliefs, number, generator)
        priors = beliefs.priors
        if priors.rows is None:
            raise ValueError("arms that are their own coordinates are too few for ManySamples; use Samples")
        self._readings = priors.rows
        self._standing = priors.rows.some(priors.representatives.numbers)
        self._size = priors.size
        # a slice is every so manieth arm: neighbours in number may be neighbours in all else
        self._step = max(min(self._size // LEAST_SLICE, _ROUNDS_TO_READ_ALL), 1)
        self._next = 0  # arm with which the next slice begins
        self._drawn_anew = False  # whether there are samples that `seek` has not seen
        self._top = 0  # the best arm found of the mean
        self._expected: Floats = np.zeros(self._standing.size)

    # --- reading ------------------------------------------------------------------------------------------------

    def rewards(self, arms: Ints | slice = slice(None)) -> Floats:
        """What the samples say of these arms, shape (k, m + 1, M), in coordinates where rewards have two values."""
        return self._readings.rewards_of_each(self._beliefs.kind[self.rows], self.values, arms)

    def frequencies(self, weights: Floats, mask: Bools | None = None) -> Floats:
        """How often each arm is the best one found (allowed), weighted by the hypotheses' weights, shape (N,)."""
        if mask is None:
            best = self._best[: len(self.rows)]
        else:
            arms = self._allowed(mask)
            best = arms[self._sampled(self.rewards(arms), arms).argmax(axis=2)]
        votes = (self._shares(weights) / self._number).repeat(self._number)
        return np.asarray(np.bincount(best.ravel(), votes, self._size), dtype=np.float64)

    def mean(self, weights: Floats, arms: Ints | slice = slice(None)) -> Floats:
        """Expected rewards of these arms, shape (M,); by default of all."""
        read = self._readings.rewards_of_each(self._beliefs.kind[self.rows], self.values[:, :1], arms)
        return self._mixed(weights, read[:, 0], arms)

    def best(self, weights: Floats, mask: Bools | None = None) -> int:
        """The arm of the highest expected reward found; with a mask, of some of those allowed."""
        if mask is None:
            return self._top
        arms = self._allowed(mask)
        return int(arms[first_largest(self.mean(weights, arms))])

    def expected(self, weights: Floats) -> Floats:
        """Expected rewards of the representatives when `seek` was called last, shape (M,)."""
        return self._expected

    def seek(self, weights: Floats) -> None:
        """Seek better arms in the next slice and among the best found; for new samples, in the representatives too."""
        kinds = self._beliefs.kind[self.rows]
        found = np.unique(np.append(self._best, self._top))  # of samples that are gone too: good for new ones
        blocks = [
            (self.rewards(slice(self._next, None, self._step)), np.arange(self._next, self._size, self._step)),
            (self.rewards(found), found),
        ]
        standing = self._beliefs.priors.representatives.numbers
        read = self._standing.rewards_of_each(kinds, self.values if self._drawn_anew else self.values[:, :1])
        if self._drawn_anew:
            blocks.append((read, standing))
        self._best[: len(kinds)] = _best_of_blocks([self._best_in(*block) for block in blocks])
        self._expected = self._mixed(weights, read[:, 0], standing)
        means = [(self._expected, standing), *((self._mixed(weights, r[:, 0], arms), arms) for r, arms in blocks[:2])]
        worth, arms = (np.concatenate(part) for part in zip(*means, strict=True))
        self._top = int(arms[worth >= worth.max() - SLACK].min())
        self._next, self._drawn_anew = (self._next + 1) % self._step, False

    def _best_in(self, read: Floats, arms: Ints) -> tuple[Ints, Floats]:
        """The best of these arms in every sample but the mean, and what it is worth there, each (k, m)."""
        sampled = self._sampled(read, arms)
        places = sampled.argmax(axis=2)
        return arms[places], np.take_along_axis(sampled, places[:, :, None], axis=2)[:, :, 0]

    def _sampled(self, read: Floats, arms: Ints) -> Floats:
        """Rewards of the samples but the mean, shape (k, m, M), of what they say of `arms`."""
        units = self._beliefs.units
        return read[:, 1:] if units is None else units.of(arms).sampled_rewards(read)

    def _mixed(self, weights: Floats, means: Floats, arms: Ints | slice) -> Floats:
        units = self._beliefs.units
        return np.asarray(self._shares(weights) @ (means if units is None else units.of(arms).rewards(means)))

    def _allowed(self, mask: Bools) -> Ints:
        """Allowed arms to seek the best among: evenly spread ones, and those that are the best of all."""
        allowed = np.flatnonzero(mask)
        if len(allowed) <= MOST_ALLOWED_READ:
            return allowed
        spread = allowed[np.linspace(0, len(allowed) - 1, MOST_ALLOWED_READ).astype(np.int64)]
        found = np.append(self._best, self._top)
        return np.unique(np.concatenate([spread, found[mask[found]]]))

    # --- what is kept of a sample ------------------------------------------------------------------------------

    def _width(self, beliefs: Beliefs) -> int:
        return beliefs.priors.width

    def _said_of(self, arms: int | Ints) -> Floats:
        if isinstance(arms, np.ndarray):
            return np.stack([self._said_of(arm) for arm in arms.tolist()], axis=2)
        rows = self._readings.one(self._beliefs.kind[self.rows], arms)
        return np.asarray(np.einsum("kmr,kr->km", self.values, rows))

    def _in_values(self, row: int, coordinates: Floats) -> Floats:
        return coordinates

    def _drifts(self, kind: int, normal: Floats) -> Floats:
        return normal

    def _put(self, slot: int, values: Floats) -> None:
        super()._put(slot, values)
        self._drawn_anew = True

    def _find_best(self, slot: int) -> None:
        """Nothing: `seek` does."""

    # --- state --------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """Samples, generator, and what was found of the best arms."""
        found = {"best": self._best.copy(), "top": self._top, "next": self._next, "expected": self._expected.copy()}
        return {**super().export(), **found}

    def load(self, state: states.Reader) -> None:
        """Inverse of `export`."""
        super().load(state)
        self._best = state.array("best", np.int64, self._best.shape)
        states.check(bool(((self._best >= 0) & (self._best < self._size)).all()), "best")
        self._top = state.integer("top", high=self._size - 1)
        self._next = state.integer("next", high=self._step - 1)
        self._drawn_anew = False
        self._expected = state.array("expected", np.float64, self._expected.shape)
        states.check(bool((np.abs(self._expected) <= LARGEST_BELIEF).all()), "expected")


def _best_of_blocks(blocks: list[tuple[Ints, Floats]]) -> Ints:
    """Of the best arms of every block, those worth most."""
    arms, worth = (np.array(part) for part in zip(*blocks, strict=True))
    return np.asarray(np.take_along_axis(arms, worth.argmax(axis=0)[None], axis=0)[0])
