"""The part of the block engine that finds changes: what it must do, and the paper's own.

symbol  name          meaning
I       OpenReplay    rewards told of a replay
C(k)                  blocks 0 to k of the epoch
mu_m    levels.level  the level of index m
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from driftbandits import state as states
from driftbandits.detection.gaps import gap_test
from driftbandits.policies.blocks.epoch import Epoch, OpenReplay
from driftbandits.policies.paper.constants import Levels, Variant
from driftbandits.types import Floats, Verdict

TOLD_SHARE = 0.9  # an interval with a smaller share of its rewards told is not tested


@dataclass(frozen=True)
class Found:
    """A change found: rounds since `first_round` disagree on `arms` with what the epoch had learned before.

    `compared_with` is a block or a law, `stream` says which one fired where there are many; `before` and `after` are
    what is estimated of `arms`.
    """

    first_round: int
    compared_with: int
    verdict: Verdict
    before: Floats
    after: Floats
    stream: str = ""


class Detector(Protocol):
    """What watches for changes."""

    prompt: bool  # whether any reward may make it fire; otherwise it is asked when a replay ends

    @property
    def fired(self) -> bool:
        """Whether a reward has made it fire."""

    def begin(self) -> None:
        """A new epoch begins."""

    def open(self, epoch: Epoch) -> None:
        """The last law of the epoch begins."""

    def see(self, law: int, arm: int, reward: float, value: float, round_: int) -> None:
        """A reward of the epoch, and `value`, the same less the baseline of its law; only if `prompt`."""

    def verdict(self, epoch: Epoch, ended: Sequence[OpenReplay]) -> Found | None:
        """Whether something has changed, now that these replays have ended (or it has fired)."""

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""

    def load(self, state: states.Reader, epoch: Epoch) -> None:
        """Inverse of `export`."""


class GapTest:
    """The paper's test: a replay that ended against the blocks before, by the gaps that each implies."""

    prompt = False
    fired = False

    def __init__(self, variant: Variant, levels: Levels) -> None:
        self._variant = variant
        self._levels = levels

    def begin(self) -> None:
        """Everything it needs is in the epoch."""

    def open(self, epoch: Epoch) -> None:
        """Everything it needs is in the epoch."""

    def see(self, law: int, arm: int, reward: float, value: float, round_: int) -> None:
        """Single rewards do not matter."""

    def verdict(self, epoch: Epoch, ended: Sequence[OpenReplay]) -> Found | None:
        """The clearest disagreement between a replay that just ended and the blocks before, if any."""
        block = len(epoch.laws) - 1
        found: Found | None = None
        for item in ended:
            length = (item.replay.stop - item.replay.start) * self._levels.block_size
            whole = item.replay.index == block
            if (whole and not self._variant.test_block) or item.sums.told < TOLD_SHARE * length:
                continue
            recent = epoch.estimate(item.sums)
            for compared in range(self._variant.lowest_index, block):
                reference = epoch.reference(compared)
                if reference is None:
                    continue
                threshold = self._variant.test_threshold(self._levels, item.replay.index, compared)
                verdict = gap_test(recent, reference, threshold)
                if verdict.changed and (found is None or verdict.excess > found.verdict.excess):
                    arms = list(verdict.arms)
                    found = Found(item.first_round, compared, verdict, reference[arms], recent[arms])
        return found

    def export(self) -> dict[str, Any]:
        """Nothing is stored."""
        return {}

    def load(self, state: states.Reader, epoch: Epoch) -> None:
        """Nothing is stored."""
