"""How much of the declared range the rewards fill: in one that is far too wide, all arms look alike."""

from __future__ import annotations

import math
from typing import Any

from driftbandits import state as states

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
