"""Every registered policy passes the shipped suite; a new one gets these tests by being registered."""

import pytest

from driftbandits import AdaOPKB
from driftbandits.policies import POLICIES
from driftbandits.testing import POLICY_CHECKS

FACTORIES = {**POLICIES, "AdaOPKB.published": AdaOPKB.published}


@pytest.mark.parametrize("name", FACTORIES)
@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
def test_policy(check, name):
    check(FACTORIES[name])
