"""The hypotheses: Gaussian posteriors of the reward function in one stack, one row each.

symbol  name      shape          meaning
x, m    mean      (n, R)         expected coordinates, see `hypotheses`; the last is the level all arms share
S                 (n, R, R)      their covariance: breadth P + level J - fade (learned + recent' recent)
P, J              (R, R)         prior of the row's kind, and of the level all arms share
D       learned   (n, R, R)      what the rewards have explained, up to `fade`
C       recent    (n, k, R)      the rank-one terms of the last k rewards, not yet multiplied out
e       rate      (n,)           of forgetting: a round makes m into sqrt(1-e) m and S into (1-e) S + e P; 0: none
b       noise     (n,)           estimated variance of the noise, from `told` rewards
        model     (n,)           of the noise, see `echoes`

Forgetting only scales D, and a wider belief only adds to `breadth` or `level`, so every hypothesis, whether it drifts,
restarted or was widened, costs one rank-one term per reward. Terms are gathered and multiplied out together: one matrix
product is several times faster than as many outer products.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg.blas

from driftbandits import state as states
from driftbandits.policies.auto.echoes import FADES, MODELS, MOODS, NEW_MOODS, OWN, WHITE, Before, shares
from driftbandits.policies.auto.hypotheses import LEVEL_VARIANCE, Priors
from driftbandits.policies.auto.successes import LARGEST_RATIO, RateUnits, Tally
from driftbandits.state.reader import ROUNDING, check_covariance
from driftbandits.state.room import zeros
from driftbandits.types import Bools, Floats, Ints

TERMS_GATHERED = 48  # at most, before they are multiplied out
FIRST_NOISE_VARIANCE = 0.01  # a guess worth two rewards
NOISE_MEMORY = 400.0  # rewards, about
_FAINTEST_FADE = 1e-6  # below, it is multiplied out
LEAST_NOISE_VARIANCE = 1e-6  # a quiet spell must not make the next reward a wonder
LEAST_VARIANCE = 1e-12
LAST_ORIGIN = 4  # where a hypothesis comes from, see `mixture`
LARGEST_BELIEF = 1e8  # of what is known of rewards of at most 1; in features too

_MOODS = ("mood", "with_mood", "mood_variance")
_NUMBERS = ("breadth", "level", "fade", "rate", "noise", "birth", "kind", "origin", "model")
_ROWS = ("mean", "recent", *_NUMBERS, *_MOODS)  # and `learned`


class Forecast(NamedTuple):
    """What every hypothesis expects of an arm's next reward, one row each."""

    arm: int
    column: Floats  # (n, R), covariance of the coordinates with the reward
    mean: Floats  # (n,)
    variance: Floats  # (n,), without the noise
    mood: Floats  # (n,), covariance of the mood with the reward
    echo: Floats | None = None  # (n,), share of the noise of the arm's last reward; None where nobody believes in any


class Reference(NamedTuple):
    """The leading hypothesis, and the largest square of its residual, in its own deviations, that is evidence."""

    row: int
    square: float

    def squares(self, residuals: Floats, totals: Floats) -> Floats:
        """Squares of residuals of all hypotheses in their own deviations, (n,) or (n, k), as evidence has them.

        What the leader's square has beyond the limit is taken from the squares of all.
        """
        own = residuals[self.row]
        excess = np.maximum(own * own - self.square * totals[self.row], 0.0)
        return np.asarray(np.maximum(residuals * residuals - excess, 0.0) / totals)


class Step(NamedTuple):
    """What a reward did to every hypothesis, one row each: its mean moved by column residual / total."""

    likelihood: Floats  # (n,), log
    column: Floats  # (n, R)
    residual: Floats  # (n,)
    total: Floats  # (n,), variance of the reward
    noise: Floats  # (n,), the part of it that is fresh noise
    forecast: Forecast


