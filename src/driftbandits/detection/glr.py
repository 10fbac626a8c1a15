"""The generalised likelihood ratio test: do the rewards of one arm have two means, one after the other, or one?

symbol    name           meaning
kl        divergence     of two rewards' distributions with these means
n, s      pulls          rewards of the arm so far, and the first of them, before a split
b         threshold      what the statistic of n rewards may reach by chance

The test asks for the split s that best explains the rewards as two stretches with different means:
max_s s kl(mean of the first s, mean of all) + (n - s) kl(mean of the rest, mean of all).

Which divergence: the Gaussian one for noise known to be R-sub-Gaussian. Any rewards in [-1, 1] are 1-sub-Gaussian, so
R = 1 is safe for them, and the Bernoulli one is sharper than that and as safe.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.errors import StateError
from driftbandits.state.reader import check_sums
from driftbandits.types import Floats, Ints

MOST_SPLITS_PER_ARM = 512  # beyond, every second one is dropped
BERNOULLI_MARGIN = 1e-12  # means are kept this far from 0 and 1

Divergence = Callable[[Floats, float], Floats]


def glr_threshold(rule: str, *, pulls: int, failure_probability: float) -> float:
    """What the statistic of `pulls` rewards must exceed.

    practical   log(n^(3/2) / delta)
    theory      2 T(log(3 n^(3/2) / delta) / 2) + 6 log(1 + log n), with T(x) = x + 4 log(1 + x + sqrt(2 x))

    >>> round(glr_threshold("practical", pulls=100, failure_probability=0.01), 2)
    11.51
    """
    log_term = 1.5 * math.log(pulls) - math.log(failure_probability)
    if rule == "practical":
        return log_term
    x = 0.5 * (math.log(3.0) + log_term)
    return 2.0 * (x + 4.0 * math.log(1.0 + x + math.sqrt(2.0 * x))) + 6.0 * math.log(1.0 + math.log(pulls))


def gaussian_divergence(left: Floats, right: Floats | float, noise: float) -> Floats:
    """kl of normal distributions of standard deviation `noise`: (x - y)^2 / (2 R^2)."""
    return np.asarray(np.square(left - right) / (2.0 * noise * noise))


def bernoulli_divergence(left: Floats, right: Floats | float) -> Floats:
    """kl of Bernoulli distributions with these means on [-1, 1], mapped to [0, 1]."""
    p = np.clip(0.5 * (left + 1.0), BERNOULLI_MARGIN, 1.0 - BERNOULLI_MARGIN)
    q = np.clip(0.5 * (np.asarray(right) + 1.0), BERNOULLI_MARGIN, 1.0 - BERNOULLI_MARGIN)
    return np.asarray(p * np.log(p / q) + (1.0 - p) * np.log((1.0 - p) / (1.0 - q)))


@dataclass(frozen=True, slots=True)
class Split:
    """The split that explains an arm's rewards best."""

    statistic: float
    last_round: int  # of the first stretch
    before: float
    after: float


class History:
    """Rewards of one arm since its restart: running sums, and the rounds, at evenly spaced split points.

    `spacing` is the number of pulls between split points; it doubles whenever there are 512 of them, so memory and the
    time of a test are bounded.

    >>> history = History(spacing=1)
    >>> for ident, reward in enumerate((0.5, 0.5, -0.5, -0.5)):
    ...     history.add(reward, ident)
    >>> history.best_split(lambda left, right: gaussian_divergence(left, right, 0.5))
    Split(statistic=2.0, last_round=1, before=0.5, after=-0.5)
    """

    __slots__ = ("pulls", "rounds", "spacing", "sums", "total")

    def __init__(self, spacing: int) -> None:
        self.pulls = 0
        self.total = 0.0
        self.spacing = spacing
        self.sums: list[float] = []
        self.rounds: list[int] = []

    def add(self, reward: float, ident: int) -> None:
        """Take in the reward of round `ident`."""
        self.pulls += 1
        self.total += reward
        if self.pulls % self.spacing == 0:
            self.sums.append(self.total)
            self.rounds.append(ident)
            if len(self.sums) == MOST_SPLITS_PER_ARM:
                self.spacing *= 2
                self.sums, self.rounds = self.sums[1::2], self.rounds[1::2]

    def best_split(self, divergence: Divergence) -> Split | None:
        """The split with the largest statistic; None where there is nothing to split yet."""
        pulls, total = self.pulls, self.total
        first = np.arange(1, len(self.sums) + 1) * self.spacing
        sums = np.array(self.sums)
        if len(sums) and first[-1] == pulls:
            first, sums = first[:-1], sums[:-1]
        if not len(sums):
            return None
        before, after = sums / first, (total - sums) / (pulls - first)
        statistics = first * divergence(before, total / pulls) + (pulls - first) * divergence(after, total / pulls)
        best = int(np.argmax(statistics))
        return Split(
            statistic=float(statistics[best]),
            last_round=self.rounds[best],
            before=float(before[best]),
            after=float(after[best]),
        )


