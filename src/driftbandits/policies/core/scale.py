"""The scale of rewards: the declared range in the user's units, mapped to [-1, 1] inside every policy.

symbol     name      meaning
           middle    becomes 0
           half      half the width of the range, becomes 1: sizes, such as noise, are divided by it
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from driftbandits.checks import EXTREME
from driftbandits.errors import InputError, RewardError
from driftbandits.numeric import TEXT, as_float
from driftbandits.showing import shown
from driftbandits.types import Floats

Value = TypeVar("Value", float, Floats)

USUAL_NOISE = 0.1  # standard deviation that policies take for granted where they are told none, on the internal scale
_FLOATS_IN_A_RANGE = 1000  # rewards a range must be able to tell apart


@dataclass(frozen=True, slots=True)
class RewardScale:
    """A reward range, and the way from it to [-1, 1] and back.

    >>> scale = RewardScale(0.0, 10.0)
    >>> scale.inward(7.5), scale.outward(0.5), scale.inward_size(1.0)
    (0.5, 7.5, 0.2)
    """

    low: float
    high: float
    middle: float = field(init=False)
    half: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "middle", (self.low + self.high) / 2)
        object.__setattr__(self, "half", (self.high - self.low) / 2)

    def inward(self, reward: Value) -> Value:
        """Rewards on the internal scale."""
        return (reward - self.middle) / self.half

    def outward(self, value: Value) -> Value:
        """Internal rewards in the user's units."""
        return self.middle + value * self.half

    def inward_size(self, size: float) -> float:
        """A difference of rewards, or a standard deviation, on the internal scale."""
        return size / self.half

    def outward_size(self, size: float) -> float:
        """Inverse of `inward_size`."""
        return size * self.half

    def noise(self, declared: float | None) -> float:
        """Standard deviation of the noise on the internal scale, as declared in the user's units or as usual."""
        return USUAL_NOISE if declared is None else self.inward_size(declared)

    def clip(self, values: Floats) -> Floats:
        """Rewards moved to the nearest end of the range where they lie outside."""
        return np.asarray(np.minimum(np.maximum(values, self.low), self.high))

    def require_inside(self, values: Floats, clipped: Floats) -> None:
        """Refuse rewards that clipping would move, naming the first."""
        outside = clipped != values
        if outside.any():
            raise RewardError(
                f"reward {values[int(np.argmax(outside))]:.6g} lies outside reward_range=({self.low:g}, "
                f"{self.high:g}); declare the true range, or pass out_of_range='clip'"
            )


def read_range(reward_range: Any) -> RewardScale:
    """The scale of a reward range, given as two numbers, low < high.

    Ends beyond 1e150 or less than 1e-150 apart are refused, so that neither the width nor a square of a reward leaves
    what floats can hold. So are ends that leave fewer than 1,000 floats between them, such as (1e16, 1e16 + 2):
    rounding would then move a reward by more than a thousandth of the range.
    """
    try:
        pair = () if isinstance(reward_range, (*TEXT, Set, Mapping)) else reward_range
        low, high = (as_float(value) for value in pair)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"reward_range must be a pair (low, high) of numbers, got {shown(reward_range)}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"reward_range must be finite with low < high, got ({low:g}, {high:g})")
    largest = max(abs(low), abs(high))
    if largest > EXTREME or high - low < 1.0 / EXTREME:
        raise InputError(
            f"reward_range must lie within {EXTREME:g} of 0 and be at least {1 / EXTREME:g} wide, got ({low!r}, "
            f"{high!r}); express rewards in another unit"
        )
    if high - low < _FLOATS_IN_A_RANGE * math.ulp(largest):
        raise InputError(
            f"reward_range=({low!r}, {high!r}) is too narrow to tell rewards apart: floats of that size are "
            f"{math.ulp(largest):g} apart; subtract {low!r} from the rewards and from the range"
        )
    return RewardScale(low, high)
