"""Along the same decisions, every policy has the same laws on every kind of machine, up to rounding."""

from __future__ import annotations

import json

import numpy as np
import pytest

from driftbandits.policies import POLICIES
from tests.machines import KINDS, run, why_not
from tests.policies.on_a_machine import FRESH

MODULE = "tests.policies.on_a_machine"
NETWORKS = {"OPNN", "AdaOPNN", "NeuralUCB", "SlidingWindowNeuralUCB"}  # which compute in single precision


@pytest.fixture(scope="module")
def decided():
    """What is decided on this machine, and by what laws."""
    return json.loads(run("native", "-m", MODULE, text=""))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "native"])
def test_laws_are_the_same_on_other_machines(decided, kind):
    if reason := why_not(kind):
        pytest.skip(reason)
    there = json.loads(run(kind, "-m", MODULE, text=json.dumps(decided)))
    assert set(there) == {FRESH, *POLICIES}
    off = {name: np.abs(np.array(there[name]["laws"]) - decided[name]["laws"]).max() for name in there}
    assert {name: much for name, much in off.items() if much > (1e-4 if name in NETWORKS else 1e-6)} == {}
    assert off[FRESH] < 1e-9
    assert there[FRESH]["arms"] == decided[FRESH]["arms"]
