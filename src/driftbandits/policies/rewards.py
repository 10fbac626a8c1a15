"""Rewards: their scale, and monitors that notice when the declared range or the delays cannot be right.

The scale of rewards: the declared range in the user's units, mapped to [-1, 1] inside every policy.

symbol     name      meaning
           middle    becomes 0
           half      half the width of the range, becomes 1: sizes, such as noise, are divided by it

Rewards of 0 and 1 told under the default range: whoever counts clicks forgot to declare reward_range=(0, 1).

In the range (-1, 1) a failure is the middle and not the low end: arms look half as different as they are, and
AutoBandit does not see that its rewards have two values.

Does how late a reward comes depend on the reward? A small sample of what was told, and a test that is exact.

symbol    name                meaning
d         delay               rounds asked between a decision and its reward
          pairs               decisions of one arm, neighbours in the order asked, with other rewards, told apart
          concordant          of a pair, the larger reward came later
p         p_value             of Fisher's exact test: whether the reward rises from the first to the second of a pair,
                              against whether the delay does

Pairs are chosen by arms, rounds and rewards, not by delays. If delays do not depend on rewards, the two signs of a pair
are independent, whatever the arms, and also where rewards drift, or where delays do: hence the test of the 2 x 2 table
with both its margins given, instead of a count of concordant pairs alone. It is looked at when the number of rewards
has doubled, at p < 1e-6: the chance of ever warning without cause is below 1e-6 per look, that is 1.3e-5 in the first
million rewards.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from driftbandits import state as states
from driftbandits.checks import EXTREME
from driftbandits.errors import InputError, RewardError, ZeroOneRewardsWarning
from driftbandits.numeric import TEXT, as_float
from driftbandits.showing import shown
from driftbandits.state.plausible import FARTHEST, ROUNDING
from driftbandits.types import Floats, Ints

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


REWARDS_LOOKED_AT = 1_000
LEAST_SHARE_FILLED = 0.01  # of the range
_LARGEST_REWARD = 1.0 + 1e-9  # up to rounding


class Spread:
    """Least and most of the first rewards, on the internal scale [-1, 1].

    Rewards that are all equal say nothing (successes may be rare), so the next ones are looked at then.

    >>> spread = Spread()
    >>> any(spread.see(0.5, 0.5, 1) for _ in range(999)), spread.see(0.501, 0.501, 1)
    (False, True)
    """

    __slots__ = ("least", "most", "seen")

    def __init__(self) -> None:
        self.seen = 0
        self.least = math.inf
        self.most = -math.inf

    def see(self, least: float, most: float, count: int) -> bool:
        """`count` rewards between `least` and `most` were told; whether they are now known to fill next to nothing."""
        if self.seen >= REWARDS_LOOKED_AT:
            return False
        if least < self.least:
            self.least = least
        if most > self.most:
            self.most = most
        self.seen += count
        if self.seen < REWARDS_LOOKED_AT:
            return False
        if self.least == self.most:
            self.seen = 0
        return 0.0 < self.most - self.least < 2.0 * LEAST_SHARE_FILLED

    def export(self) -> dict[str, Any]:
        """What `load` needs; before the first reward there is no least and no most."""
        return {"seen": self.seen, "least": _finite(self.least), "most": _finite(self.most)}

    @classmethod
    def load(cls, state: states.Reader) -> Spread:
        """Inverse of `export`."""
        spread = cls()
        spread.seen = state.integer("seen")
        if state.raw("least") is not None:
            spread.least, spread.most = state.number("least"), state.number("most")
            states.check(-_LARGEST_REWARD <= spread.least <= spread.most <= _LARGEST_REWARD, "spread")
        return spread


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


DEFAULT_RANGE = (-1.0, 1.0)
REWARDS_NEEDED = 100  # with both kinds among them


class ZeroOne:
    """Counts rewards of 0 and of 1 as long as there are no others, until there are enough to say so, once.

    >>> rewards = ZeroOne(DEFAULT_RANGE)
    >>> any(rewards.see(0.0) for _ in range(99)), rewards.see(1.0), rewards.see(1.0)
    (False, True, False)
    """

    __slots__ = ("looking", "ones", "zeros")

    def __init__(self, reward_range: tuple[float, float]) -> None:
        self.looking = reward_range == DEFAULT_RANGE  # the internal scale is then the user's
        self.zeros = 0
        self.ones = 0

    def see(self, reward: float) -> bool:
        """A reward was told; whether it is time to warn."""
        if reward == 0.0:
            self.zeros += 1
        elif reward == 1.0:
            self.ones += 1
        else:
            self._stop()
        return self._enough()

    def see_all(self, rewards: Floats) -> bool:
        """Rewards were told together; whether it is time to warn."""
        zeros, ones = int(np.count_nonzero(rewards == 0.0)), int(np.count_nonzero(rewards == 1.0))
        self.zeros += zeros
        self.ones += ones
        if zeros + ones < len(rewards):
            self._stop()
        return self._enough()

    def _stop(self) -> None:
        """Rewards are something else; how many were 0 or 1 before that does not matter."""
        self.looking, self.zeros, self.ones = False, 0, 0

    def _enough(self) -> bool:
        enough = self.looking and self.zeros > 0 and self.ones > 0 and self.zeros + self.ones >= REWARDS_NEEDED
        self.looking = self.looking and not enough
        return enough

    def warning(self) -> ZeroOneRewardsWarning:
        """What is to be said to whoever told."""
        return ZeroOneRewardsWarning(
            f"all {self.zeros + self.ones} rewards so far are 0 or 1, and the declared range is the default (-1, 1): "
            f"pass reward_range=(0, 1), so that 0 is a failure and not a middling reward"
        )

    def export(self) -> dict[str, Any]:
        """What `load` needs."""
        return {"looking": self.looking, "zeros": self.zeros, "ones": self.ones}

    def load(self, state: states.Reader) -> None:
        """Inverse of `export`."""
        looking = state.flag("looking")
        states.check(self.looking or not looking, "looking")
        self.looking = looking
        self.zeros, self.ones = (state.integer(name, high=FARTHEST) for name in ("zeros", "ones"))


SAMPLE_SIZE = 2_048
FIRST_LOOK = 256  # rewards; later ones at twice as many each
BEYOND_DOUBT = 1e-6
_SPREADING = 0x9E3779B97F4A7C15  # of ids over 64 bits (Fibonacci hashing): which are kept depends on nothing else
_BITS = 2**64 - 1
ROW = np.dtype([("id", "<i8"), ("arm", "<i8"), ("delay", "<i8"), ("call", "<i8"), ("reward", "<f8")])


class Told(NamedTuple):
    """One reward of the sample; `call` counts the calls of `tell`, `reward` is on the internal scale."""

    id: int
    arm: int
    delay: int
    call: int
    reward: float


@dataclass(frozen=True, slots=True)
class Dependence:
    """What was found: typical rewards of the quick and of the slow of all pairs, and their typical delays."""

    quick_reward: float
    slow_reward: float
    sooner: int
    longest: int
    p_value: float

    def advice(self, scale: RewardScale) -> str:
        """What to say about it, in the user's units."""
        quick, slow = scale.outward(self.quick_reward), scale.outward(self.slow_reward)
        return (
            f"rewards near {quick:.3g} come {self.sooner} rounds sooner than rewards near {slow:.3g}: pass "
            f"patience={math.ceil(1.5 * self.longest)}, missing={float(f'{slow:.6g}')!r} (or order='asked', and "
            f"expire() by a clock of yours). Learned as they come, rewards are too much like the quick ones at first "
            f"and too much like the slow ones later (p = {self.p_value:.1g})"
        )


