"""The shop: 20 options with chances of success of 0.5 to 4.4 %, and customers who answer at once or late.

Whether round t of a seed would succeed is decided by one uniform number, the same for all policies.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import driftbandits as db
from driftbandits._util.seeding import stream
from driftbandits.policies import Policy
from driftbandits.types import Bools, Floats, Ints

ROUNDS = 20_000
MIDDLE = 10_000  # the round in which something happens, where it does
# In per mil, in an order that says nothing: neighbours have no more in common than others.
RATES = np.array([21, 9, 38, 13, 5, 32, 17, 27, 11, 42, 7, 25, 36, 15, 44, 19, 30, 34, 23, 40]) / 1000.0
# In EUR, so that the option that earns the most is neither the cheapest nor the one bought most often.
PRICES = np.array([14, 22, 9, 18, 24, 12, 19, 8, 16, 11, 23, 20, 10, 13, 7, 21, 15, 6, 17, 5], dtype=np.float64)


@dataclass(frozen=True)
class Delay:
    """Rounds until a success, and a failure, is told; 0 is at once, before the next decision."""

    success: int = 0
    failure: int = 0


@dataclass(frozen=True)
class Played:
    """A run: arms played, what they were worth, what the best was worth, each (T,); and where changes were recorded."""

    arms: Ints
    worth: Floats
    best: Floats
    changes: tuple[int, ...]

    def share(self) -> float:
        """Of the reward that the best arm would have had."""
        return float(self.worth.sum() / self.best.sum())


def options(count: int = len(RATES)) -> db.ArmSet:
    """Options on a line, in an order that means nothing; policies are not told so."""
    return db.ArmSet(
        np.linspace(0.0, 1.0, count)[:, None], names=[f"option {number}" for number in range(1, count + 1)]
    )


Turn = Callable[[Policy], Policy]  # the policy that goes on
Mask = Callable[[int], Bools | None]  # arms allowed in a round


def play(
    policy: Policy,
    rates: Callable[[int], Floats],
    *,
    seed: int,
    prices: Floats | None = None,
    delay: Delay | None = None,
    rounds: int = ROUNDS,
    turns: dict[int, Turn] | None = None,
    allowed: Mask | None = None,
) -> Played:
    """Play `policy` where `rates(t)` are the chances of all arms in round t, and a success pays the arm's price."""
    luck = stream(seed, "live luck").random(rounds)
    waits = delay or Delay()
    due: list[tuple[int, int, db.Decision, float]] = []
    arms = np.zeros(rounds, dtype=np.int64)
    worth, best = np.zeros(rounds), np.zeros(rounds)
    for now in range(rounds):
        if turns and now in turns:
            policy = turns[now](policy)
        mask = None if allowed is None else allowed(now)
        chances = rates(now)
        choice = policy.ask(allowed=mask)
        paid = np.ones(len(chances)) if prices is None else prices
        success = bool(luck[now] < chances[choice.arm])
        values = chances * paid
        arms[now], worth[now] = choice.arm, values[choice.arm]
        best[now] = values.max() if mask is None else values[mask].max()
        wait = waits.success if success else waits.failure
        heapq.heappush(due, (now + wait, now, choice, float(paid[choice.arm]) * success))
        while due and due[0][0] <= now:
            _, _, told, reward = heapq.heappop(due)
            policy.tell(told, reward)
    return Played(arms, worth, best, tuple(change.round for change in policy.changes))
