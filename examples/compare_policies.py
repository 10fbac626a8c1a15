"""A researcher's afternoon: a policy of one's own, checked, and compared with others in two worlds, with a figure.

python examples/compare_policies.py [FIGURE]    # compared.png, say
"""

import sys

import numpy as np

import driftbandits as db


class Doubter(db.Policy):
    """Plays the arm with the best mean since the last surprise; a run of bad rewards makes it forget everything.

    One round in ten tries any arm. That is how it sees that another one has become better, and what it is bad at.
    """

    def __init__(self, arms: db.ArmSet, *, doubts: int = 15, explore: float = 0.1, **settings: object) -> None:
        self.doubts = doubts
        self.explore = explore
        super().__init__(arms, **settings)  # type: ignore[arg-type]

    def _start(self, horizon: int | None) -> None:
        self._sums, self._counts = np.zeros(len(self.arms)), np.zeros(len(self.arms))
        self._disappointed = 0

    def _estimate(self) -> db.Floats:
        return np.asarray(self._sums / np.maximum(self._counts, 1.0))

    def _law(self) -> db.Floats:
        hopeful = np.where(self._counts > 0, self._estimate(), 1.0)  # each arm is tried once
        best = hopeful == hopeful.max()
        return np.asarray((1 - self.explore) * best / best.sum() + self.explore / len(best))

    def _learn(self, feedback: db.Feedback) -> None:
        for arm, reward in zip(feedback.arms, feedback.rewards, strict=True):
            if self._counts[arm] >= self.doubts:
                worse = reward < self._sums[arm] / self._counts[arm]
                self._disappointed = self._disappointed + 1 if worse else 0
            if self._disappointed >= self.doubts:
                self._start(None)
            self._sums[arm] += reward
            self._counts[arm] += 1

    def _export(self) -> dict[str, object]:
        return {"sums": self._sums.copy(), "counts": self._counts.copy(), "disappointed": self._disappointed}

    def _import(self, state: db.StateReader) -> None:
        self._sums = state.array("sums", np.float64, (len(self.arms),))
        self._counts = state.array("counts", np.float64, (len(self.arms),))
        self._disappointed = state.integer("disappointed")


def main() -> None:
    for check in db.testing.POLICY_CHECKS:  # does it keep what every policy promises?
        check(Doubter)
    print(f"Doubter passes {len(db.testing.POLICY_CHECKS)} checks\n")

    world = {"dimension": 2, "size": 20, "horizon": 800}
    found = db.compare(
        {
            "mine": Doubter,
            "AutoBandit": "AutoBandit",
            "CalibratedOPKB": "CalibratedOPKB",
            "window of 300": ("SlidingWindowGPUCB", {"window": 300}),
            "never forgets": "GPUCB",
        },
        {
            "no change": ("switching", {**world, "switches": []}),
            "one switch": ("switching", {**world, "switches": [400]}),
        },
        seeds=3,  # for a claim take twenty or more
        jobs=1,
    )
    print(found)
    for path in sys.argv[1:]:
        found.plot().savefig(path)


if __name__ == "__main__":
    main()
