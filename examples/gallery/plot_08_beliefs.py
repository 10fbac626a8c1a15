"""
What it believes, over time
===========================

Every policy keeps a short history of its estimates. ``plots.beliefs`` draws it.
"""

import numpy as np

import driftbandits as db

shop = db.ArmSet(np.arange(5, 15)[:, None], names=[f"{price} EUR" for price in range(5, 15)])
policy = db.AutoBandit(shop, seed=0)
rng = np.random.default_rng(0)
for now in range(1_500):
    choice = policy.ask()
    best = 8 if now < 1_000 else 11
    policy.tell(choice, 0.6 - 0.1 * abs(5 + choice.arm - best) + 0.1 * rng.standard_normal())

# %%
# Lines are estimates, bands their 95 % intervals. Bands of arms that are not played grow when a change makes old
# rewards doubtful. The dotted line is where the change began.

figure = db.plots.beliefs(policy)


# %%
# The numbers behind it are a table.

print(policy.history.to_pandas().tail(3))
