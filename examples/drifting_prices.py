"""A shop asks AutoBandit for prices: few visitors buy, sales are known late, and "no sale" is never reported.

On the way a cheaper competitor opens, the program is stopped and started again, and somebody adds a price. The policy
is told of the price alone. Run it with `python examples/drifting_prices.py`.
"""

import heapq
import tempfile
from pathlib import Path

import numpy as np

import driftbandits as db

COMPETITOR, RESTART, NEW_PRICE, VISITORS = 2_000, 3_000, 4_000, 6_000
HIGHEST = 13.0  # what a sale can bring at most
PATIENCE = 200  # a sale that was not reported 200 visitors later will not be


def arms_of(prices: list[float]) -> db.ArmSet:
    """Prices that are close sell alike: the numbers are the arms' points."""
    return db.ArmSet(np.reshape(prices, (-1, 1)), names=[f"{price:.0f} EUR" for price in prices])


class Customers:
    """The world outside: who buys, and when the payment is reported."""

    def __init__(self) -> None:
        self.draw = np.random.default_rng(0)
        self.payments: list[tuple[int, int, float]] = []  # when it is reported, of which decision, how much

    def visit(self, choice: db.Decision, price: float, now: int) -> None:
        """One visitor sees a price; one in five would buy at all, and hardly anybody above what others ask."""
        elsewhere = 12.0 if now < COMPETITOR else 5.5
        if self.draw.random() < 0.2 / (1 + np.exp(2 * (price - elsewhere))):
            heapq.heappush(self.payments, (now + int(self.draw.integers(5, 150)), choice.id, price))

    def reported(self, now: int) -> list[tuple[int, float]]:
        """Payments that are known by now: decision and amount."""
        found = []
        while self.payments and self.payments[0][0] <= now:
            _, decision, price = heapq.heappop(self.payments)
            found.append((decision, price))
        return found


def sell(policy: db.Policy, customers: Customers, begin: int, end: int) -> float:
    """The loop of every shop: ask for a price, show it, tell what has been paid. Gives the income."""
    income = 0.0
    for now in range(begin, end):
        choice = policy.ask()
        customers.visit(choice, float(policy.arms.points[choice.arm, 0]), now)
        for decision, paid in customers.reported(now):
            policy.tell(decision, paid)
            income += paid
    return income


def say(policy: db.Policy, income: float, begin: int, end: int) -> None:
    best = policy.arms.names[int(policy.estimate().argmax())] if policy.arms.names else ""
    print(f"visitors {begin:,} to {end:,}: {income / (end - begin):.2f} EUR per visitor, best seems {best}")


def main(folder: Path) -> None:
    arms, customers = arms_of([6, 7, 8, 9, 10, 11, 12, 13]), Customers()
    # Rewards are 0 or the price, and silence means 0: the range, patience and `missing` say so. Nothing else is set.
    policy: db.Policy = db.AutoBandit(arms, reward_range=(0, HIGHEST), patience=PATIENCE, missing=0.0, seed=0)
    say(policy, sell(policy, customers, 0, COMPETITOR), 0, COMPETITOR)
    say(policy, sell(policy, customers, COMPETITOR, RESTART), COMPETITOR, RESTART)

    policy.save(folder / "shop.state")  # the program ends here, with open decisions
    policy = db.AutoBandit.load(arms, folder / "shop.state")  # and another one goes on
    print(f"restarted: {policy.rounds:,} decisions so far, {policy.pending} still open")
    say(policy, sell(policy, customers, RESTART, NEW_PRICE), RESTART, NEW_PRICE)

    policy = policy.with_arms(policy.arms.extended([[5.0]], names=["5 EUR"]))
    print("5 EUR added")
    say(policy, sell(policy, customers, NEW_PRICE, VISITORS), NEW_PRICE, VISITORS)

    print(f"\n{policy.rounds:,} decisions: {policy.expired:,} without a sale, {policy.late} payments too late\n")
    print(policy.summary())
    for change in policy.changes:
        print(change)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
