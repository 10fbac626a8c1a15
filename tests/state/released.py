"""States as releases wrote them, and how each goes on: a folder per release, a file per case.

`python -m tests.state.record_release` writes those of the present version; do so before every release, and commit them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from driftbandits import ArmSet
from driftbandits.policies import POLICIES, Policy
from tests.golden.settings import SETTINGS

FOLDER = Path(__file__).with_name("releases")
DECISIONS = "decisions.json"  # in every folder: what each state decides next
PLAYED, NEXT, LATE = 240, 30, 4  # rounds before a state is saved, rounds after it, and by which rewards come late
CHANGE = 120  # the round in which rewards are mirrored


class Choice(NamedTuple):
    """A decision, as it is recorded."""

    id: int
    arm: int
    probability: float


def few_arms() -> ArmSet:
    """Eight arms in the unit square: states stay small."""
    return ArmSet(np.random.default_rng(1).random((8, 2)), kernel=RBF(0.3))


def _mirrored() -> ArmSet:
    """Arms on a line: each has a mirror image, and which of the two carries a feature is a choice."""
    return ArmSet(np.linspace(0.0, 1.0, 20)[:, None])


def _segments() -> ArmSet:
    return ArmSet.crossed(few_arms(), ["morning", "evening"])


@dataclass(frozen=True)
class Case:
    """A policy that is saved in the middle of its life."""

    policy: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    arms: Callable[[], ArmSet] = few_arms
    two_valued: bool = False

    def build(self) -> Policy:
        """A new one, with every setting written out."""
        told = {"horizon": 2_000, "seed": 5, "reward_range": (-1.0, 1.0), **SETTINGS[self.policy], **self.settings}
        return POLICIES[self.policy](self.arms(), **told)

    def load(self, path: Path) -> Policy:
        """The policy in a file."""
        return POLICIES[self.policy].load(self.arms(), path)

    def play(self, policy: Policy, rounds: int, waiting: list[Choice]) -> list[Choice]:
        """The decisions of the next rounds. Rewards come late: decisions that wait for theirs are in `waiting`."""
        made = []
        for _ in range(rounds):
            choice = policy.ask()
            made.append(Choice(choice.id, choice.arm, choice.probability))
            waiting.append(made[-1])
            if len(waiting) > LATE:
                first = waiting.pop(0)
                policy.tell(first.id, self._reward(policy.arms.points[first.arm], first.id))
        return made

    def follow(self, policy: Policy, given: list[Choice], waiting: list[Choice]) -> list[float]:
        """With what probability the policy would have made each of the decisions given, along them."""
        found = []
        for choice in given:
            found.append(float(policy.law()[choice.arm]))
            made = next(iter(policy.impose(choice.arm, choice.probability).decisions))
            waiting.append(Choice(made.id, made.arm, made.probability))
            if len(waiting) > LATE:
                first = waiting.pop(0)
                policy.tell(first.id, self._reward(policy.arms.points[first.arm], first.id))
        return found

    def _reward(self, point: Any, now: int) -> float:
        """A function of the arm and the round."""
        mean = 0.6 * np.cos(4.0 * point).mean() * (1.0 if now < CHANGE else -1.0)
        noise = np.random.default_rng([7, now]).uniform(-0.1, 0.1)
        return float(mean + 5.0 * noise > 0.2) if self.two_valued else float(mean + noise)


CASES = {
    **{name: Case(name) for name in SETTINGS},
    "AutoBandit-two-values": Case("AutoBandit", {"reward_range": (0.0, 1.0)}, two_valued=True),
    "AutoBandit-segments": Case("AutoBandit", arms=_segments),
    "AutoBandit-patient": Case("AutoBandit", {"order": "asked", "patience": 50, "missing": 0.0}),
    "AutoBandit-mirrored": Case("AutoBandit", arms=_mirrored),
    "CalibratedOPKB-mirrored": Case("CalibratedOPKB", arms=_mirrored),
    "CalibratedOPKB-theory": Case("CalibratedOPKB", {"mode": "theory"}),
}


def read_decisions(folder: Path) -> dict[str, dict[str, list[Choice]]]:
    """By case, the decisions that wait for a reward and those that come next."""
    values = json.loads((folder / DECISIONS).read_text())
    return {
        name: {kind: [Choice(*row) for row in rows] for kind, rows in both.items()} for name, both in values.items()
    }
