"""Conformance suites that any policy must pass, for this library's own and for yours.

import pytest
from driftbandits.testing import POLICY_CHECKS

@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
def test_my_policy(check):
    check(MyPolicy)
"""

from driftbandits.testing.disturbances import DISTURBANCES
from driftbandits.testing.helpers import PolicyFactory
from driftbandits.testing.policies import BEHAVIOUR

POLICY_CHECKS = (*BEHAVIOUR, *DISTURBANCES)

__all__ = ["POLICY_CHECKS", "PolicyFactory"]
