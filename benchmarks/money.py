"""Offers that sell rarely, for amounts that vary: what is earned, as a share of the best fixed offer.

The shop of three offers (4 % of visits x 50, 2 % x 150, 3 % x 60), and nine drawn shops: 3 to 20 offers, conversion of
0.5 to 10 %, amounts that vary by 5 to 100 %; in the last four shops the offers are dealt anew in the middle, and the
best offer of each half is the reference. Everybody has the range (0, 500) and otherwise defaults; Thompson sampling is
on plain means. Earnings are expected ones, so luck of single sales does not count.

    python -m benchmarks money            6 seeds, 20,000 visits
    python -m benchmarks money --quick    1 seed, 5,000 visits
"""

from __future__ import annotations

import functools
import math
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

import driftbandits as db
from driftbandits.experiments.seeds import EVALUATION
from driftbandits.types import Floats

_SEEDS = EVALUATION.take(306)[300:]  # those before judged earlier forms
RANGE = (0.0, 500.0)
POLICIES = ("AutoBandit", "GPUCB", "Thompson", "Uniform")


@dataclass(frozen=True)
class Shop:
    """Chances and mean amounts of every offer, in one or two halves, and how much amounts vary."""

    name: str
    chances: Floats  # (halves, N)
    amounts: Floats
    variation: float

    @property
    def means(self) -> Floats:
        return self.chances * self.amounts


def shops() -> list[Shop]:
    """The shop of three offers, and nine drawn ones."""
    found = [Shop("three offers", np.array([[0.04, 0.02, 0.03]]), np.array([[50.0, 150.0, 60.0]]), 0.3)]
    rng = np.random.default_rng(_SEEDS[0])
    for number in range(9):
        offers, variation = int(rng.integers(3, 21)), float(np.exp(rng.uniform(math.log(0.05), 0.0)))
        halves = 2 if number >= 5 else 1
        chances = np.exp(rng.uniform(math.log(0.005), math.log(0.1), (halves, offers)))
        amounts = np.exp(rng.uniform(math.log(20.0), math.log(150.0), (halves, offers)))
        name = f"{offers} offers, amounts vary by {variation:.0%}{', dealt anew' if halves == 2 else ''}"
        found.append(Shop(name, chances, amounts, variation))
    return found


class Thompson:
    """Samples of normal laws about plain means, with the variance of each arm's rewards."""

    def __init__(self, offers: int, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._plays, self._sums, self._squares = np.zeros(offers), np.zeros(offers), np.zeros(offers)

    def ask(self) -> int:
        plays = np.maximum(self._plays, 1.0)
        means = self._sums / plays
        variances = np.maximum(self._squares / plays - means**2, self._squares.sum() / plays.sum() / 4.0 + 1.0)
        drawn = means + np.sqrt(variances / plays) * self._rng.standard_normal(len(plays))
        return int(np.where(self._plays < 20, np.inf, drawn).argmax())

    def tell(self, arm: int, reward: float) -> None:
        self._plays[arm] += 1
        self._sums[arm] += reward
        self._squares[arm] += reward**2


def play(shop: Shop, policy: str, seed: int, *, visits: int) -> float:
    """Expected earnings over those of the best fixed offer (of each half)."""
    warnings.simplefilter("ignore")  # about noise and ranges: they are not what is measured here
    rng, offers = np.random.default_rng(seed), shop.means.shape[1]
    arms = db.ArmSet.separate([f"offer {number}" for number in range(offers)])
    learner = None if policy == "Thompson" else db.POLICIES[policy](arms, seed=seed, reward_range=RANGE)
    thompson = Thompson(offers, seed)
    log_deviation = math.sqrt(math.log1p(shop.variation**2))
    earned = 0.0
    for visit in range(visits):
        half = visit * len(shop.means) // visits
        choice = None if learner is None else learner.ask()
        arm = thompson.ask() if choice is None else choice.arm
        amount = math.exp(log_deviation * rng.standard_normal() - 0.5 * log_deviation**2) * shop.amounts[half, arm]
        reward = min(float(amount), RANGE[1]) if rng.random() < shop.chances[half, arm] else 0.0
        earned += float(shop.means[half, arm])
        if learner is None or choice is None:
            thompson.tell(arm, reward)
        else:
            learner.tell(choice.id, reward)
    return earned / visits / float(shop.means.max(axis=1).mean())


def run(*, quick: bool = False) -> None:
    """Print a table: mean and standard error for every shop and policy."""
    visits = 5_000 if quick else 20_000
    seeds = _SEEDS[: 1 if quick else 6]
    print(f"share of the best fixed offer, {visits:,} visits, {len(seeds)} seeds from {seeds[0]:,}")
    print(f"{'':44}" + "".join(f"{policy:>18}" for policy in POLICIES))
    with ProcessPoolExecutor(2) as pool:
        for shop in shops():
            row = []
            for policy in POLICIES:
                shares = list(pool.map(functools.partial(play, shop, policy, visits=visits), seeds))
                error = np.std(shares, ddof=1) / math.sqrt(len(seeds)) if len(seeds) > 1 else math.nan
                row.append(f"{np.mean(shares):.3f} ± {error:.3f}")
            print(f"{shop.name:44}" + "".join(f"{cell:>18}" for cell in row), flush=True)
