"""The paper's change test with widths instead of constants, for theory mode.

Fires if for some arm the gaps of a replay I and of the blocks C(k) before it differ by more than a factor of 4 and what
either may be wrong by: Delta_I - 4 Delta_C > H_I + 4 H_C, or the same with I and C exchanged.

symbol   formula
h        sqrt(2 V log(3 / d) / n) + 3 b log(3 / d) / n + sqrt(s^2 lev / n): empirical Bernstein, and the ridge's bias
V, b     variance and range of one round's residual IPS value of the arm; lev its largest leverage, b = 4 lev
H(x)     h(x) + max h(x') over the arms x' that may be best
d        share of `false_alarm`: 6 / (pi k)^2 for the k-th test of the epoch, over both sides and all arms

The width is that of independent rounds, and the bias that of a function of the size believed: a bound as the theory has
it up to these. Streams keep their exact half of `false_alarm`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from driftbandits import state as states
from driftbandits.detection.detector import TOLD_SHARE, EpochSeen, ReplaySeen
from driftbandits.detection.finding import Finding, Verdict
from driftbandits.detection.gap_test import gaps
from driftbandits.state.plausible import FARTHEST, ROUNDING
from driftbandits.types import Floats, Ints


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
        self._rows: list[tuple[int, int, int, float]] = []  # round, law, arm, residual
        self._firsts: list[int] = []  # first round of every block
        self._tests = 0

    def open(self, first_round: int) -> None:
        """A block begins."""
        self._firsts.append(first_round)

    def see(self, law: int, arm: int, value: float, round_: int) -> None:
        """A residual of the epoch."""
        self._rows.append((round_, law, arm, value))

    def verdict(self, epoch: EpochSeen, ended: Sequence[ReplaySeen]) -> Finding | None:
        """The clearest disagreement, if any."""
        found: Finding | None = None
        for item in ended:
            block = item.block
            length = (item.replay.stop - item.replay.start) * self._facts.block_size
            if not block or item.sums.told < TOLD_SHARE * length:
                continue
            self._tests += 1
            d = self._false_alarm * 6.0 / (math.pi * self._tests) ** 2 / (2.0 * len(epoch.laws[0]) * block)
            recent = self._side(epoch, epoch.estimate(item.sums), self._between(item.first_round, item.stop_round), d)
            for compared in range(block):
                reference = epoch.reference(compared)
                if reference is None:
                    continue
                verdict = _compare(recent, self._side(epoch, reference, self._before(self._firsts[compared + 1]), d))
                if verdict.changed and (found is None or verdict.excess > found.verdict.excess):
                    arms = list(verdict.arms)
                    stream = f"gaps of a replay of law {item.replay.index}"
                    found = Finding(item.first_round, compared, verdict, reference[arms], recent.estimate[arms], stream)
        return found

    def _since(self, first_round: int) -> Floats:
        return np.array([row for row in self._rows if row[0] >= first_round])

    def _between(self, first_round: int, stop_round: int) -> Floats:
        return np.array([row for row in self._rows if first_round <= row[0] < stop_round])

    def _before(self, first_round: int) -> Floats:
        return np.array([row for row in self._rows if row[0] < first_round])

    def _side(self, epoch: EpochSeen, estimate: Floats, rows: Floats, d: float) -> _Side:
        """Widths of an estimate from these rows."""
        laws, arms, values = rows[:, 1].astype(np.int64), rows[:, 2].astype(np.int64), rows[:, 3]
        size, number = len(estimate), len(rows)
        total, squares, leverage = np.zeros(size), np.zeros(size), np.zeros(size)
        for law in np.unique(laws):
            played, weights = _weights(epoch, int(law), arms[laws == law])
            here = values[laws == law]
            place = np.searchsorted(played, arms[laws == law])
            total += weights @ np.bincount(place, weights=here, minlength=len(played))
            squares += np.square(weights) @ np.bincount(place, weights=np.square(here), minlength=len(played))
            leverage = np.maximum(leverage, _leverage(epoch, int(law)))
        variance = np.maximum(squares / number - np.square(total / number), 0.0)
        log_term = math.log(3.0 / d)
        width = np.sqrt(2.0 * variance * log_term / number) + 12.0 * leverage * log_term / number
        return _Side(estimate, width + np.sqrt(self._facts.noise_variance * leverage / number))

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        return {
            "rows": np.array(self._rows, dtype=np.float64).reshape(-1, 4),
            "firsts": np.array(self._firsts, dtype=np.int64),
            "tests": self._tests,
        }

    def load(self, state: states.Reader, epoch: EpochSeen, under_way: Sequence[ReplaySeen], *, rounds: int) -> None:
        """Inverse of `export`."""
        rows = state.array("rows", np.float64, (None, 4))
        whole = rows[:, :3]
        inside = (whole[:, 1] < len(epoch.laws)) & (whole[:, 2] < len(epoch.laws[0])) & (whole >= 0).all(axis=1)
        inside &= (whole[:, 0] < FARTHEST) & (whole == np.floor(whole)).all(axis=1)
        states.check(bool(inside.all()), "residuals")
        self._rows = [(*map(int, row[:3]), float(row[3])) for row in rows.tolist()]  # type: ignore[misc]
        self._firsts = state.array("firsts", np.int64, (len(epoch.laws),)).tolist()
        self._tests = state.integer("tests", high=FARTHEST)
        fine = all(row[0] < rounds for row in self._rows)
        fine = fine and all(len(self._since(item.first_round)) == item.sums.told for item in under_way)
        states.check(fine, "gaps")
        self._check_rows(epoch, whole[:, 0], whole[:, 1], rows[:, 3])

    def _check_rows(self, epoch: EpochSeen, rounds: Floats, laws: Floats, values: Floats) -> None:
        """Refuse residuals that are not those of the epoch's sums: as many of every law and of every block."""
        size = len(epoch.laws)
        states.check(bool((np.diff(self._firsts) >= 0).all()), "first rounds of blocks")
        counts = np.zeros(size)
        for part in epoch.blocks:
            counts[: len(part.counts)] += part.counts
        states.check(bool((np.bincount(laws.astype(np.int64), minlength=size) == counts).all()), "residuals of laws")
        blocks = np.searchsorted(self._firsts, rounds, side="right") - 1
        told = np.array([part.told for part in epoch.blocks])
        states.check(bool((blocks >= 0).all() and (np.bincount(blocks, minlength=size) == told).all()), "residuals")
        largest = 1.0 + max(0.0 if b is None else float(np.abs(b).max()) for b in epoch.baselines)
        states.check(bool((np.abs(values) <= (1.0 + ROUNDING) * largest).all()), "residuals")


def _weights(epoch: EpochSeen, law: int, arms: Ints) -> tuple[Ints, Floats]:
    """Arms played, and phi(x)' S^-1 phi(a) of every arm x and each of them, shape (N, played)."""
    played = np.unique(arms)
    return played, np.asarray(epoch.features @ epoch.factor(law).solve(epoch.features[played].T))


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
