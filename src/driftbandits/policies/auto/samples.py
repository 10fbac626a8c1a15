"""How the mixture acts: posterior samples of its weightiest hypotheses, and how often each arm is their best.

Drawing samples anew needs a factor of every covariance. Instead samples are kept, and a reward moves them as it moves
the posterior: f + gain (y + noise - f(a)), with noise drawn anew, is a sample of the new posterior if f was one of the
old (Matheron's rule). They are drawn anew only every few rewards, or when the weight has moved to other hypotheses.

symbol  name     shape           meaning
F       values   (k, m + 1, N)   rewards of all arms in m samples of each of k hypotheses, the mean before them
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg.blas
import scipy.linalg.lapack

from driftbandits import state as states
from driftbandits.policies.auto.beliefs import UNBELIEVABLE, Beliefs, Step
from driftbandits.seeding import generator_from_state, generator_state, stream
from driftbandits.types import Bools, Floats, Ints

MOST = 4  # hypotheses sampled
MISSED = 0.1  # weight that may be without samples before they are chosen anew
_POOL = 8  # times as many draws from each prior as samples, of which the drift is taken; the same for all seeds
_FAST = 3e-3  # drift beyond this moves the samples at once; less of it, only when they are drawn anew
_JITTER = 1e-8


class Samples:
    """`number` samples of each of the weightiest hypotheses of `beliefs`."""

    def __init__(self, beliefs: Beliefs, arms: int, number: int, generator: np.random.Generator) -> None:
        self.rows: Ints = np.zeros(0, dtype=np.int64)  # hypotheses sampled
        self.values: Floats = np.zeros((MOST, number + 1, arms))
        self._beliefs = beliefs
        self._number = number
        self._generator = generator
        self._pools: dict[int, Floats] = {}  # made when first needed, from the prior alone

    def frequencies(self, weights: Floats, mask: Bools | None = None) -> Floats:
        """How often each arm is the best (allowed) one, weighted by the hypotheses' weights, shape (N,)."""
        k = len(self.rows)
        values = self.values[:k, 1:]
        if mask is not None:
            values = np.where(mask, values, -np.inf)
        best = values.argmax(axis=2)
        share = self._shares(weights) / self._number
        counted = np.bincount(best.ravel(), weights=np.repeat(share, self._number), minlength=values.shape[2])
        return counted.astype(np.float64, copy=False)

    def mean(self, weights: Floats) -> Floats:
        """Expected reward of every arm, shape (N,)."""
        return np.asarray(self._shares(weights) @ self.values[: len(self.rows), 0])

    def _shares(self, weights: Floats) -> Floats:
        """Weights of the hypotheses sampled, adding up to 1."""
        share = weights[self.rows]
        return np.asarray(share / share.sum())

    # --- following the beliefs ----------------------------------------------------------------------------------

    def pass_time(self, rounds: int) -> None:
        """Let the samples of fast drifting hypotheses drift."""
        beliefs = self._beliefs
        for slot, row in enumerate(self.rows):
            rate = beliefs.rate[row]
            if rate * rounds <= _FAST:
                continue
            keep = (1.0 - rate) ** rounds
            pool = self._pool(int(beliefs.kind[row]))
            first = int(self._generator.integers(0, (_POOL - 1) * self._number))
            values = self.values[slot]
            values *= math.sqrt(keep)
            values[1:] += math.sqrt(1.0 - keep) * pool[first : first + self._number]

    def _pool(self, kind: int) -> Floats:
        if kind not in self._pools:
            priors = self._beliefs.priors
            normal = stream(kind, "drift").standard_normal((_POOL * self._number, priors.width))
            root = _root(priors.prior[kind]) if priors.rows is None else priors.rows[kind]
            self._pools[kind] = (normal - normal.mean(axis=0)) @ root.T
        return self._pools[kind]

    def follow(self, arm: int, step: Step) -> None:
        """Move the samples by a reward of `arm`."""
        rows, priors = self.rows, self._beliefs.priors
        values = self.values[: len(rows)]
        shifts = (values[:, 0, arm] + step.residual[rows])[:, None] - values[:, :, arm]
        noise = self._generator.standard_normal((len(rows), self._number))
        shifts[:, 1:] += np.sqrt(step.noise[rows])[:, None] * noise
        for slot, row in enumerate(rows.tolist()):
            gain = step.gain[row]
            if priors.rows is not None:
                gain = priors.rows[self._beliefs.kind[row]] @ gain
            scipy.linalg.blas.dger(1.0, gain, shifts[slot], a=values[slot].T, overwrite_a=1)

    def choose(self, weights: Floats, *, anew: bool) -> None:
        """Sample the weightiest hypotheses, those that have samples already only if `anew`."""
        order = np.argsort(-weights)[:MOST]
        enough = int(np.searchsorted(np.cumsum(weights[order]), 1.0 - MISSED / 4.0)) + 1
        chosen = order[:enough]
        self._keep(np.isin(self.rows, chosen) & (not anew))
        for row in chosen[~np.isin(chosen, self.rows)].tolist():
            self.values[len(self.rows)] = self._drawn(row)
            self.rows = np.append(self.rows, row)

    def lacking(self, weights: Floats) -> bool:
        """Whether too much weight is without samples, and others would have more."""
        sampled = float(weights[self.rows].sum())
        if sampled >= 1.0 - MISSED:
            return False
        return sampled < (1.0 - MISSED) * float(np.sort(weights)[-MOST:].sum())

    def forget(self, rows: list[int]) -> None:
        """These hypotheses are others now."""
        if rows:
            self._keep(~np.isin(self.rows, rows))

    def _keep(self, kept: Bools) -> None:
        if not kept.all():
            self.values[: int(kept.sum())] = self.values[: len(self.rows)][kept]
            self.rows = self.rows[kept]

    def _drawn(self, row: int) -> Floats:
        beliefs = self._beliefs
        normal = self._generator.standard_normal((self._number, beliefs.priors.width))
        coordinates = np.vstack([np.zeros(beliefs.priors.width), normal @ _root(beliefs.covariance(row)).T])
        coordinates += beliefs.mean[row]
        if beliefs.priors.rows is None:
            return coordinates
        return np.asarray(coordinates @ beliefs.priors.rows[beliefs.kind[row]].T)

    # --- state --------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """Samples and generator."""
        k = len(self.rows)
        return {
            "rows": self.rows.astype(np.int64),
            "values": self.values[:k].copy(),
            "generator": generator_state(self._generator),
        }

    def load(self, state: states.Reader) -> None:
        """Inverse of `export`."""
        self.rows = state.array("rows", np.int64, (None,))
        k = len(self.rows)
        known = (self.rows >= 0) & (self.rows < self._beliefs.count)
        states.check(0 < k <= MOST and bool(known.all()) and len(np.unique(self.rows)) == k, "rows")
        self.values[:k] = state.array("values", np.float64, (k, *self.values.shape[1:]))
        states.check(bool((np.abs(self.values[:k]) <= UNBELIEVABLE).all()), "samples")
        self._generator = generator_from_state(state.raw("generator"))


def _root(covariance: Floats) -> Floats:
    """L with L L' = S, up to rounding."""
    size = len(covariance)
    raised = covariance.copy()
    raised.flat[:: size + 1] += _JITTER
    root, failed = scipy.linalg.lapack.dpotrf(raised, lower=1, clean=1)
    if failed:  # rounding has left it slightly indefinite
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(root)
