"""Arms learned each by itself: Uniform, SW-UCB and D-UCB; UCB1, kl-UCB and epsilon-greedy, for arms that stay.

Mean rewards of arms that are learned each by itself.

symbol    name            shape, meaning
n, s      weights, sums   (N,) of the rewards of each arm: counted, in a window, or discounted

SW-UCB and D-UCB: UCB with a sliding window or a discount, every arm learned by itself.

symbol    name        meaning
R         noise       scale of the sub-Gaussian noise
tau       window      rounds kept
gamma     discount    factor by which weights fade per round
Y         switches    how often the world changes, where a size is computed from it
n         weight of the rewards of an arm, in the window or discounted; see `ArmMeans`

Means are weighted by time, in rounds and not in pulls of the arm. Widths are R sqrt(2 log(.) / n): on the internal
scale [-1, 1], a reward of which only the range is known is 1-sub-Gaussian, so `noise` = half the range gives the
published widths for bounded rewards up to their constants.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from driftbandits import state as states
from driftbandits._util.checks import check_positive, check_probability
from driftbandits.arms import ArmSet
from driftbandits.detection.glr import BERNOULLI_MARGIN
from driftbandits.policies.algorithm import DeclaredState, Family, freeze
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.base import Policy
from driftbandits.policies.decisions import Feedback, Row
from driftbandits.policies.inputs import CommonSettings
from driftbandits.policies.inspection import around
from driftbandits.policies.optimistic import Optimism, OptimisticPolicy, RandomisedRounds
from driftbandits.policies.window import Observation, SizedPolicy, WindowedPolicy
from driftbandits.state.declared import Declared, Value, array, count, number, part
from driftbandits.state.reader import ROUNDING, check_sums, check_whole
from driftbandits.types import Floats, Ints

_NEWTON_STEPS = 50  # of the Bernoulli index; about 5 are needed, 15 near the upper end
_NATS_OF_EITHER_END = math.log(2.0 / 0.05)


def noisy_interval(mean: Floats, weights: Floats, noise: float) -> tuple[Floats, Floats]:
    """95 % interval of means of `weights` rewards with normal noise of this deviation; all of [-1, 1] without rewards.

    >>> low, high = noisy_interval(np.zeros(2), np.array([100.0, 0.0]), 0.5)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([-0.098, -1.0], [0.098, 1.0])
    """
    seen = weights > 0.0
    low, high = around(mean, noise / np.sqrt(np.where(seen, weights, 1.0)))
    return np.where(seen, low, -1.0), np.where(seen, high, 1.0)


def bounded_interval(mean: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Interval that holds the mean with 95 % at least, by Chernoff's bound, whatever the rewards in [-1, 1] are.

    >>> low, high = bounded_interval(np.array([0.0, -1.0]), np.array([100.0, 100.0]))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([-0.27, -1.0], [0.27, -0.93])
    """
    seen = weights > 0.0
    level = _NATS_OF_EITHER_END / np.where(seen, weights, 1.0)
    low, high = -bernoulli_upper(-mean, level), bernoulli_upper(mean, level)
    return np.where(seen, low, -1.0), np.where(seen, high, 1.0)


def bernoulli_upper(mean: Floats, level: Floats) -> Floats:
    """Largest q in [mean, 1] with kl(mean, q) <= level, on the scale [-1, 1].

    Newton's method from Pinsker's bound above: kl is convex in q, so it comes down to the root and stays above it.
    """
    p = np.clip(0.5 * (mean + 1.0), BERNOULLI_MARGIN, 1.0 - BERNOULLI_MARGIN)
    entropy = p * np.log(p) + (1.0 - p) * np.log1p(-p) - level
    q = np.minimum(p + np.sqrt(0.5 * level), 1.0 - BERNOULLI_MARGIN)
    for _ in range(_NEWTON_STEPS):
        value = entropy - p * np.log(q) - (1.0 - p) * np.log1p(-q)
        slope = np.maximum((q - p) / (q * (1.0 - q)), BERNOULLI_MARGIN)
        step = np.maximum(value / slope, 0.0)
        q = np.maximum(q - step, p)
        if step.max() < 1e-13:
            break
    return np.asarray(2.0 * q - 1.0)


