"""Rewards: their scale, and monitors that notice when the declared range or the delays cannot be right.

The declared range, in the user's units, is mapped to [-1, 1] inside every policy.

symbol     name      meaning
           middle    becomes 0
           half      half the width of the range, becomes 1: sizes, such as noise, are divided by it

Whoever tells rewards of 0 and 1 under the default range forgot to declare reward_range=(0, 1). In the range (-1, 1) a
failure is the middle and not the low end: arms look half as different as they are, and AutoBandit does not see that its
rewards have two values.

Whether how late a reward comes depends on the reward is found by an exact test on a small sample.

symbol    name                meaning
d         delay               rounds asked between a decision and its reward
          pairs               decisions of one arm, neighbours in the order asked, with other rewards, told apart
          concordant          of a pair, the larger reward came later
p         p_value             of Fisher's exact test: whether the reward rises from the first to the second of a pair,
                              against whether the delay does

Pairs are chosen by arms, rounds and rewards, not by delays. If delays do not depend on rewards, the two signs of a pair
are independent, whatever the arms, and also where rewards drift, or where delays do: hence the test of the 2 x 2 table
with both its margins given, instead of a count of concordant pairs alone. It is made when the number of rewards
has doubled, at p < 1e-6: the chance of ever warning without cause is below 1e-6 per test, that is 1.3e-5 in the first
million rewards.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from driftbandits import state as states
from driftbandits._util.checks import EXTREME, TEXT, as_float
from driftbandits.errors import (
    ClippedRewardsWarning,
    DelayWarning,
    HeldRewardsWarning,
    InputError,
    LateRewardsWarning,
    RewardError,
    RewardRangeWarning,
    ZeroOneRewardsWarning,
)
from driftbandits.state.declared import Declared, Value, count, flag
from driftbandits.state.reader import FARTHEST, ROUNDING
from driftbandits.text import shown
from driftbandits.types import Floats, Ints

Reward = TypeVar("Reward", float, Floats)

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

    def inward(self, reward: Reward) -> Reward:
        """Rewards on the internal scale."""
        return (reward - self.middle) / self.half

    def outward(self, value: Reward) -> Reward:
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


REWARDS_LOOKED_AT = 1_000  # before it is said that they fill next to nothing of the range
LEAST_SHARE_FILLED = 0.01  # of the range
REWARDS_NEEDED = 100  # of 0 and 1, both among them, before it is said that the range should be (0, 1)
DEFAULT_RANGE = (-1.0, 1.0)
CLIPPED_BEFORE_WARNING = 32  # rewards outside the range,
FEW_CLIPPED = 4  # or so many, if they are half of those that are not its low end: rare successes
LEAST_LOST = 0.02  # of half the range, by clipping, per reward told
LATE_BEFORE_WARNING = 32  # rewards that came too late
LATE_SHARE = 0.05  # of all rewards that came
_LARGEST_REWARD = 1.0 + 1e-9  # up to rounding
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
            f"patience={math.ceil(1.5 * self.longest)}, missing={float(f'{slow:.6g}')!r} (patience in rounds, in a "
            f"database in seconds; or order='asked', and expire() by a clock of yours); every reward then waits as "
            f"long for those before it, but for AutoBandit where what is slow is the low end of the range, "
            f"{scale.low:g}. Learned as they come, rewards are too much like the quick ones at first and too much "
            f"like the slow ones later (p = {self.p_value:.1g})"
        )


class DelaySample(Declared):
    """A fixed number of rewards told, every one as likely to be kept as any other: those whose ids hash lowest.

    It begins with the first reward that is late; while all come at once there is nothing to learn. `watching`: whether
    delays matter at all, and nothing was said yet; `idle`: whether they may, and none was late so far.
    """

    def __init__(self, *, watching: bool = True) -> None:
        self.watching = self.idle = watching
        self.warned = False
        self.seen = 0
        self.calls = 0
        self._rows: list[tuple[int, int, int, int, int, float]] = []  # the hash, largest first, and what was told

    def see(self, ident: int, arm: int, delay: int, reward: float) -> bool:
        """Take in a reward that came `delay` rounds late; whether `dependence` should be checked."""
        self.idle = False
        self.seen = seen = self.seen + 1
        place, kept = -((ident * _SPREADING) & _BITS), self._rows
        if len(kept) < SAMPLE_SIZE:
            heapq.heappush(kept, (place, ident, arm, delay, self.calls, reward))
        elif place > kept[0][0]:
            heapq.heapreplace(kept, (place, ident, arm, delay, self.calls, reward))
        return seen >= FIRST_LOOK and seen & (seen - 1) == 0

    def see_many(self, ids: Ints, arms: Ints, delays: Ints, rewards: Floats) -> bool:
        """`see` for rewards told in one call; of many, those that are not kept cost next to nothing."""
        before = self.seen
        kept = np.arange(len(ids))
        if len(self._rows) == SAMPLE_SIZE:
            kept = np.flatnonzero(ids.astype(np.uint64) * np.uint64(_SPREADING) < np.uint64(-self._rows[0][0]))
        for column in zip(*(part[kept].tolist() for part in (ids, arms, delays, rewards)), strict=True):
            self.see(*column)
        self.idle, self.seen = False, before + len(ids)
        return self.seen >= FIRST_LOOK and self.seen.bit_length() > before.bit_length()

    def stop(self) -> None:
        """It has warned: once is enough, and the rest need not be seen."""
        self.watching, self.idle, self.warned = False, True, True

    def kept(self) -> list[Told]:
        """The sample, in the order asked."""
        return _told(self._rows)

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

    saved = (
        count("seen"),
        count("calls"),
        flag("warned"),
        Value("rows", lambda rows: np.array(_told(rows), dtype=ROW), lambda state, *_: _read_told(state)),
    )

    def _check_state(self, *, rounds: int = 0, arms: int = 0, **known: Any) -> None:
        rows = np.array(self.kept(), dtype=ROW)
        ids, delays = rows["id"], rows["delay"]
        fine = (ids >= 0) & (delays >= 0) & (ids <= FARTHEST) & (delays < rounds - ids)
        fine &= (rows["arm"] >= -FARTHEST) & (rows["arm"] < arms) & (rows["call"] >= 0) & (rows["call"] <= self.calls)
        fine &= np.abs(rows["reward"]) <= 1.0 + ROUNDING
        states.check(self.watching or not (self.seen or self.warned), "sample of delays")
        states.check(len(rows) == min(self.seen, SAMPLE_SIZE), "number of delays")
        states.check(bool(fine.all()), "sample of delays")
        self.idle = self.idle and not self.seen
        if self.warned:
            self.stop()


def _told(kept: list[tuple[int, int, int, int, int, float]]) -> list[Told]:
    return [Told._make(row[1:]) for row in sorted(kept, key=itemgetter(1))]


def _read_told(state: states.Reader) -> list[tuple[int, int, int, int, int, float]]:
    rows = state.array("rows", ROW, (None,))
    states.check(bool((np.diff(rows["id"]) > 0).all()), "order of the delays")
    kept = [(-((row[0] * _SPREADING) & _BITS), *row) for row in rows.tolist()]
    heapq.heapify(kept)
    return kept


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


class RewardMonitor:
    """Watches the rewards of one policy for signs that it was set up wrongly, and collects the warnings to give.

    Six things are noticed, each once: rewards that fill less than a hundredth of the declared range (equal ones say
    nothing, successes may be rare); rewards outside it that had to be cut; rewards of 0 and 1 under the default range;
    delays that depend on the reward; many rewards that come after their decision was closed as missing; many rewards
    held behind one open decision.

    >>> monitor = RewardMonitor(RewardScale(-1.0, 1.0), watches_delays=True)
    >>> for reward in [0.0] * 99 + [1.0]:
    ...     monitor.see(reward, reward, 1, reward == 0.0, reward == 1.0)
    >>> [type(notice).__name__ for notice in monitor.notices]
    ['ZeroOneRewardsWarning']
    """

    def __init__(
        self, scale: RewardScale, *, watches_delays: bool, adapts: Callable[[Dependence], str | None] = lambda _: None
    ) -> None:
        self.notices: list[UserWarning] = []  # to be given when the present call is over
        self.watches_zero_one = (scale.low, scale.high) == DEFAULT_RANGE  # the internal scale is then the user's
        self.delays = DelaySample(watching=watches_delays)
        self._scale = scale
        self._adapts = adapts  # lets the policy do something about delays that depend on rewards, and say what
        self._seen, self._least, self._most = 0, math.inf, -math.inf
        self._zeros = self._ones = 0
        self._said_late = self._said_clipped = False  # not saved: who goes on may hear it once more
        self._lost, self._others = 0.0, 0  # not saved either: by clipping; rewards above the low end

    def _say(self, kind: type[UserWarning], text: str) -> None:
        """Give a warning when the present call is over."""
        self.notices.append(kind(text))

    def see_all(self, rewards: Floats) -> None:
        """Rewards told together, on the internal scale."""
        zeros = int(np.count_nonzero(rewards == 0.0)) if self.watches_zero_one else 0
        ones = int(np.count_nonzero(rewards == 1.0)) if self.watches_zero_one else 0
        self.see(float(rewards.min()), float(rewards.max()), len(rewards), zeros, ones)
        if len(rewards) > 1:
            self._others += int(np.count_nonzero(rewards > -1.0))

    def see(self, least: float, most: float, count: int, zeros: int, ones: int) -> None:
        """`count` rewards between `least` and `most`, of which `zeros` are 0 and `ones` are 1."""
        if count == 1 and least > -1.0:
            self._others += 1
        if self._seen < REWARDS_LOOKED_AT:
            self._see_range(least, most, count)
        if self.watches_zero_one:
            self._see_zero_one(count, zeros, ones)

    def _see_range(self, least: float, most: float, count: int) -> None:
        if least < self._least:
            self._least = least
        if most > self._most:
            self._most = most
        self._seen += count
        if self._seen < REWARDS_LOOKED_AT:
            return
        if self._least == self._most:
            self._seen = 0
        elif self._most - self._least < 2.0 * LEAST_SHARE_FILLED:
            low, high = self._scale.outward(self._least), self._scale.outward(self._most)
            self._say(
                RewardRangeWarning,
                f"rewards so far lie between {low:.6g} and {high:.6g}, which is less than a hundredth of "
                f"reward_range=({self._scale.low:g}, {self._scale.high:g}): differences between arms look like "
                f"nothing in so wide a range; declare one that the rewards fill",
            )

    def see_clipped(self, lost: float, *, clipped: int, told: int) -> None:
        """So many of the rewards told lay outside the range, those of this call by `lost` in all, inside."""
        self._lost += lost
        enough = min(CLIPPED_BEFORE_WARNING, max(FEW_CLIPPED, self._others // 2))
        if self._said_clipped or told < REWARDS_NEEDED or clipped < enough or self._lost < LEAST_LOST * told:
            return
        self._said_clipped = True
        self._say(
            ClippedRewardsWarning,
            f"{clipped:,} of {told:,} rewards lay outside reward_range=({self._scale.low:g}, {self._scale.high:g}) "
            f"and were moved to its ends, so estimates are of the rewards as cut; declare a range that holds them",
        )

    def _see_zero_one(self, count: int, zeros: int, ones: int) -> None:
        self._zeros += zeros
        self._ones += ones
        if zeros + ones < count:  # rewards are something else; how many were 0 or 1 before that does not matter
            self.watches_zero_one, self._zeros, self._ones = False, 0, 0
        elif self._zeros and self._ones and self._zeros + self._ones >= REWARDS_NEEDED:
            self.watches_zero_one = False
            self._say(
                ZeroOneRewardsWarning,
                f"all {self._zeros + self._ones} rewards so far are 0 or 1, and the declared range is the default "
                f"(-1, 1): pass reward_range=(0, 1), so that 0 is a failure and not a middling reward",
            )

    def see_delay(self, ident: int, arm: int, delay: int, reward: float) -> None:
        """A single reward, `delay` rounds after its decision; see `see_delays`."""
        delays = self.delays
        if delays.watching and (delay or not delays.idle):
            due = delays.see(ident, arm, delay, reward)
            self._test_delays(due)
            delays.calls += 1

    def see_delays(self, ids: Ints, arms: Ints, rewards: Floats, *, rounds: int) -> None:
        """Rewards told in one call, after `rounds` rounds; arms below 0 are no longer offered.

        Within a call rewards overtake nothing, so a batch told whole begins no sample.
        """
        delays = self.delays
        whole = ids[-1] - ids[0] + 1 == len(ids) and ids[-1] + 1 == rounds
        if not delays.watching or (delays.idle and whole):
            return
        offered = arms >= 0
        ids = ids[offered]
        due = delays.see_many(ids, arms[offered], rounds - 1 - ids, rewards[offered])
        delays.calls += 1
        self._test_delays(due)

    def _test_delays(self, due: bool) -> None:
        found = self.delays.dependence() if due else None
        if found is not None:
            self.delays.stop()
            self.notices.append(DelayWarning(self._adapts(found) or found.advice(self._scale)))

    def see_late(self, *, missed: int, told: int, after: int, cure: str) -> None:
        """`missed` rewards came after their decision was closed as missing, `told` in time; the last after a while."""
        if self._said_late or missed < LATE_BEFORE_WARNING or missed < LATE_SHARE * (missed + told):
            return
        self._said_late = True
        self._say(
            LateRewardsWarning,
            f"{missed:,} rewards came after their decision was closed as missing, {told:,} in time: those are not "
            f"learned, and their arms look worse or better than they are. The last came {after:,} rounds after its "
            f"decision. {cure}",
        )

    def see_held(self, first_open: int, held: int, patience: int | None) -> None:
        """So many rewards wait for one decision that is open."""
        cost = "nothing is learned any more" if patience is None else f"all are learned up to {patience:,} rounds late"
        cure = (
            "forget() or expire() decisions whose reward will not come, or build the policy with patience=..., the "
            "number of rounds after which a reward counts as missing"
            if patience is None
            else "take a shorter patience"
        )
        self._say(
            HeldRewardsWarning,
            f"decision {first_open} is open, and {held:,} rewards of later ones wait for it: {cost}. To change "
            f"that, {cure}; or take AutoBandit with missing={self._scale.low:g} and no order, which waits for none",
        )

    def export(self) -> dict[str, Any]:
        """What `load` needs, in three parts; before the first reward there is no least and no most."""
        known = math.isfinite(self._least)
        ends = {"least": self._least if known else None, "most": self._most if known else None}
        return {
            "delays": self.delays.export(),
            "spread": {"seen": self._seen, **ends},
            "zero_one": {"looking": self.watches_zero_one, "zeros": self._zeros, "ones": self._ones},
        }

    def load(self, state: states.Reader, *, rounds: int, arms: int) -> None:
        """Inverse of `export`, into a fresh monitor."""
        self.delays.load(state.reader("delays"), rounds=rounds, arms=arms)
        spread, zero_one = state.reader("spread"), state.reader("zero_one")
        self._seen = spread.integer("seen")
        if spread.raw("least") is not None:
            self._least, self._most = spread.number("least"), spread.number("most")
            states.check(-_LARGEST_REWARD <= self._least <= self._most <= _LARGEST_REWARD, "spread")
        watches = zero_one.flag("looking")
        states.check(self.watches_zero_one or not watches, "looking")
        self.watches_zero_one = watches
        self._zeros, self._ones = (zero_one.integer(name, high=FARTHEST) for name in ("zeros", "ones"))
