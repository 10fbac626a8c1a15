"""Every policy in a small world, as a process of its own: `test_other_machines` starts it on other kinds of machine.

Without input it decides by itself. Told what was decided before, it imposes that. Either way it prints, as JSON, what
was decided and the law of every round, by the name of the policy.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from driftbandits import ArmSet, AutoBandit
from driftbandits.policies import POLICIES
from driftbandits.policies.base import Policy
from tests.golden.settings import SETTINGS

ROUNDS = 40
FRESH = "AutoBandit, by itself"
GRID = np.stack(np.meshgrid(np.linspace(0.0, 1.0, 4), np.linspace(0.0, 1.0, 3)), axis=-1).reshape(-1, 2)  # mirrored


def played(policy: Policy, decided: dict[str, Any] | None) -> dict[str, Any]:
    """Decisions and laws: some arms are not offered in every fifth round, and rewards come three rounds late."""
    means, noise = np.cos(3.0 * GRID[:, 0]) * GRID[:, 1] * 0.8, np.random.default_rng(1).uniform(-0.1, 0.1, ROUNDS)
    masks = np.random.default_rng(2).random((ROUNDS, len(GRID))) < 0.6
    masks[:, 0] = True
    made: dict[str, Any] = {"arms": [], "probabilities": [], "laws": []}
    open_: list[tuple[int, float]] = []
    for now in range(ROUNDS):
        allowed = masks[now] if now % 5 == 4 else None
        made["laws"].append(policy.law(allowed).tolist())
        if decided is None:
            choice = policy.ask(allowed=allowed)
            ident, arm, probability = choice.id, choice.arm, choice.probability
        else:
            arm, probability = decided["arms"][now], decided["probabilities"][now]
            ident = int(policy.impose(arm, probability, allowed=allowed).decisions.ids[0])
        made["arms"].append(arm)
        made["probabilities"].append(probability)
        open_.append((ident, float(means[arm] + noise[now])))
        if len(open_) > 3:
            policy.tell(*open_.pop(0))
    return made


def fresh() -> dict[str, Any]:
    """AutoBandit on twenty arms along a line, which decides for itself."""
    policy = AutoBandit(ArmSet(np.linspace(0.0, 1.0, 20)[:, None]), seed=3)
    made: dict[str, Any] = {"arms": [], "laws": []}
    for _ in range(12):
        made["laws"].append(policy.law().tolist())
        choice = policy.ask()
        made["arms"].append(choice.arm)
        policy.tell(choice, float(0.5 * np.cos(choice.arm / 3.0)))
    return made


def main() -> None:
    text = sys.stdin.read()
    decided = json.loads(text) if text else {}
    made = {FRESH: fresh()}
    for name, settings in SETTINGS.items():
        arms = ArmSet(GRID, kernel=RBF(0.3))
        policy = POLICIES[name](arms, horizon=ROUNDS, seed=5, reward_range=(-1.0, 1.0), **settings)
        made[name] = played(policy, decided.get(name))
    print(json.dumps(made))


if __name__ == "__main__":
    main()
