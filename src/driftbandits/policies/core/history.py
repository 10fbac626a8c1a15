"""What a policy believed over time, thinned: at most 500 moments and 50 arms, whatever its age.

A look is taken just before a reward is learned, every `stride` rewards: the policy stands still then, and most of what
is looked at was computed for the last decision. When there are too many looks, every other one is dropped and the
stride doubles, so a policy of any age has taken 250 in the last half of its life.

More arms are followed than are shown, so that those played most at the end were followed for long.

symbol  name     shape             meaning
V       values   (P, rows, A)      estimate, probability and, in policies that have one, interval of the arms followed
        since    (A,)              number of the look with which each began to be followed
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits.frames import data_frame
from driftbandits.showing import counted
from driftbandits.state.plausible import FARTHEST
from driftbandits.types import Floats, Ints

MOST_POINTS = 500
MOST_ARMS = 50  # shown
FOLLOWED = 80
FIRST_STRIDE = 32  # rewards: a look may cost as much as many rounds
REPLACED_BEYOND = 1.5  # times as often played, an arm takes the place of one that is followed
_WITH_INTERVAL, _WITHOUT = 4, 2  # rows


@dataclass(frozen=True, slots=True)
class Look:
    """What a policy believes at `round`, on the internal scale: rows as in the table above, one column per arm.

    `arms` are those of the columns, if they are not all.
    """

    round: int
    values: Floats
    arms: Ints | None = None

    @classmethod
    def of(
        cls, round_: int, estimate: Any, law: Any, interval: tuple[Floats, Floats] | None, arms: Ints | None = None
    ) -> Look | None:
        """A look; None where what was found are not numbers, one per arm, which `ask` will say."""
        rows = [estimate, law] if interval is None else [estimate, law, *interval]
        try:
            values = np.array(rows, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            return None
        fine = values.ndim == 2 and bool((np.abs(values) < np.finfo(np.float32).max).all())
        return cls(round_, values, arms) if fine else None


@dataclass(frozen=True, eq=False, repr=False)
class History:
    """What a policy believed: one row per moment, one column per arm, in the user's units.

    `rounds` (P,) : rounds asked at each moment, the last is now
    `arms` (A,) : numbers of the arms, by how often they were played; `names` : theirs, or None
    `estimate`, `law` (P, A) : estimated rewards and probabilities, NaN before an arm was followed
    `low`, `high` (P, A) : ends of the 95 % intervals; None in policies that have none
    """

    rounds: Ints
    arms: Ints
    names: tuple[str, ...] | None
    estimate: Floats
    law: Floats
    low: Floats | None
    high: Floats | None

    def __len__(self) -> int:
        return len(self.rounds)

    def __repr__(self) -> str:
        span = f"rounds {self.rounds[0]:,} to {self.rounds[-1]:,}"
        return f"History({counted(len(self), 'moment')}, {span}, {counted(len(self.arms), 'arm')})"

    def to_pandas(self) -> Any:
        """One row per moment and arm: round, arm, name, estimate, low, high, probability."""
        known = ~np.isnan(self.estimate)
        moments, places = np.nonzero(known)
        columns: dict[str, Any] = {"round": self.rounds[moments], "arm": self.arms[places]}
        if self.names is not None:
            columns["name"] = [self.names[place] for place in places]
        columns["estimate"] = self.estimate[known]
        if self.low is not None and self.high is not None:
            columns["low"], columns["high"] = self.low[known], self.high[known]
        return data_frame({**columns, "probability": self.law[known]}, purpose="a history as a table")


class HistoryLog:
    """The looks kept, and after how many more rewards the next is due: `left`, not above 0 when it is.

    >>> log = HistoryLog(2)
    >>> for told in range(10_000):
    ...     if log.left <= 0:
    ...         log.add(Look(told, np.zeros((2, 2))), np.array([told, 0]))
    ...     log.left -= 1
    >>> len(log), log.stride, log.rounds[-1].item()
    (313, 32, 9984)
    """

    def __init__(self, arms: int) -> None:
        self.left = 0
        self.stride = FIRST_STRIDE
        self._size = 0
        self._total = arms
        self.arms: Ints = np.zeros(0, dtype=np.int64)
        self._since: Ints = np.zeros(0, dtype=np.int64)
        self._rounds: Ints = np.zeros(0, dtype=np.int64)
        self._values: npt.NDArray[np.float32] = np.zeros((0, _WITH_INTERVAL, 0), dtype=np.float32)

    def __len__(self) -> int:
        return self._size

    @property
    def rounds(self) -> Ints:
        """Rounds of the looks, shape (P,); a view."""
        return self._rounds[: self._size]

    def add(self, look: Look, plays: Ints) -> None:
        """Keep a look at all arms, or at the `next_arms`; the arms were played so often."""
        self._follow(plays)
        self._make_room(min(len(look.values), self._values.shape[1]))
        self._rounds[self._size] = look.round
        columns = look.values if look.arms is not None else look.values[:, self.arms]
        self._values[self._size] = columns[: self._values.shape[1]]
        self._size += 1
        if self._size == MOST_POINTS:
            self._thin()
        self.left = self.stride

    def next_arms(self, plays: Ints) -> Ints:
        """The arms to follow: all of few, those played most of many; one far behind gives up its place."""
        missing = min(self._total, FOLLOWED) - len(self.arms)
        others, arms = plays.copy(), self.arms
        others[arms] = -1
        if missing:
            arms = np.append(arms, np.sort(np.argsort(-others, kind="stable")[:missing]))
            others[arms] = -1
        else:
            arms = arms.copy()
        for _ in range(len(arms) if self._total > FOLLOWED else 0):
            new, place = int(others.argmax()), int(plays[arms].argmin())
            if others[new] <= REPLACED_BEYOND * plays[arms[place]]:
                break
            arms[place], others[new] = new, -1
        return arms

    def _follow(self, plays: Ints) -> None:
        arms, before = self.next_arms(plays), len(self.arms)
        self._since = np.append(self._since, np.full(len(arms) - before, self._size))
        self._since[:before][arms[:before] != self.arms] = self._size
        self._values = np.pad(self._values, ((0, 0), (0, 0), (0, len(arms) - before)))
        self.arms = arms

    def _make_room(self, rows: int) -> None:
        self._values = self._values[:, :rows]
        if self._size == len(self._rounds):
            more = min(max(16, self._size), MOST_POINTS - self._size)
            self._rounds = np.pad(self._rounds, (0, more))
            self._values = np.pad(self._values, ((0, more), (0, 0), (0, 0)))

    def _thin(self) -> None:
        self._size = MOST_POINTS // 2
        self._rounds[: self._size] = self._rounds[1::2].copy()
        self._values[: self._size] = self._values[1::2].copy()
        self._since //= 2  # of looks 1, 3, 5, ... the first that is not before
        self.stride *= 2

    def looks(self, plays: Ints, now: Look) -> tuple[Ints, Ints, Floats]:
        """Rounds (P,), arms shown (A,) by plays, their values (rows, P, A), NaN where unknown; the last is `now`."""
        if not self._size:  # nothing was told yet
            arms = np.argsort(-plays, kind="stable")[:MOST_ARMS]
            return np.array([now.round]), arms, now.values[:, None, arms]
        places = np.argsort(-plays[self.arms], kind="stable")[:MOST_ARMS]
        kept = self._size - int(now.round == self._rounds[self._size - 1])  # a later look at the same round stands
        rows, arms = min(len(now.values), self._values.shape[1]), self.arms[places]
        values = self._values[:kept, :rows][:, :, places].astype(np.float64)
        values[np.broadcast_to(np.arange(kept)[:, None, None] < self._since[places], values.shape)] = np.nan
        values = np.concatenate([values, now.values[None, :rows, arms]])
        return np.append(self._rounds[:kept], now.round), arms, values.transpose(1, 0, 2)

    def rearranged(self, origins: Ints) -> HistoryLog:
        """The same for other arms: the k-th is what arm `origins[k]` is here, or new where that is -1."""
        fresh = HistoryLog(len(origins))
        number = np.full(self._total, -1)
        number[origins[origins >= 0]] = np.flatnonzero(origins >= 0)
        kept = np.flatnonzero(number[self.arms] >= 0) if len(self.arms) else np.zeros(0, dtype=np.int64)
        fresh.left, fresh.stride, fresh._size = self.left, self.stride, self._size
        fresh.arms, fresh._since = number[self.arms[kept]], self._since[kept]
        fresh._rounds, fresh._values = self._rounds.copy(), self._values[:, :, kept].copy()
        return fresh

    # --- state --------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """What `load` needs."""
        return {
            "left": self.left,
            "stride": self.stride,
            "rounds": self.rounds.copy(),
            "arms": self.arms.copy(),
            "since": self._since.copy(),
            "values": self._values[: self._size].copy(),
        }

    def load(self, state: states.Reader, *, rounds: int) -> None:
        """Inverse of `export`, after `rounds` rounds."""
        self.stride = state.integer("stride", low=FIRST_STRIDE, high=FARTHEST)
        self.left = state.integer("left", low=-FARTHEST, high=self.stride)
        self._rounds = state.array("rounds", np.int64, (None,))
        self._size = size = len(self._rounds)
        self.arms = state.array("arms", np.int64, (None,))
        self._since = state.array("since", np.int64, self.arms.shape)
        self._values = state.array("values", np.float32, (size, None, len(self.arms)))
        laws, rows = self._values[:, 1:2], self._values.shape[1]
        checks = {
            "stride": (self.stride // FIRST_STRIDE).bit_count() == 1 and self.stride % FIRST_STRIDE == 0,
            "moments": size < MOST_POINTS and (np.diff(self._rounds) >= 0).all(),
            "rounds": size == 0 or 0 <= self._rounds[0] <= self._rounds[-1] <= rounds,
            "arms": ((self.arms >= 0) & (self.arms < self._total)).all()
            and len(np.unique(self.arms)) == len(self.arms),
            "number of arms": len(self.arms) <= FOLLOWED,
            "since": ((self._since >= 0) & (self._since <= size)).all(),
            "rows": rows in (_WITH_INTERVAL, _WITHOUT),
            "probabilities": ((laws >= 0.0) & (laws <= 1.0 + 1e-6)).all(),
        }
        for name, fine in checks.items():
            states.check(bool(fine), f"{name} of the history")
