"""Policies: one family a file; `registry` is the only list of names."""

from driftbandits.policies.base import Policy
from driftbandits.policies.constants import Constants, Variant, subgaussian_range
from driftbandits.policies.opkb import OPKB, AdaOPKB
from driftbandits.policies.registry import POLICIES, create_policy

__all__ = ["Policy", "Constants", "Variant", "subgaussian_range", "OPKB", "AdaOPKB", "POLICIES", "create_policy"]
