"""SW-UCB and D-UCB: UCB with a sliding window or a discount, every arm learned by itself.

symbol    name        meaning
R         noise       scale of the sub-Gaussian noise
tau       window      rounds kept
gamma     discount    factor by which weights fade per round
Y         switches    how often the world changes, where a size is computed from it
n         weight of the rewards of an arm, in the window or discounted; see `means`

Means are weighted by time, in rounds and not in pulls of the arm. Widths are R sqrt(2 log(.) / n): on the internal
scale [-1, 1], a reward of which only the range is known is 1-sub-Gaussian, so `noise` = half the range gives the
published widths for bounded rewards up to their constants.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

from driftbandits import state as states
from driftbandits.arms import ArmSet
from driftbandits.checks import check_positive, check_probability
from driftbandits.policies.core.arms_change import ArmsChange
from driftbandits.policies.core.facts import Family
from driftbandits.policies.core.optimistic import Optimism, OptimisticPolicy
from driftbandits.policies.core.sized import SizedPolicy
from driftbandits.policies.core.window import WindowedPolicy
from driftbandits.policies.plain.means import ArmMeans
from driftbandits.policies.plain.widths import noisy_interval
from driftbandits.state.plausible import ROUNDING, told_at_most
from driftbandits.types import Floats

_FAINTEST_FADE = 1e-100  # below, the common factor of discounted weights is multiplied out


def plain_window(*, horizon: int, switches: float) -> int:
    """Window of SW-UCB: ceil(2 sqrt(T log T / switches)), in [1, T] (Garivier and Moulines 2011, rewards in [0, 1]).

    >>> plain_window(horizon=10_000, switches=1)
    607
    """
    if switches == 0 or horizon == 1:
        return horizon
    return min(math.ceil(2.0 * math.sqrt(horizon * math.log(horizon) / switches)), horizon)


def plain_discount(*, horizon: int, switches: float) -> float:
    """Discount of D-UCB: 1 - sqrt(switches / T) / 4, at least 1/2 (Garivier and Moulines 2011).

    >>> plain_discount(horizon=10_000, switches=1)
    0.9975
    """
    return max(1.0 - 0.25 * math.sqrt(switches / horizon), 0.5)


class PlainUCB(SizedPolicy, OptimisticPolicy):
    """What the two plain UCB bandits share: a size given or computed, widths R sqrt(2 log(.) / n), a mean per arm."""

    family = Family.PLAIN
    microseconds_per_round = 16.0
    _size_rule: ClassVar[Callable[..., float]]
    _rounding_of_sums: ClassVar[float] = 0.0  # of what was added and taken away again

    def __init__(
        self,
        arms: ArmSet,
        *,
        switches: float | None = None,
        scale: float = 0.5,
        noise: float | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(arms, **settings)
        self.switches = None if switches is None else check_positive("switches", switches, zero=True)
        self.scale = check_positive("scale", scale, zero=True)
        self.noise = None if noise is None else check_positive("noise", noise, zero=True)
        self._noise = self._scale.noise(self.noise)

    @property
    def _told_drift(self) -> float | None:
        return self.switches

    @abstractmethod
    def _width(self) -> float:
        """The width of an arm of weight 1, now."""

    def _compute_size(self, horizon: int) -> float:
        return self._size_rule(horizon=horizon, switches=self.switches)

    def _start(self, horizon: int | None) -> None:
        self._means = ArmMeans(len(self.arms))
        self._first = self.rounds

    def _index(self) -> Floats:
        return self._means.index(self._width())

    def _optimism(self, arm: int) -> Optimism:
        return self._means.optimism(arm, self._width())

    def _estimate(self) -> Floats:
        return self._means.mean

    def _interval(self) -> tuple[Floats, Floats]:
        return noisy_interval(self._means.mean, self._means.weights, self._noise)

    def _carry(self, old: Self, change: ArmsChange) -> None:
        self._means, self._first = old._means.carried(change), old._first

    def _settings(self) -> dict[str, Any]:
        return {self._size_name: self._size, "switches": self.switches, "scale": self.scale, "noise": self.noise}

    def _export(self) -> dict[str, Any]:
        return {"means": self._means.export(), "first": self._first}

    def _import(self, state: states.Reader) -> None:
        self._means = ArmMeans(len(self.arms))
        self._means.load(state.reader("means"), slack=self._rounding_of_sums)
        self._first = state.integer("first", low=self._phase_start, high=self.rounds)


class SlidingWindowUCB(WindowedPolicy, PlainUCB):
    """SW-UCB (Garivier and Moulines 2011): UCB on the rewards of the last `window` rounds, without a kernel.

    Index mean + scale R sqrt(2 log(min(t, tau)) / n); arms not seen in the window come first. Every arm is played at
    least once per window, so many arms want a long window. Not to be confused with the linear SW-UCB,
    `SlidingWindowLinUCB`.

    Parameters
    ----------
    window : tau, rounds kept; default 1,600, or from `switches` and the horizon, `plain_window`
    switches : how often the world changes, for the theory's window; knowledge that the ADA family does without
    scale : multiplies the width; 1 in theory
    noise : R, scale of the sub-Gaussian noise, in the user's units; default a tenth of half the reward range
    others : see `Policy`

    Rewards told after their round has left the window are counted in `late`. Cost per round: O(N).

    >>> policy = SlidingWindowUCB(ArmSet([[0.0], [1.0]]), switches=1, horizon=10_000, seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    >>> policy.window
    607
    """

    label = "SW-UCB"
    _usual_size: ClassVar[float] = 1_600
    _size_rule = staticmethod(plain_window)
    _rounding_of_sums: ClassVar[float] = 1e-6

    def _start(self, horizon: int | None) -> None:
        super()._start(horizon)
        self._open_window(horizon)

    def _take_back(self, arm: int, reward: float) -> None:
        self._means.shift(arm, -1.0, reward)

    def _add(self, ident: int, arm: int, reward: float) -> None:
        if not self._window.accepts(ident, self.rounds):
            self.late += 1
            return
        leaving = self._window.put(ident, arm, reward)
        self._means.shift(arm, 1.0, reward)
        if leaving is not None:
            self._take_back(*leaving)

    def _width(self) -> float:
        elapsed = min(self.rounds - self._first + 1, self._window.length)
        return self.scale * self._noise * math.sqrt(2.0 * math.log(elapsed))

    def _carry(self, old: Self, change: ArmsChange) -> None:
        super()._carry(old, change)
        self._window = old._window.renumbered(change.target)

    def _export(self) -> dict[str, Any]:
        return {**super()._export(), "window": self._window.export()}

    def _import(self, state: states.Reader) -> None:
        super()._import(state)
        self._load_window(state, self._means.weights, self._means.sums)


class DiscountedUCB(PlainUCB):
    """D-UCB (Kocsis and Szepesvari 2006): UCB on exponentially discounted rewards, without a kernel.

    Index mean + scale R sqrt(2 log(n) / n_a), with n_a the discounted count of the arm and n that of all arms
    together; all fade every round. Garivier and Moulines' proof has twice that width: scale=2. An arm left alone
    becomes uncertain again, so all arms are revisited for ever, within about 1 / (1 - discount) rounds.

    Parameters
    ----------
    discount : gamma in (0, 1]; default 0.999, or from `switches` and the horizon, `plain_discount`
    switches : how often the world changes, for the theory's discount; knowledge that the ADA family does without
    scale : multiplies the width
    noise : R, scale of the sub-Gaussian noise, in the user's units; default a tenth of half the reward range
    others : see `Policy`

    A late reward enters with the weight of its age since it was asked. Cost per round: O(N).

    >>> policy = DiscountedUCB(ArmSet([[0.0], [1.0]]), switches=1, horizon=10_000, seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    >>> policy.discount
    0.9975
    """

    label = "D-UCB"
    _size_name: ClassVar[str] = "discount"
    _usual_size: ClassVar[float] = 0.999
    _size_rule = staticmethod(plain_discount)

    def __init__(self, arms: ArmSet, *, discount: float | None = None, **settings: Any) -> None:
        super().__init__(arms, **settings)
        self._set_size(None if discount is None else check_probability("discount", discount, one=True))

    @property
    def discount(self) -> float | None:
        """What a weight is multiplied by per round; None before the first round if it is to be computed."""
        return self._resolved if self._phase_length else self._size

    def _start(self, horizon: int | None) -> None:
        super()._start(horizon)
        self._resolved = self._resolve_size(horizon)
        self._clock = self.rounds
        self._fade = 1.0  # weights are kept over this factor: a round that passes costs one multiplication
        self._total = 0.0  # n, over the same factor

    def _due(self) -> bool:
        return self._clock < self.rounds

    def _turn(self) -> None:
        self._fade *= self._resolved ** (self.rounds - self._clock)
        self._clock = self.rounds
        if self._fade < _FAINTEST_FADE:
            self._means.fade(self._fade)
            self._total *= self._fade
            self._fade = 1.0

    def _add(self, ident: int, arm: int, reward: float) -> None:
        if ident < self._first:
            self.late += 1
            return
        weight = self._resolved ** max(self._clock - ident, 0) / self._fade
        self._means.shift(arm, weight, reward)
        self._total += weight

    def _width(self) -> float:
        log_term = math.log(max(self._fade * self._total, 1.0))
        return self.scale * self._noise * math.sqrt(2.0 * log_term / self._fade)

    def _interval(self) -> tuple[Floats, Floats]:
        return noisy_interval(self._means.mean, self._fade * self._means.weights, self._noise)

    def _carry(self, old: Self, change: ArmsChange) -> None:
        super()._carry(old, change)
        self._resolved, self._clock, self._fade = old._resolved, old._clock, old._fade
        self._total = float(self._means.weights.sum())

    def _export(self) -> dict[str, Any]:
        return {
            **super()._export(),
            "resolved": self._resolved,
            "clock": self._clock,
            "fade": self._fade,
            "total": self._total,
        }

    def _import(self, state: states.Reader) -> None:
        super()._import(state)
        self._resolved = state.number("resolved")
        given = self._size
        states.check(0.0 < self._resolved <= 1.0 and (given is None or self._resolved == given), "discount")
        self._clock = state.integer("clock", low=max(self._first, self.rounds - 1), high=self.rounds)
        self._fade = state.number("fade")
        states.check(_FAINTEST_FADE <= self._fade <= 1.0, "fade")
        self._total = state.number("total")
        weight = float(self._means.weights.sum())
        states.check(math.isclose(self._total, weight, rel_tol=ROUNDING), "weight of all arms")
        most = told_at_most(self.rounds, self._pending.rows(), since=self._first)
        states.check(self._fade * weight <= (1.0 + ROUNDING) * most, "weight of all arms")
