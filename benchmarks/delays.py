"""A shop whose sales are known minutes to a day later: what AutoBandit earns, as a share of the best fixed price.

Fifteen prices, fourteen days of 10,000 visitors: more by day than by night, fewer at the weekend, two days of promotion
in which more visitors buy, a cheaper competitor from the ninth day on, prices that are taken out and come back, and a
restart (saved and loaded) every third day.
A sale is told 10 minutes to 24 hours later (log-uniform), one in twenty never. Everything earned is counted as its
expectation, so luck of single sales does not count.

Who plays: AutoBandit with a patience of 24 or 2 hours (by a clock, `at` and `expire`); with nothing set, where "no
sale" is told as 0 after 24 hours; Thompson sampling of chances that counts a decision as a failure until its sale
comes; and Uniform. Further delays: sales of higher prices come later; sales of some arms are four times as slow; and
delays that become six times as long after a week.

    python -m benchmarks delays            evaluation seeds, 4 of each
    python -m benchmarks delays --quick    1 seed, 4 days
"""

from __future__ import annotations

import collections
import copy
import functools
import heapq
import math
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import numpy as np

import driftbandits as db
from driftbandits._util.seeding import stream
from driftbandits.experiments.seeds import EVALUATION
from driftbandits.types import Bools, Floats

HOUR, DAY = 3_600.0, 86_400.0
PRICES = np.arange(5.0, 20.0)
VISITORS = 10_000  # a day
UNTOLD = 0.05
KINDS = ("log-uniform", "slower for higher prices", "slower for every third price", "slower after a week")
WHO = ("patience 24 h", "patience 2 h", "zeros after 24 h", "Thompson", "Uniform")


