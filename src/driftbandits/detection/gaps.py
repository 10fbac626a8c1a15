"""Change tests by gaps: the paper's, the one with widths, and the one beside ranks.

The paper's change test: a replay that ended against the blocks before it, by the gaps that each implies.

symbol    name                                        shape
R_I       recent: estimated reward over a replay      (N,)
R_C(k)    reference: the same over blocks 0..k        (N,)
Delta     gaps: max R - R                             (N,)

The paper's change test with widths instead of constants, for theory mode.

Fires if for some arm the gaps of a replay I and of the blocks C(k) before it differ by more than a factor of 4 and what
either may be wrong by: Delta_I - 4 Delta_C > H_I + 4 H_C, or the same with I and C exchanged.

symbol   formula
h        sqrt(2 V log(3 / d) / n) + 3 b log(3 / d) / n + sqrt(s^2 lev / n): empirical Bernstein, and the ridge's bias
V, b     variance and range of one round's residual IPS value of the arm; lev its largest leverage, b = 4 lev
H(x)     h(x) + max h(x') over the arms x' that may be best
d        share of `false_alarm`: 6 / (pi k)^2 for the k-th test of the epoch, over both sides and all arms

Residuals are kept as totals by law and arm: of every earlier block, and of the present one by time, where the widths of
a replay may do without some of its first rounds (`driftbandits.detection.ledger`) and are then a little wider. A replay
whose rewards come only after its block has ended is not tested here; the streams see them.

The width is that of independent rounds, and the bias that of a function of the size believed: a bound as the theory has
it up to these. Streams keep their exact half of `false_alarm`.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from driftbandits import state as states
from driftbandits.design.blocks import Sums
from driftbandits.detection.detector import LATEST, TOLD_SHARE, EpochSeen, Finding, ReplaySeen, Verdict
from driftbandits.detection.ledger import Bucket, Ledger
from driftbandits.detection.streams import Belief, Streams
from driftbandits.state.reader import FARTHEST
from driftbandits.types import Floats, Ints


def gaps(rewards: Floats) -> Floats:
    """Estimated distance of every arm from the best: max R - R, shape (N,).

    >>> gaps(np.array([0.5, 1.0])).tolist()
    [0.5, 0.0]
    """
    return np.asarray(rewards.max() - rewards)


def gap_test(recent: Floats, reference: Floats, threshold: float) -> Verdict:
    """The paper's test: an arm's gap grew or shrank by more than a factor of 4 plus `threshold`.

    Fires for arm x if Delta_I(x) - 4 Delta_C(x) > threshold or Delta_C(x) - 4 Delta_I(x) > threshold, with
    `threshold` = 4 c0 mu_{min(m, k)} in the paper (box of ADA-OPKB).

    >>> gap_test(np.array([0.0, 1.0]), np.array([1.0, 0.9]), 0.5).arms
    (0,)
    """
    now, then = gaps(recent), gaps(reference)
    statistics = np.maximum(now - 4.0 * then, then - 4.0 * now)
    moved = tuple(int(arm) for arm in np.flatnonzero(statistics > threshold))
    return Verdict(statistic=float(statistics.max()), threshold=float(threshold), arms=moved)


class Thresholds(Protocol):
    """What the test takes from the constants of the policy."""

    @property
    def block_size(self) -> int:
        """E, rounds of a slot."""

    @property
    def lowest_index(self) -> int:
        """Blocks before this one are not compared with."""

    @property
    def tests_blocks(self) -> bool:
        """Whether a whole block is tested when it ends."""

    def test_threshold(self, index: int, compared_with: int) -> float:
        """For a replay of this index against the blocks up to `compared_with`."""


class GapTest:
    """A detector that looks only when a replay ends, and keeps nothing: everything it needs is in the epoch."""

    prompt = False
    fired = False

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds

    def begin(self) -> None:
        """Everything it needs is in the epoch."""

    def open(self, epoch: EpochSeen, first_round: int) -> None:
        """Everything it needs is in the epoch."""

    def see(self, law: int, arm: int, reward: float, value: float, round_: int) -> None:
        """Single rewards do not matter."""

    def see_apart(self, arm: int, reward: float, round_: int) -> None:
        """Single rewards do not matter."""

    def verdict(self, epoch: EpochSeen, ended: Sequence[ReplaySeen]) -> Finding | None:
        """The clearest disagreement between a replay that just ended and the blocks before, if any."""
        thresholds = self._thresholds
        found: Finding | None = None
        for item in ended:
            length = (item.replay.stop - item.replay.start) * thresholds.block_size
            block = item.block
            whole = item.replay.index == block
            if (whole and not thresholds.tests_blocks) or item.sums.told < TOLD_SHARE * length:
                continue
            recent = epoch.estimate(item.sums)
            for compared in range(thresholds.lowest_index, block):
                reference = epoch.reference(compared)
                if reference is None:
                    continue
                verdict = gap_test(recent, reference, thresholds.test_threshold(item.replay.index, compared))
                if verdict.changed and (found is None or verdict.excess > found.verdict.excess):
                    arms = list(verdict.arms)
                    before, after = reference[arms], recent[arms]
                    found = Finding(item.first_round, compared, verdict, before, after, stop_round=item.stop_round)
        return found

    def export(self) -> dict[str, Any]:
        """Nothing is kept."""
        return {}

    def load(self, state: states.Reader, epoch: EpochSeen, under_way: Sequence[ReplaySeen], *, rounds: int) -> None:
        """Nothing is kept."""


_MOST_LAWS = 2**10  # of an epoch; blocks double, so that there are never so many


@dataclass(frozen=True)
class _Side:
    """One side of the comparison: its estimate, and by how much each arm's gap may be wrong."""

    estimate: Floats
    width: Floats

    @property
    def slack(self) -> Floats:
        may_be_best = self.estimate + self.width >= (self.estimate - self.width).max()
        return np.asarray(self.width + self.width[may_be_best].max())


