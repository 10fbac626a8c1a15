"""Ranks and gaps side by side: the detector of `CalibratedOPKB` in theory mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.detection.detector import EpochSeen, ReplaySeen
from driftbandits.detection.finding import Finding
from driftbandits.detection.gap_widths import BlockFacts, GapWidths
from driftbandits.detection.streams import Belief, Streams
from driftbandits.types import Ints


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
