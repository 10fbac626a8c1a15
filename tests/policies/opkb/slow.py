"""A slow second implementation of the block algorithms, and how to play it side by side with the engine.

`SlowAdaOPKB` follows the boxes of the paper line by line: it keeps every round of the epoch with the whole law it was
drawn from, works with kernel matrices alone (appendix I: phi' S^-1 phi = K (D_P K + lambda I)^-1), and re-sums the
definition for every interval and every C(k). It shares with the engine only `draw_schedule` (tested by itself), the
design solver (on another feature map), and the stream its coins come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from driftbandits import Constants, Variant, information_gain, solve_design
from driftbandits._util.seeding import stream
from driftbandits.design.blocks import draw_schedule


@dataclass
class Row:
    """One counted round of the epoch: its place on the epoch's clock, its number, what was played and what came."""

    clock: int
    number: int
    law: np.ndarray
    arm: int
    reward: float | None = None


@dataclass
class Found:
    number: int
    epoch: int
    block: int
    interval: tuple[int, int]
    compared_with: int
    statistic: float
    threshold: float
    arms: tuple[int, ...]
    before: np.ndarray
    after: np.ndarray
    index: int


@dataclass
class SlowAdaOPKB:
    kernel: np.ndarray
    horizon: int
    constants: Constants
    variant: Variant
    seed: int
    watches: bool = True
    law_tolerance: float = 1e-5  # two solves of one problem on two feature maps, each certified to 1e-6
    tolerance: float = 1e-7  # relative, of estimates
    late: int = 0
    tests: int = 0
    untested: int = 0
    found: list[Found] = field(default_factory=list)

    def __post_init__(self):
        c, arms = self.constants, len(self.kernel)
        self.regulariser = c.sigma / self.horizon
        self.use(self.kernel)
        self.gamma = information_gain(self.features, horizon=self.horizon, sigma=c.sigma)
        log_term = math.log(8 * self.horizon * math.log2(self.horizon) * arms / c.failure_probability)
        self.size = math.ceil(c.c3 * self.gamma * log_term)  # E
        self.alpha = c.c4 * c.sigma / log_term
        self.coins = stream(self.seed, "schedule")
        self.open_rows: dict[int, Row] = {}  # rows of the epoch whose reward has not come
        self.old: set[int] = set()
        self.epoch = -1
        self.new_epoch(0)

    # Features: everything is judged by those of the present block.

    def kernel_of(self, j):
        """Kernel matrix of phi^(j)."""
        return self.kernel

    def use(self, kernel):
        self.kernel = kernel
        values, vectors = np.linalg.eigh(kernel)
        self.features = vectors * np.sqrt(np.maximum(values, 0.0))  # another feature map than the engine's
        self.design = solve_design(self.features, regulariser=self.regulariser).probabilities  # pi(X)

    # The outer loops of the box: epochs and blocks.

    def new_epoch(self, number):
        self.epoch += 1
        self.old |= set(self.open_rows)
        self.open_rows = {}
        self.epoch_start = number
        self.rows: list[Row] = []
        self.clock = 0
        self.laws: list[np.ndarray] = []  # own P^(j)
        self.seen: dict[int, np.ndarray] = {}  # the engine's, as declared
        self.block_ends: list[int] = []
        self.turned_at = 0
        self.new_block()

    def new_block(self):
        j = len(self.laws)
        kernel = self.kernel_of(j)
        if kernel is not self.kernel:
            self.use(kernel)
        self.laws.append(self.design if j == 0 else self.op(j))
        start, length = self.clock, 2**j * self.size
        self.block_ends.append(start + length)
        drawn = draw_schedule(j, self.coins, lowest=self.variant.lowest_index).replays if self.watches else ()
        self.schedule = [(r.index, start + r.start * self.size, start + r.stop * self.size) for r in drawn]
        self.schedule = self.schedule or [(j, start, start + length)]

    def op(self, j):
        """Algorithm OP and the mixture with pi(X), on the estimate from C(j - 1)."""
        c, share = self.constants, self.variant.share
        estimate, _ = self.mean_estimate(0, self.clock)
        gap = estimate.max() - estimate
        beta, mu = c.c2 * self.gamma * 2 ** (j / 2), min(1.0, c.c1 * 2 ** (-j / 2))
        # OP's objective is gap'P - (2 / beta) log det S(P); the solver's is costs'P - log det S(P).
        best = solve_design(self.features, costs=gap * beta / 2, regulariser=self.regulariser).probabilities
        good = gap <= 2 * self.alpha * self.good_gain() / beta
        spread = solve_design(self.features, candidates=good, regulariser=self.regulariser).probabilities
        return (1 - mu) * ((1 - share) * best + share * spread) + mu * self.design

    def good_gain(self):
        """gamma of line 2 of OP: of phi^(j), or of phi^(0) as the authors have it."""
        if self.variant.good_arms_by == "initial_gain":
            return self.gamma
        return information_gain(self.features, horizon=self.horizon, sigma=self.constants.sigma)

    # The IPS estimate by its definition.

    def mean_estimate(self, start, stop):
        """R_I for the clock interval [start, stop), and how many of its rewards are in."""
        rows = [row for row in self.rows if start <= row.clock < stop and row.reward is not None]
        total = np.zeros(len(self.kernel))
        columns: dict[int, np.ndarray] = {}
        for row in rows:
            if id(row.law) not in columns:
                gram = row.law[:, None] * self.kernel + self.regulariser * np.eye(len(self.kernel))
                columns[id(row.law)] = self.kernel @ np.linalg.inv(gram)
            total += columns[id(row.law)][:, row.arm] * row.reward
        return total / max(len(rows), 1), len(rows)

    # The inner loop: before a round, at a round, when a reward comes.

    def before_round(self, number):
        """What the box does at the end of the round before: test, then restart or go on."""
        if self.clock == self.turned_at:
            return
        self.turned_at = self.clock
        change = self.test(number) if self.watches else None
        if change is not None:
            self.found.append(change)
        if number == self.horizon:
            return
        if change is not None:
            self.new_epoch(number)
        elif self.clock == self.block_ends[-1]:
            self.new_block()

    def index(self):
        """m_t, the smallest index of the scheduled intervals that hold t."""
        return min(m for m, start, stop in self.schedule if start <= self.clock < stop)

    def play(self, number, law, arm):
        m = self.index()
        if m not in self.seen:
            place = f"law {m} at round {number}"
            np.testing.assert_allclose(law, self.laws[m], atol=self.law_tolerance, err_msg=place)
            self.seen[m] = law
        assert (law == self.seen[m]).all(), f"round {number} does not follow law {m}"
        row = Row(self.clock, number, self.seen[m], arm)
        self.rows.append(row)
        self.open_rows[number] = row
        self.clock += 1

    def tell(self, number, reward):
        if number in self.open_rows:
            self.open_rows.pop(number).reward = reward
        elif number in self.old:
            self.late += 1

    def test(self, number):
        c, j, fired = self.constants, len(self.laws) - 1, []
        mu = [c.c1 * 2 ** (-m / 2) for m in range(j + 1)]
        for m, start, stop in self.schedule:
            if stop != self.clock or (m == j and not self.variant.test_block):
                continue
            after, told = self.mean_estimate(start, stop)
            if told < 0.9 * (stop - start):
                self.untested += 1
                continue
            now = after.max() - after
            for k in range(self.variant.lowest_index, j):
                before, any_told = self.mean_estimate(0, self.block_ends[k])
                if not any_told:
                    continue
                self.tests += 1
                then = before.max() - before
                level = (mu[m] + mu[k]) / 2 if self.variant.threshold == "mean_level" else mu[min(m, k)]
                threshold = 4 * c.c0 * level
                moved = [
                    x for x in range(len(now)) if now[x] - 4 * then[x] > threshold or then[x] - 4 * now[x] > threshold
                ]
                if moved:
                    largest = max(max(now - 4 * then), max(then - 4 * now))
                    place = (self.number_of(start), number)
                    arms = tuple(moved)
                    fired.append(
                        Found(number, self.epoch, j, place, k, largest, threshold, arms, before[moved], after[moved], m)
                    )
        # The paper restarts if any comparison fires; the record is of the clearest one.
        return max(fired, key=lambda f: f.statistic / f.threshold, default=None)

    def number_of(self, clock):
        """Round after the last counted one before `clock`: where an interval that begins there begins."""
        return self.epoch_start if clock == 0 else self.rows[clock - 1].number + 1


