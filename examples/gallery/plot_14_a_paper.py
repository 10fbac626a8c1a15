"""
From an idea to a table in a paper
==================================

A policy and a world of one's own, rivals that are tuned with equal budgets on seeds of their own, a comparison that can
be interrupted, a figure as wide as a column, and a table in LaTeX. With three seeds and twenty runs per search it takes
a minute; a paper wants more of both.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import driftbandits as db

# %%
# The idea: play the mean of the last rewards of each arm, and one round in ten any arm. In a file, so that other
# processes can load it and a store can say what was played.

folder = Path(tempfile.mkdtemp())
idea = folder / "idea.py"
idea.write_text(
    """
import numpy as np
import driftbandits as db


class Recent(db.EpsilonGreedy):
    \"\"\"Epsilon-greedy that forgets at the pace of `memory` rounds.\"\"\"

    def __init__(self, arms, *, memory=200, **common):
        super().__init__(arms, discount=1.0 - 1.0 / memory, **common)
        self.memory = memory  # settings are saved from attributes of the same names


def tides(seed, horizon=1200):
    \"\"\"Ten arms; which is best goes round once every 600 rounds.\"\"\"
    shift = np.random.default_rng(seed).random()
    turns = np.arange(horizon)[:, None] / 600 + shift
    means = 0.4 * np.cos(2 * np.pi * (turns - np.arange(10) / 10))
    return db.environments.Tabular(db.ArmSet(np.arange(10.0)[:, None]), means, name="tides")
"""
)
mine, tides = f"{idea}:Recent", f"{idea}:tides"

# %%
# Tuning: every policy with a setting to choose has the same number of runs in the same worlds, on tuning seeds. Untuned
# rivals would flatter us.

worlds: list[tuple[str, dict[str, object]]] = [
    (tides, {}),
    ("recurring", {"size": 10, "dimension": 2, "horizon": 1200, "switches": [300, 600, 900]}),
]
spaces = {
    mine: {"ranges": {"memory": [20, 2000]}},
    "SlidingWindowUCB": {"ranges": {"window": [20, 2000], "scale": [0.05, 1]}, "whole": ["window"]},
    "DiscountedUCB": {"ranges": {"discount": [0.9, 0.9999], "scale": [0.05, 1]}},
}
found = db.tune(spaces, out=folder, worlds=worlds, runs=20)
for best in found.best:
    print(best.name.partition(",")[0], {name: round(value, 3) for name, value in best.settings.items()})

# %%
# The comparison, on other seeds. Finished runs are kept: the same call goes on after an interruption, or with more
# seeds. `reference` compares everybody with our policy, with intervals that hold for all rivals at once.

table = db.compare(
    [str(found.path), "AutoBandit", "Uniform"],
    dict(zip(("tides", "recurring"), worlds, strict=True)),
    seeds=3,
    store=folder / "runs",
    reference="Recent",
    show=False,
)
print(table)

# %%
# The table for the paper, and the figure, as wide as the text of the style file.

print(table.to_latex())
table.plot(width="neurips")
plt.show()
