"""
A new option
============

The shop adds a price while the policy runs. ``with_arms`` goes on with other arms and keeps what is known.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftbandits as db

profit = {"9 EUR": 0.2, "10 EUR": 0.3, "11 EUR": 0.4, "12 EUR": 0.5, "13 EUR": 0.3, "12.5 EUR": 0.8}
rng = np.random.default_rng(0)


def play(policy: db.Policy, rounds: int) -> list[str]:
    """The names of the arms played."""
    played = []
    for _ in range(rounds):
        choice = policy.ask()
        name = str(choice.name)
        policy.tell(choice, np.clip(profit[name] + 0.1 * rng.standard_normal(), 0, 1))
        played.append(name)
    return played


arms = db.ArmSet([[9.0], [10.0], [11.0], [12.0], [13.0]], names=list(profit)[:5])
policy = db.AutoBandit(arms, reward_range=(0, 1), seed=0)
played = play(policy, 400)

# %%
# 12.5 EUR comes, 9 EUR goes. The new price lies between two that are known, so the kernel expects little of it; it is
# tried all the same.

policy = policy.with_arms(arms.without(["9 EUR"]).extended([[12.5]], names=["12.5 EUR"]))
played += play(policy, 400)
print(policy.summary())

# %%
# Each dot is a round.

figure, axes = plt.subplots(layout="constrained")
order = sorted(profit, key=lambda name: float(name.split()[0]))
axes.plot([order.index(name) for name in played], ".", color="#1d78b8", markersize=4)
axes.axvline(400, color="black", linestyle=":")
axes.text(405, 0.2, "12.5 EUR comes, 9 EUR goes")
axes.set_yticks(range(len(order)), order)
axes.set(xlabel="round")
plt.show()