class BlockFacts(Protocol):
    """What the widths take from the constants of the block."""

    @property
    def block_size(self) -> int:
        """E, rounds of a slot."""

    @property
    def noise_variance(self) -> float:
        """s^2."""


class GapWidths:
    """Compares every replay that ended with the blocks before."""

    def __init__(self, false_alarm: float, facts: BlockFacts) -> None:
        self._false_alarm = false_alarm
        self._facts = facts
        self.begin()

    def begin(self) -> None:
        """A new epoch begins."""
        self._present = Ledger(FARTHEST)  # of the block under way, by law and arm in one number
        self._earlier: list[Bucket] = []  # one for every block before
        self._firsts: list[int] = []  # first round of every block
        self._tests = 0

    def open(self, first_round: int) -> None:
        """A block begins."""
        if self._firsts:
            self._earlier.append(self._present.played_since(self._firsts[-1]))
        self._present.clear()
        self._firsts.append(first_round)

    def see(self, law: int, arm: int, value: float, round_: int) -> None:
        """A residual of the epoch."""
        key = arm * _MOST_LAWS + law
        if round_ >= self._firsts[-1]:
            self._present.observe_one(key, value, round_)
        else:
            block = bisect_right(self._firsts, round_) - 1
            self._earlier[block] = self._earlier[block].join(key, value, round_)

    def verdict(self, epoch: EpochSeen, ended: Sequence[ReplaySeen]) -> Finding | None:
        """The clearest disagreement, if any."""
        found: Finding | None = None
        for item in ended:
            block = item.block
            length = (item.replay.stop - item.replay.start) * self._facts.block_size
            told = self._present.played_since(item.first_round, before=item.stop_round)
            if not block or min(item.sums.told, float(told.totals[0].sum())) < TOLD_SHARE * length:
                continue
            self._tests += 1
            d = self._false_alarm * 6.0 / (math.pi * self._tests) ** 2 / (2.0 * len(epoch.laws[0]) * block)
            recent = self._side(epoch, epoch.estimate(item.sums), told, d)
            for compared in range(block):
                reference = epoch.reference(compared)
                if reference is None:
                    continue
                verdict = _compare(recent, self._side(epoch, reference, self._up_to(compared), d))
                if verdict.changed and (found is None or verdict.excess > found.verdict.excess):
                    arms = list(verdict.arms)
                    stream = f"gaps of a replay of law {item.replay.index}"
                    found = Finding(item.first_round, compared, verdict, reference[arms], recent.estimate[arms], stream)
        return found

    def _up_to(self, block: int) -> Bucket:
        """Of all blocks up to this one."""
        told = self._earlier[0]
        for other in self._earlier[1 : block + 1]:
            told = told.merge(other)
        return told

    def _side(self, epoch: EpochSeen, estimate: Floats, told: Bucket, d: float) -> _Side:
        """Widths of an estimate from these residuals."""
        arms, laws = np.divmod(told.arms, _MOST_LAWS)
        counts, sums, squared = told.totals
        size, number = len(estimate), float(counts.sum())
        total, squares, leverage = np.zeros(size), np.zeros(size), np.zeros(size)
        for law in np.unique(laws):
            here = laws == law
            weights = _weights(epoch, int(law), arms[here])
            total += weights @ sums[here]
            squares += np.square(weights) @ squared[here]
            leverage = np.maximum(leverage, _leverage(epoch, int(law)))
        variance = np.maximum(squares / number - np.square(total / number), 0.0)
        log_term = math.log(3.0 / d)
        width = np.sqrt(2.0 * variance * log_term / number) + 12.0 * leverage * log_term / number
        return _Side(estimate, width + np.sqrt(self._facts.noise_variance * leverage / number))

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        return {
            "present": self._present.export(),
            "earlier": [bucket.export() for bucket in self._earlier],
            "firsts": np.array(self._firsts, dtype=np.int64),
            "tests": self._tests,
        }

    def load(self, state: states.Reader, epoch: EpochSeen, under_way: Sequence[ReplaySeen], *, rounds: int) -> None:
        """Inverse of `export`."""
        size, laws = len(epoch.laws[0]) * _MOST_LAWS, len(epoch.laws)
        largest = 1.0 + max(0.0 if b is None else float(np.abs(b).max()) for b in epoch.baselines)
        self._firsts = state.array("firsts", np.int64, (laws,)).tolist()
        fine = all(a <= b for a, b in itertools.pairwise([0, *self._firsts, rounds]))
        states.check(fine, "first rounds of blocks")
        self._tests = state.integer("tests", high=FARTHEST)
        self._present.load(state.reader("present"), rounds=rounds, largest=largest)
        self._earlier = [Bucket.load(item, size=size, largest=largest) for item in state.readers("earlier")]
        states.check(len(self._earlier) == laws - 1, "residuals of blocks")
        present = self._present.played_since(0)
        for told, part in zip([*self._earlier, present], epoch.blocks, strict=True):
            _check_like(told, part)
        states.check(present.totals[0].sum() == self._present.played_since(self._firsts[-1]).totals[0].sum(), "gaps")
        for item in under_way:
            told = self._present.played_since(item.first_round)
            states.check(told.totals[0].sum() <= item.sums.told, "residuals of a replay")


