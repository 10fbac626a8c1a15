"""How the mixture acts: posterior samples of its heaviest hypotheses, and how often each arm is the best in them.

Drawing samples needs a factor of every covariance. So samples are kept, and a reward moves them as it moves the
posterior: f + gain (y + noise - f(a)), with fresh noise, is a sample of the new posterior if f was one of the old
(Matheron's rule). They are redrawn only every few rewards, or when the weight has moved to other hypotheses.

symbol  name     shape           meaning
F       values   (k, m + 1, N)   rewards of all arms in m samples of each of k hypotheses, the mean before them

With very many arms, samples are kept as coordinates, and their best arms are searched for in slices of the arms.

Evaluating every sample at every arm in every round would cost more than everything else. So a sample is R coordinates,
and the best arm found for it so far is kept. Every reward evaluates the next slice of the arms, and all arms that are
the best of some sample: each sample takes the best of these. Samples of one posterior are similar, so the best arm of
one is a good guess for the others and for redrawn ones, which also evaluate the representatives. Every arm is evaluated
once in `_ROUNDS_TO_READ_ALL` rewards. The law is that of the best arms found: decisions are drawn from it exactly,
however good the search is.

symbol  name     shape           meaning
X       values   (k, m + 1, R)   coordinates of m samples of each of k hypotheses, the mean before them
        best     (k, m)          the best arm found for every sample
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg.blas
import scipy.linalg.lapack

from driftbandits import state as states
from driftbandits._util.linalg import SLACK, first_largest, largest_first
from driftbandits._util.seeding import generator_from_state, generator_state, same_stream, stream
from driftbandits.policies.auto.batching import Joint
from driftbandits.policies.auto.beliefs import LARGEST_BELIEF, Beliefs, Step
from driftbandits.policies.auto.echoes import MODELS
from driftbandits.types import Bools, Floats, Ints

MOST_SAMPLED = 4  # hypotheses
LARGEST_UNSAMPLED_WEIGHT = 0.1  # above it, the hypotheses to sample are chosen again
_DRIFTS_PER_SAMPLE = 8  # drawn once from each prior, the same for all seeds; drift steps are taken from them
REWARDS_TO_LAST = 32  # then samples are redrawn: new ones try other arms, and drift steps repeat
_FAST_DRIFT = 3e-3  # above it, drift moves the samples at once; below, only redrawing does
_JITTER = 1e-8


class Samples:
    """`number` samples of each of the weightiest hypotheses of `beliefs`; `ManySamples` for very many arms."""

    def __init__(self, beliefs: Beliefs, number: int, generator: np.random.Generator) -> None:
        self._rows: Ints = np.zeros(0, dtype=np.int64)
        self._serials: Ints = np.zeros(0, dtype=np.int64)  # of the rows when they were sampled
        self._values: Floats = np.zeros((MOST_SAMPLED, number + 1, self._width(beliefs)))
        self._moods: Floats = np.zeros((MOST_SAMPLED, number + 1))  # of the same samples: see `echoes`
        self._best: Ints = np.zeros((MOST_SAMPLED, number), dtype=np.int64)  # best arm of every sample but the mean
        self._beliefs = beliefs
        self._writes = beliefs.writes  # when the serial numbers were last compared
        self._shared: tuple[Floats | None, Ints, Floats] = (None, self._rows, np.zeros(0))  # see `_shares`
        self._number = number
        self._generator = generator
        self._pools: dict[int, Floats] = {}  # made when first needed, from the prior alone

    def draw_as(self, other: Samples, places: Ints) -> None:
        """Sample what `other` samples, with its generator; its hypothesis k is places[k] here, or -1."""
        self._generator = same_stream(other._generator)
        self._rows = places[other.rows]
        self._rows = self._rows[self._rows >= 0]
        self._serials, self._writes = self._beliefs.serial[self._rows], self._beliefs.writes
        for slot, row in enumerate(self._rows.tolist()):
            self._put(slot, *self._drawn(row))

    @property
    def rows(self) -> Ints:
        """Hypotheses sampled, shape (k,). Samples of a row overwritten since are dropped first."""
        if self._writes != self._beliefs.writes:
            self._writes = self._beliefs.writes
            self._keep(self._beliefs.serial[self._rows] == self._serials)
        return self._rows

    @property
    def values(self) -> Floats:
        """Their samples F, shape (k, m + 1, N): a view."""
        return self._values[: len(self.rows)]

    def frequencies(self, weights: Floats, mask: Bools | None = None) -> Floats:
        """How often each arm is the best (allowed) one, weighted by the hypotheses' weights, shape (N,)."""
        values, units = self.values, self._beliefs.units
        if units is None and mask is None:
            best = self._best[: len(values)]
        else:
            values = values[:, 1:] if units is None else units.sampled_rewards(values)
            best = (values if mask is None else np.where(mask, values, -np.inf)).argmax(axis=2)
        votes = (self._shares(weights) / self._number).repeat(self._number)
        return np.asarray(np.bincount(best.ravel(), votes, values.shape[2]), dtype=np.float64)

    def mean(self, weights: Floats, arms: Ints | slice = slice(None)) -> Floats:
        """Expected rewards of these arms, shape (M,); by default of all."""
        units, means = self._beliefs.units, self.values[:, 0, arms]
        return np.asarray(self._shares(weights) @ (means if units is None else units.of(arms).rewards(means)))

    def best(self, weights: Floats, mask: Bools | None = None) -> int:
        """The (allowed) arm of the highest expected reward."""
        mean = self.mean(weights)
        return first_largest(mean if mask is None else np.where(mask, mean, -np.inf))

    def expected(self, weights: Floats) -> Floats:
        """Expected rewards of the representatives, shape (M,)."""
        return self.mean(weights)

    def seek(self, weights: Floats) -> None:
        """Called after the last move of the samples in a round; nothing to do where all arms are evaluated."""

    def _shares(self, weights: Floats) -> Floats:
        """Weights of the hypotheses sampled, adding up to 1."""
        rows = self.rows
        if self._shared[0] is not weights or self._shared[1] is not rows:  # used several times in a round
            share = weights[rows]
            share /= np.add.reduce(share)
            self._shared = (weights, rows, share)
        return self._shared[2]

    # --- following the beliefs ----------------------------------------------------------------------------------

    def pass_time(self, rounds: int) -> None:
        """Let moods, the means, and the samples of fast drifting hypotheses drift."""
        beliefs = self._beliefs
        for slot, row in enumerate(self.rows.tolist()):
            rate, values, model = beliefs.rate.item(row), self._values[slot], beliefs.model.item(row)
            if MODELS[model].mood:
                fade, moods = MODELS[model].rho ** rounds, self._moods[slot]
                moods *= fade
                spread = math.sqrt((1.0 - fade * fade) * MODELS[model].mood * beliefs.noise.item(row))
                moods[1:] += spread * self._generator.standard_normal(self._number)
            if rate == 0.0:
                continue
            keep = (1.0 - rate) ** rounds
            if rate * rounds <= _FAST_DRIFT:
                values[0] *= math.sqrt(keep)
                continue
            pool = self._pool(int(beliefs.kind[row]))
            first = int(self._generator.integers(0, (_DRIFTS_PER_SAMPLE - 1) * self._number))
            values *= math.sqrt(keep)
            values[1:] += math.sqrt(1.0 - keep) * pool[first : first + self._number]
            self._find_best(slot)

    def _pool(self, kind: int) -> Floats:
        if kind not in self._pools:
            priors = self._beliefs.priors
            width = priors.width - (priors.rows is None)
            normal = stream(kind, "drift").standard_normal((_DRIFTS_PER_SAMPLE * self._number, width))
            self._pools[kind] = self._drifts(kind, normal - normal.mean(axis=0))
        return self._pools[kind]

    def follow(self, step: Step) -> None:
        """Update the samples by a reward."""
        rows, forecast = self.rows, step.forecast
        moods = self._moods[: len(rows)]
        said = self._said_of(forecast.arm) + moods
        if forecast.echo is not None:
            said *= (1.0 - forecast.echo[rows])[:, None]
        shifts = (said[:, 0] + step.residual[rows])[:, None] - said
        noise = self._generator.standard_normal((len(rows), self._number))
        noise *= np.sqrt(step.noise[rows])[:, None]
        shifts[:, 1:] += noise
        for slot, row in enumerate(rows.tolist()):
            column, values = self._in_values(row, step.column[row]), self._values[slot]
            scipy.linalg.blas.dger(1.0 / step.total.item(row), column, shifts[slot], a=values.T, overwrite_a=1)
            self._find_best(slot)
        moods += (forecast.mood[rows] / step.total[rows])[:, None] * shifts

    def follow_all(self, arms: Ints, joint: Joint) -> None:
        """Update the samples by a batch of rewards of these arms; see `batching` for the symbols.

        One after the other they would move a sample f by B' M' (e + L^-1 d / root), where d is noise, and x times the
        mean's f less f at the arms; the mean itself by B' M' e.
        """
        rows, values = self.rows, self.values
        said = self._said_of(arms)
        reads = joint.reads[rows] if len(joint.reads) > 1 else joint.reads
        differences = (said[:, :1] - said) * reads[:, None]
        noise = self._generator.standard_normal((len(rows), self._number, len(arms)))
        noise *= np.sqrt(joint.noise[rows])[:, None]
        differences[:, 1:] += noise
        steps = joint.steps[rows]
        weights = np.linalg.solve(joint.factor[rows].swapaxes(1, 2), steps)
        moves = np.matmul(differences, weights / joint.root[rows, :, None])
        moves += np.matmul(joint.scores[rows][:, None], steps)
        values += np.matmul(moves, self._directions(rows, joint.basis))
        for slot in range(len(rows)):
            self._find_best(slot)

    def _find_best(self, slot: int) -> None:
        """Find the best arms right after the samples have moved, while they are in the cache."""
        self._values[slot, 1:].argmax(axis=1, out=self._best[slot])

    def _put(self, slot: int, values: Floats, moods: Floats | float = 0.0) -> None:
        self._values[slot], self._moods[slot] = values, moods
        self._find_best(slot)

    def choose(self, weights: Floats, *, anew: bool) -> None:
        """Sample the heaviest hypotheses; redraw those that have samples already only if `anew`."""
        order = largest_first(weights)[:MOST_SAMPLED]  # at first many are equal
        enough = int(np.searchsorted(np.cumsum(weights[order]), 1.0 - LARGEST_UNSAMPLED_WEIGHT / 4.0)) + 1
        chosen = order[:enough].tolist()
        self._keep(np.array([row in chosen and not anew for row in self.rows.tolist()], dtype=np.bool_))
        sampled = self._rows.tolist()
        for row in [row for row in chosen if row not in sampled]:
            self._put(len(self._rows), *self._drawn(row))
            self._rows = np.append(self._rows, row)
            self._serials = np.append(self._serials, self._beliefs.serial[row])

    def lacking(self, weights: Floats) -> bool:
        """Whether too much weight is without samples, and another choice would have more."""
        sampled = float(np.add.reduce(weights[self.rows]))
        if sampled >= 1.0 - LARGEST_UNSAMPLED_WEIGHT:
            return False
        return sampled < (1.0 - LARGEST_UNSAMPLED_WEIGHT) * float(np.sort(weights)[-MOST_SAMPLED:].sum())

    def _keep(self, kept: Bools) -> None:
        if not kept.all():
            for part in (self._values, self._moods, self._best):
                part[: int(kept.sum())] = part[: len(self._rows)][kept]
            self._rows, self._serials = self._rows[kept], self._serials[kept]

    def _drawn(self, row: int) -> tuple[Floats, Floats | float]:
        """The mean and samples of a hypothesis, and moods with them."""
        beliefs, rows = self._beliefs, self._beliefs.priors.rows
        mean, covariance, both = beliefs.mean[row], beliefs.covariance(row), beliefs.with_mood[row]
        if rows is None:  # only the arms are needed, not the level
            mean, covariance, both = mean[:-1], covariance[:-1, :-1], both[:-1]
        moody = MODELS[beliefs.model.item(row)].mood > 0.0
        if moody:
            mean = np.append(mean, beliefs.mood[row])
            whole = np.empty((len(mean), len(mean)))
            whole[:-1, :-1], whole[-1, :-1], whole[:-1, -1] = covariance, both, both
            whole[-1, -1], covariance = beliefs.mood_variance[row], whole
        coordinates = np.empty((self._number + 1, len(mean)))
        coordinates[0] = mean
        normal = self._generator.standard_normal((self._number, len(mean)))
        np.add(_with_covariance(covariance, normal), mean, out=coordinates[1:])
        moods: Floats | float = 0.0
        if moody:
            coordinates, moods = coordinates[:, :-1], coordinates[:, -1]
        return coordinates if rows is None else self._in_values(row, coordinates), moods

    # --- what is kept of a sample ------------------------------------------------------------------------------

    def _width(self, beliefs: Beliefs) -> int:
        return beliefs.priors.size

    def _said_of(self, arms: int | Ints) -> Floats:
        """Values of the samples at an arm, shape (k, m + 1), or at several, (k, m + 1, M)."""
        return self.values[:, :, arms]

    def _in_values(self, row: int, coordinates: Floats) -> Floats:
        """Coordinates under hypothesis `row`, including the level, in the form samples are kept in: rewards of all
        arms.
        """
        priors = self._beliefs.priors
        if priors.rows is None:
            return coordinates[..., :-1]
        return priors.rows.rewards(int(self._beliefs.kind[row]), coordinates)

    def _directions(self, rows: Ints, basis: Floats) -> Floats:
        """Directions (n, b, R) of all hypotheses, for the sampled ones in the form samples are kept in."""
        if self._beliefs.priors.rows is None:
            return basis[rows, :, :-1]
        return np.stack([self._in_values(row, basis[row]) for row in rows.tolist()])

    def _drifts(self, kind: int, normal: Floats) -> Floats:
        """Draws from a prior, from standard normal numbers."""
        priors = self._beliefs.priors
        if priors.rows is None:
            return _with_covariance(priors.prior[kind, :-1, :-1], normal)
        return priors.rows.rewards(kind, normal)

    # --- state --------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """Samples and generator."""
        return {
            "rows": self.rows.astype(np.int64),
            "values": self.values.copy(),
            "moods": self._moods[: len(self.rows)].copy(),
            "generator": generator_state(self._generator),
        }

    def load(self, state: states.Reader) -> None:
        """Inverse of `export`; the beliefs are loaded before."""
        rows = state.array("rows", np.int64, (None,))
        k = len(rows)
        known = (rows >= 0) & (rows < self._beliefs.count)
        states.check(0 < k <= MOST_SAMPLED and bool(known.all()) and len(np.unique(rows)) == k, "rows")
        values = state.array("values", np.float64, (k, *self._values.shape[1:]))
        states.check(bool((np.abs(values) <= LARGEST_BELIEF).all()), "samples")
        moods = np.zeros((k, self._number + 1))  # states of behaviour 8 and before have none
        if state.has("moods"):
            moods = state.array("moods", np.float64, moods.shape)
        states.check(bool((np.abs(moods) <= LARGEST_BELIEF).all()), "moods")
        for slot in range(k):
            self._put(slot, values[slot], moods[slot])
        self._rows, self._serials = rows, self._beliefs.serial[rows]
        self._writes = self._beliefs.writes
        self._generator = generator_from_state(state.raw("generator"))