class ArmMeans(Declared):
    """Weighted mean reward of every arm, with what an index needs of it kept up to date arm by arm.

    >>> means = ArmMeans(2)
    >>> means.shift(0, 1.0, 0.5)
    >>> means.index(2.0).tolist()
    [2.5, inf]
    """

    def __init__(self, size: int) -> None:
        self.weights: Floats = np.zeros(size)
        self.sums: Floats = np.zeros(size)
        self.refresh()

    def shift(self, arm: int, weight: float, reward: float) -> None:
        """Add `weight` (or take it away) at `reward`."""
        total = float(self.weights[arm]) + weight
        if total > 0.0:
            value = float(self.sums[arm]) + weight * reward
            self.weights[arm], self.sums[arm] = total, value
            self._start[arm] = value / total
            self._radius[arm] = 1.0 / math.sqrt(total)
        else:
            self.clear(arm)

    def clear(self, arm: int) -> None:
        """Forget one arm."""
        self.weights[arm] = self.sums[arm] = self._radius[arm] = 0.0
        self._start[arm] = np.inf

    def fade(self, factor: float) -> None:
        """Multiply all weights."""
        self.weights *= factor
        self.sums *= factor
        self.refresh()

    def refresh(self) -> None:
        """Compute means and radii from weights and sums."""
        seen = self.weights > 0.0
        safe = np.where(seen, self.weights, 1.0)
        self._start: Floats = np.where(seen, self.sums / safe, np.inf)  # the mean; infinite where nothing is known
        self._radius: Floats = np.where(seen, 1.0 / np.sqrt(safe), 0.0)

    @property
    def mean(self) -> Floats:
        """Mean of every arm, 0 where nothing is known."""
        return np.where(self.weights > 0.0, self._start, 0.0)

    def index(self, width: float | Floats) -> Floats:
        """Give mean + width / sqrt(weight), infinite where nothing is known."""
        return np.asarray(self._start + width * self._radius)

    def optimism(self, arm: int, width: float) -> Optimism:
        """Value and width of one arm; of an arm not seen, the whole range [-1, 1]."""
        if self.weights[arm] == 0.0:
            return Optimism(value=1.0, width=1.0)
        own = width * float(self._radius[arm])
        return Optimism(value=float(self._start[arm]) + own, width=own)

    def carried(self, change: ArmsChange) -> ArmMeans:
        """What is known of the kept arms; of new ones nothing is."""
        means = ArmMeans(len(change.new))
        means.weights, means.sums = change.carry(self.weights, 0.0), change.carry(self.sums, 0.0)
        means.refresh()
        return means

    saved = (array("weights"), array("sums"))

    def _check_state(self, *, slack: float = 0.0, **known: Any) -> None:
        """`slack` is what removals may leave behind of a sum."""
        check_sums(self.weights, self.sums, "means of the arms", slack=slack)
        self.refresh()


class Uniform(DeclaredState, Policy):
    """Plays every arm with the same probability, always: the control that learns nothing.

    `estimate` is the mean of all rewards of each arm. Cost per round: that of a draw. Its settings are those that every
    policy has.

    >>> from driftbandits.arms import ArmSet
    >>> Uniform(ArmSet([[0.0], [1.0]]), seed=0).law().tolist()
    [0.5, 0.5]
    """

    family = Family.PLAIN
    _interval_kept = 1  # the numbers of rewards

    def _start(self, horizon: int | None) -> None:
        self._prepare_state()

    def _prepare_state(self) -> None:
        self._even: Floats = freeze(np.full(len(self.arms), 1.0 / len(self.arms)))
        self._sums: Floats = np.zeros((2, len(self.arms)))  # rewards, counts

    def _law(self) -> Floats:
        return self._even

    def _stamp(self) -> tuple[int, int]:
        return self._renumbered.count, 0  # one law as long as the arms stay

    def _steady(self) -> int:
        return max(self._phase_left(), 1)

    def _learn(self, feedback: Feedback) -> None:
        np.add.at(self._sums[0], feedback.arms, feedback.rewards)
        np.add.at(self._sums[1], feedback.arms, 1.0)

    def _learn_one(self, row: Row, reward: float) -> None:
        self._sums[0, row.arm] += reward
        self._sums[1, row.arm] += 1.0

    def _estimate(self) -> Floats:
        return np.asarray(self._sums[0] / np.maximum(self._sums[1], 1.0))

    def _interval(self) -> tuple[Floats, Floats]:
        return bounded_interval(self._estimate(), self._sums[1])

    def _glimpse(self, arms: Ints) -> Sequence[Floats]:
        return [self._estimate()[arms], self._sums[1][arms]]

    def _interval_from(self, estimate: Floats, kept: Floats) -> tuple[Floats, Floats]:
        return bounded_interval(estimate, kept[0])

    def _carry(self, old: Self, change: ArmsChange) -> None:
        self._prepare_state()
        self._sums = change.carry(old._sums, 0.0)

    _saved = (array("sums"),)

    def _check_state(self) -> None:
        rewards, counts = self._sums
        check_whole(counts, self._most_told(), "number of rewards")
        check_sums(counts, rewards, "sums of rewards")


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