def _check_like(told: Bucket, part: Sums) -> None:
    """Refuse residuals that are not those of the epoch's sums: as many of every law."""
    arms, laws = np.divmod(told.arms, _MOST_LAWS)
    inside = (laws < len(part.counts)).all() and (arms < part.sums.shape[1]).all()
    states.check(bool(inside), "residuals of laws")
    counts = np.bincount(laws, weights=told.totals[0], minlength=len(part.counts))
    states.check(bool((counts == part.counts).all()), "residuals of laws")


def _weights(epoch: EpochSeen, law: int, played: Ints) -> Floats:
    """phi(x)' S^-1 phi(a) of every arm x and each arm played, shape (N, played)."""
    return np.asarray(epoch.features @ epoch.factor(law).solve(epoch.features[played].T))


def _leverage(epoch: EpochSeen, law: int) -> Floats:
    """phi(x)' S^-1 phi(x) of every arm, shape (N,)."""
    return np.asarray(np.square(epoch.factor(law).half_solve(epoch.features.T)).sum(axis=0))


def _compare(recent: _Side, reference: _Side) -> Verdict:
    now, then = gaps(recent.estimate), gaps(reference.estimate)
    excess = np.maximum(
        (now - 4.0 * then) / (recent.slack + 4.0 * reference.slack),
        (then - 4.0 * now) / (reference.slack + 4.0 * recent.slack),
    )
    return Verdict(float(excess.max()), 1.0, tuple(int(arm) for arm in np.flatnonzero(excess > 1.0)))


