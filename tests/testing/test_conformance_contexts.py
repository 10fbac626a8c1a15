"""The shipped suite with contexts: policies that are asked for the same request again and again."""

from functools import partial

import numpy as np
import pytest

from driftbandits import Contexts, DisjointLinThompson, DisjointLinUCB
from driftbandits.policies.auto.contextual import ContextualAutoBandit
from driftbandits.testing import POLICY_CHECKS
from tests.policies.base_class_checks import DISTURBANCES, INPUTS, WAITING

CONTEXTS = Contexts(hour=(0, 24), device=["mobile", "desktop"])
REQUEST = {"hour": 6, "device": "desktop"}
# exact for arms without points (tests/policies/auto/test_contexts.py); others share features, which are cut
APPROXIMATE = {("Auto", "kept_arms_keep_what_is_known")}


class SameRequest:
    """Asks, and speaks, of one request."""

    def ask(self, size=None, allowed=None):
        if size is None:
            return super().ask(allowed=allowed, context=REQUEST)
        return super().ask(allowed=allowed, contexts=[REQUEST] * size) if valid(size) else super().ask(size)

    def impose(self, arms, probabilities, allowed=None, *, contexts=None):
        return super().impose(
            arms, probabilities, allowed, contexts=[REQUEST] * np.size(arms) if contexts is None else contexts
        )

    def learn(self, log):
        columns = {f"context.{name}": [value] * len(log["arm"]) for name, value in REQUEST.items()}
        super().learn({**log, **columns})

    def law(self, allowed=None):
        return super().law(allowed, context=REQUEST)


def valid(size):
    return isinstance(size, int) and not isinstance(size, bool) and 0 < size < 10**6


class Auto(SameRequest, ContextualAutoBandit):
    pass


class LinUCB(SameRequest, DisjointLinUCB):
    pass


class LinThompson(SameRequest, DisjointLinThompson):
    pass


FACTORIES = {kind.__name__: partial(kind, contexts=CONTEXTS) for kind in (Auto, LinUCB, LinThompson)}


@pytest.mark.parametrize("name", FACTORIES)
@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
def test_policy(check, name):
    if (name, check.__name__) in APPROXIMATE:
        with pytest.raises(AssertionError, match=r"moved by 0\.0"):
            check(FACTORIES[name])
    else:
        check(FACTORIES[name])


@pytest.mark.parametrize("check", [*INPUTS, *WAITING, *DISTURBANCES], ids=lambda check: check.__name__)
def test_base_class(check):
    check(FACTORIES["Auto"])