class Beliefs:
    """A stack of at most `capacity` Gaussian posteriors; rows 0 to `count` - 1 are in use.

    `known_noise` fixes the variance of the noise. Residuals are never cut: what an arm is believed to give converges to
    the mean of its rewards, whatever their distribution. What a wild reward may do to the weights is limited in
    `mixture`.
    """

    def __init__(self, priors: Priors, capacity: int, *, known_noise: float | None = None) -> None:
        width = priors.width
        self.priors = priors
        self.known_noise = known_noise
        self.count = 0
        self.told = 2.0  # rewards behind the estimate of the noise, the guess among them
        self.gathered = 0  # terms in `recent`
        self.units: RateUnits | None = None  # the coordinates are rewards, unless these say what they are
        self.mean = np.zeros((capacity, width))
        self.learned = np.empty((capacity, width, width))
        self._bare = np.zeros(capacity, dtype=np.bool_)  # rows where `learned` is known to be zero
        self._due: set[int] | None = None  # rows whose terms are to be multiplied out before they are read, see `flush`
        self.recent = np.zeros((capacity, TERMS_GATHERED, width))
        self._scales = np.array([np.ones(capacity), np.zeros(capacity), np.ones(capacity)])  # breadth, level, fade
        self.rate = np.zeros(capacity)
        self._keep = np.ones((2, capacity))  # 1 - rate and its root
        self.first_noise = FIRST_NOISE_VARIANCE if known_noise is None else known_noise
        self.noise = np.full(capacity, self.first_noise)
        self.birth = np.zeros(capacity, dtype=np.int64)
        self.kind = np.zeros(capacity, dtype=np.int64)
        self.origin = np.zeros(capacity, dtype=np.int64)
        self.model = np.full(capacity, WHITE)
        self.mood = np.zeros(capacity)
        self.with_mood = np.zeros((capacity, width))
        self.mood_variance = np.zeros(capacity)
        self.writes = 0  # how often rows were written over, widened or moved
        self.serial = np.zeros(capacity, dtype=np.int64)  # the write that made each row the hypothesis it is

    @property
    def breadth(self) -> Floats:
        """Multiples of the prior, shape (capacity,)."""
        return np.asarray(self._scales[0])  # a view, made anew each time so that copies of the object have their own

    @property
    def level(self) -> Floats:
        """Multiples of the level's prior, beyond what `breadth` has of it."""
        return np.asarray(self._scales[1])

    @property
    def fade(self) -> Floats:
        """The factor all that was learned has faded by."""
        return np.asarray(self._scales[2])

    @property
    def sizes(self) -> Floats:
        """Rewards per coordinate of the representatives, shape (M,), or a single number."""
        return np.ones(()) if self.units is None else self.units.of(self.priors.representatives.numbers).sizes

    # --- rows ---------------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Leave no row in use."""
        self.count = self.gathered = 0
        self._due = None

    def _renew(self, rows: int | slice) -> None:
        """Say that these rows are other hypotheses now, so that nobody takes them for the ones before."""
        self.writes += 1
        self.serial[rows] = self.writes

    def write(
        self, row: int, *, kind: int, birth: int, rate: float = 0.0, noise: float, origin: int = 0, model: int = WHITE
    ) -> None:
        """Make `row` a hypothesis that knows nothing yet."""
        self.settle()
        self._renew(row)
        self.count = max(self.count, row + 1)
        self.mean[row] = self.recent[row] = self.level[row] = 0.0
        self._set_learned(row, None)
        self.breadth[row] = self.fade[row] = 1.0
        self.rate[row], self.noise[row] = rate, noise
        self._keep[:, row] = 1.0 - rate, math.sqrt(1.0 - rate)
        self.birth[row], self.kind[row], self.origin[row], self.model[row] = birth, kind, origin, model
        self.mood[row], self.with_mood[row], self.mood_variance[row] = 0.0, 0.0, MOODS[model] * noise

    def copy(self, source: int, row: int, *, birth: int, breadth: float, level: float, origin: int) -> None:
        """Make `row` what `source` believes, less surely: by `breadth` of its prior and by `level` of the level's."""
        self.settle()
        self._renew(row)
        for name in (*_NUMBERS, *_MOODS):
            values = getattr(self, name)
            values[row] = values[source]
        self.mean[row] = self.mean[source]
        self._set_learned(row, self._learned_of(source))
        self.recent[row, : self.gathered] = self.recent[source, : self.gathered]
        self.count = max(self.count, row + 1)
        self.rate[row], self._keep[:, row] = 0.0, 1.0
        self.breadth[row] += breadth
        self.level[row] += level
        self.birth[row], self.origin[row] = birth, origin

    def doubt(self, row: int, arm: int) -> None:
        """Make `row` less sure of `arm` and of arms like it, as if they had been drawn anew."""
        self._renew(row)
        bump = self.priors.bump(int(self.kind[row]), arm)
        self._bare[row] = False
        self.learned[row] -= np.multiply.outer(bump, bump / self.fade[row])

    def keep(self, rows: Ints) -> None:
        """Drop all rows but these, in ascending order."""
        self.settle()
        self._renew(slice(None))
        for place, row in enumerate(rows.tolist()):
            if row > place:
                self._set_learned(place, self._learned_of(row))
        for name in _ROWS:
            values = getattr(self, name)
            values[: len(rows)] = values[rows]
        self._keep[:, : len(rows)] = self._keep[:, rows]
        self.count = len(rows)

    def _learned_of(self, row: int) -> Floats | None:
        return None if self._bare[row] else np.asarray(self.learned[row])

    def _set_learned(self, row: int, values: Floats | None) -> None:
        """Let `learned` of a row be these values; None for zeros. With many arms every touch counts."""
        if values is not None:
            self.learned[row] = values
        elif not self._bare[row]:
            self.learned[row] = 0.0
        self._bare[row] = values is None

    # --- reading ------------------------------------------------------------------------------------------------

    def column(self, arm: int) -> Floats:
        """Covariance of every hypothesis's coordinates with the reward of `arm`, shape (n, R)."""
        self.settle()
        n, k, kind = self.count, self.gathered, self.kind[: self.count]
        rows = self.priors.rows
        if rows is None:
            column = self.priors.prior[kind, arm]
            column *= self.breadth[:n, None]
            column += (LEVEL_VARIANCE * self.level[:n])[:, None]
            explained = self.learned[:n, arm]
            if k:
                recent = self.recent[:n, :k]
                explained = explained + np.matmul(recent[:, None, :, arm], recent)[:, 0]
        else:
            read = rows.one(kind, arm)
            column = self.breadth[:n, None] * read
            column[:, -1] += self.level[:n] * read[:, -1]
            explained = np.matmul(self.learned[:n], read[:, :, None])[:, :, 0]
            if k:
                recent = self.recent[:n, :k]
                explained += np.matmul((np.matmul(recent, read[:, :, None]))[:, None, :, 0], recent)[:, 0]
        column -= self.fade[:n, None] * explained
        return np.asarray(column)

    def columns(self, reads: Floats) -> Floats:
        """`column` for several arms that are linear in features, read by (n, u, R), of the same shape."""
        self.settle()
        n, k = self.count, self.gathered
        columns: Floats = self.breadth[:n, None, None] * reads
        columns[:, :, -1] += self.level[:n, None] * reads[:, :, -1]
        explained = np.matmul(reads, self.learned[:n])
        if k:
            recent = self.recent[:n, :k]
            explained += np.matmul(np.matmul(reads, recent.swapaxes(1, 2)), recent)
        columns -= self.fade[:n, None, None] * explained
        return columns

    @property
    def scatter(self) -> Floats:
        """Variance of rewards about what their arms last to give, moods and noise together, (n,)."""
        n = self.count
        return np.asarray(self.noise[:n] * (1.0 + MOODS[self.model[:n]]))

    def at(self, coordinates: Floats, arm: int, first: int = 0) -> Floats:
        """What (n, R) coordinates, of row `first` and those after it, say of `arm`, shape (n,)."""
        rows = self.priors.rows
        if rows is None:
            return np.asarray(coordinates[:, arm])
        read = rows.one(self.kind[first : first + len(coordinates)], arm)
        return np.asarray(np.einsum("nr,nr->n", coordinates, read))

    def covariance(self, row: int) -> Floats:
        """S of one hypothesis, shape (R, R)."""
        self._settle_row(row)
        learned = self.learned[row]
        if self.gathered and self._due is None:
            recent = self.recent[row, : self.gathered]
            learned = learned + recent.T @ recent
        covariance = self.breadth[row] * self.priors.prior[self.kind[row]] - self.fade[row] * learned
        if self.priors.rows is None:
            covariance += LEVEL_VARIANCE * self.level[row]
        else:
            covariance[-1, -1] += self.level[row]
        return np.asarray(covariance)

    def expects(self, row: int, arm: int) -> tuple[float, float]:
        """Mean and variance, without the noise, of an arm's next reward under one hypothesis."""
        self._settle_row(row)
        if self.priors.rows is None:
            seen = self.recent[row, : self.gathered, arm]
            explained = self.learned[row, arm, arm] + seen @ seen
            prior = self.breadth[row] * self.priors.prior[self.kind[row], arm, arm]
            variance = prior + LEVEL_VARIANCE * self.level[row] - self.fade[row] * explained
            return float(self.mean[row, arm]), max(float(variance), LEAST_VARIANCE)
        read = self.priors.rows.one(self.kind[row : row + 1], arm)[0]  # their prior is the identity
        seen = self.recent[row, : self.gathered] @ read
        explained = read @ self.learned[row] @ read + seen @ seen
        variance = self.breadth[row] * (read @ read) + self.level[row] * read[-1] ** 2 - self.fade[row] * explained
        return float(read @ self.mean[row]), max(float(variance), LEAST_VARIANCE)

    def predicts(self, row: int, arm: int, before: Before) -> tuple[float, float, float]:
        """Mean, variance without the noise, and variance of the fresh noise of an arm's next reward, under one
        hypothesis.
        """
        mean, variance = self.expects(row, arm)
        noise, model = self.noise.item(row), self.model.item(row)
        if model == WHITE:
            return mean, variance, noise
        if model < OWN:
            both = float(self.at(self.with_mood[row : row + 1], arm, row).item())
            return mean + self.mood.item(row), variance + 2.0 * both + self.mood_variance.item(row), noise
        echo = shares(self.model[row : row + 1], self.birth[row : row + 1], before).item()
        return (1.0 - echo) * mean + echo * before.reward, (1.0 - echo) ** 2 * variance, noise * (1.0 - echo**2)

    def reading(self, row: int, arms: Ints | slice = slice(None)) -> tuple[Floats, Floats]:
        """Mean and variance of the rewards of these arms under one hypothesis, each (M,); by default of all."""
        covariance, rows = self.covariance(row), self.priors.rows
        if rows is None:
            mean, variance = self.mean[row, :-1][arms], np.maximum(np.diagonal(covariance)[:-1][arms], 0.0)
        else:
            kind = int(self.kind[row])
            mean, variance = rows.rewards(kind, self.mean[row], arms), rows.variances(kind, covariance, arms)
        if self.units is None:
            return mean.copy(), variance
        units = self.units.of(arms)
        return units.rewards(mean), units.variances(mean, variance)

    # --- learning -----------------------------------------------------------------------------------------------

    def kept(self, rounds: Ints) -> Floats:
        """What is left after so many rounds of what is known now, (n, k) for (k,) numbers of rounds."""
        return np.asarray(np.power(self._keep[0, : self.count, None], rounds))

    def pass_time(self, rounds: int) -> None:
        """Let `rounds` rounds pass: the drifting hypotheses forget a little."""
        self.settle()
        n = self.count
        keep, root = self._keep[:, :n] if rounds == 1 else self._keep[:, :n] ** rounds
        self.mean[:n] *= root[:, None]
        scales = self._scales[:, :n]
        scales *= keep
        scales[0] += 1.0 - keep
        if self.moody:
            fade = FADES[self.model[:n]] ** rounds
            self.mood[:n] *= fade
            self.with_mood[:n] *= (fade * root)[:, None]
            self.mood_variance[:n] *= fade * fade
            self.mood_variance[:n] += (1.0 - fade * fade) * MOODS[self.model[:n]] * self.noise[:n]
        if rounds > 1:
            self._multiply_out_fade()

    def _multiply_out_fade(self) -> None:
        """Before `fade` becomes so small that what comes after it is lost in rounding."""
        fade = self.fade[: self.count]
        if fade.item(fade.argmin()) >= _FAINTEST_FADE:
            return
        for row in np.flatnonzero(fade < _FAINTEST_FADE).tolist():
            self._fade_out(row)

    def _fade_out(self, row: int) -> None:
        self.learned[row] *= self.fade[row]
        self.recent[row] *= math.sqrt(self.fade[row])
        self.fade[row] = 1.0

    def forecast(self, arm: int, before: Before | None = None) -> Forecast:
        """What is expected of a reward of `arm`. Without `before` it is late, and all of its noise taken for new."""
        n = self.count
        column, mean = self.column(arm), self.at(self.mean[:n], arm).copy()
        variance, moody = self.at(column, arm).copy(), self.moody  # the column changes below
        mood = self.at(self.with_mood[:n], arm).copy() if moody else np.zeros(n)
        if before is None:
            variance += MOODS[self.model[:n]] * self.noise[:n]
            return Forecast(arm, column, mean, np.maximum(variance, LEAST_VARIANCE), mood)
        if moody:
            variance += 2.0 * mood + self.mood_variance[:n]
            mood += self.mood_variance[:n]
            column += self.with_mood[:n]
            mean += self.mood[:n]
        echo = self.echoes(before)
        if echo is not None:
            column *= (1.0 - echo)[:, None]
            variance *= (1.0 - echo) ** 2
            mean += echo * (before.reward - mean)
        return Forecast(arm, column, mean, np.maximum(variance, LEAST_VARIANCE), mood, echo)

    @property
    def moody(self) -> bool:
        """Whether any hypothesis believes in moods."""
        return bool(self.mood_variance[: self.count].any())

    @property
    def remembers(self) -> bool:
        """Whether any hypothesis believes in own noise of the arms."""
        models = self.model[: self.count]
        return self.units is None and models.item(models.argmax()) >= OWN

    def echoes(self, befores: Before | Floats) -> Floats | None:
        """Shares of the noise of earlier rewards, (n,) of one reward or (n, k); None where nobody believes in any."""
        if not self.remembers:
            return None
        found = shares(self.model[: self.count], self.birth[: self.count], befores)
        return found[:, 0] if isinstance(befores, Before) else found

    def transient(self, arm: int, before: Before) -> Floats:
        """What is expected of a reward beyond what its arm lasts to give, (n,)."""
        echo = self.echoes(before)
        mood = self.mood[: self.count]
        return mood if echo is None else mood + echo * (before.reward - self.at(self.mean[: self.count], arm))

    def observe(
        self, forecast: Forecast, reward: float, able: Bools | None = None, reference: Reference | None = None
    ) -> Step:
        """Take in a reward of the arm forecast. Hypotheses not `able` (born after its round) learn nothing of it.

        Where `units` say so, it is the coordinate of a success or a failure; neither is wild, and the noise is known.
        """
        self._make_room(1)
        n = self.count
        column, mood, echo = forecast.column, forecast.mood, forecast.echo
        fresh = 1.0 if echo is None else 1.0 - echo * echo
        noise = self.noise[:n] * fresh
        total = forecast.variance + noise
        residual = reward - forecast.mean
        if self.units is not None:
            likelihood = self.units.evidence(forecast.mean, np.float64(reward))
        else:
            square = residual * residual / total if reference is None else reference.squares(residual, total)
            likelihood = self.likelihood(square, total, self.told)
        if able is not None:
            column *= able[:, None]
            mood *= able
        self._move(column, total, residual)
        if mood.any():
            gain = mood / total
            self.mood[:n] += gain * residual
            self.with_mood[:n] -= column * gain[:, None]
            self.mood_variance[:n] -= gain * mood
        if self.units is None and self.known_noise is None:
            share = fresh + NEW_MOODS[self.model[:n]]
            self._learn_noise(self.noise[:n] * share, share, total, residual, able)
        return Step(likelihood, column, residual, total, noise, forecast)

    def _move(self, column: Floats, total: Floats, residual: Floats) -> None:
        """The step of a Kalman filter, in all rows."""
        n = self.count
        self.mean[:n] += column * (residual / total)[:, None]
        np.divide(column, np.sqrt(total * self._scales[2, :n])[:, None], out=self.recent[:n, self.gathered])
        self.gathered += 1

    def move_all(self, rounds: int, shift: Floats, terms: Floats) -> None:
        """Let rounds pass, then take the steps of several rewards at once, in as many terms at most: see `batching`."""
        self._make_room(terms.shape[1])
        n, last = self.count, self.gathered + terms.shape[1]
        self.pass_time(rounds)
        self.mean[:n] += shift
        scale = 1.0 / np.sqrt(self._scales[2, :n])
        np.multiply(terms, scale[:, None, None], out=self.recent[:n, self.gathered : last])
        self.gathered = last

    def absorb(self, arm: int, mean: float, noise: float) -> Floats:
        """Take in the mean of many rewards of an arm, whose noise has this variance; gives its log density, (n,)."""
        column, n = self.column(arm), self.count
        total = np.maximum(self.at(column, arm), LEAST_VARIANCE) + noise
        residual = mean - self.at(self.mean[:n], arm)
        self._make_room(1)
        self._move(column, total, residual)
        return np.asarray(-0.5 * (np.log(total) + residual * residual / total))

    def absorb_all(self, tallies: Iterable[Tally]) -> Floats:
        """`absorb` each, where all rows know nothing yet: those of one prior are alike, so one of each learns."""
        n = self.count
        kinds, alike = np.unique(self.kind[:n], return_inverse=True)
        one_each = Beliefs(self.priors, len(kinds))
        for row, kind in enumerate(kinds.tolist()):
            one_each.write(row, kind=kind, birth=0, noise=self.first_noise)
        density = np.zeros(len(kinds))
        for tally in tallies:
            density += one_each.absorb(tally.arm, tally.mean, tally.noise)
        self.gathered = one_each.gathered
        for row, one in enumerate(alike.tolist()):
            self._set_learned(row, one_each._learned_of(one))
        for name in ("mean", "recent"):
            getattr(self, name)[:n] = getattr(one_each, name)[alike]
        return np.asarray(density[alike])

    def change_units(self, before: RateUnits, units: RateUnits) -> None:
        """Say the same in coordinates about another centre; new hypotheses and those that forget expect the new one."""
        n = self.count
        ratio, shift = before.spread / units.spread, (before.centre - units.centre) / units.spread
        self.mean[:n] *= ratio
        if self.priors.rows is None:
            self.mean[:n] += shift
        else:
            self.mean[:n, -1] += shift / math.sqrt(LEVEL_VARIANCE)
        self.breadth[:n] *= ratio**2
        self.level[:n] *= ratio**2
        for row in np.flatnonzero(~self._bare[:n]):
            self.learned[row] *= ratio**2
        self.recent[:n] *= ratio
        self.noise[:n] = units.noise
        self.mood[:n] *= ratio
        self.with_mood[:n] *= ratio**2
        self.mood_variance[:n] *= ratio**2
        self.units = units
        self._renew(slice(None))

    def likelihood(self, square: Floats, total: Floats, freedom: float | Floats) -> Floats:
        """Log density of rewards, up to what is common to all: normal, or Student's t while the noise is unsure."""
        if self.known_noise is not None:
            return np.asarray(-0.5 * (np.log(total) + square))
        return np.asarray(-0.5 * (np.log(total) + (freedom + 1.0) * np.log1p(square / freedom)))

    def freedom(self, rewards: int) -> Floats:
        """`told` at each of the next so many rewards."""
        return np.asarray(np.minimum(self.told + np.arange(rewards), NOISE_MEMORY))

    def _learn_noise(
        self, fresh: Floats, share: Floats | float, total: Floats, residual: Floats, able: Bools | None
    ) -> None:
        """Expected square of the noise given the residual, averaged over about the last `NOISE_MEMORY` rewards.

        With variance v of what is believed, n of what is new (`fresh`) and s = n / (v + n), it is s v + s^2 residual^2:
        what it exceeds n by is s^2 (residual^2 - (v + n)), and n is `share` times the variance of the noise.
        """
        noise = self.noise[: self.count]
        part = fresh / total
        change = part * part * (residual * residual - total) / share
        change /= self.told + 1.0
        noise += change if able is None else change * able
        np.maximum(noise, LEAST_NOISE_VARIANCE, out=noise)
        self.told = min(self.told + 1.0, NOISE_MEMORY)

    def learn_noise_of_all(self, fresh: Floats, share: Floats | float, totals: Floats, residuals: Floats) -> None:
        """The same for several rewards, (n, k), each predicted with the noise as it is estimated now."""
        noise = self.noise[: self.count]
        part = fresh / totals
        changes = part * part * (residuals * residuals - totals) / share
        noise += changes @ (1.0 / (self.freedom(totals.shape[1]) + 1.0))
        np.maximum(noise, LEAST_NOISE_VARIANCE, out=noise)
        self.told = min(self.told + totals.shape[1], NOISE_MEMORY)

    def expect_noise(self, variance: float, rewards: float) -> None:
        """Let new hypotheses begin with noise of this variance, as that many rewards have shown it."""
        self.first_noise = max(variance, LEAST_NOISE_VARIANCE)
        self.told = min(2.0 + rewards, NOISE_MEMORY)

    def flush(self) -> None:
        """Multiply out the gathered terms: those of a row when it is read for the first time, or at the next reward.

        Redrawing samples reads a few rows. With a thousand arms the others would take as long again.
        """
        self.settle()
        self._due = set(range(self.count)) if self.gathered else None

    def settle(self) -> None:
        """Multiply out what is due."""
        if self._due is not None:
            for row in sorted(self._due):
                self._settle_row(row)
            self._due, self.gathered = None, 0

    def settle_next(self) -> bool:
        """Multiply out what is due of one row; whether more is due."""
        if self._due:
            self._settle_row(min(self._due))
        return bool(self._due)

    def _settle_row(self, row: int) -> None:
        if self._due is None or row not in self._due:
            return
        self._due.discard(row)
        self._bare[row] = False
        gathered = self.recent[row, : self.gathered]
        recent = gathered.T  # Fortran order, so BLAS takes it as it is
        scipy.linalg.blas.dgemm(1.0, recent, recent, 1.0, self.learned[row].T, trans_b=1, overwrite_c=1)
        gathered[:] = 0.0  # others may still be gathered
        if self.fade[row] < _FAINTEST_FADE:
            self._fade_out(row)

    def _make_room(self, terms: int) -> None:
        if self.gathered + terms > TERMS_GATHERED:
            self.flush()
        self.settle()

    # --- state --------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """Everything but the priors."""
        self.settle()
        rows = {name: getattr(self, name)[: self.count].copy() for name in _ROWS if name != "recent"}
        rows["learned"] = zeros((self.count, *self.learned.shape[1:]))
        for row in np.flatnonzero(~self._bare[: self.count]):
            rows["learned"][row] = self.learned[row]
        rows["recent"] = self.recent[: self.count, : self.gathered].copy()
        return {
            **rows,
            "count": self.count,
            "told": self.told,
            "gathered": self.gathered,
            "first_noise": self.first_noise,
        }

    def load(self, state: states.Reader, *, rounds: int) -> None:
        """Inverse of `export`."""
        self._renew(slice(None))
        self._due = None
        self.count = state.integer("count", low=1, high=len(self.mean))
        self.gathered = state.integer("gathered", high=TERMS_GATHERED)
        self.told = state.number("told")
        if state.has("first_noise"):  # states of 0.3.0 have none
            self.first_noise = state.number("first_noise")
        n = self.count
        learned = state.array("learned", np.float64, self.learned[:n].shape)
        for row in range(n):
            self._set_learned(row, learned[row] if learned[row].any() else None)
        for name in _ROWS:
            values = getattr(self, name)[:n]
            if name in ("model", *_MOODS) and not state.has(name):  # states of behaviour 8 and before: noise was white
                values[:] = 0
                continue
            if name == "recent":
                values = values[:, : self.gathered]
            values[:] = state.array(name, values.dtype, values.shape)
        checks = {
            "told": 2.0 <= self.told <= NOISE_MEMORY,
            "first_noise": self.first_noise >= LEAST_NOISE_VARIANCE,
            "kind": ((self.kind[:n] >= 0) & (self.kind[:n] < self.priors.count)).all(),
            "birth": ((self.birth[:n] >= 0) & (self.birth[:n] <= rounds)).all(),
            "noise": (self.noise[:n] > 0).all(),
            "rate": ((self.rate[:n] >= 0) & (self.rate[:n] < 1)).all(),
            "breadth": (self.breadth[:n] > 0).all(),
            "level": (self.level[:n] >= 0).all(),
            "fade": ((self.fade[:n] > 0) & (self.fade[:n] <= 1)).all(),
            "mood_variance": (self.mood_variance[:n] >= 0).all(),
            "model": ((self.model[:n] >= 0) & (self.model[:n] < len(MODELS))).all(),
            "origin": ((self.origin[:n] >= 0) & (self.origin[:n] <= LAST_ORIGIN)).all(),
        }
        for name, fine in checks.items():
            states.check(bool(fine), name)
        self._keep[:, :n] = 1.0 - self.rate[:n], np.sqrt(1.0 - self.rate[:n])
        self._check_sizes(rounds)

    @np.errstate(all="ignore")
    def _check_sizes(self, rounds: int) -> None:
        """Refuse numbers that no rewards of at most 1 lead to, and that would overflow or have no root."""
        n = self.count
        widest = 3.0 + 3.0 * rounds  # a birth widens a copy by 1 at most, and a reward has few of them
        if self.units is not None:
            widest *= LARGEST_RATIO**2  # `change_units` rescales
        states.check(bool((self.breadth[:n] <= widest).all() and (self.level[:n] <= widest).all()), "breadth or level")
        states.check(bool((self.noise[:n] <= LARGEST_BELIEF).all()), "noise")
        states.check(bool((np.abs(self.mean[:n]) <= LARGEST_BELIEF).all()), "mean")
        for row in range(n):
            prior = float(self.priors.prior[self.kind[row]].diagonal().max())
            largest = self.breadth[row] * prior + self.level[row]
            covariance = self.covariance(row)
            check_covariance(covariance, largest=largest, slack=ROUNDING * largest, what="covariance of a belief")
            states.check(float(covariance.diagonal().max()) <= widest * (prior + 1.0), "covariance of a belief")


