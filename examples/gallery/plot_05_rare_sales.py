"""
Rare sales, and silence that means no
=====================================

Three in a hundred visitors buy. A sale is reported after a while; that somebody did not buy is never reported. After
300 rounds of silence it counts as "no sale".
"""

import heapq

import matplotlib.pyplot as plt
import numpy as np

import driftbandits as db

rates = {"red": 0.01, "green": 0.02, "blue": 0.06, "grey": 0.02}
pictures = db.ArmSet.from_features(np.eye(4), names=list(rates))  # nothing in common

# %%
# ``patience`` is how many rounds to wait, ``missing`` what silence is worth. There is no safe default, so both must
# be said.

policy = db.AutoBandit(pictures, reward_range=(0, 1), patience=300, missing=0.0, seed=0)
rng = np.random.default_rng(1)
on_their_way: list[tuple[int, int]] = []  # when a sale is reported, and of which decision
shown = []
for now in range(4_000):
    choice = policy.ask()
    shown.append(choice.arm)
    if rng.random() < list(rates.values())[choice.arm]:
        heapq.heappush(on_their_way, (now + int(rng.integers(10, 250)), choice.id))
    while on_their_way and on_their_way[0][0] <= now:
        policy.tell(heapq.heappop(on_their_way)[1], 1.0)
print(f"{policy.expired:,} decisions without a sale, {policy.pending} still open, {policy.changes_found} changes found")
print(policy.summary())

# %%
# Which picture visitors saw, as shares of 200 rounds. Nothing changed in this world, and no change was reported.

shares = np.stack([np.bincount(block, minlength=4) / 200 for block in np.reshape(shown, (-1, 200))])
figure, axes = plt.subplots(layout="constrained")
axes.stackplot(
    np.arange(20) * 200 + 200, shares.T, labels=list(rates), colors=["#d62728", "#2ca02c", "#1d78b8", "#b0b4ba"]
)
axes.set(xlabel="round", ylabel="share of visitors", ylim=(0, 1), xlim=(200, 4_000))
axes.legend(loc="lower right", frameon=True)
plt.show()
