"""
A first bandit
==============

Twelve prices, one of them best, and nobody knows which. Ask which price to show, tell what it brought, and look at
which prices were played.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftbandits as db

prices = np.arange(5, 17)
arms = db.ArmSet(prices[:, None], names=[f"{price} EUR" for price in prices])
true_profit = 0.6 * np.exp(-(((prices - 11) / 3) ** 2))

# %%
# The loop: ``ask`` and ``tell``.

bandit = db.AutoBandit(arms, seed=0)
rng = np.random.default_rng(0)
for _ in range(300):
    choice = bandit.ask()
    bandit.tell(choice, true_profit[choice.arm] + 0.1 * rng.standard_normal())
print(bandit.explain())

# %%
# It tried every region a few times and then stayed where profits are high. Bars are what it believes with the 95 %
# interval; dots are the truth.

low, high = bandit.interval()
middle = bandit.estimate()
plays = bandit.summary().to_pandas().set_index("arm")["plays"].sort_index()

figure, (left, right) = plt.subplots(1, 2, layout="constrained")
left.bar(prices, plays, color="#1d78b8")
left.set(xlabel="price, EUR", ylabel="rounds", title="How often each was played")
right.errorbar(prices, middle, [middle - low, high - middle], fmt="o", color="#1d78b8", label="believed")
right.plot(prices, true_profit, "o", color="#e07b00", markersize=4, label="true")
right.set(xlabel="price, EUR", ylabel="profit", title="What each is worth")
right.legend()
plt.show()
