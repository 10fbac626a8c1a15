"""How long to wait for a reward, and what a missing one is worth, from the delays in a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from driftbandits.logs.log import Log
from driftbandits.showing import counted
from driftbandits.types import Bools, Floats

PATIENT_SHARE = 0.99  # of the rewards that came, which are to be waited for


@dataclass(frozen=True)
class Waiting:
    """Patience in the log's clock (rounds or seconds) and, where the log says, in seconds; what is missing then.

    missing : mean of the rewards that came later than that; "forget" where none did, or where some never came, of which
        nothing is known: `lost` says how many
    """

    patience: float
    seconds: float | None
    missing: float | Literal["forget"]
    lost: int = 0

    @property
    def words(self) -> str:
        """As sentences."""
        rounds = self.seconds != self.patience
        within = f"{self.patience:,.0f} rounds" if rounds else duration(self.patience)
        long = f" ({duration(self.seconds)})" if rounds and self.seconds is not None else ""
        came = f"{100 * PATIENT_SHARE:g} % of the rewards came within {within}{long}: wait that long."
        if self.lost:
            silent = counted(self.lost, "older reward")
            return f"{came} {silent} never came, and nothing is known of them; say missing=0 if silence is a failure."
        if self.missing == "forget":
            return f"{came} None came later."
        return f"{came} Those that came later were {self.missing:.3g} on average: take that for a missing one."


def duration(seconds: float) -> str:
    """In the unit that suits it.

    >>> duration(3.0), duration(16_637.0), duration(864_000.0)
    ('3 seconds', '4.6 hours', '10 days')
    """
    for unit, size in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.3g} seconds"


def waiting_of(log: Log) -> Waiting | None:
    """What the column `told` says; None without it, or where rewards come at once."""
    if log.told is None:
        return None
    came = ~np.isnan(log.told) & log.known
    delay = (log.told - log.clock)[came]
    patience = float(np.quantile(delay, PATIENT_SHARE, method="inverted_cdf")) if len(delay) else 0.0
    if patience <= 0.0:
        return None
    later = log.reward[came][delay > patience]
    lost = int(np.count_nonzero(~came & (log.clock < log.clock[-1] - patience)))
    return Waiting(
        patience=patience,
        seconds=patience if log.time is not None else _seconds(log, came, log.told[came]),
        missing="forget" if lost or not len(later) else float(f"{later.mean():.4g}"),
        lost=lost,
    )


def _seconds(log: Log, came: Bools, told: Floats) -> float | None:
    """The same share of the delays, by the times of the rounds in which rewards came."""
    if log.seconds is None:
        return None
    row = np.minimum(np.searchsorted(log.round, told), len(log) - 1)
    found = float(np.quantile(log.seconds[row] - log.seconds[came], PATIENT_SHARE, method="inverted_cdf"))
    return found if found > 0.0 else None
