"""The weights of the hypotheses: when was the last change, do rewards drift, how smooth is the reward function?

Every prior starts, for every model of the noise (`echoes`), with one hypothesis that never forgets and one for each
rate of drift: together a group. A change has probability 1 / (t + 30) per round. Every few rewards, and before a
surprising one is weighed, that share of the weight moves to hypotheses born now (a change of everything; of most; of
the common level alone) and back to the drifting ones. Hypotheses that predict badly lose weight, and a group with next
to none is dropped. If no row is free, the most dispensable hypothesis is merged into a neighbour in age.

One reward may move the odds between two hypotheses by `MOST_NATS_PER_REWARD` where noise is normal, and by less where
it has heavier tails: wild rewards are then common, and say little about change. What is limited is the square of the
leader's residual, and what is beyond the limit is taken from the squares of all: so a wild reward says less about how
wide a hypothesis should be, and as much as ever about means. Limiting each likelihood by itself would set evidence
from trimmed rewards against means of all, and find changes without end where noise is skewed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits._util.linalg import SLACK, first_largest, largest_first
from driftbandits.policies.auto.beliefs import Beliefs, Reference
from driftbandits.policies.auto.echoes import MODELS, MOODS, OWN, WHITE, Model
from driftbandits.policies.auto.successes import Tally
from driftbandits.state.declared import Declared, Value, number
from driftbandits.types import Bools, Floats, Ints

DRIFT_RATES = (1e-2, 1e-3, 1e-4, 1e-5)
CHANCE_RATES = (1e-1,)  # for rewards of two values too: what fades so fast is noise elsewhere, see `echoes`
ECHO_RATES = (1e-3,)  # the same where noise has a memory
STEADY_SLOTS = 12  # for hypotheses that do not drift
MORE_SLOTS = 12  # for two-valued rewards: rare successes separate hypotheses so slowly that they must live long
_REWARDS_BETWEEN_BIRTHS = 32  # births must be rare too; times `RateUnits.slowness`
_YOUNG_ROUNDS = 64  # after its birth, times `RateUnits.slowness`
ROUNDS_BEFORE_THE_FIRST = 30.0  # rounds without a change, as prior evidence
MOST_NATS_PER_REWARD = 4.0  # largest loss in log weight per reward, relative to the best hypothesis, for normal noise
LEAST_NATS_PER_REWARD = 1.0  # the same for the heaviest tails
_NORMAL_KURTOSIS = 3.0
LARGEST_SQUARE = 36.0  # of a residual in its own deviations
_SQUARES_REMEMBERED = 400.0
_SQUARES_AT_FIRST = 30.0  # of normal noise, as prior evidence
_SQUARES_WAITING = 64  # rewards after which it is clear whether a change explains a surprise
START, RESET, PARTIAL, LEVEL_SHIFT, LOCAL = range(5)  # origin of a hypothesis
BIRTH_SHARES = {RESET: 0.4, PARTIAL: 0.38, LEVEL_SHIFT: 0.02}  # of the weight that moves; drifting ones get the rest
PARTIAL_WIDENING = 0.3  # multiple of the prior added to a partly new hypothesis
LEAST_PRIOR_WEIGHT = 1e-4  # a prior with less weight is dropped
_LEAST_BREEDING_WEIGHT = 0.05  # a prior with less weight gets no births
_SMALLEST_WEIGHT = 1e-200
_LARGEST_LOG_WEIGHT = 100.0  # of the heaviest, and the least is its negative


class Tails(Declared):
    """The kurtosis of rewards about what was expected of them, and how much evidence a single reward may be.

    A surprise that a change explains says nothing of the noise. So a reward counts only after `_SQUARES_WAITING`
    others, and only if the hypothesis that leads then is as old as the one that led before, and was not young.

    >>> tails = Tails()
    >>> tails.most_nats
    4.0
    >>> for _ in range(30):
    ...     tails.see([0.5] * 19 + [30.0], birth=0, leading=0)
    >>> round(tails.most_nats, 2)
    1.02
    """

    def __init__(self) -> None:
        self._seen = _SQUARES_AT_FIRST
        self._square, self._fourth = 1.0, _NORMAL_KURTOSIS  # means of the squares and of their squares
        self._waiting: deque[tuple[float, int]] = deque()  # squares, and when the leader of then was born

    @property
    def most_nats(self) -> float:
        """`MOST_NATS_PER_REWARD`, over the kurtosis in units of that of normal noise."""
        nats = MOST_NATS_PER_REWARD * _NORMAL_KURTOSIS * self._square**2 / self._fourth
        return min(max(nats, LEAST_NATS_PER_REWARD), MOST_NATS_PER_REWARD)

    def see(self, squares: Iterable[float], *, birth: int, leading: int) -> None:
        """Squares of residuals in their own deviations, under a leader of `birth`; one of `leading` leads now."""
        self._waiting.extend((square, birth) for square in squares)
        while len(self._waiting) > _SQUARES_WAITING:
            square, then = self._waiting.popleft()
            if then == leading:
                self.know([square])

    def know(self, squares: Iterable[float]) -> None:
        """Squares that no change explains."""
        for square in squares:
            self._square += (square - self._square) / (self._seen + 1.0)
            self._fourth += (square * square - self._fourth) / (self._seen + 1.0)
            self._seen = min(self._seen + 1.0, _SQUARES_REMEMBERED)

    saved = (
        number("seen", within=(_SQUARES_AT_FIRST, _SQUARES_REMEMBERED)),
        number("square", within=(0.0, LARGEST_SQUARE)),
        number("fourth", within=(0.0, LARGEST_SQUARE**2)),
        Value(
            "waiting",
            lambda waiting: np.array(waiting, dtype=np.float64).reshape(-1, 2),
            lambda state, key, *_: deque((z, int(b)) for z, b in state.array(key, np.float64, (None, 2)).tolist()),
        ),
    )

    def _check_state(self, **known: Any) -> None:
        squares = [square for square, _ in self._waiting]
        states.check(len(squares) <= _SQUARES_WAITING, "waiting")
        states.check(all(0.0 <= square <= LARGEST_SQUARE for square in squares), "waiting")
        states.check(self._fourth >= self._square**2 > 0.0, "fourth")


def _drifting(rates: tuple[float, ...], models: tuple[Model, ...]) -> int:
    """Hypotheses that drift, of one prior; chances have fewer models of the noise, and so room for `CHANCE_RATES`."""
    return len(rates) + (len(models) - 1) * len(ECHO_RATES)


class Mixture:
    """Weights of the rows of `beliefs`, as logarithms."""

    def __init__(
        self,
        beliefs: Beliefs,
        *,
        rates: tuple[float, ...] = DRIFT_RATES,
        slots: int = STEADY_SLOTS,
        models: tuple[Model, ...] = MODELS,
    ) -> None:
        self.beliefs = beliefs
        self.models = models  # of the noise
        self.rates = rates
        self.slots = slots
        self.log_weight: Floats = np.full(len(beliefs.mean), -np.inf)
        self.tails = Tails()
        self._due = 0.0  # hazard of the rounds since the last births
        self._born = 0  # the round of the last births
        self._now = 0  # the round up to which time has passed
        self._weights: Floats | None = None  # cache of the normalised weights
        self._leader: int | None = None

    @staticmethod
    def capacity(
        kinds: int,
        *,
        rates: tuple[float, ...] = DRIFT_RATES,
        slots: int = STEADY_SLOTS,
        models: tuple[Model, ...] = MODELS,
    ) -> int:
        """Rows needed; `MORE_SLOTS` more if rewards may have two values."""
        return kinds * _drifting(rates, models) + max(slots, kinds * len(models))

    def start(self, birth: int) -> None:
        """One hypothesis that never forgets and one per rate, for every prior."""
        beliefs = self.beliefs
        beliefs.clear()
        self._due = 0.0
        models = self.models if beliefs.units is None else self.models[:OWN]  # successes have no noise of their own
        chance_rates = (*CHANCE_RATES, *self.rates) if self.rates else ()
        for kind in range(beliefs.priors.count):
            for place, model in enumerate(models):
                rates = ECHO_RATES if place != WHITE else self.rates if beliefs.units is None else chance_rates
                weight = model.weight / sum(each.weight for each in models)
                drifting = 0.5 * weight / len(rates) if rates else 0.0
                if self.slots:
                    self._write(kind, place, birth, 0.0, 0.5 * weight if rates else weight)
                for rate in rates:
                    self._write(kind, place, birth, rate, drifting if self.slots else 2 * drifting)

    def _write(self, kind: int, model: int, birth: int, rate: float, weight: float) -> None:
        beliefs = self.beliefs
        row = beliefs.count
        noise = beliefs.first_noise if beliefs.units is not None else beliefs.first_noise / (1.0 + MOODS[model])
        beliefs.write(row, kind=kind, birth=birth, rate=rate, noise=noise, model=model)
        self.log_weight[row] = math.log(weight / beliefs.priors.count)
        self._forget_weights()

    def learn_anew(self, birth: int, tallies: Iterable[Tally]) -> None:
        """Start, and learn the counts of the arms as if they were one batch of rewards."""
        self.start(birth)
        log_weight = self.log_weight[: self.beliefs.count]
        log_weight += self.beliefs.absorb_all(tallies)
        log_weight -= log_weight.max()

    # --- weights ------------------------------------------------------------------------------------------------

    def weights(self) -> Floats:
        """Weights of the rows in use, adding up to 1, shape (n,)."""
        if self._weights is None:
            self._weights = np.exp(self.log_weight[: self.beliefs.count])
            self._weights /= np.add.reduce(self._weights)
        return self._weights

    def leader(self) -> int:
        """The row with the largest weight."""
        if self._leader is None:
            self._leader = first_largest(self.log_weight[: self.beliefs.count])
        return self._leader

    def in_doubt(self, now: int) -> float:
        """Weight of the young hypotheses, or of all others if a young one leads: the next rewards will separate them.

        It counts for less if they do so slowly, see `slowness`.
        """
        weights, leader = self.weights(), self.leader()
        young = self.beliefs.birth[: self.beliefs.count] > max(now - _YOUNG_ROUNDS * self.slowness, 0)
        doubted = 1.0 - weights.item(leader) if young[leader] else float(np.add.reduce(weights[young]))
        return doubted / self.slowness

    def _forget_weights(self) -> None:
        """Invalidate the cached weights."""
        self._weights = self._leader = None

    def pass_time(self, rounds: int, now: int) -> None:
        """Let `rounds` rounds pass, up to round `now`: each may have had a change.

        If rewards carry little information, changes at the usual rate could not be found and would only add variance.
        """
        self._now = now
        slowness = self.slowness
        stood = ROUNDS_BEFORE_THE_FIRST * slowness
        self._due = min(self._due + rounds / (now + stood) / math.sqrt(slowness), 1.0)

    @property
    def slowness(self) -> float:
        """How many rewards carry as much information as one with equally frequent values; 1 if there are more than two
        values.
        """
        units = self.beliefs.units
        return 1.0 if units is None else units.slowness

    def reference(self) -> Reference:
        """What limits the evidence of the next reward."""
        return Reference(self.leader(), 2.0 * self.tails.most_nats + 1.0)

    def update(self, likelihood: Floats, able: Bools | None = None, squares: Floats | None = None) -> None:
        """Update the weights by the log likelihoods of a reward; hypotheses not in `able` keep their share.

        `squares` are those of the residuals in their own deviations, (n,), where rewards have more than two values.
        """
        seen = None if squares is None else self._expected_square(squares)
        log_weight = self.log_weight[: self.beliefs.count]
        if able is None:
            likelihood = np.maximum(likelihood, likelihood.item(likelihood.argmax()) - MOST_NATS_PER_REWARD)
        elif able.any():
            likelihood = np.maximum(likelihood, likelihood[able].max() - MOST_NATS_PER_REWARD)
            inside = np.where(able, log_weight, -np.inf)
            of_the_able = np.logaddexp.reduce(inside + likelihood) - np.logaddexp.reduce(inside)
            likelihood = np.where(able, likelihood, of_the_able)
        else:
            return
        self._add(likelihood, seen)

    def update_all(self, likelihoods: Floats, squares: Floats | None = None) -> None:
        """Update the weights by the log likelihoods of several rewards, (n, k), each given those before."""
        counted = np.maximum(likelihoods, likelihoods.max(axis=0) - MOST_NATS_PER_REWARD)
        self._add(np.add.reduce(counted, axis=1), None if squares is None else self._expected_square(squares))

    def _expected_square(self, squares: Floats) -> list[float]:
        """Mean over the hypotheses of squares (n,) or (n, k)."""
        return np.atleast_1d(self.weights() @ np.minimum(squares, LARGEST_SQUARE)).tolist()  # type: ignore[no-any-return]

    def _add(self, likelihood: Floats, squares: list[float] | None) -> None:
        birth = self.beliefs.birth.item(self.leader())
        log_weight = self.log_weight[: self.beliefs.count]
        log_weight += likelihood
        log_weight -= log_weight.item(log_weight.argmax())
        self._forget_weights()
        if squares is not None and (birth == 0 or self._now - birth >= _YOUNG_ROUNDS):
            self.tails.see(squares, birth=birth, leading=self.beliefs.birth.item(self.leader()))

    def kinds(self) -> Floats:
        """Weight of every prior, shape (kinds,)."""
        beliefs = self.beliefs
        kinds = np.bincount(beliefs.kind[: beliefs.count], weights=self.weights(), minlength=beliefs.priors.count)
        return kinds.astype(np.float64, copy=False)

    def _groups(self) -> Ints:
        """Number of the prior and the model of the noise of every row, (n,)."""
        beliefs = self.beliefs
        return np.asarray(beliefs.kind[: beliefs.count] * len(MODELS) + beliefs.model[: beliefs.count])

    def _weights_of_groups(self) -> Floats:
        return np.bincount(self._groups(), self.weights(), self.beliefs.priors.count * len(MODELS)).astype(np.float64)

    # --- births -------------------------------------------------------------------------------------------------

    def prune(self) -> None:
        """Drop priors with next to no weight."""
        weights = self._weights_of_groups()
        unlikely = (weights < LEAST_PRIOR_WEIGHT) & (weights > 0)
        if unlikely.any():
            self._give_up(unlikely)

    def take_noise_for_white(self) -> bool:
        """Give up all other models of it; whether there were any."""
        self.models = MODELS[: WHITE + 1]
        others = bool(self.beliefs.model[: self.beliefs.count].any())
        if others:
            self._give_up(np.arange(self.beliefs.priors.count * len(MODELS)) % len(MODELS) != WHITE)
        return others

    def renew_in_time(self, now: int) -> None:
        """`renew`, unless the last births are too recent to be distinguished from new ones."""
        if now - self._born >= _REWARDS_BETWEEN_BIRTHS * (self.slowness - 1.0):
            self.renew(now)

    def renew(self, now: int) -> None:
        """Move the weight that is due to hypotheses born at round `now`."""
        hazard = -math.expm1(-self._due)
        self._due, self._born = 0.0, now
        if not self.slots or hazard == 0.0:
            return
        weights = self._weights_of_groups()
        self._move(hazard, weights)
        for group in largest_first(weights)[:2]:
            if weights[group] >= _LEAST_BREEDING_WEIGHT:
                self._births(int(group), hazard * float(weights[group]), now)

    def _give_up(self, unlikely: Bools) -> None:
        beliefs = self.beliefs
        rows = np.flatnonzero(~unlikely[self._groups()])
        beliefs.keep(rows)
        self.log_weight[: len(rows)] = self.log_weight[rows]
        self.log_weight[len(rows) :] = -np.inf
        self._forget_weights()

    def _move(self, hazard: float, of_groups: Floats) -> None:
        """Take the share `hazard` from all hypotheses, and give the drifting ones of each group their part of it."""
        n = self.beliefs.count
        weights = (1.0 - hazard) * self.weights()  # a new array
        drifting, groups = self.beliefs.rate[:n] > 0, self._groups()
        back = hazard * (1.0 - sum(BIRTH_SHARES.values()))
        drifts = np.bincount(groups[drifting], minlength=len(of_groups))
        weights[drifting] += back * (of_groups / np.maximum(drifts, 1))[groups[drifting]]
        self.log_weight[:n] = np.log(np.maximum(weights, _SMALLEST_WEIGHT))
        self._forget_weights()

    def _births(self, group: int, weight: float, now: int) -> None:
        beliefs = self.beliefs
        kind, model = divmod(group, len(MODELS))
        for origin, share in BIRTH_SHARES.items():
            row = self._room()
            mine = np.where(self._groups() == group, self.log_weight[: beliefs.count], -np.inf)
            leader = first_largest(mine)
            if origin == RESET:
                noise = float(beliefs.noise[leader])
                beliefs.write(row, kind=kind, birth=now, noise=noise, origin=origin, model=model)
            else:
                wider, shift = (PARTIAL_WIDENING, 0.0) if origin == PARTIAL else (0.0, 1.0)
                beliefs.copy(leader, row, birth=now, breadth=wider, level=shift, origin=origin)
            self.log_weight[row] = math.log(share * weight)
            self._forget_weights()

    def suspect(self, arm: int, chance: float, now: int) -> None:
        """Add a hypothesis after a surprise: as the leader, except for `arm` and similar arms."""
        beliefs = self.beliefs
        row, leader = self._room(), self.leader()
        beliefs.copy(leader, row, birth=now, breadth=0.0, level=0.0, origin=LOCAL)
        beliefs.doubt(row, arm)
        self.log_weight[row] = self.log_weight[leader] + math.log(chance)
        self._forget_weights()

    def _room(self) -> int:
        """A row to write to, freed by merging if necessary; it has no weight."""
        beliefs = self.beliefs
        n = beliefs.count
        steady = [row for row, rate in enumerate(beliefs.rate[:n].tolist()) if rate == 0.0]
        free = len(steady) < self._steady_slots() and n < len(beliefs.mean)
        row = n if free else self._merge(steady)
        self.log_weight[row] = -np.inf
        self._forget_weights()
        return row

    def _steady_slots(self) -> int:
        more = 0 if self.beliefs.units is None else MORE_SLOTS
        return max(self.slots, len(set(self._groups().tolist())) + len(BIRTH_SHARES)) + more

    def _merge(self, steady: list[int]) -> int:
        """Free the most dispensable row; its weight goes to the heavier neighbour in age with the same prior.

        Most dispensable is a row of little weight with close neighbours in age, relative to its age. Never freed,
        unless nothing else is left: the leader, and the oldest and youngest row of a prior. In plain numbers, which are
        faster for so few.
        """
        n = self.beliefs.count
        logs, kinds, births = (part[:n].tolist() for part in (self.log_weight, self._groups(), self.beliefs.birth))
        bare = [math.exp(log) for log in logs]
        total, leader = sum(bare), self.leader()
        aged = sorted((kinds[row], births[row], row) for row in steady)
        last = max(births[row] for row in steady) + 1.0
        least, row, heir = math.inf, -1, -1
        for (kind, before, older), (_, born, middle), (same, after, younger) in zip(
            aged, aged[1:], aged[2:], strict=False
        ):
            missed = (after - before + 1.0) / (last - born) * (1e-4 + bare[middle] / total)
            if kind == same and middle != leader and missed < (1.0 - SLACK) * least:
                heavier = older if bare[older] >= (1.0 - SLACK) * bare[younger] else younger
                least, row, heir = missed, middle, heavier
        if row < 0:
            row, heir = self._lightest(steady)
        self.log_weight[heir] = np.logaddexp(logs[heir], logs[row])
        return row

    def _lightest(self, steady: list[int]) -> tuple[int, int]:
        """The lightest steady row except the leader, and its heir: the heaviest other row of its prior, or the
        leader.
        """
        n, leader = self.beliefs.count, self.leader()
        others = [row for row in steady if row != leader]
        row = others[first_largest(-self.log_weight[others])]
        groups = self._groups()
        same = np.flatnonzero((groups == groups[row]) & (np.arange(n) != row))
        return row, int(same[first_largest(self.log_weight[same])]) if len(same) else leader

    # --- state --------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """Weights and clock."""
        return {
            "log_weight": self.log_weight[: self.beliefs.count].copy(),
            "due": self._due,
            "born": self._born,
            "tails": self.tails.export(),
        }

    def load(self, state: states.Reader, *, rounds: int) -> None:
        """Inverse of `export`; the beliefs are loaded before."""
        n = self.beliefs.count
        self.log_weight[:n] = state.array("log_weight", np.float64, (n,))
        self.log_weight[n:] = -np.inf
        self._due = state.number("due")
        states.check(0.0 <= self._due <= 1.0, "due")
        self._born = state.integer("born", high=rounds)
        if state.has("tails"):  # states of 0.3.0 have none
            self.tails.load(state.reader("tails"))
        steady = int(np.count_nonzero(self.beliefs.rate[:n] == 0))
        states.check(
            1 <= steady <= max(self.slots, self.beliefs.priors.count * len(MODELS)) + MORE_SLOTS,
            "rate",
        )
        states.check(n - steady <= self.beliefs.priors.count * _drifting(self.rates, MODELS), "rate")
        # the heaviest has weight 1 after a reward, and what is left of it after births
        states.check(-_LARGEST_LOG_WEIGHT <= float(self.log_weight[:n].max()) <= _LARGEST_LOG_WEIGHT, "log_weight")