def memory_of(rate: float) -> float:
    """Rounds a hypothesis that forgets at `rate` remembers, about.

    >>> memory_of(0.001)
    2000.0
    """
    return math.inf if rate == 0 else 2.0 / rate


_LEAST_WEIGHT_COUNTED = 1e-3  # of a hypothesis


def moments(beliefs: Beliefs, weights: Floats, arms: Ints | slice = slice(None)) -> tuple[Floats, Floats]:
    """Mean and standard deviation of these arms' rewards under the mixture, each (M,); by default of all."""
    rows = np.flatnonzero(weights >= _LEAST_WEIGHT_COUNTED)
    share = weights[rows] / weights[rows].sum()
    if beliefs.priors.rows is None:
        means, variances = beliefs.mean[rows, :-1][:, arms], _own_variances(beliefs, rows)[:, arms]
        if beliefs.units is not None:
            units = beliefs.units.of(arms)
            means, variances = units.rewards(means), units.variances(means, variances)
    else:
        readings = [beliefs.reading(int(row), arms) for row in rows]
        means, variances = (np.array(column) for column in zip(*readings, strict=True))
    mean = share @ means
    return mean, np.sqrt(share @ (variances + np.square(means - mean)))


def _own_variances(beliefs: Beliefs, rows: Ints) -> Floats:
    """Diagonals of the covariances of these rows where arms are their own coordinates: (n, N) without (n, N, N)."""
    beliefs.settle()
    learned = np.diagonal(beliefs.learned, axis1=1, axis2=2)[rows]
    recent = beliefs.recent[rows, : beliefs.gathered]
    explained = learned + np.einsum("nka,nka->na", recent, recent)
    prior = np.diagonal(beliefs.priors.prior, axis1=1, axis2=2)[beliefs.kind[rows]]
    wide = beliefs.breadth[rows, None] * prior + LEVEL_VARIANCE * beliefs.level[rows, None]
    return np.asarray(np.maximum(wide - beliefs.fade[rows, None] * explained, 0.0)[:, :-1])  # without the level
