"""Policies: one family a file; `registry` is the only list of names."""

from driftbandits.policies.autobandit import AutoBandit
from driftbandits.policies.base import Policy
from driftbandits.policies.bob import BanditOverBandit
from driftbandits.policies.calibrated_opkb import CalibratedOPKB
from driftbandits.policies.constants import Constants, Variant, subgaussian_range
from driftbandits.policies.detectable import first_detectable_horizon
from driftbandits.policies.exp3 import LinearExp3
from driftbandits.policies.exp3s import Exp3S
from driftbandits.policies.forgetting import RestartGPUCB, RestartLinUCB, SlidingWindowGPUCB, SlidingWindowLinUCB
from driftbandits.policies.glr import GLRklUCB
from driftbandits.policies.gpucb import GPUCB, LinUCB
from driftbandits.policies.master import Master
from driftbandits.policies.neuralucb import NeuralUCB, SlidingWindowNeuralUCB
from driftbandits.policies.opkb import OPKB, AdaOPKB
from driftbandits.policies.opnn import OPNN, AdaOPNN
from driftbandits.policies.plain import DiscountedUCB, SlidingWindowUCB, Uniform
from driftbandits.policies.registry import POLICIES, create_policy
from driftbandits.policies.timevarying import TimeVaryingGPUCB
from driftbandits.policies.triggered import EventTriggeredGPUCB
from driftbandits.policies.weighted import DiscountedLinUCB, WeightedGPUCB

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
    "first_detectable_horizon",
    "subgaussian_range",
]
