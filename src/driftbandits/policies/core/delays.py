"""Does how late a reward comes depend on the reward? A small sample of what was told, and a test that is exact.

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
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from driftbandits import state as states
from driftbandits.policies.core.scale import RewardScale
from driftbandits.state.plausible import FARTHEST, ROUNDING
from driftbandits.types import Floats, Ints

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
