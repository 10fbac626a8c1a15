"""The only list of policies by name."""

from __future__ import annotations

import difflib
from typing import Any

from driftbandits.arms import ArmSet
from driftbandits.errors import InputError
from driftbandits.policies.base import Policy
from driftbandits.policies.opkb import OPKB, AdaOPKB

POLICIES: dict[str, type[Policy]] = {policy.__name__: policy for policy in (OPKB, AdaOPKB)}


def create_policy(name: str, arms: ArmSet, **settings: Any) -> Policy:
    """Build a policy by name.

    >>> create_policy("OPKB", ArmSet([[0.0], [1.0]]), horizon=100).horizon
    100
    """
    if name not in POLICIES:
        near = difflib.get_close_matches(name, POLICIES, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(f"no policy is called {name!r}; {hint}known: {', '.join(POLICIES)}")
    return POLICIES[name](arms, **settings)