class ArmByArm(OptimisticPolicy):
    """What plain optimism shares: a mean per arm, and a width that falls with the root of its weight."""

    family = Family.PLAIN
    _rounding_of_sums: ClassVar[float] = 0.0  # of what was added and taken away again
    _means: ArmMeans
    _saved: ClassVar[tuple[Value, ...]] = (part("means", slack="rounding_of_sums"),)

    def _prepare_state(self) -> None:
        self._means = ArmMeans(len(self.arms))

    @abstractmethod
    def _width(self) -> float | Floats:
        """The width of an arm of weight 1, now; if of each apart, `_optimism` is written too."""

    def _index(self) -> Floats:
        return self._means.index(self._width())

    def _optimism(self, arm: int) -> Optimism:
        return self._means.optimism(arm, float(self._width()))

    def _estimate(self) -> Floats:
        return self._means.mean

    def _interval(self) -> tuple[Floats, Floats]:
        return bounded_interval(self._means.mean, self._means.weights)


class PlainUCB(SizedPolicy, ArmByArm):
    """What the two plain UCB bandits share: a size given or computed, widths R sqrt(2 log(.) / n), a mean per arm."""

    _size_rule: ClassVar[Callable[..., float]]

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

    def _compute_size(self, horizon: int) -> float:
        return self._size_rule(horizon=horizon, switches=self.switches)

    def _start(self, horizon: int | None) -> None:
        self._prepare_state()
        self._first = self.rounds

    def _interval(self) -> tuple[Floats, Floats]:
        return noisy_interval(self._means.mean, self._means.weights, self._noise)

    def _carry(self, old: Self, change: ArmsChange) -> None:
        self._means, self._first = old._means.carried(change), old._first

    _saved: ClassVar[tuple[Value, ...]] = (count("first", low="phase_start", high="rounds"),)


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

    _usual_size: ClassVar[float] = 1_600
    _size_rule = staticmethod(plain_window)
    _rounding_of_sums: ClassVar[float] = 1e-6

    def _start(self, horizon: int | None) -> None:
        super()._start(horizon)
        self._open_window(horizon)

    def _take_back(self, arm: int, reward: float) -> None:
        self._means.shift(arm, -1.0, reward)

    def _exchange(self, arm: int, reward: float, leaving: Observation | None) -> None:
        self._means.shift(arm, 1.0, reward)
        if leaving is not None:
            self._take_back(*leaving)

    def _width(self) -> float:
        elapsed = min(self.rounds - self._first + 1, self._window.length)
        return self.scale * self._noise * math.sqrt(2.0 * math.log(elapsed))

    def _carry(self, old: Self, change: ArmsChange) -> None:
        super()._carry(old, change)
        self._window = old._window.renumbered(change.target)

    def _totals(self) -> tuple[Floats, Floats]:
        return self._means.weights, self._means.sums


