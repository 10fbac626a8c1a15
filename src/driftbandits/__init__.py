"""Kernel bandits that notice when the world changes: `import driftbandits as db` is the whole interface."""

from driftbandits import environments, errors
from driftbandits.arms import ArmSet
from driftbandits.design import Design, Status, effective_dimension, information_gain, solve_design
from driftbandits.errors import DriftbanditsError
from driftbandits.kernels import kernel_from_config
from driftbandits.policies import (
    GPUCB,
    OPKB,
    POLICIES,
    AdaOPKB,
    BanditOverBandit,
    Constants,
    DiscountedLinUCB,
    DiscountedUCB,
    EventTriggeredGPUCB,
    Exp3S,
    GLRklUCB,
    LinearExp3,
    LinUCB,
    Master,
    Policy,
    RestartGPUCB,
    RestartLinUCB,
    SlidingWindowGPUCB,
    SlidingWindowLinUCB,
    SlidingWindowUCB,
    TimeVaryingGPUCB,
    Uniform,
    Variant,
    WeightedGPUCB,
    create_policy,
    subgaussian_range,
)
from driftbandits.simulation import Trace, simulate
from driftbandits.types import Change, Decision, Decisions

__version__ = "0.1.0"

__all__ = [
    "AdaOPKB",
    "ArmSet",
    "BanditOverBandit",
    "Change",
    "Constants",
    "Decision",
    "Decisions",
    "Design",
    "DiscountedLinUCB",
    "DiscountedUCB",
    "DriftbanditsError",
    "EventTriggeredGPUCB",
    "Exp3S",
    "GLRklUCB",
    "GPUCB",
    "LinUCB",
    "LinearExp3",
    "Master",
    "OPKB",
    "POLICIES",
    "Policy",
    "RestartGPUCB",
    "RestartLinUCB",
    "SlidingWindowGPUCB",
    "SlidingWindowLinUCB",
    "SlidingWindowUCB",
    "Status",
    "TimeVaryingGPUCB",
    "Trace",
    "Uniform",
    "Variant",
    "WeightedGPUCB",
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
