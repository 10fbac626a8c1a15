"""The detector of `CalibratedOPKB`: streams, and in theory mode the paper's test of gaps beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.detection.detector import Found
from driftbandits.detection.gap_widths import GapWidths
from driftbandits.detection.streams import Streams
from driftbandits.policies.blocks.epoch import Epoch, OpenReplay


class StreamsAndGaps(Streams):
    """Streams with half of `false_alarm`, gaps with the other half."""

    def __init__(self, false_alarm: float, arms: int, generator: np.random.Generator, *, holds: bool = False) -> None:
        self.gaps = GapWidths(0.5 * false_alarm)
        super().__init__(0.5 * false_alarm, arms, generator, holds=holds)

    def begin(self) -> None:
        """A new epoch begins."""
        super().begin()
        self.gaps.begin()

    def open(self, epoch: Epoch) -> None:
        """A law begins."""
        super().open(epoch)
        self.gaps.open()

    def see(self, law: int, arm: int, reward: float, value: float, round_: int) -> None:
        """A reward of the epoch and its residual."""
        super().see(law, arm, reward, value, round_)
        self.gaps.see(law, arm, value, round_)

    def verdict(self, epoch: Epoch, ended: Sequence[OpenReplay]) -> Found | None:
        """What fired."""
        return super().verdict(epoch, ended) or self.gaps.verdict(epoch, ended)

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        return {**super().export(), "gaps": self.gaps.export()}

    def load(self, state: states.Reader, epoch: Epoch) -> None:
        """Inverse of `export`."""
        super().load(state, epoch)
        self.gaps.load(state.reader("gaps"), epoch)
