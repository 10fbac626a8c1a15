"""Conformance suites that any policy, world or store must pass, for this library's own and for yours.

import pytest
from driftbandits.testing import POLICY_CHECKS

@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
def test_my_policy(check):
    check(MyPolicy)

ENVIRONMENT_CHECKS take a world's class or any function that gives a world for `seed=...`; STORE_CHECKS take a function
that opens a store, as in `check(lambda: MyStore(tmp_path / "cells.db"))`.
"""

from driftbandits.testing.environments import ENVIRONMENT_CHECKS, EnvironmentFactory
from driftbandits.testing.helpers import PolicyFactory
from driftbandits.testing.policies import BEHAVIOUR, LAWS
from driftbandits.testing.states import ARMS, STATES
from driftbandits.testing.stores import STORE_CHECKS, StoreFactory

POLICY_CHECKS = (*BEHAVIOUR, *LAWS, *STATES, *ARMS)

__all__ = [
    "ENVIRONMENT_CHECKS",
    "POLICY_CHECKS",
    "STORE_CHECKS",
    "EnvironmentFactory",
    "PolicyFactory",
    "StoreFactory",
]
