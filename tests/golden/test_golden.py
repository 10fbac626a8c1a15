"""Every policy decides today as it did when these runs were recorded, decision for decision.

`python -m tests.golden.record` records them anew; do so only where a change of behaviour is wanted, and say
why.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from driftbandits.policies import POLICIES
from tests.golden.play import PLAY, ROUNDS, arm_set
from tests.golden.settings import SETTINGS

RECORDED = Path(__file__).with_name("runs.npz")


@pytest.mark.parametrize("world", PLAY)
@pytest.mark.parametrize("name", SETTINGS)
def test_decisions_are_as_recorded(name, world):
    policy = POLICIES[name](arm_set(), horizon=ROUNDS, seed=5, reward_range=(-1.0, 1.0), **SETTINGS[name])
    arms, regrets = PLAY[world](policy)
    with np.load(RECORDED) as recorded:
        expected, total = recorded[f"{name}.{world}.arms"], recorded[f"{name}.{world}.regret"]
    first = int(np.argmax(arms != expected))
    assert np.array_equal(arms, expected), f"decides differently from round {first} on: {arms[first]}"
    assert regrets.sum() == pytest.approx(float(total), rel=1e-12)
    assert policy.reports_changes or not policy.changes


def test_every_recorded_policy_has_every_setting_written_out():
    for name, settings in SETTINGS.items():
        policy = POLICIES[name](arm_set(), horizon=ROUNDS, seed=5, **settings)
        assert set(policy.state_dict()["settings"]) <= set(settings), f"{name} leaves a setting to its default"


def test_the_worlds_are_not_trivial():
    """Most policies beat chance in the plain world, and runs differ from one another."""
    with np.load(RECORDED) as recorded:
        regret = {name: float(recorded[f"{name}.plain.regret"]) for name in SETTINGS}
        runs = {recorded[f"{name}.plain.arms"].tobytes() for name in SETTINGS}
    assert sum(value < 0.8 * regret["Uniform"] for value in regret.values()) >= 18
    assert len(runs) == len(SETTINGS)