def world(rng, arms, horizon, switches):
    """Means that change sign or are drawn anew at every switch, with |y| <= 1."""
    draws = [arms.features @ rng.standard_normal(arms.rank) for _ in range(switches + 1)]
    draws = [(-1) ** s * draw / np.abs(draw).max() * 0.9 for s, draw in enumerate(draws)]
    starts = np.linspace(0, horizon, switches + 1, endpoint=False).astype(int)
    return lambda t: draws[np.searchsorted(starts, t, side="right") - 1]


def side_by_side(policy, slow, means, rng, *, late=False, masks=False):
    """Play the engine and the slow one, round by round, comparing all the way."""
    horizon, size = policy.horizon, len(policy.arms)
    low, high = policy.reward_range
    due: dict[int, list[tuple[int, float]]] = {}
    for t in range(horizon):
        slow.before_round(t)
        law = np.array(policy.law())
        mask = np.ones(size, dtype=bool)
        if masks and rng.random() < 0.15:
            mask[rng.integers(size, size=2)] = False
        choice = policy.ask(allowed=mask if masks else None)
        assert choice.id == t
        if (law[~mask] == 0).all():
            assert choice.probability == law[choice.arm]
            slow.play(t, law, choice.arm)
        else:
            assert choice.probability == pytest.approx(law[choice.arm] / law[mask].sum())
        inside = float(np.clip(means(t)[choice.arm] + rng.uniform(-0.1, 0.1), -1, 1))
        if late and rng.random() < 0.02:
            policy.forget(t)
        else:
            delay = int(rng.exponential(2.0) ** 2) if late else 0
            due.setdefault(t + delay, []).append((t, inside))
        told = due.pop(t, [])
        told = [told[k] for k in rng.permutation(len(told))] if len(told) > 1 else told
        units = [low + (y + 1) / 2 * (high - low) for _, y in told]
        if len(told) == 1 and t % 2:
            policy.tell(told[0][0], units[0])  # plain numbers take their own path
        elif told:
            policy.tell([n for n, _ in told], units)
        for number, y in told:
            slow.tell(number, y / inner_scale(policy))
        if t % 97 == 0 and policy.pending == 0:
            slow.before_round(t + 1)
            estimate, _ = slow.mean_estimate(0, slow.clock)
            inner = (policy.estimate() - (low + high) / 2) / ((high - low) / 2)
            np.testing.assert_allclose(
                inner, estimate * inner_scale(policy), rtol=slow.tolerance, atol=slow.tolerance / 100
            )
    slow.before_round(horizon)
    compare_changes(policy, slow)
    assert policy.late == slow.late


def inner_scale(policy):
    """`Constants.scale` is in the user's units; None stands for half the reward range."""
    low, high = policy.reward_range
    return 1.0 if policy.constants.scale is None else policy.constants.scale / ((high - low) / 2)


def compare_changes(policy, slow):
    low, high = policy.reward_range
    scale = inner_scale(policy)
    assert [change.round for change in policy.changes] == [found.number for found in slow.found]
    for change, found in zip(policy.changes, slow.found, strict=True):
        assert (change.epoch, change.block, change.interval) == (found.epoch, found.block, found.interval)
        assert (change.compared_with, change.arms) == (found.compared_with, found.arms)
        assert change.statistic == pytest.approx(found.statistic * scale, rel=slow.tolerance)
        assert change.threshold == pytest.approx(found.threshold * scale, rel=1e-9)
        for told, values in ((change.before, found.before), (change.after, found.after)):
            units = (low + high) / 2 + values * scale * (high - low) / 2
            np.testing.assert_allclose(told, units, rtol=10 * slow.tolerance)
