"""
What would another price have earned?
=====================================

A policy played, and its log has the probability of every decision. That is enough to find out what *something else*
would have earned, with an interval, even though the policy was learning and the world moved.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftbandits as db

# %%
# The log: ten prices, 4,000 rounds, and the best price changes in the middle. Exp3.S logs, because it keeps playing
# everything.

prices = np.arange(5, 15)
arms = db.ArmSet(prices[:, None], names=[f"{price} EUR" for price in prices])
rates = np.stack([0.6 * np.exp(-(((prices - peak) / 2) ** 2)) for peak in (7, 12)]).repeat(2_000, axis=0)
world = db.environments.Tabular(arms, rates, noise=db.environments.BernoulliNoise())
trace = db.simulate(db.Exp3S(arms, horizon=4_000, seed=0, reward_range=(0, 1)), world, seed=0)
log = db.logs.Log.read(trace, arms=arms, reward_range=(0, 1))
print(log)

# %%
# The value of always asking the same price, for each price; and because this is a simulation, the truth.

found = [db.logs.evaluate(log, name) for name in arms.names or ()]
values = np.array([evaluation.value for evaluation in found])
errors = np.array([[e.value - e.low for e in found], [e.high - e.value for e in found]])

figure, axes = plt.subplots(layout="constrained")
axes.errorbar(prices, values, errors, fmt="o", color="#1d78b8", label="from the log, 95 %")
axes.plot(prices, rates.mean(axis=0), "_", markersize=22, markeredgewidth=2, color="#e07b00", label="truth")
axes.axhline(log.reward.mean(), color="#8a8f98", linestyle="--", label="what the policy earned")
axes.set(xlabel="price asked all the time, EUR", ylabel="sales per visitor", ylim=(0, 0.5))
axes.legend(loc="upper center", ncols=3)
plt.show()
