"""MASTER's two tests: do the rewards of a block contradict what the base believed?

symbol       name       meaning
I            interval   rounds of a scheduled instance, whichever instance plays
f_t          value      optimistic value of the arm played, before its reward, clipped to [-1, 1]
w_t          width      its width beta sigma
U_t          lowest     least f since the block began
rho_hat(t)              6 (log2 T + 1) log(T / delta) rho(t), with rho(t) = g1 / sqrt(t)

           calibrated                                          theory
Test 1     mean_I y > U + c1 R sqrt(2 log(T/delta) / |I|)       mean_I y >= U + 9 c1 rho_hat(|I|)
Test 2     sum (f - y - 2 c2 w) > R sqrt(2 t log(T/delta))      mean (f - y) >= 3 c2 rho_hat(t)

Everything is on the internal scale [-1, 1] of rewards; the theory's thresholds, which are for [0, 1], are doubled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from driftbandits import state as states
from driftbandits.design.blocks import Replay, read_replay
from driftbandits.state.reader import ROUNDING, told_at_most

LARGEST_WIDTH = 1e150  # beyond all beliefs; squares are still finite
UNDER_WAY = 2**62  # in the place of the first round after what has not ended


@dataclass(frozen=True, slots=True)
class Strength:
    """What the thresholds are made of, for a known horizon T."""

    kind: Literal["calibrated", "theory"]
    c1: float
    c2: float
    noise: float  # R
    log_term: float  # log(T / delta)
    rho_hat: float  # times 1 / sqrt(t); 0 where not needed

    @classmethod
    def at(
        cls,
        horizon: int,
        *,
        kind: Literal["calibrated", "theory"],
        c1: float,
        c2: float,
        noise: float,
        failure_probability: float,
        g1: float,
    ) -> Strength:
        """The strength at `horizon`, where the base loses g1 / sqrt(t) per round."""
        log_term = math.log(horizon / failure_probability)
        rho_hat = 6.0 * (math.log2(horizon) + 1.0) * log_term * g1
        return cls(kind=kind, c1=c1, c2=c2, noise=noise, log_term=log_term, rho_hat=rho_hat)

    def first_threshold(self, told: int) -> float:
        """How far the mean of `told` rewards of an interval may lie above U."""
        if self.kind == "theory":
            return 2.0 * 9.0 * self.c1 * self.rho_hat / math.sqrt(told)
        return self.c1 * self.noise * math.sqrt(2.0 * self.log_term / told)

    def second_threshold(self, told: int) -> float:
        """How far the mean of `told` rewards of the block may lie below what was believed."""
        root = math.sqrt(told)
        if self.kind == "theory":
            return 2.0 * 3.0 * self.c2 * self.rho_hat / root
        return self.noise * math.sqrt(2.0 * self.log_term) / root

    def fires(self, statistic: float, threshold: float) -> bool:
        """Whether a statistic contradicts its threshold."""
        return statistic >= threshold if self.kind == "theory" else statistic > threshold


@dataclass
class TestedInterval:
    """The interval of a scheduled instance, and the rewards told of it.

    One that has ended and waits for rewards has its first round after, and what was the lowest value U by then.
    """

    replay: Replay
    first_round: int
    total: float = 0.0
    told: int = 0
    stop_round: int = UNDER_WAY
    lowest: float = 1.0


@dataclass(frozen=True)
class Alarm:
    """A test that fired: its number, the rounds tested, its statistic and threshold."""

    test: int
    interval: tuple[int, int]
    statistic: float
    threshold: float


class BlockEvidence:
    """What was believed and told of one block: all that the two tests need."""

    def __init__(self, strength: Strength, first_round: int) -> None:
        self.strength = strength
        self.first_round = first_round
        self.stop_round = UNDER_WAY
        self.intervals: list[TestedInterval] = []  # that have not ended
        self.ended: list[TestedInterval] = []  # that wait for rewards
        self.lowest = 1.0  # no value is above
        self.gap = 0.0  # sum of f - y, less 2 c2 w if calibrated
        self.told = 0

    def open(self, replay: Replay, first_round: int) -> None:
        """An interval begins."""
        self.intervals.append(TestedInterval(replay, first_round))

    def close(self, slot: int, now: int) -> list[int]:
        """End the intervals that end at `slot`, before round `now`; gives their orders. `first_test` is to follow."""
        ended = [item for item in self.intervals if item.replay.stop == slot]
        self.intervals = [item for item in self.intervals if item.replay.stop != slot]
        for item in ended:
            item.stop_round, item.lowest = now, self.lowest
        self.ended += ended
        return [item.replay.index for item in ended]

    def is_ripe(self, first_open: int) -> bool:
        """Whether an interval has ended all of whose rewards, those before this round, have come or will not."""
        return any(item.stop_round <= first_open for item in self.ended)

    def believe(self, best: float) -> None:
        """The largest optimistic value of all arms is `best` now."""
        self.lowest = min(self.lowest, max(best, -1.0))

    def learn(self, ident: int, reward: float, value: float, width: float) -> None:
        """The reward of round `ident`, played with this optimistic value and width."""
        self.gap += value - reward - (2.0 * self.strength.c2 * width if self.strength.kind == "calibrated" else 0.0)
        self.told += 1
        for interval in (*self.intervals, *self.ended):
            if interval.first_round <= ident < interval.stop_round:
                interval.total += reward
                interval.told += 1

    def first_test(self, first_open: int) -> Alarm | None:
        """The clearest interval that earned more than the block believed possible.

        Of those that have ended and wait for no reward from round `first_open` on; they are done with then.
        """
        found: Alarm | None = None
        ripe = [item for item in self.ended if item.stop_round <= first_open]
        self.ended = [item for item in self.ended if item.stop_round > first_open]
        for interval in ripe:
            if not interval.told:
                continue
            statistic = interval.total / interval.told - interval.lowest
            threshold = self.strength.first_threshold(interval.told)
            clearer = found is None or statistic - threshold > found.statistic - found.threshold
            if self.strength.fires(statistic, threshold) and clearer:
                found = Alarm(1, (interval.first_round, interval.stop_round), statistic, threshold)
        return found

    def second_test(self, now: int) -> Alarm | None:
        """Whether the block earned less than it believed."""
        if not self.told or self.gap <= 0.0:
            return None
        statistic, threshold = self.gap / self.told, self.strength.second_threshold(self.told)
        if not self.strength.fires(statistic, threshold):
            return None
        return Alarm(2, (self.first_round, min(now, self.stop_round)), statistic, threshold)

    # --- state --------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """Everything but the strength."""
        return {
            "block_start": self.first_round,
            "lowest": self.lowest,
            "gap": self.gap,
            "told": self.told,
            "open": [_export_interval(item) for item in self.intervals],
            "ended": [
                {**_export_interval(item), "stop_round": item.stop_round, "lowest": item.lowest} for item in self.ended
            ],
        }

    def load(self, state: states.Reader, *, order: int, length: int, rounds: int, pending: Any) -> None:
        """Inverse of `export`, for a block of this order after `rounds` rounds; `first_round` is loaded already."""
        self.lowest = state.number("lowest")
        states.check(abs(self.lowest) <= 1.0, "lowest value")
        self.told = state.integer("told", high=max(told_at_most(rounds, pending, since=self.first_round), 0))
        self.gap = state.number("gap")
        states.check(-LARGEST_WIDTH <= self.gap <= 2.0 * self.told + ROUNDING * (1.0 + self.told), "gap")
        self.intervals = [self._read_interval(item, order, length, rounds, pending) for item in state.readers("open")]
        self.ended = []
        for item in state.readers("ended"):
            interval = self._read_interval(item, order, length, rounds, pending)
            stop = self.first_round + interval.replay.stop * length
            interval.stop_round = item.integer("stop_round", low=stop, high=min(stop, rounds))
            interval.lowest = item.number("lowest")
            states.check(self.lowest <= interval.lowest <= 1.0, "lowest value of an interval")
            self.ended.append(interval)

    def _read_interval(self, item: states.Reader, order: int, length: int, rounds: int, pending: Any) -> TestedInterval:
        index, start = item.integer("order", high=order), item.integer("start", high=2**order)
        replay = read_replay([start, start + 2**index, index], order)
        first = self.first_round + start * length
        first_round = item.integer("first_round", low=first, high=min(first, rounds))
        told = item.integer("told", high=max(told_at_most(rounds, pending, since=first_round), 0))
        total = item.number("total")
        states.check(abs(total) <= (1.0 + ROUNDING) * told, "rewards of an interval")
        return TestedInterval(replay, first_round, total, told)


def _export_interval(item: TestedInterval) -> dict[str, Any]:
    return {
        "start": item.replay.start,
        "order": item.replay.index,
        "first_round": item.first_round,
        "total": item.total,
        "told": item.told,
    }