class StreamsAndGaps(Streams):
    """Streams with half of `false_alarm`, gaps with the other half."""

    def __init__(
        self,
        false_alarm: float,
        arms: int,
        generator: np.random.Generator,
        *,
        belief: Belief,
        cells: Callable[[], Ints],
        facts: BlockFacts,
    ) -> None:
        self._gaps = GapWidths(0.5 * false_alarm, facts)
        super().__init__(0.5 * false_alarm, arms, generator, belief=belief, cells=cells)

    def begin(self) -> None:
        """A new epoch begins."""
        super().begin()
        self._gaps.begin()

    def open(self, epoch: EpochSeen, first_round: int) -> None:
        """A law begins."""
        super().open(epoch, first_round)
        self._gaps.open(first_round)

    def see(self, law: int, arm: int, reward: float, value: float, round_: int) -> None:
        """A reward of the epoch and its residual."""
        super().see(law, arm, reward, value, round_)
        self._gaps.see(law, arm, value, round_)

    def verdict(self, epoch: EpochSeen, ended: Sequence[ReplaySeen]) -> Finding | None:
        """What fired."""
        by_ranks = super().verdict(epoch, ended)
        if by_ranks is not None:
            return by_ranks
        by_gaps = self._gaps.verdict(epoch, ended)
        if by_gaps is None:
            return None
        return self._finding(by_gaps.first_round, by_gaps.compared_with, by_gaps.verdict, by_gaps.stream)

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        return {**super().export(), "gaps": self._gaps.export()}

    def load(self, state: states.Reader, epoch: EpochSeen, under_way: Sequence[ReplaySeen], *, rounds: int) -> None:
        """Inverse of `export`."""
        super().load(state, epoch, under_way, rounds=rounds)
        self._gaps.load(state.reader("gaps"), epoch, under_way, rounds=rounds)


def rounds_by_gaps(size: float, thresholds_at: Callable[[int], Thresholds]) -> int:
    """The least horizon T that is at least the rounds needed at horizon T, found from below (they grow with T).

    `thresholds_at` gives what the test would take from the constants of a run of so many rounds.
    """
    horizon = 1
    while horizon <= LATEST:
        needed = _rounds_to_a_test(size, thresholds_at(horizon))
        if needed <= horizon:
            break
        horizon = needed
    return horizon


def _rounds_to_a_test(size: float, thresholds: Thresholds) -> int:
    """Rounds of an epoch until the first test with a threshold below `size` ends."""
    least = LATEST + 1
    for block in range(thresholds.lowest_index + 1, 100):
        before = thresholds.block_size * (2**block - 1)
        if before >= least:
            break
        for index in range(thresholds.lowest_index, block + thresholds.tests_blocks):
            if thresholds.test_threshold(index, block - 1) < size:
                least = min(least, before + thresholds.block_size * 2**index)
    return least
