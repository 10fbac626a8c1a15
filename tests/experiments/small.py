"""Policies and worlds of a user's own, that take moments."""

import numpy as np

import driftbandits as db

SMALL = {"horizon": 200, "switches": [100], "size": 8}


def small_world(seed=0):
    return db.environments.create("switching/1", seed=seed, **SMALL)


class Greedy(db.Policy):
    """Plays the arm with the best mean, and any arm at a `rate`; fails after so many rewards, if told to."""

    def __init__(self, arms, *, rate=0.1, fails_after=None, **common):
        super().__init__(arms, **common)
        self.rate, self.fails_after = rate, fails_after

    def _start(self, horizon):
        self._sums = np.zeros((len(self.arms), 2))

    def _estimate(self):
        return self._sums[:, 0] / np.maximum(self._sums[:, 1], 1.0)

    def _law(self):
        if self.fails_after is not None and self._sums[:, 1].sum() >= self.fails_after:
            raise KeyError("the table is empty")
        best = self._estimate() == self._estimate().max()
        return (1 - self.rate) * best / best.sum() + self.rate / len(best)

    def _learn(self, feedback):
        np.add.at(self._sums, feedback.arms, np.stack([feedback.rewards, np.ones(len(feedback.arms))], axis=1))

    def _export(self):
        return {"sums": self._sums.copy()}

    def _import(self, state):
        self._sums = state.array("sums", np.float64, (len(self.arms), 2))


class Shifting(db.environments.Tabular):
    """The best arm moves at a round that the seed draws."""

    def __init__(self, *, seed, horizon=150):
        means = np.full((horizon, 4), 0.1)
        change = 40 + 10 * (seed % 5)
        means[:change, 0] = means[change:, 3] = 0.8
        noise = db.environments.TruncatedGaussianNoise(0.1)
        super().__init__(db.ArmSet(np.linspace(0, 1, 4)[:, None]), means, noise=noise, name="shifting")
