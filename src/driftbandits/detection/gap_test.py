"""The paper's change test: a replay that ended against the blocks before it, by the gaps that each implies.

symbol    name                                        shape
R_I       recent: estimated reward over a replay      (N,)
R_C(k)    reference: the same over blocks 0..k        (N,)
Delta     gaps: max R - R                             (N,)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from driftbandits import state as states
from driftbandits.detection.detector import TOLD_SHARE, EpochSeen, ReplaySeen
from driftbandits.detection.finding import Finding, Verdict
from driftbandits.types import Floats


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
