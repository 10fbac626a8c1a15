"""Five segments of customers who share half of what they like: one policy for all pairs, one each, or one for all.

Every segment's chances are a common part and one of its own, of equal variance. A round is a customer of some segment.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import driftbandits as db
from benchmarks.live import informed
from benchmarks.live.shop import RATES, ROUNDS, Played, options, play
from driftbandits._util.seeding import stream
from driftbandits.types import Bools, Floats

SEGMENTS = ("mobile", "desktop", "tablet", "app", "mail")
SHARED = 0.5  # of the variance
RANGE = (0.0, 1.0)


def rates() -> Floats:
    """Chances of every option in every segment, shape (segments, options), 0.5 to 4.4 %: the same for all seeds."""
    generator = stream(0, "live segments")
    common = generator.standard_normal(len(RATES))
    own = generator.standard_normal((len(SEGMENTS), len(RATES)))
    liked = np.sqrt(SHARED) * common + np.sqrt(1.0 - SHARED) * own
    return np.asarray(np.interp(liked, (liked.min(), liked.max()), (RATES.min(), RATES.max())))


def regrets(seed: int, rounds: int = ROUNDS) -> dict[str, float]:
    """Reward lost against the best option of every customer's segment, by the three ways; and how much must be."""
    visits = stream(seed, "live visits").integers(0, len(SEGMENTS), rounds)
    return {
        "crossed": _lost(_crossed(seed, visits)),
        "one per segment": _apart(seed, visits),
        "one for all": _lost(_together(seed, visits)),
        "informed": informed.regret(rates(), visits, correlation=SHARED, seed=seed),
        "informed, apart": informed.regret(rates(), visits, correlation=0.0, seed=seed),
    }


def _lost(played: Played) -> float:
    return float((played.best - played.worth).sum())


def _crossed(seed: int, visits: Any) -> Played:
    kind: Any = db.ArmSet
    arms = kind.crossed(options(), list(SEGMENTS), kernel=SHARED)
    masks: list[Bools] = [arms.of(name) for name in SEGMENTS]
    table = np.zeros(len(arms))
    for mask, row in zip(masks, rates(), strict=True):  # whichever of the two goes first among the pairs
        table[mask] = row
    policy = db.AutoBandit(arms, seed=seed, reward_range=RANGE)
    return play(policy, lambda _: table, seed=seed, rounds=len(visits), allowed=lambda now: masks[visits[now]])


def _apart(seed: int, visits: Any) -> float:
    total = 0.0
    for number, row in enumerate(rates()):
        own = int(np.count_nonzero(visits == number))
        policy = db.AutoBandit(options(), seed=seed, reward_range=RANGE)
        total += _lost(play(policy, lambda _, row=row: row, seed=seed + 1_000 * number, rounds=own))  # type: ignore[misc]
    return total


def _together(seed: int, visits: Any) -> Played:
    table = rates()
    policy = db.AutoBandit(options(), seed=seed, reward_range=RANGE)
    return play(policy, lambda now: table[visits[now]], seed=seed, rounds=len(visits))
