"""Policies: one package per family; `registry` is the only list of names."""

from driftbandits.policies.adversarial.exp3 import LinearExp3
from driftbandits.policies.adversarial.exp3s import Exp3S
from driftbandits.policies.auto.policy import AutoBandit
from driftbandits.policies.calibrated.policy import CalibratedOPKB
from driftbandits.policies.core.base import Policy
from driftbandits.policies.gp.forgetting import RestartGPUCB, RestartLinUCB, SlidingWindowGPUCB, SlidingWindowLinUCB
from driftbandits.policies.gp.gpucb import GPUCB, LinUCB
from driftbandits.policies.gp.neuralucb import NeuralUCB, SlidingWindowNeuralUCB
from driftbandits.policies.gp.timevarying import TimeVaryingGPUCB
from driftbandits.policies.gp.triggered import EventTriggeredGPUCB
from driftbandits.policies.gp.weighted import DiscountedLinUCB, WeightedGPUCB
from driftbandits.policies.meta.bob import BanditOverBandit
from driftbandits.policies.meta.master import Master
from driftbandits.policies.paper.constants import Constants, Variant, subgaussian_range
from driftbandits.policies.paper.opkb import OPKB, AdaOPKB
from driftbandits.policies.paper.opnn import OPNN, AdaOPNN
from driftbandits.policies.plain.glr import GLRklUCB
from driftbandits.policies.plain.ucb import DiscountedUCB, SlidingWindowUCB
from driftbandits.policies.plain.uniform import Uniform
from driftbandits.policies.registry import POLICIES, create_policy

__all__ = [
    "AdaOPKB",
    "AdaOPNN",
    "AutoBandit",
    "BanditOverBandit",
    "CalibratedOPKB",
    "Constants",
    "DiscountedLinUCB",
    "DiscountedUCB",
    "EventTriggeredGPUCB",
    "Exp3S",
    "GLRklUCB",
    "GPUCB",
    "LinUCB",
    "LinearExp3",
    "Master",
    "NeuralUCB",
    "OPKB",
    "OPNN",
    "POLICIES",
    "Policy",
    "RestartGPUCB",
    "RestartLinUCB",
    "SlidingWindowGPUCB",
    "SlidingWindowLinUCB",
    "SlidingWindowNeuralUCB",
    "SlidingWindowUCB",
    "TimeVaryingGPUCB",
    "Uniform",
    "Variant",
    "WeightedGPUCB",
    "create_policy",
    "subgaussian_range",
]