class DelaySample:
    """A fixed number of rewards told, every one as likely to be kept as any other: those whose ids hash lowest.

    It begins with the first reward that is late; while all come at once there is nothing to learn. `watching`: whether
    delays matter at all, and nothing was said yet; `idle`: whether they may, and none was late so far.
    """

    def __init__(self, *, watching: bool = True) -> None:
        self.watching = self.idle = watching
        self.warned = False
        self.seen = 0
        self.calls = 0
        self._kept: list[tuple[int, int, int, int, int, float]] = []  # the hash, largest first, and what was told

    def see(self, ident: int, arm: int, delay: int, reward: float) -> bool:
        """Take in a reward that came `delay` rounds late; whether `dependence` is to be looked at."""
        self.idle = False
        self.seen = seen = self.seen + 1
        place, kept = -((ident * _SPREADING) & _BITS), self._kept
        if len(kept) < SAMPLE_SIZE:
            heapq.heappush(kept, (place, ident, arm, delay, self.calls, reward))
        elif place > kept[0][0]:
            heapq.heapreplace(kept, (place, ident, arm, delay, self.calls, reward))
        return seen >= FIRST_LOOK and seen & (seen - 1) == 0

    def see_many(self, ids: Ints, arms: Ints, delays: Ints, rewards: Floats) -> bool:
        """`see` for rewards told in one call; of many, those that are not kept cost next to nothing."""
        before = self.seen
        kept = np.arange(len(ids))
        if len(self._kept) == SAMPLE_SIZE:
            kept = np.flatnonzero(ids.astype(np.uint64) * np.uint64(_SPREADING) < np.uint64(-self._kept[0][0]))
        for column in zip(*(part[kept].tolist() for part in (ids, arms, delays, rewards)), strict=True):
            self.see(*column)
        self.idle, self.seen = False, before + len(ids)
        return self.seen >= FIRST_LOOK and self.seen.bit_length() > before.bit_length()

    def stop(self) -> None:
        """It has warned: once is enough, and the rest need not be seen."""
        self.watching, self.idle, self.warned = False, True, True

    def kept(self) -> list[Told]:
        """The sample, in the order asked."""
        return [Told._make(row[1:]) for row in sorted(self._kept, key=itemgetter(1))]

    def dependence(self) -> Dependence | None:
        """Whether rewards and delays depend on each other beyond doubt."""
        pairs = paired(self.kept())
        table = [[0, 0], [0, 0]]
        for first, second in pairs:
            table[first.reward < second.reward][first.delay < second.delay] += 1
        p = fisher(table[0][0], table[0][1], table[1][0], table[1][1])
        if p >= BEYOND_DOUBT:
            return None
        quick = [min(pair, key=lambda item: item.delay) for pair in pairs]
        slow = [max(pair, key=lambda item: item.delay) for pair in pairs]
        differences = [s.delay - q.delay for q, s in zip(quick, slow, strict=True)]
        return Dependence(
            quick_reward=float(np.median([item.reward for item in quick])),
            slow_reward=float(np.median([item.reward for item in slow])),
            sooner=round(float(np.median(differences))),
            longest=max(item.delay for item in self.kept()),
            p_value=p,
        )

    def export(self) -> dict[str, Any]:
        """What `load` needs."""
        return {
            "seen": self.seen,
            "calls": self.calls,
            "warned": self.warned,
            "rows": np.array(self.kept(), dtype=ROW),
        }

    def load(self, state: states.Reader, *, rounds: int, arms: int) -> None:
        """Inverse of `export`, into a fresh sample."""
        self.seen = state.integer("seen", high=FARTHEST)
        self.calls = state.integer("calls", high=FARTHEST)
        states.check(self.watching or not self.seen, "sample of delays")
        self.idle = self.idle and not self.seen
        if state.flag("warned"):
            states.check(self.watching, "sample of delays")
            self.stop()
        rows = state.array("rows", ROW, (None,))
        states.check(len(rows) == min(self.seen, SAMPLE_SIZE), "number of delays")
        ids, delays = rows["id"], rows["delay"]
        fine = (ids >= 0) & (delays >= 0) & (ids <= FARTHEST) & (delays < rounds - ids)
        fine &= (rows["arm"] >= -FARTHEST) & (rows["arm"] < arms) & (rows["call"] >= 0) & (rows["call"] <= self.calls)
        fine &= np.abs(rows["reward"]) <= 1.0 + ROUNDING
        states.check(bool(fine.all() and (np.diff(ids) > 0).all()), "sample of delays")
        self._kept = [(-((row[0] * _SPREADING) & _BITS), *row) for row in rows.tolist()]
        heapq.heapify(self._kept)


