"""
A policy of your own
====================

Six small methods make a policy. Asking, telling, late rewards, masks, saving and threads come with the base class, and
so does a suite of checks.
"""

import matplotlib.pyplot as plt
import numpy as np

import driftbandits as db


class Restless(db.Policy):
    """Plays the best mean of late; old rewards fade, and one round in ten tries any arm."""

    def __init__(self, arms: db.ArmSet, *, fading: float = 0.98, **settings: object) -> None:
        self.fading = fading
        super().__init__(arms, **settings)  # type: ignore[arg-type]

    def _start(self, horizon: int | None) -> None:
        self._sums = np.zeros((len(self.arms), 2))  # rewards, counts

    def _estimate(self) -> db.Floats:
        return np.asarray(self._sums[:, 0] / np.maximum(self._sums[:, 1], 1e-9))

    def _law(self) -> db.Floats:
        best = self._estimate() == self._estimate().max()
        return np.asarray(0.9 * best / best.sum() + 0.1 / len(best))

    def _learn(self, feedback: db.Feedback) -> None:
        for arm, reward in zip(feedback.arms, feedback.rewards, strict=True):
            self._sums *= self.fading
            self._sums[arm] += (reward, 1.0)

    def _export(self) -> dict[str, object]:
        return {"sums": self._sums.copy()}

    def _import(self, state: db.StateReader) -> None:
        self._sums = state.array("sums", np.float64, (len(self.arms), 2))


# %%
# Does it keep the promises of a policy? The checks that the library's own policies pass say so, or say what is wrong.

for check in db.testing.POLICY_CHECKS:
    check(Restless)
print(f"{len(db.testing.POLICY_CHECKS)} checks passed")

# %%
# And is it any good?

world = db.environments.create("switching", seed=0, dimension=2, switches=[700], horizon=1_400, size=20)
figure, axes = plt.subplots(layout="constrained")
for kind, colour in ((Restless, "#2ca02c"), (db.AutoBandit, "#1d78b8"), (db.Uniform, "#8a8f98")):
    trace = db.simulate(kind(world.arms, seed=0), world, seed=0)
    axes.plot(trace.cumulative_regret, color=colour, label=kind.__name__)
axes.axvline(700, color="black", linestyle=":")
axes.set(xlabel="round", ylabel="regret so far")
axes.legend()
plt.show()
