"""
Slow drift
==========

Sometimes nothing jumps: the best option wanders, a little every round. There is no moment to detect, and still
everything learned grows old.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftbandits as db

# %%
# The best price goes up and down like a tide. ``Tabular`` takes any table of mean rewards, one row per round.

rounds, prices = 3_000, np.linspace(5, 16, 23)
best = 10.5 + 4 * np.sin(2 * np.pi * np.arange(rounds) / 2_000)
means = 0.8 * np.exp(-(((prices - best[:, None]) / 2) ** 2))
world = db.environments.Tabular(db.ArmSet(prices[:, None]), means)

policy = db.AutoBandit(world.arms, seed=0)
trace = db.simulate(policy, world, seed=0)
print(policy.explain())

# %%
# The darker, the better the price. Dots are what was played: it follows, and spends a few rounds looking elsewhere.
# It also wrote records: where all drifts, a record says that by now much is different.

figure, axes = plt.subplots(layout="constrained")
axes.imshow(means.T, aspect="auto", origin="lower", extent=(0, rounds, 4.75, 16.25), cmap="Oranges", alpha=0.8)
axes.plot(prices[trace.arm], ".", color="#12476e", markersize=2)
axes.set(xlabel="round", ylabel="price, EUR")
plt.show()
