"""Kernel bandits that notice when the world changes: `import driftbandits as db` is the whole interface."""

from driftbandits import environments, errors
from driftbandits.arms import ArmSet
from driftbandits.design import Design, Status, effective_dimension, information_gain, solve_design
from driftbandits.errors import DriftbanditsError
from driftbandits.kernels import kernel_from_config
from driftbandits.policies import OPKB, POLICIES, AdaOPKB, Constants, Policy, Variant, create_policy, subgaussian_range
from driftbandits.simulation import Trace, simulate
from driftbandits.types import Change, Decision, Decisions

__version__ = "0.1.0"

__all__ = [
    "AdaOPKB",
    "ArmSet",
    "Change",
    "Constants",
    "Decision",
    "Decisions",
    "Design",
    "DriftbanditsError",
    "OPKB",
    "POLICIES",
    "Policy",
    "Status",
    "Trace",
    "Variant",
    "create_policy",
    "effective_dimension",
    "environments",
    "errors",
    "information_gain",
    "kernel_from_config",
    "simulate",
    "solve_design",
    "subgaussian_range",
]