def carry_histories(histories: Mapping[int, History], target: Ints) -> dict[int, History]:
    """Copies, in which arm a is called target[a]; where that is negative, its history is left out."""
    return {int(target[arm]): copy.deepcopy(history) for arm, history in histories.items() if target[arm] >= 0}


def export_histories(histories: Mapping[int, History]) -> dict[str, Any]:
    """Histories by arm as arrays, for a saved state."""
    arms = sorted(histories)
    kept = [histories[arm] for arm in arms]
    return {
        "arms": np.array(arms, dtype=np.int64),
        "pulls": np.array([h.pulls for h in kept], dtype=np.int64),
        "totals": np.array([h.total for h in kept], dtype=np.float64),
        "spacings": np.array([h.spacing for h in kept], dtype=np.int64),
        "splits": np.array([len(h.sums) for h in kept], dtype=np.int64),
        "split_sums": np.array([value for h in kept for value in h.sums], dtype=np.float64),
        "split_rounds": np.array([value for h in kept for value in h.rounds], dtype=np.int64),
    }


def read_histories(state: states.Reader, *, arms: int, rounds: int) -> dict[int, History]:
    """Inverse of `export_histories` for a policy with so many arms after so many rounds; refuses what cannot be."""
    known = state.array("arms", np.int64, (None,))
    pulls, spacings, splits = (state.array(name, np.int64, known.shape) for name in ("pulls", "spacings", "splits"))
    totals = state.array("totals", np.float64, known.shape)
    sums = state.array("split_sums", np.float64, (None,))
    ends_at = state.array("split_rounds", np.int64, sums.shape)
    if splits.sum() != len(sums) or (splits < 0).any() or (spacings < 1).any():
        raise StateError("state.engine has histories that do not fit together")
    states.check(bool((np.diff(known) > 0).all() and ((known >= 0) & (known < arms)).all()), "arms")
    fitting = (splits == pulls // spacings) & (splits < MOST_SPLITS_PER_ARM)
    states.check(bool((pulls >= 1).all() and fitting.all()), "number of splits")
    states.check(bool(((ends_at >= 0) & (ends_at < rounds)).all()), "rounds of the splits")
    check_sums(np.repeat(pulls, splits).astype(np.float64), sums, "sums of the splits")
    check_sums(pulls.astype(np.float64), totals, "sums of rewards")
    return _cut(known, pulls, totals, spacings, splits, sums, ends_at)


def _cut(
    known: Ints, pulls: Ints, totals: Floats, spacings: Ints, splits: Ints, sums: Floats, ends_at: Ints
) -> dict[int, History]:
    histories: dict[int, History] = {}
    ends = np.cumsum(splits)
    for number, arm in enumerate(known.tolist()):
        history = histories[arm] = History(int(spacings[number]))
        history.pulls, history.total = int(pulls[number]), float(totals[number])
        part = slice(int(ends[number] - splits[number]), int(ends[number]))
        history.sums, history.rounds = sums[part].tolist(), ends_at[part].tolist()
    return histories


def check_same_rewards(histories: Mapping[int, History], counts: Floats, sums: Floats, *, slack: float) -> None:
    """Refuse histories of other rewards than those counted and summed elsewhere, both of shape (N,)."""
    pulls, totals = np.zeros(len(counts)), np.zeros(len(counts))
    for arm, history in histories.items():
        pulls[arm], totals[arm] = history.pulls, history.total
    states.check(bool((pulls == counts).all()), "number of rewards")
    states.check(bool((np.abs(totals - sums) <= slack * (1.0 + pulls)).all()), "sums of rewards")
