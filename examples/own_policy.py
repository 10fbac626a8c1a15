"""A researcher's loop: a policy of your own, the conformance suite, and a comparison with ADA-OPKB.

Run it with `python examples/own_policy.py`.
"""

from typing import Any

import numpy as np

import driftbandits as db
from driftbandits.policies.pending import Feedback
from driftbandits.policies.state import Reader
from driftbandits.testing import POLICY_CHECKS
from driftbandits.types import Floats


class EpsilonGreedy(db.Policy):
    """Plays the arm with the best mean, and one arm in ten rounds at random."""

    def _start(self, horizon: int | None) -> None:
        self._sums = np.zeros((2, len(self.arms)))  # rewards, counts

    def _estimate(self) -> Floats:
        return np.asarray(self._sums[0] / np.maximum(self._sums[1], 1.0))

    def _law(self) -> Floats:
        best = self._estimate() == self._estimate().max()
        return np.asarray(0.9 * best / best.sum() + 0.1 / len(self.arms))

    def _learn(self, feedback: Feedback) -> None:
        np.add.at(self._sums[0], feedback.arms, feedback.rewards)
        np.add.at(self._sums[1], feedback.arms, 1.0)

    def _export(self) -> dict[str, Any]:
        return {"sums": self._sums.copy()}

    def _import(self, state: Reader) -> None:
        self._sums = state.array("sums", np.float64, (2, len(self.arms)))


def main() -> None:
    for check in POLICY_CHECKS:
        check(EpsilonGreedy)
    print(f"EpsilonGreedy passes all {len(POLICY_CHECKS)} checks")
    world = db.environments.create("switching/1", seed=0)
    for build in (EpsilonGreedy, db.AdaOPKB):
        trace = db.simulate(build(world.arms, horizon=world.horizon, seed=0), world, seed=0)
        found = [change.round for change in trace.changes]
        print(f"{build.__name__:15} regret {trace.regret.sum():6.0f}, changes found at {found}")


if __name__ == "__main__":
    main()
