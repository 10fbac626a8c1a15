"""An epoch of ADA-OPKB with the constants of the theory, billions of rounds long, in a second.

The constants of the proofs need such lengths: thresholds fall below the largest gap after some 2^11 first blocks. All
that the algorithm looks at are sums of rewards per law and arm. Under one law and steady means these have a known
distribution: how often each arm is drawn is multinomial, and a sum of rewards of -1 and 1 is a shifted binomial. So
whole stretches are drawn at once, and every law, replay and estimate is that of the algorithm.

symbol     name                        meaning
tau_i      the epoch's beginning       round 0 here
R_I        Interval.truth              mean of r_t over the interval, (N,)
V          Interval.variation          of the means from tau_i to the end of the interval
           Interval.leverage           mean of ||phi(x)||^2 in S(P_t)^-1, (N,)
           Interval.length             mean of ||phi(x)|| in S(P_t)^-1, (N,)
xi_m       SampledEpoch.xi(m)          mu_m / (4 gamma)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from driftbandits import Constants, information_gain, solve_design
from driftbandits.design.blocks import Sums, draw_schedule, ips_estimate, law_factor, merge
from driftbandits.detection.gaps import gap_test, gaps


@dataclass(frozen=True)
class Interval:
    """What is estimated of an interval, and what is true of it; `index` is the largest law played in it."""

    index: int
    rounds: int
    estimate: np.ndarray
    truth: np.ndarray
    variation: float
    leverage: np.ndarray
    length: np.ndarray
    slots: tuple[int, int] = (0, 0)  # of its block

    @property
    def estimated_gaps(self):
        return gaps(self.estimate)

    @property
    def gaps(self):
        return gaps(self.truth)


class SampledEpoch:
    """Blocks are played one after the other by `play_block`; nothing restarts, so that every test can be looked at."""

    def __init__(self, features, means, *, horizon, seed, sigma=1.0, failure_probability=0.05):
        self.features, self.means, self.horizon = features, np.asarray(means), horizon
        self.regulariser = sigma / horizon
        self.gamma = information_gain(features, horizon=horizon, sigma=sigma)
        self.constants = Constants.theory(
            bound=0.5, noise=0.5, sigma=sigma, failure_probability=failure_probability
        )  # rewards are scaled already
        self.levels = self.constants.levels(gamma=self.gamma, horizon=horizon, arms=len(features))
        self.log_term = math.log(8 * horizon * math.log2(horizon) * len(features) / failure_probability)
        self.design = solve_design(features, regulariser=self.regulariser).probabilities
        self.laws: list[np.ndarray] = []
        self.factors: list = []
        self.blocks: list[Sums] = []
        self.so_far: list[Interval] = []  # C(0), C(1), ...
        self.variation = 0.0
        self._coins, self._draws = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
        self._leverages: list[np.ndarray] = []

    def xi(self, index):
        return self.levels.level(index) / (4 * self.gamma)

    def next_law(self):
        """P^(j) by the box of ADA-OPKB, from the sums of the blocks so far."""
        j, levels = len(self.laws), self.levels
        if j == 0:
            return self.design
        gap = gaps(self.estimate(merge(self.blocks)))
        best = solve_design(self.features, levels.beta(j) / 2 * gap, regulariser=self.regulariser).probabilities
        good = gap <= 2 * levels.alpha * self.gamma / levels.beta(j)
        spread = solve_design(self.features, candidates=good, regulariser=self.regulariser).probabilities
        mixed = (1 - levels.mixing(j)) * (best + spread) / 2 + levels.mixing(j) * self.design
        return mixed / mixed.sum()

    def estimate(self, sums):
        return ips_estimate(self.features, self.factors, sums)

    def add_law(self, law):
        self.laws.append(law)
        self.factors.append(law_factor(self.features, law, self.regulariser))
        self._leverages.append(np.square(self.factors[-1].half_solve(self.features.T)).sum(axis=0))

    def play_block(self, changes: Mapping[int, np.ndarray] | None = None) -> list[Interval]:
        """Play block j; `changes` gives new means from a slot of the block on. The replays, the block itself last."""
        self.add_law(self.next_law())
        j, size, changes = len(self.laws) - 1, self.levels.block_size, changes or {}
        schedule = draw_schedule(j, self._coins)
        edges = np.union1d(schedule.edges, list(changes)).astype(np.int64)
        indices = schedule.indices[np.searchsorted(schedule.edges, edges[:-1], side="right") - 1]
        rounds = np.diff(edges) * size
        means, variations = self._means_at(edges[:-1], changes)

        drawn = self._draws.multinomial(rounds, np.array(self.laws)[indices])
        wins = self._draws.binomial(drawn, (1 + means) / 2)
        by_law = np.zeros((len(rounds) + 1, j + 1, len(self.features)))
        by_law[np.arange(1, len(rounds) + 1), indices] = 2.0 * wins - drawn
        counts = np.zeros((len(rounds) + 1, j + 1), dtype=np.int64)
        counts[np.arange(1, len(rounds) + 1), indices] = rounds
        leverages = np.array(self._leverages)[indices]
        columns = [means, leverages, np.sqrt(leverages)]
        totals = [np.vstack([np.zeros(means.shape[1]), (rounds[:, None] * c).cumsum(axis=0)]) for c in columns]
        by_law, counts = by_law.cumsum(axis=0), counts.cumsum(axis=0)

        def interval(replay):
            first, last = np.searchsorted(edges, [replay.start, replay.stop])
            sums = Sums(by_law[last] - by_law[first], counts[last] - counts[first])
            truth, leverage, length = ((total[last] - total[first]) / sums.told for total in totals)
            slots = (replay.start, replay.stop)
            return Interval(
                replay.index, sums.told, self.estimate(sums), truth, variations[last - 1], leverage, length, slots
            )

        self.blocks.append(Sums(by_law[-1], counts[-1]))
        replays = [interval(replay) for replay in sorted(schedule.replays, key=lambda replay: replay.index)]
        self._add_so_far(replays[-1])
        return replays

    def _means_at(self, slots, changes):
        """Means of the stretches that begin at these slots, and the variation since the epoch began."""
        means, variations = [], []
        for slot in slots.tolist():
            if slot in changes:
                self.variation += float(np.abs(changes[slot] - self.means).max())
                self.means = np.asarray(changes[slot])
            means.append(self.means)
            variations.append(self.variation)
        return np.array(means), variations

    def _add_so_far(self, block):
        """C(j) from C(j - 1) and B(j)."""
        merged = merge(self.blocks)
        estimate = self.estimate(merged)
        if not self.so_far:
            self.so_far.append(block)
            return
        old = self.so_far[-1]
        share = block.rounds / merged.told
        truth, leverage, length = (
            share * getattr(block, name) + (1 - share) * getattr(old, name) for name in ("truth", "leverage", "length")
        )
        self.so_far.append(Interval(block.index, merged.told, estimate, truth, block.variation, leverage, length))

    # --- what the lemmas are about --------------------------------------------------------------------------------

    def event_1(self, interval):
        """The bound of Event 1 on |estimate - truth|, (N,)."""
        xi = self.xi(interval.index)
        return (
            xi * interval.leverage
            + self.log_term / (xi * interval.rounds)
            + math.sqrt(self.regulariser) * interval.length
        )

    def holds(self, interval):
        return bool((np.abs(interval.estimate - interval.truth) <= self.event_1(interval)).all())

    def fires(self, replay, block, *, strictness=1.0):
        """Whether the test of a replay in `block` restarts, against any C(k), k < block, with thresholds divided."""
        thresholds = (self.threshold(min(replay.index, k)) / strictness for k in range(block))
        return any(
            gap_test(replay.estimate, self.so_far[k].estimate, threshold).changed
            for k, threshold in enumerate(thresholds)
        )

    def threshold(self, index):
        return 4 * self.levels.c0 * self.levels.level(index)

    def level_of(self, slots):
        """mu_I for an interval of so many first blocks."""
        return self.levels.c1 * slots**-0.5


# Three arms in the plane, two of them opposite, so that a reward function of norm 1 can turn a gap of 0 into one of 2.
ANGLES = np.radians([0.0, 80.0, 180.0])
FEATURES = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
FIRST = FEATURES @ np.array([0.95, 0.1])  # the first arm is best
HORIZON = 2**32


def new_epoch(seed, *, means=FIRST, horizon=HORIZON):
    return SampledEpoch(FEATURES, means, horizon=horizon, seed=seed)
