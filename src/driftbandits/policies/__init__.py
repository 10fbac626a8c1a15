"""Policies: one package per family. The imports and `__all__` here are the only list of them.

`POLICIES` and `driftbandits.<name>` follow from it; what else is known of a policy stands on its class.
"""

from __future__ import annotations

from typing import Any

from driftbandits.arms.arm_set import ArmSet
from driftbandits.errors import InputError, did_you_mean
from driftbandits.policies.algorithm import Family
from driftbandits.policies.auto.policy import AutoBandit
from driftbandits.policies.base import Policy
from driftbandits.policies.gp.detecting import DetectionAugmentedGPUCB, EventTriggeredGPUCB
from driftbandits.policies.gp.forgetting import RestartGPUCB, RestartLinUCB, SlidingWindowGPUCB, SlidingWindowLinUCB
from driftbandits.policies.gp.gpucb import GPUCB, LinUCB
from driftbandits.policies.gp.neuralucb import NeuralUCB, SlidingWindowNeuralUCB
from driftbandits.policies.gp.timevarying import TimeVaryingGPUCB
from driftbandits.policies.gp.weighted import DiscountedLinUCB, WeightedGPUCB
from driftbandits.policies.opkb.calibrated import CalibratedOPKB
from driftbandits.policies.opkb.constants import Constants, Variant, subgaussian_range
from driftbandits.policies.opkb.opkb import OPKB, AdaOPKB
from driftbandits.policies.opkb.opnn import OPNN, AdaOPNN
from driftbandits.policies.rivals.augmented import DetectionAugmented
from driftbandits.policies.rivals.bob import BanditOverBandit
from driftbandits.policies.rivals.disjoint import DisjointLinThompson, DisjointLinUCB
from driftbandits.policies.rivals.exp3 import Exp3S, LinearExp3
from driftbandits.policies.rivals.master import Master
from driftbandits.policies.rivals.thompson import (
    DiscountedLinThompson,
    GPThompson,
    LinThompson,
    SlidingWindowThompson,
    ThompsonSampling,
    TimeVaryingGPThompson,
    WeightedGPThompson,
)
from driftbandits.policies.ucb.detecting import CUSUMUCB, MUCB
from driftbandits.policies.ucb.glr import GLRklUCB
from driftbandits.policies.ucb.ucb import KLUCB, UCB1, DiscountedUCB, EpsilonGreedy, SlidingWindowUCB, Uniform

__all__ = [
    "AdaOPKB",
    "AdaOPNN",
    "AutoBandit",
    "BanditOverBandit",
    "CUSUMUCB",
    "CalibratedOPKB",
    "Constants",
    "DetectionAugmented",
    "DetectionAugmentedGPUCB",
    "DiscountedLinThompson",
    "DiscountedLinUCB",
    "DiscountedUCB",
    "DisjointLinThompson",
    "DisjointLinUCB",
    "EpsilonGreedy",
    "EventTriggeredGPUCB",
    "Exp3S",
    "GLRklUCB",
    "GPThompson",
    "KLUCB",
    "GPUCB",
    "LinThompson",
    "LinUCB",
    "LinearExp3",
    "MUCB",
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
    "SlidingWindowThompson",
    "SlidingWindowUCB",
    "ThompsonSampling",
    "TimeVaryingGPThompson",
    "TimeVaryingGPUCB",
    "UCB1",
    "Uniform",
    "Variant",
    "WeightedGPThompson",
    "WeightedGPUCB",
    "create_policy",
    "subgaussian_range",
]

_CLASSES = [kind for kind in map(globals().get, __all__) if isinstance(kind, type) and issubclass(kind, Policy)]
_FAMILIES = list(Family)
POLICIES: dict[str, type[Policy]] = {
    kind.__name__: kind
    for kind in sorted(_CLASSES, key=lambda kind: _FAMILIES.index(Family(kind.family)))
    if kind is not Policy
}

# What tables and figures call policies whose authors have another name for them than their class.
LABELS = {
    "AdaOPKB": "ADA-OPKB",
    "AdaOPNN": "ADA-OPNN",
    "SlidingWindowNeuralUCB": "SW-NeuralUCB",
    "DetectionAugmentedGPUCB": "DAL-GP-UCB",
    "EventTriggeredGPUCB": "ET-GP-UCB",
    "RestartGPUCB": "R-GPUCB",
    "SlidingWindowGPUCB": "SW-GPUCB",
    "TimeVaryingGPUCB": "TV-GP-UCB",
    "WeightedGPUCB": "WGPUCB",
    "BanditOverBandit": "BOB",
    "Master": "MASTER",
    "DiscountedLinUCB": "D-LinUCB",
    "LinearExp3": "Restart-Adv",
    "RestartLinUCB": "RestartUCB",
    "SlidingWindowLinUCB": "SW-LinUCB",
    "DiscountedUCB": "D-UCB",
    "Exp3S": "Exp3.S",
    "GLRklUCB": "GLR-klUCB",
    "SlidingWindowUCB": "SW-UCB",
    "CUSUMUCB": "CUSUM-UCB",
    "DetectionAugmented": "DAL",
    "DiscountedLinThompson": "D-LinTS",
    "DisjointLinThompson": "disjoint LinTS",
    "DisjointLinUCB": "disjoint LinUCB",
    "EpsilonGreedy": "epsilon-greedy",
    "KLUCB": "kl-UCB",
    "MUCB": "M-UCB",
    "GPThompson": "GP-TS",
    "LinThompson": "LinTS",
    "SlidingWindowThompson": "SW-TS",
    "ThompsonSampling": "TS",
    "TimeVaryingGPThompson": "TV-GP-TS",
    "WeightedGPThompson": "W-GP-TS",
}


def policy_label(kind: type[Policy]) -> str:
    """What tables and figures call a policy where nothing is said: its authors' name for it, or that of its class.

    >>> policy_label(SlidingWindowGPUCB), policy_label(GPUCB)
    ('SW-GPUCB', 'GPUCB')
    """
    name = kind.__name__
    return LABELS.get(name, name) if POLICIES.get(name) is kind else name


def create_policy(name: str, arms: ArmSet, **settings: Any) -> Policy:
    """Build a policy by name.

    Parameters
    ----------
    name : of its class, one of `POLICIES`
    arms : the options to choose from
    settings : those of the class

    Returns
    -------
    Policy

    Raises
    ------
    InputError
        If no policy has that name, with the nearest that exists; and for settings that the class refuses.

    >>> create_policy("OPKB", ArmSet([[0.0], [1.0]]), horizon=100).horizon
    100
    """
    return find_policy(name)(arms, **settings)


def find_policy(name: str) -> type[Policy]:
    """The class of a registered policy; InputError with the nearest name if there is none."""
    if not isinstance(name, str):
        raise InputError(f"a policy is created by its name, got {name!r}; call a class itself instead")
    if name not in POLICIES:
        hint = did_you_mean(name, POLICIES, cutoff=0.4)
        raise InputError(f"no policy is called {name!r}; {hint}known: {', '.join(POLICIES)}")
    return POLICIES[name]
