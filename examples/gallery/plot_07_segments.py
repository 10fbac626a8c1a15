"""
Segments
========

Mobile and desktop visitors like similar prices, not the same. One policy for both learns what is true of neither; one
for each learns everything twice. ``ArmSet.crossed`` makes an arm of every price in every segment, and one policy
learns as much from one about the other as they have in common.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftbandits as db

prices = np.arange(5, 15)
options = db.ArmSet(prices[:, None], names=[f"{price} EUR" for price in prices])
arms = db.ArmSet.crossed(options, ["mobile", "desktop"], kernel=0.5)
best = {"mobile": 8, "desktop": 10}

# %%
# Ask with ``allowed=arms.of(segment)``: the segment is given, the price is chosen.

policy = db.AutoBandit(arms, seed=0)
rng = np.random.default_rng(0)
for _ in range(800):
    segment = "mobile" if rng.random() < 0.8 else "desktop"
    choice = policy.ask(allowed=arms.of(segment))
    price = float(arms.pair(choice.arm)[0].split()[0])
    policy.tell(choice, 0.6 - 0.1 * abs(price - best[segment]) + 0.1 * rng.standard_normal())

# %%
# Only every fifth visitor is a desktop one. Their lines are known rather well all the same, because mobile visitors
# help.

low, high = policy.interval()
figure, axes = plt.subplots(layout="constrained")
for segment, colour in (("mobile", "#1d78b8"), ("desktop", "#e07b00")):
    mine = arms.of(segment)
    axes.plot(prices, policy.estimate()[mine], "o-", color=colour, label=f"{segment}, best at {best[segment]} EUR")
    axes.fill_between(prices, low[mine], high[mine], color=colour, alpha=0.15, linewidth=0)
axes.set(xlabel="price, EUR", ylabel="believed profit")
axes.legend()
plt.show()
