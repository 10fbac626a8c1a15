"""Every policy believes today what it did when these runs were recorded, along the decisions recorded.

On the kind of machine that recorded them, to the bit; on others within a tolerance, as `docs/machines.md` says: laws
and estimates within `TOLERANCE`, and in at most `CLOSE` of 2,000 rounds another draw, where two arms are nearly equal.
`python -m tests.golden.record` records them anew; do so only where a change of behaviour is wanted, and say why.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from driftbandits._util.machine import fingerprint
from driftbandits.policies import POLICIES
from tests.golden.play import PLAY, ROUNDS, Run, arm_set
from tests.golden.settings import SETTINGS

RECORDED = Path(__file__).with_name("runs.npz")
TOLERANCE = 1e-6  # of laws and estimates on another kind of machine
SINGLE = 1e-4  # the same where a network computes in single precision
CLOSE = 2
NETWORKS = ("OPNN", "AdaOPNN", "NeuralUCB", "SlidingWindowNeuralUCB")


def new_policy(name, **others):
    settings = {**SETTINGS[name], **others}
    return POLICIES[name](arm_set(), horizon=ROUNDS, seed=5, reward_range=(-1.0, 1.0), **settings)


def recorded_run(name, world):
    """The run, and on what machine it was recorded."""
    with np.load(RECORDED) as columns:
        parts = {part: columns[f"{name}.{world}.{part}"] for part in ("arms", "probabilities", "laws", "estimates")}
        run = Run(**parts, regret=float(columns[f"{name}.{world}.regret"]))
        return run, str(columns[f"{name}.{world}.machine"])


def require_recorded(policy, name, world):
    given, machine = recorded_run(name, world)
    found = PLAY[world](policy, given)
    here = machine == fingerprint()
    tolerance = 0.0 if here else SINGLE if name in NETWORKS else TOLERANCE
    assert found.differing <= (0 if here else CLOSE), f"{found.differing} rounds would be drawn otherwise"
    assert found.largest <= tolerance
    assert found.regret == pytest.approx(given.regret, rel=1e-12)
    parted = np.abs(np.array(found.laws) - given.laws).max(axis=1) > tolerance
    assert parted.sum() <= (0 if here else CLOSE), f"laws differ, first before round {25 * parted.argmax()}"
    np.testing.assert_allclose(np.array(found.estimates), given.estimates, rtol=0.0, atol=tolerance)


@pytest.mark.parametrize("world", PLAY)
@pytest.mark.parametrize("name", SETTINGS)
def test_beliefs_are_as_recorded(name, world):
    policy = new_policy(name)
    require_recorded(policy, name, world)
    assert policy.reports_changes or not policy.changes


def test_where_they_were_recorded_decisions_are_the_same_too():
    for name in ("AutoBandit", "AdaOPKB", "GPUCB"):
        given, machine = recorded_run(name, "plain")
        if machine != fingerprint():
            pytest.skip(f"recorded on {machine}; this is {fingerprint()}")
        assert np.array_equal(PLAY["plain"](new_policy(name)).arms, given.arms)


def _as_on_another_machine(monkeypatch):
    monkeypatch.setattr("tests.golden.test_golden.fingerprint", lambda: "another machine")


def _wrong_sign(policy):
    tell = policy.tell
    policy.tell = lambda ident, reward: tell(ident, -reward)
    return policy


PLANTED = {
    "a reward's sign": ("SlidingWindowUCB", lambda: _wrong_sign(new_policy("SlidingWindowUCB"))),
    "a window one longer": ("SlidingWindowGPUCB", lambda: new_policy("SlidingWindowGPUCB", window=301)),
    "a constant 1 % larger": ("DiscountedUCB", lambda: new_policy("DiscountedUCB", discount=0.9901)),
    "a floor 1 % larger": ("AutoBandit", lambda: new_policy("AutoBandit", floor=0.00101)),
}


@pytest.mark.parametrize("change", PLANTED)
def test_a_changed_algorithm_fails_on_any_machine(change, monkeypatch):
    _as_on_another_machine(monkeypatch)
    name, build = PLANTED[change]
    require_recorded(new_policy(name), name, "plain")
    with pytest.raises(AssertionError):
        require_recorded(build(), name, "plain")


def test_every_recorded_policy_has_every_setting_written_out():
    for name, settings in SETTINGS.items():
        policy = new_policy(name)
        assert set(policy.state_dict()["settings"]) <= set(settings), f"{name} leaves a setting to its default"


def test_the_worlds_are_not_trivial():
    """Most policies beat chance in the plain world, and runs differ from one another."""
    with np.load(RECORDED) as recorded:
        regret = {name: float(recorded[f"{name}.plain.regret"]) for name in SETTINGS}
        runs = {recorded[f"{name}.plain.arms"].tobytes() for name in SETTINGS}
    assert sum(value < 0.8 * regret["Uniform"] for value in regret.values()) >= 18
    assert len(runs) == len(SETTINGS)