class DiscountedUCB(PlainUCB):
    """D-UCB (Kocsis and Szepesvari 2006): UCB on exponentially discounted rewards, without a kernel.

    Index mean + scale R sqrt(2 log(n) / n_a), with n_a the discounted count of the arm and n that of all arms
    together; all fade every round. Garivier and Moulines' proof has twice that width: scale=2. An arm that is not
    played becomes uncertain again, so every arm is played again within about 1 / (1 - discount) rounds.

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

    def _learn_one(self, row: Row, reward: float) -> None:
        ident, arm = row.id, row.arm
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

    _saved = (
        number("resolved", within=(None, 1.0)),
        count("clock", low="first", high="rounds"),
        number("fade", within=(_FAINTEST_FADE, 1.0)),
        number("total"),
    )

    def _check_state(self) -> None:
        states.check(self._resolved > 0.0 and self._size in (None, self._resolved), "discount")
        states.check(self._clock >= self.rounds - 1, "clock")
        weight = float(self._means.weights.sum())
        states.check(math.isclose(self._total, weight, rel_tol=ROUNDING), "weight of all arms")
        most = self._most_told(self._first)
        states.check(self._fade * weight <= (1.0 + ROUNDING) * most, "weight of all arms")


class UCB1(DiscountedUCB):
    """UCB1 (Auer, Cesa-Bianchi and Fischer 2002): mean + scale sqrt(2 log t / n) for rewards in [0, 1].

    Its defaults are not enough where rewards change: it assumes that nothing does. Take `DiscountedUCB` or
    `SlidingWindowUCB` there, its forgetting forms.

    Parameters
    ----------
    scale : multiplies the width; 1 in theory, and much too wide where rewards span less than their range
    others : see `Policy`

    t counts the rewards told. Cost per round: O(N).

    >>> policy = UCB1(ArmSet([[0.0], [1.0]]), reward_range=(0, 1), seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    _usual_size: ClassVar[float] = 1.0

    def __init__(self, arms: ArmSet, *, scale: float = 1.0, **common: Unpack[CommonSettings]) -> None:
        super().__init__(arms, scale=scale, **common)
        self._noise = 2.0  # [-1, 1] is twice as long as [0, 1]

    _interval = ArmByArm._interval


class KLUCB(UCB1):
    """kl-UCB (Garivier and Cappe 2011): the largest mean q with n kl(mean, q) <= log t + c log log t.

    Its defaults are not enough where rewards change: it assumes that nothing does. Take `GLRklUCB`, which restarts it
    at changes.

    Parameters
    ----------
    exploration : c; 0 as its authors play it, 3 in theory
    others : see `Policy`

    kl is that of two-valued rewards, which holds for all within the range. t counts the rewards told. Cost per round:
    O(N), with some five steps of Newton's method.

    >>> policy = KLUCB(ArmSet([[0.0], [1.0]]), reward_range=(0, 1), seed=0)
    >>> policy.tell(policy.ask().id, 1.0)
    """

    def __init__(self, arms: ArmSet, *, exploration: float = 0.0, **common: Unpack[CommonSettings]) -> None:
        super().__init__(arms, **common)
        self.exploration = check_positive("exploration", exploration, zero=True)

    def _index(self) -> Floats:
        weights = self._means.weights
        told = math.log(max(self._total, 1.0))
        level = told + self.exploration * math.log(max(told, 1.0))
        upper = bernoulli_upper(self._means.mean, level / np.maximum(weights, 1.0))
        return np.where(weights > 0.0, upper, np.inf)

    def _optimism(self, arm: int) -> Optimism:
        value = min(float(self._index()[arm]), 1.0)
        return Optimism(value=value, width=value - float(self._means.mean[arm]))


class EpsilonGreedy(RandomisedRounds, DiscountedUCB):
    """epsilon-greedy: the arm with the largest mean, and with probability epsilon any arm.

    Its defaults are not enough where rewards change. Take a `discount` there: every arm keeps a probability of
    epsilon / N, so changes are followed, at a price that never ends.

    Parameters
    ----------
    epsilon : the share of rounds that explore, in (0, 1]
    decay : c of epsilon_n-greedy (Auer, Cesa-Bianchi and Fischer 2002): the share is min(epsilon, c N / t); None for a
        share that stays
    discount : gamma in (0, 1], by which weights of rewards fade per round; default 1, nothing fades
    switches : how often the world changes, for a computed discount
    noise : R, of `interval` alone, in the user's units; default a tenth of half the reward range
    others : see `Policy`

    Cost per round: O(N).

    >>> policy = EpsilonGreedy(ArmSet([[0.0], [1.0]]), epsilon=0.2, seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    _usual_size: ClassVar[float] = 1.0

    def __init__(self, arms: ArmSet, *, epsilon: float = 0.1, decay: float | None = None, **settings: Any) -> None:
        super().__init__(arms, scale=0.0, **settings)
        self.epsilon = check_probability("epsilon", epsilon, one=True)
        self.decay = None if decay is None else check_positive("decay", decay)

    def _random_share(self) -> float:
        if self.decay is None:
            return self.epsilon
        return min(self.epsilon, self.decay * len(self.arms) / (self.rounds - self._first + 1))

    def _settings(self) -> dict[str, Any]:
        settings = {name: value for name, value in super()._settings().items() if name != "scale"}
        return {**settings, "epsilon": self.epsilon, "decay": self.decay}
