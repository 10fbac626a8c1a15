"""An engineer's loop: twelve prices, a pay-off that jumps, rewards that come late.

Run it with `python examples/drifting_prices.py`.
"""

from dataclasses import replace

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db

prices = np.linspace(5.0, 16.0, 12)
arms = db.ArmSet(prices[:, None], kernel=RBF(2.0), names=[f"{price:.0f} EUR" for price in prices])
# Bernoulli rewards are noisier than the constants were tuned for: a higher threshold, or false alarms come.
careful = replace(db.Constants.tuned(), c0=30.0)
policy = db.AdaOPKB(arms, horizon=8_000, seed=0, reward_range=(0.0, 1.0), constants=careful)


def bought(price: float, now: int) -> float:
    """1 if the visitor bought, with a chance that peaks at 7 EUR, and from round 4,000 on at 13 EUR."""
    peak = 7.0 if now < 4_000 else 13.0
    chance = 0.9 * np.exp(-(((price - peak) / 3.0) ** 2))
    return float(np.random.default_rng([now, 1]).random() < chance)


def main() -> None:
    waiting: list[db.Decision] = []
    for _ in range(8_000):
        waiting.append(policy.ask())  # which price to show; waiting[-1].probability goes into the log
        if len(waiting) > 10:  # what a visitor did is known ten visitors later
            choice = waiting.pop(0)
            policy.tell(choice.id, bought(prices[choice.arm], choice.id))
    for change in policy.changes:
        print(change)
    best = int(policy.estimate().argmax())
    print(f"best price now: {prices[best]:.0f} EUR, estimated to sell to {policy.estimate()[best]:.0%} of visitors")


if __name__ == "__main__":
    main()
