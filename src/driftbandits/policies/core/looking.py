"""What a person looks at: estimates with their intervals, a table of all arms, and how both came about.

Looking changes nothing: neither decisions nor the state.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np

from driftbandits.errors import DriftbanditsError, InputError
from driftbandits.policies.core.guard import guarded
from driftbandits.policies.core.history import History, Look
from driftbandits.policies.core.hooks import PolicyHooks
from driftbandits.policies.core.laws import check_estimate
from driftbandits.policies.core.summary import Summary
from driftbandits.types import Floats

NORMAL_QUANTILE = 1.959963984540054  # 95 % of a normal distribution lie so many standard deviations around its mean


class Looking(PolicyHooks):
    """The part of `Policy` that shows what it believes."""

    @abstractmethod
    def _ahead(self) -> Self:
        """This policy as the next ask will find it."""

    @guarded
    def interval(self) -> tuple[Floats, Floats]:
        """Lower and upper ends of 95 % intervals of every arm's mean reward, each (N,), in the user's units.

        What they rest on is what the policy believes: a Gaussian process, a declared noise, a number of rewards. Each
        holds for its arm at the present moment, not for all arms or for ever; ends beyond the reward range are cut.

        A policy that does not know how far off it may be has none: InputError.

        >>> from driftbandits import ArmSet, GPUCB
        >>> policy = GPUCB(ArmSet([[0.0], [1.0]]), reward_range=(0, 1), noise=0.05, seed=0)
        >>> for _ in range(20):
        ...     policy.tell(policy.ask(), 0.5)
        >>> low, high = policy.interval()
        >>> bool((low < 0.5).all() and (high > 0.5).all() and (high - low).min() < 0.1)
        True
        """
        found = self._ahead()._interval_inside()
        if found is None:
            raise InputError(
                f"{type(self).__name__} does not know how far off its estimates may be, so there is no interval; "
                f"AutoBandit, CalibratedOPKB in its practical mode, the GP-UCB, LinUCB and UCB families and Uniform "
                f"have one"
            )
        return self._scale.outward(found[0]), self._scale.outward(found[1])

    @guarded
    def summary(self) -> Summary:
        """All arms in a table, the best estimate first: print it, show it in a notebook, or take `.to_pandas()`.

        >>> from driftbandits import ArmSet, GPUCB
        >>> policy = GPUCB(ArmSet([[0.0], [1.0]], names=["left", "right"]), noise=0.2, seed=0)
        >>> for reward in (0.5, 0.1, 0.5):
        ...     policy.tell(policy.ask(), reward)
        >>> print(policy.summary())
        arm    estimate  95 % interval      probability  plays  last played
        right     0.357  [0.0259, 0.688]              1      1            2
        left       0.25  [-0.00301, 0.503]            0      2            1
        """
        now = self._now()
        outward = self._scale.outward
        interval = None if len(now) == 2 else (outward(now[2]), outward(now[3]))
        counts, last = self._plays.counts, self._plays.last
        return Summary.of(self.arms.names, outward(now[0]), interval, now[1], counts, last)

    @property
    @guarded
    def history(self) -> History:
        """Estimates, intervals and probabilities over time, of the 50 arms played most, at 500 moments at most.

        `plots.beliefs` draws it, `.to_pandas()` gives it as a table.
        """
        rounds, arms, values = self._history.looks(self._plays.counts, Look(self.rounds, self._now()))
        outward = self._scale.outward
        names = None if self.arms.names is None else tuple(self.arms.names[arm] for arm in arms)
        low, high = (outward(values[2]), outward(values[3])) if len(values) > 2 else (None, None)
        return History(rounds, arms, names, outward(values[0]), values[1], low, high)

    # --- on the internal scale ----------------------------------------------------------------------------------

    def _now(self) -> Floats:
        """What is believed now, in the rows of a `Look`."""
        ahead = self._ahead()
        law = ahead._shown_law()
        estimate = check_estimate(ahead._estimate(), arms=len(self.arms), policy=type(self).__name__, now=self.rounds)
        return np.array([estimate, law, *(ahead._interval_inside() or ())])

    def _shown_law(self) -> Floats:
        """The law that people look at: where arms are options in segments, that of a round of each segment."""
        crossing = self.arms.crossing
        if crossing is None:
            return self._fit(self._law())
        masks = [crossing.mask(segment) for segment in range(len(crossing.names))]
        return np.concatenate([self._law_within(mask)[0][mask] for mask in masks])

    def _look_if_due(self) -> Look | None:
        """What is believed before the next reward, now and then; None where a hook fails, which `ask` will say."""
        if self._history.left > 0:
            return None
        try:
            arms = self._history.next_arms(self._plays.counts)
            believed = self._beliefs_of(arms) if self.arms.crossing is None else None  # segments have laws of their own
            if believed is not None:
                estimate, law, *ends = believed
                return Look.of(self.rounds, estimate, law, _inside(ends), arms)
            return Look.of(self.rounds, self._estimate(), self._shown_law(), self._interval_inside())
        except DriftbanditsError:
            return None

    def _interval_inside(self) -> tuple[Floats, Floats] | None:
        """The interval, cut to the range of rewards, which holds every mean."""
        return _inside(self._interval() or ())


def _inside(ends: Sequence[Floats]) -> tuple[Floats, Floats] | None:
    return (np.clip(ends[0], -1.0, 1.0), np.clip(ends[1], -1.0, 1.0)) if len(ends) else None


def around(mean: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """The 95 % interval of normal variables with these means and standard deviations.

    >>> [ends.round(2).tolist() for ends in around(np.zeros(1), np.ones(1))]
    [[-1.96], [1.96]]
    """
    half = NORMAL_QUANTILE * deviation
    return mean - half, mean + half