def paired(told: list[Told]) -> list[tuple[Told, Told]]:
    """Disjoint pairs of one arm, each (first asked, then asked), of those that say something.

    The first and second of an arm, the third and fourth, and so on: whichever of two rewards is rare, it comes first as
    often as second. Pairs of equal rewards, equally late, or told in one call, say nothing.
    """
    single: dict[int, Told] = {}
    pairs = []
    for item in told:
        first = single.pop(item.arm, None)
        if first is None:
            single[item.arm] = item
        else:
            pairs.append((first, item))
    return [
        (one, two) for one, two in pairs if one.reward != two.reward and one.delay != two.delay and one.call != two.call
    ]


def fisher(a: int, b: int, c: int, d: int) -> float:
    """Twice the smaller tail of Fisher's exact test of the table ((a, b), (c, d)), at most 1.

    >>> fisher(3, 0, 0, 3)
    0.1
    """
    row, column, total = a + b, a + c, a + b + c + d
    ways = math.comb(total, column)
    here = upper = term = math.comb(row, a) * math.comb(total - row, column - a)
    for k in range(a, min(row, column)):  # whole numbers, each from the one before
        term = term * (row - k) * (column - k) // ((k + 1) * (total - row - column + k + 1))
        upper += term
    lower = ways - upper + here
    return min(1.0, 2.0 * (min(upper, lower) / ways))