@dataclass
class Shop:
    """Chances of a sale of every price at a time, which prices are offered, and delays of sales."""

    kind: str
    seed: int
    days: float
    rng: np.random.Generator = field(init=False)
    steep: float = field(init=False)
    middle: float = field(init=False)

    def __post_init__(self) -> None:
        self.rng = stream(self.seed, "delays")
        self.steep, self.middle = float(self.rng.uniform(0.25, 0.6)), float(self.rng.uniform(9.0, 15.0))

    def chances(self, now: float) -> Floats:
        promotion = 1.5 if 5.0 <= now / DAY < 7.0 else 1.0
        night = 0.8 if now % DAY < 7 * HOUR else 1.0
        middle = self.middle if now < 8.0 * DAY else 0.7 * self.middle
        return np.asarray(0.06 * promotion * night / (1.0 + np.exp(self.steep * (PRICES - middle))))

    def offered(self, now: float) -> Bools:
        """Two prices are taken out on every fourth day; never those in the middle."""
        mask = np.ones(len(PRICES), dtype=np.bool_)
        if int(now / DAY) % 4 == 3:
            mask[[1, 13]] = False
        return mask

    def arrivals(self) -> Floats:
        """Times of the visitors, in seconds."""
        hours = np.arange(0.0, 24.0 * self.days)
        busy = 1.0 + 0.8 * np.sin(2.0 * np.pi * (hours % 24.0 - 9.0) / 24.0)
        busy *= np.where((hours // 24.0) % 7.0 >= 5.0, 0.7, 1.0)
        counts = self.rng.poisson(VISITORS / 24.0 * busy)
        times = [HOUR * (hour + np.sort(self.rng.random(count))) for hour, count in zip(hours, counts, strict=True)]
        return np.concatenate(times)

    def delay(self, arm: int, now: float, uniform: float) -> float:
        slow = 1.0
        if self.kind == KINDS[1]:
            slow = float(PRICES[arm]) / 10.0
        elif self.kind == KINDS[2]:
            slow = 4.0 if arm % 3 == 0 else 1.0
        elif self.kind == KINDS[3]:
            slow = 1.0 if now < 7 * DAY else 6.0
        shortest, longest = (600.0, DAY) if self.kind == KINDS[0] else (600.0, DAY / 6.0)
        return slow * shortest * math.pow(longest / shortest, uniform)


class Thompson:
    """Gamma samples of chances: every decision is a failure until its sale comes."""

    def __init__(self, seed: int) -> None:
        self._rng = stream(seed, "thompson")
        self._won, self._shown = np.ones(len(PRICES)), np.full(len(PRICES), 40.0)

    def ask(self, mask: Bools) -> int:
        arm = int(np.where(mask, self._rng.gamma(self._won) / self._shown * PRICES, -1.0).argmax())
        self._shown[arm] += 1.0
        return arm

    def tell(self, arm: int) -> None:
        self._won[arm] += 1.0


def _policy(who: str, seed: int) -> db.Policy:
    arms = db.ArmSet(PRICES[:, None], names=[f"{price:.0f} EUR" for price in PRICES])
    if who == "Uniform":
        return db.Uniform(arms, seed=seed, reward_range=(0.0, 20.0))
    if who == "zeros after 24 h":
        return db.AutoBandit(arms, seed=seed, reward_range=(0.0, 20.0))
    return db.AutoBandit(arms, seed=seed, reward_range=(0.0, 20.0), missing=0.0)


def play(kind: str, who: str, seed: int, *, days: float) -> tuple[float, float]:
    """What is earned over what the best fixed price earns, and the largest relative error of a played arm's belief."""
    warnings.simplefilter("ignore")
    shop = Shop(kind, seed, days)
    thompson = Thompson(seed) if who == "Thompson" else None
    policy = None if thompson is not None else _policy(who, seed)
    patience = {"patience 24 h": DAY, "patience 2 h": 2 * HOUR}.get(who)
    due: list[tuple[float, int, float]] = []
    open_: collections.deque[tuple[float, int]] = collections.deque()
    asked: list[tuple[int, float]] = []  # the arm and what a sale pays, of every decision
    earned, fixed, restart = 0.0, np.zeros(len(PRICES)), 3.0 * DAY
    for now in shop.arrivals().tolist():
        chances, mask = shop.chances(now), shop.offered(now)
        while due and due[0][0] <= now:
            _, ident, reward = heapq.heappop(due)
            if thompson is not None:
                thompson.tell(asked[ident][0])
            elif policy is not None:
                if patience is not None:
                    policy.at(now, patience=patience)
                policy.tell(ident, reward)
        if policy is not None and patience is not None:
            policy.at(now, patience=patience)
            gone = []
            while open_ and open_[0][0] <= now - patience:
                gone.append(open_.popleft()[1])
            if gone:
                policy.expire(gone)
        if policy is not None and now >= restart:
            policy, restart = copy.deepcopy(policy), restart + 3.0 * DAY  # through its state
        if thompson is not None:
            arm, ident = thompson.ask(mask), len(asked)
        elif policy is not None:
            choice = policy.ask(allowed=None if mask.all() else mask)
            arm, ident = choice.arm, choice.id
        asked.append((arm, now))
        luck, uniform = shop.rng.random(2).tolist()
        if luck < chances[arm]:
            told = luck >= UNTOLD * chances[arm]
            wait = shop.delay(arm, now, uniform)
            if told:
                heapq.heappush(due, (now + wait, ident, float(PRICES[arm])))
            elif who == "zeros after 24 h":
                heapq.heappush(due, (now + DAY, ident, 0.0))
        elif who in ("zeros after 24 h", "Uniform"):
            heapq.heappush(due, (now + DAY, ident, 0.0))
        if patience is not None:
            open_.append((now, ident))
        worth = chances * PRICES
        earned += float(worth[arm])
        fixed += np.where(mask, worth, worth[7])
    best = float(fixed.max())
    return earned / best, _bias(policy, asked, shop, who)


def _bias(policy: db.Policy | None, asked: list[tuple[int, float]], shop: Shop, who: str) -> float:
    """Belief about the arm played most over its true mean (of what is told) in the last two days, less 1."""
    if policy is None or who == "Uniform":
        return math.nan
    last = asked[-1][1] - 2.0 * DAY
    arms = [arm for arm, now in asked if now >= last]
    arm = int(np.bincount(arms).argmax())
    true = np.mean([shop.chances(now)[arm] for a, now in asked if a == arm and now >= last])
    return float(policy.estimate()[arm] / (true * PRICES[arm] * (1.0 - UNTOLD))) - 1.0


def run(*, quick: bool = False) -> None:
    """Print a table: mean and standard error for every kind of delay and player."""
    seeds, days = EVALUATION.take(1 if quick else 4), 4.0 if quick else 14.0
    print(
        f"share of the best fixed price, {days:.0f} days of {VISITORS:,} visitors, {len(seeds)} seeds from {seeds[0]:,}"
    )
    print(f"{'':30}" + "".join(f"{who:>18}" for who in WHO) + f"{'bias, 24 h':>14}{'2 h':>8}")
    with ProcessPoolExecutor(2) as pool:
        for kind in KINDS:
            row, biases = [], []
            for who in WHO:
                found = list(pool.map(functools.partial(play, kind, who, days=days), seeds))
                shares = [share for share, _ in found]
                error = np.std(shares, ddof=1) / math.sqrt(len(seeds)) if len(seeds) > 1 else math.nan
                row.append(f"{np.mean(shares):.3f} ± {error:.3f}")
                biases.append(float(np.mean([bias for _, bias in found])))
            cells = "".join(f"{cell:>18}" for cell in row)
            print(f"{kind:30}{cells}{biases[0]:14.3f}{biases[1]:8.3f}", flush=True)
