"""Joins any experiment: driftbandits reproduce switching/1 --policy examples/own_policy.py:MyPolicy --quick"""

import numpy as np

import driftbandits as db


class MyPolicy(db.Policy):  # plays the arm with the best mean, and in one round of ten any arm
    def _start(self, horizon: int | None) -> None:
        self._sums = np.zeros((len(self.arms), 2))  # rewards, counts

    def _estimate(self) -> db.Floats:
        return np.asarray(self._sums[:, 0] / np.maximum(self._sums[:, 1], 1.0))

    def _law(self) -> db.Floats:
        best = self._estimate() == self._estimate().max()
        return np.asarray(0.9 * best / best.sum() + 0.1 / len(best))

    def _learn(self, feedback: db.Feedback) -> None:
        np.add.at(self._sums, feedback.arms, np.stack([feedback.rewards, np.ones(len(feedback.arms))], axis=1))

    def _export(self) -> dict[str, object]:
        return {"sums": self._sums.copy()}

    def _import(self, state: db.StateReader) -> None:
        self._sums = state.array("sums", np.float64, (len(self.arms), 2))


if __name__ == "__main__":
    print(f"MyPolicy passes {len([check(MyPolicy) for check in db.testing.POLICY_CHECKS])} checks")
    world = db.environments.create("switching/1", seed=0)
    for kind in (MyPolicy, db.AdaOPKB):
        trace = db.simulate(kind(world.arms, horizon=world.horizon, seed=0), world, seed=0)
        print(f"{kind.__name__:8} regret {trace.regret.sum():5.0f}, changes found: {[c.round for c in trace.changes]}")
