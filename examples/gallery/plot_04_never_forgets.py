"""
AutoBandit and one that never forgets
=====================================

GP-UCB is the standard kernel bandit. It keeps every reward for ever, which is right as long as nothing changes.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftbandits as db

# %%
# A world from the library: rewards are drawn from a kernel, and drawn anew in rounds 800 and 1,600.

world = db.environments.create("switching", seed=3, dimension=2, kind="redraw", switches=[800, 1_600], horizon=2_400)
policies = {"AutoBandit": db.AutoBandit, "GP-UCB, never forgets": db.GPUCB, "any arm": db.Uniform}
traces = {label: db.simulate(kind(world.arms, seed=0), world, seed=0) for label, kind in policies.items()}

# %%
# Regret is what was missed against the best arm of each round. Flat is good. After a change every line rises; what
# matters is for how long.

figure, axes = plt.subplots(layout="constrained")
for (label, trace), colour in zip(traces.items(), ["#1d78b8", "#e07b00", "#8a8f98"], strict=True):
    axes.plot(trace.cumulative_regret, color=colour, label=label)
    print(f"{label:22} regret {trace.regret.sum():5.0f}")
for switch in world.change_rounds:
    axes.axvline(switch, color="black", linestyle=":")
axes.set(
    xlabel="round", ylabel="regret so far", ylim=(0, np.max(traces["GP-UCB, never forgets"].cumulative_regret) * 1.3)
)
axes.legend(loc="center left", bbox_to_anchor=(0.37, 0.72), fontsize=9)
plt.show()
