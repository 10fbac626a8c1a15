"""What a target that is a function sees of a row: all that was known before the decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from driftbandits.types import Bools

if TYPE_CHECKING:
    from driftbandits.logs.log import Log


@dataclass(frozen=True, slots=True)
class Row:
    """A row before its decision: neither the arm nor the reward is in it.

    `allowed` is None where every arm was offered, `time` where the log has rounds, `segment` where it has none.
    """

    place: int
    round: int
    time: float | None
    segment: str | None
    allowed: Bools | None
    names: tuple[str, ...]

    @property
    def offered(self) -> tuple[str, ...]:
        """Names of the arms that could be chosen."""
        if self.allowed is None:
            return self.names
        return tuple(self.names[arm] for arm in np.flatnonzero(self.allowed))


def row_of(log: Log, place: int) -> Row:
    """Row number `place` of a log."""
    return Row(
        place=place,
        round=int(log.round[place]),
        time=None if log.time is None else float(log.time[place]),
        segment=None if log.segment is None else log.segment_names[log.segment[place]],
        allowed=None if log.allowed is None else log.allowed[place],
        names=log.names,
    )
