"""
A switch, found
===============

What pays off changes from one round to the next. AutoBandit is not told. It notices, forgets what no longer holds, and
writes a record.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftbandits as db

# %%
# A world of two stretches: first the low prices pay, then the high ones. The world adds noise by itself, and every
# policy would meet the same.

prices = np.arange(5, 17)
arms = db.ArmSet(prices[:, None], names=[f"{price} EUR" for price in prices])
before = 0.8 * np.exp(-(((prices - 7) / 3) ** 2))
after = 0.7 * np.exp(-(((prices - 13) / 3) ** 2))
world = db.environments.Piecewise(arms, [before, after], switches=[1_000], horizon=2_000)

trace = db.simulate(db.AutoBandit(arms, seed=0), world, seed=0)
for change in trace.changes:
    print(change)

# %%
# Every dot is a round. Soon after the dotted line, which nobody showed to it, it plays other prices.

figure, axes = plt.subplots(layout="constrained")
axes.plot(prices[trace.arm], ".", color="#1d78b8", markersize=3)
axes.axvline(1_000, color="black", linestyle=":", label="the world changes")
axes.axvline(trace.changes[0].round, color="#e07b00", label="it is found")
axes.set(xlabel="round", ylabel="price played, EUR")
axes.legend(loc="lower right")
plt.show()