def _with_covariance(covariance: Floats, normal: Floats) -> Floats:
    """Rows with covariance S, up to rounding, from rows of standard normal numbers, which are overwritten."""
    size = len(covariance)
    raised = covariance.copy()
    raised.flat[:: size + 1] += _JITTER
    # transposed, so that BLAS needs no copy
    root, failed = scipy.linalg.lapack.dpotrf(raised.T, lower=1, clean=0, overwrite_a=1)
    if failed:  # rounding has left it slightly indefinite
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray(normal @ (vectors * np.sqrt(np.maximum(values, 0.0))).T)
    return np.asarray(scipy.linalg.blas.dtrmm(1.0, root, normal.T, lower=1, overwrite_b=1).T)


LEAST_SLICE = 512  # arms evaluated at every reward
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
        # a slice is a stride through the arms: arms with close numbers may be close in every other way
        self._step = max(min(self._size // LEAST_SLICE, _ROUNDS_TO_READ_ALL), 1)
        self._next = 0  # first arm of the next slice
        self._drawn_anew = False  # whether there are samples that `seek` has not processed
        self._top = 0  # the best arm found for the mean
        self._expected: Floats = np.zeros(self._standing.size)

    # --- reading ------------------------------------------------------------------------------------------------

    def rewards(self, arms: Ints | slice = slice(None)) -> Floats:
        """Values of the samples at these arms, shape (k, m + 1, M); for two-valued rewards, in coordinates."""
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
        """The arm with the highest expected reward found; with a mask, among some of the allowed ones."""
        if mask is None:
            return self._top
        arms = self._allowed(mask)
        return int(arms[first_largest(self.mean(weights, arms))])

    def expected(self, weights: Floats) -> Floats:
        """Expected rewards of the representatives at the last call of `seek`, shape (M,)."""
        return self._expected

    def seek(self, weights: Floats) -> None:
        """Search the next slice and the best arms found for better ones; for new samples, the representatives too."""
        kinds = self._beliefs.kind[self.rows]
        found = np.unique(np.append(self._best, self._top))  # of samples that are gone too: good guesses for new ones
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
        """The best of these arms in every sample except the mean, and its value there, each (k, m)."""
        sampled = self._sampled(read, arms)
        places = sampled.argmax(axis=2)
        return arms[places], np.take_along_axis(sampled, places[:, :, None], axis=2)[:, :, 0]

    def _sampled(self, read: Floats, arms: Ints) -> Floats:
        """Rewards of the samples except the mean, shape (k, m, M), from their values at `arms`."""
        units = self._beliefs.units
        return read[:, 1:] if units is None else units.of(arms).sampled_rewards(read)

    def _mixed(self, weights: Floats, means: Floats, arms: Ints | slice) -> Floats:
        units = self._beliefs.units
        return np.asarray(self._shares(weights) @ (means if units is None else units.of(arms).rewards(means)))

    def _allowed(self, mask: Bools) -> Ints:
        """Allowed arms to search: evenly spread ones, and the best ones found."""
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

    def _put(self, slot: int, values: Floats, moods: Floats | float = 0.0) -> None:
        super()._put(slot, values, moods)
        self._drawn_anew = True

    def _find_best(self, slot: int) -> None:
        """Nothing to do: `seek` does it."""

    # --- state --------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """Samples, generator and the best arms found."""
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
    """The best among the best arms of every block."""
    arms, worth = (np.array(part) for part in zip(*blocks, strict=True))
    return np.asarray(np.take_along_axis(arms, worth.argmax(axis=0)[None], axis=0)[0])
