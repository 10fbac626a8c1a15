"""Forgetting by restarts and by sliding windows, for the kernel and the linear family, and by how much.

Window, restart period and discount from the variation V_T, by the corrected analyses.

Zhao and Zhou (2021) found an error in the lemma behind the published sizes. The corrected ones balance
sqrt(g) w^(3/2) V against g T / sqrt(w), with g the information gain (half convention) or the dimension. All are
worst-case choices: a window tuned for a single flip is several times longer.

The variation is the total drift of the reward function, knowledge that the ADA family does without.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Self

from driftbandits import state as states
from driftbandits._util.checks import check_count, check_positive
from driftbandits.arms.arm_set import ArmSet
from driftbandits.errors import InputError
from driftbandits.policies.algorithm import Family
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.decisions import Row
from driftbandits.policies.gp.gpucb import GPUCB
from driftbandits.policies.window import Observation, SizedPolicy, WindowedPolicy
from driftbandits.state.declared import count
from driftbandits.state.reader import check_whole
from driftbandits.types import Floats


def _check(horizon: int, variation: float, dimension: float) -> None:
    if horizon < 1 or not math.isfinite(variation) or variation < 0 or not math.isfinite(dimension) or dimension <= 0:
        given = f"{horizon!r}, {variation!r}, {dimension!r}"
        raise InputError(f"wants horizon >= 1, variation >= 0 and a positive dimension, got {given}")


def _clip(size: float, horizon: int) -> int:
    return int(min(max(size, 1), horizon))


def kernel_window(*, horizon: int, variation: float, gain: float) -> int:
    """Window or restart period of SW-GPUCB and R-GPUCB: ceil(g^(1/4) sqrt(T / (1 + V))), in [1, T].

    >>> kernel_window(horizon=10_000, variation=1.6, gain=200.0)
    234
    """
    _check(horizon, variation, gain)
    return _clip(math.ceil(gain**0.25 * math.sqrt(horizon / (1.0 + variation))), horizon)


def kernel_discount(*, horizon: int, variation: float, gain: float) -> float:
    """Discount of WGPUCB: memory 1 / (1 - eta) equal to `kernel_window`: eta = 1 - min(1, g^(-1/4) sqrt((1 + V) / T)).

    >>> round(kernel_discount(horizon=10_000, variation=1.6, gain=200.0), 4)
    0.9957
    """
    _check(horizon, variation, gain)
    return _keep_some(1.0 - min(1.0, gain**-0.25 * math.sqrt((1.0 + variation) / horizon)))


def linear_window(*, horizon: int, variation: float, dimension: int) -> int:
    """Window of SW-UCB: ceil(d^(1/4) sqrt(T / V)), in [1, T].

    >>> linear_window(horizon=10_000, variation=1.0, dimension=16)
    200
    """
    _check(horizon, variation, dimension)
    return horizon if variation == 0 else _clip(math.ceil(dimension**0.25 * math.sqrt(horizon / variation)), horizon)


def linear_period(*, horizon: int, variation: float, dimension: int) -> int:
    """Restart period of RestartUCB: floor(d^(1/4) sqrt(T / (1 + V))), in [1, T]."""
    _check(horizon, variation, dimension)
    return _clip(math.floor(dimension**0.25 * math.sqrt(horizon / (1.0 + variation))), horizon)


def linear_discount(*, horizon: int, variation: float, dimension: int) -> float:
    """Discount of D-LinUCB: 1 - d^(-1/4) sqrt(V / T)."""
    _check(horizon, variation, dimension)
    return _keep_some(1.0 - min(1.0, dimension**-0.25 * math.sqrt(variation / horizon)))


def _keep_some(discount: float) -> float:
    """A discount of 0 would forget the present round too: keep at least the last few."""
    return max(discount, 0.5)


class Forgetting(SizedPolicy, GPUCB):
    """What the forgetting forms share: a size given, or computed from the variation V_T and the horizon, or usual."""

    _adds_only = False

    _kernel_size: ClassVar[Callable[..., float]]  # one of the functions above
    _linear_size: ClassVar[Callable[..., float]]

    def __init__(self, arms: ArmSet, *, variation: float | None = None, **settings: Any) -> None:
        super().__init__(arms, **settings)
        self.variation = None if variation is None else check_positive("variation", variation, zero=True)

    @property
    def _told_drift(self) -> float | None:
        return self.variation

    def _compute_size(self, horizon: int) -> float:
        if self._linear:
            return self._linear_size(horizon=horizon, variation=self.variation, dimension=self.arms.dimension)
        return self._kernel_size(horizon=horizon, variation=self.variation, gain=self._gain_at(horizon))


class RestartGPUCB(Forgetting):
    """R-GPUCB (Zhou and Shroff 2021): GPUCB that forgets everything every `period` rounds.

    Parameters
    ----------
    period : rounds between restarts; default 2,500, or from `variation` and the horizon, `kernel_window`
    variation : V_T, the total drift of the reward function, for the theory's period; knowledge that the ADA family does
        without
    others : see `GPUCB`

    Bad right after a restart, when it knows nothing, and right before one, when much of what it knows is old.

    >>> from driftbandits.arms.arm_set import ArmSet
    >>> RestartGPUCB(ArmSet([[0.0], [0.5], [1.0]]), period=500, seed=0).period
    500
    """

    _usual_size: ClassVar[float] = 2_500
    _size_name: ClassVar[str] = "period"
    _kernel_size = staticmethod(kernel_window)
    _linear_size = staticmethod(linear_period)

    def __init__(self, arms: ArmSet, *, period: int | None = None, **settings: Any) -> None:
        super().__init__(arms, **settings)
        self._set_size(None if period is None else check_count("period", period))

    @property
    def period(self) -> int | None:
        """Rounds between restarts; None before the first round if it is to be computed."""
        return self._resolved if self._phase_length else self._size  # type: ignore[return-value]

    def _start(self, horizon: int | None) -> None:
        super()._start(horizon)
        self._resolved = int(self._resolve_size(horizon))
        self._block_start = self.rounds

    def _quiet_rounds(self) -> int:
        return max(self._block_start + self._resolved - self.rounds, 1)

    def _due(self) -> bool:
        return self.rounds >= self._block_start + self._resolved and self._phase_left() > 0

    def _turn(self) -> None:
        self._posterior.reset()
        self._block_start = self.rounds

    def _learn_one(self, row: Row, reward: float) -> None:
        if row.id < self._block_start:
            self.late += 1
        else:
            self._posterior.add(row.arm, reward)

    def _carry(self, old: Self, change: ArmsChange) -> None:
        super()._carry(old, change)
        self._resolved, self._block_start = old._resolved, old._block_start

    _saved = (count("resolved", low=1, high=None), count("block_start", low="phase_start", high="rounds"))

    def _check_state(self) -> None:
        states.check(self._resolved == self._size or self._size is None, "period")
        check_whole(self._posterior.weights, self._most_told(self._block_start), "number of rewards")


class RestartLinUCB(RestartGPUCB):
    """RestartUCB (Zhao et al. 2020): LinUCB that forgets everything every `period` rounds.

    Its defaults are not enough where rewards are not linear in the points: see `LinUCB`.

    Parameters
    ----------
    period : rounds between restarts; default 400, or from `variation` and the horizon, `linear_period`
    variation : the drift of the parameter, for the theory's period; knowledge that the ADA family does without
    bound : norm of the parameter, in the user's units; default half the range
    others : see `RestartGPUCB`

    >>> from driftbandits.arms.arm_set import ArmSet
    >>> RestartLinUCB(ArmSet([[0.0], [0.5], [1.0]]), seed=0).period
    400
    """

    family = Family.LINEAR
    _linear: ClassVar[bool] = True
    _usual_size: ClassVar[float] = 400


class SlidingWindowGPUCB(WindowedPolicy, Forgetting):
    """SW-GPUCB (Zhou and Shroff 2021): GPUCB on the rewards of the last `window` rounds.

    An observation that leaves is removed exactly, by a rank-one update; where the arm that enters is the one that
    leaves, only the mean moves. Rewards told after their round has left the window are counted in `late`.

    Parameters
    ----------
    window : rounds kept; default 800, or from `variation` and the horizon, `kernel_window`
    variation : V_T, the total drift of the reward function, for the theory's window; knowledge that the ADA family does
        without
    others : see `GPUCB`

    >>> from driftbandits.arms.arm_set import ArmSet
    >>> SlidingWindowGPUCB(ArmSet([[0.0], [0.5], [1.0]]), window=200, seed=0).window
    200
    """

    _usual_size: ClassVar[float] = 800
    _kernel_size = staticmethod(kernel_window)
    _linear_size = staticmethod(linear_window)

    def _start(self, horizon: int | None) -> None:
        super()._start(horizon)
        self._open_window(horizon)

    def _quiet_rounds(self) -> int:
        return self._window.left(self.rounds)

    def _take_back(self, arm: int, reward: float) -> None:
        self._posterior.remove(arm, reward)

    def _exchange(self, arm: int, reward: float, leaving: Observation | None) -> None:
        """Add before removing what leaves at the same time: the removal is then better conditioned."""
        if leaving is not None and leaving[0] == arm:
            self._posterior.replace(arm, leaving[1], reward)
            return
        self._posterior.add(arm, reward)
        if leaving is not None:
            self._posterior.remove(*leaving)

    def _carry(self, old: Self, change: ArmsChange) -> None:
        super()._carry(old, change)
        self._window = old._window.renumbered(self._places)

    def _totals(self) -> tuple[Floats, Floats]:
        return self._posterior.weights, self._posterior.sums


class SlidingWindowLinUCB(SlidingWindowGPUCB):
    """SW-UCB (Cheung, Simchi-Levi and Zhu 2019): LinUCB on the rewards of the last `window` rounds.

    Its defaults are not enough where rewards are not linear in the points: see `LinUCB`.

    Parameters
    ----------
    window : rounds kept; default 200, or from `variation` and the horizon, `linear_window`
    variation : the drift of the parameter, for the theory's window; knowledge that the ADA family does without
    bound : norm of the parameter, in the user's units; default half the range
    others : see `SlidingWindowGPUCB`

    >>> from driftbandits.arms.arm_set import ArmSet
    >>> SlidingWindowLinUCB(ArmSet([[0.0], [0.5], [1.0]]), seed=0).window
    200
    """

    family = Family.LINEAR
    _linear: ClassVar[bool] = True
    _usual_size: ClassVar[float] = 200
