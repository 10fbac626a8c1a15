"""Every registered policy passes the shipped suite; a new one gets these tests by being registered."""

from dataclasses import replace
from functools import partial

import pytest

from driftbandits import AdaOPKB, Constants
from driftbandits.policies import POLICIES
from driftbandits.testing import POLICY_CHECKS
from driftbandits.testing.policies import learns
from tests.policies.base_class_checks import DISTURBANCES, INPUTS, WAITING

SMALL = {"width": 16, "steps": 5}  # the default width of 2,048 would take hours
QUICK = Constants(
    sigma=1.0, failure_probability=1e-2, c0=1.3, c1=0.5, c2=0.3, c3=0.02, c4=0.5
)  # trainings and restarts early
BLOCKS = {**SMALL, "constants": QUICK}
NEURAL = {
    "OPNN": BLOCKS,
    "AdaOPNN": BLOCKS,
    "NeuralUCB": {**SMALL, "every": 20},
    "SlidingWindowNeuralUCB": {**SMALL, "every": 20, "window": 30},
}
FACTORIES = {
    **POLICIES,
    **{name: partial(POLICIES[name], **settings) for name, settings in NEURAL.items()},
    "AdaOPKB.published": AdaOPKB.published,
    "AdaOPNN untrained": partial(POLICIES["AdaOPNN"], train=False, **BLOCKS),
}


@pytest.mark.parametrize("name", FACTORIES)
@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
def test_policy(check, name):
    check(FACTORIES[name])


@pytest.mark.parametrize("name", ["AutoBandit", "GPUCB", "AdaOPKB.published"])
@pytest.mark.parametrize("check", [*INPUTS, *WAITING, *DISTURBANCES], ids=lambda check: check.__name__)
def test_base_class(check, name):
    """What no policy writes itself: one that mixes hypotheses, one with an argmax, one that plays blocks."""
    check(FACTORIES[name])


def test_a_flipped_sign_of_rewards_is_found():
    class Contrary(POLICIES["SlidingWindowUCB"]):
        def _learn(self, feedback):
            super()._learn(replace(feedback, rewards=-feedback.rewards))

    with pytest.raises(AssertionError, match="does not learn"):
        learns(Contrary)
