"""
An optimal design
=================

If you could play 1,000 rounds only to learn, how should they be spread? An optimal design is the law under which one
learns most about all arms at once. It puts weight on few arms, far apart, and says how far from the optimum it can be
at most.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db

points = np.random.default_rng(0).random((600, 2))
arms = db.ArmSet(points, kernel=RBF(0.35))
design = db.solve_design(arms, regulariser=1e-2)
print(design.status, f"gap {design.gap:.1e}", f"{np.count_nonzero(design.probabilities > 1e-4)} of 600 arms played")

# %%
# With ``costs`` the design avoids expensive arms, here those on the right. This is the law that OPKB plays: it
# learns, and it does not forget to earn.

cheap = db.solve_design(arms, costs=30 * points[:, 0], regulariser=1e-2)

figure, panels = plt.subplots(1, 2, sharey=True, layout="constrained")
for axes, law, title in zip(
    panels, (design, cheap), ("learn about all arms", "the right side is expensive"), strict=True
):
    axes.scatter(*points.T, s=4, color="#c9ccd1")
    axes.scatter(*points.T, s=4_000 * law.probabilities, color="#1d78b8", alpha=0.8)
    axes.set(title=title, aspect="equal")
plt.show()
