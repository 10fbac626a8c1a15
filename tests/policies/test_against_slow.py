"""ADA-OPKB against a slow second implementation, restart for restart.

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
from sklearn.gaussian_process.kernels import RBF

from driftbandits import OPKB, AdaOPKB, ArmSet, Constants, Variant, information_gain, solve_design
from driftbandits.schedule import draw_schedule
from driftbandits.seeding import stream

LAW_TOLERANCE = 1e-5  # two solves of one problem on two feature maps, each certified to 1e-6 in the objective


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
    late: int = 0
    tests: int = 0
    untested: int = 0
    found: list[Found] = field(default_factory=list)

    def __post_init__(self):
        c, arms = self.constants, len(self.kernel)
        values, vectors = np.linalg.eigh(self.kernel)
        self.features = vectors * np.sqrt(np.maximum(values, 0.0))  # another feature map of the same kernel
        self.regulariser = c.sigma / self.horizon
        self.gamma = information_gain(self.features, horizon=self.horizon, sigma=c.sigma)
        log_term = math.log(8 * self.horizon * math.log2(self.horizon) * arms / c.confidence)
        self.size = math.ceil(c.c3 * self.gamma * log_term)  # E
        self.alpha = c.c4 * c.sigma / log_term
        self.design = solve_design(self.features, regulariser=self.regulariser).probabilities
        self.coins = stream(self.seed, "schedule")
        self.open_rows: dict[int, Row] = {}  # rows of the epoch whose reward has not come
        self.old: set[int] = set()
        self.epoch = -1
        self.new_epoch(0)

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
        good = gap <= 2 * self.alpha * self.gamma / beta
        spread = solve_design(self.features, candidates=good, regulariser=self.regulariser).probabilities
        return (1 - mu) * ((1 - share) * best + share * spread) + mu * self.design

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
            np.testing.assert_allclose(law, self.laws[m], atol=LAW_TOLERANCE, err_msg=f"law {m} at round {number}")
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


def play_both(
    *,
    seed,
    horizon,
    constants,
    variant,
    kind=AdaOPKB,
    switches=4,
    size=9,
    reward_range=(-1.0, 1.0),
    late=False,
    masks=False,
):
    """Play the engine and the slow one side by side, round by round, comparing all the way."""
    arms = ArmSet(np.linspace(0, 1, size)[:, None], kernel=RBF(0.25))
    slow = SlowAdaOPKB(arms.features @ arms.features.T, horizon, constants, variant, seed, watches=kind.watches)
    policy = kind(arms, horizon=horizon, seed=seed, constants=constants, variant=variant, reward_range=reward_range)
    rng = np.random.default_rng(seed)
    means = world(rng, arms, horizon, switches)
    low, high = reward_range
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
            np.testing.assert_allclose(inner, estimate * inner_scale(policy), rtol=1e-7, atol=1e-9)
    slow.before_round(horizon)
    compare_changes(policy, slow)
    assert policy.late == slow.late
    return policy, slow


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
        assert change.statistic == pytest.approx(found.statistic * scale, rel=1e-7)
        assert change.threshold == pytest.approx(found.threshold * scale, rel=1e-9)
        for told, values in ((change.before, found.before), (change.after, found.after)):
            np.testing.assert_allclose(told, (low + high) / 2 + values * scale * (high - low) / 2, rtol=1e-6)


QUICK = {"sigma": 1.0, "confidence": 1e-2, "c1": 0.5, "c4": 0.5}
PAPER = Constants(**QUICK, c0=1.3, c2=0.3, c3=0.015)  # E = 8


def test_paper_variant_agrees_restart_for_restart():
    runs = [
        play_both(seed=seed, horizon=1200, constants=PAPER, variant=Variant.paper())[1] for seed in (5, 7, 10, 11, 12)
    ]
    found = [f for slow in runs for f in slow.found]
    assert len(found) >= 15  # or the agreement says little
    assert sum(slow.tests for slow in runs) > 5 * len(found)
    assert any(f.index == f.block for f in found)  # a whole block, a shortest replay, and what lies between
    assert any(f.index == 0 < f.block for f in found)
    assert any(0 < f.index < f.block for f in found)
    assert any(f.compared_with < f.block - 1 for f in found)
    assert {f.epoch for f in found} >= {0, 1, 2, 3}


def test_published_variant_agrees_restart_for_restart():
    """Replays and comparisons from index 4 on, mean level, the whole block not tested; E = 1."""
    constants = Constants(**QUICK, c0=2.2, c2=0.5, c3=0.002)
    runs = [
        play_both(seed=seed, horizon=1200, constants=constants, variant=Variant.published())[1] for seed in range(4)
    ]
    found = [f for slow in runs for f in slow.found]
    assert len(found) >= 12
    assert {f.index for f in found} >= {4, 5, 6}
    assert all(4 <= f.index < f.block and f.compared_with >= 4 for f in found)
    assert any(f.index != f.compared_with for f in found)  # where the two threshold rules differ


def test_any_variant_in_any_units_agrees_restart_for_restart():
    """Round by round without masks, so half of the rewards take the path of plain numbers, with range and scale."""
    variant = Variant(share=0.3, lowest_index=1, threshold="mean_level", test_block=True)
    constants = Constants(**QUICK, c0=0.9, c2=0.3, c3=0.015, scale=1.7)
    runs = [
        play_both(seed=seed, horizon=1200, constants=constants, variant=variant, reward_range=(-3.0, 1.0))[1]
        for seed in (1, 2, 3)
    ]
    assert sum(len(slow.found) for slow in runs) >= 6


def test_late_missing_and_masked_rounds_agree_restart_for_restart():
    """Rewards late, out of order or never, masks, a reward range and a scale of the theory, all at once."""
    constants = Constants(**QUICK, c0=0.7, c2=0.3, c3=0.015, scale=1.7)
    runs = [
        play_both(
            seed=seed,
            horizon=1200,
            constants=constants,
            variant=Variant.paper(),
            reward_range=(0.0, 10.0),
            late=True,
            masks=True,
        )[1]
        for seed in (4, 6, 8, 12)
    ]
    assert sum(len(slow.found) for slow in runs) >= 8
    assert min(slow.tests for slow in runs) >= 20
    assert min(slow.untested for slow in runs) >= 20  # below 90 % told
    assert sum(slow.late for slow in runs) >= 20  # from closed epochs


def test_opkb_is_the_same_without_replays_and_tests():
    for seed in (0, 1):
        policy, slow = play_both(seed=seed, horizon=800, constants=PAPER, variant=Variant(share=0.7), kind=OPKB)
        assert policy.changes == ()
        assert len(slow.laws) >= 6
