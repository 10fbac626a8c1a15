"""Every setting of every policy as the library's experiments play it where they say nothing else, as plain values.

Searches and recorded results refer to these values, so they do not follow the defaults of the classes: a default may
become better, and what was played stays what it was. None stands for the rule that the class documents for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PAPER_CONSTANTS = {
    "sigma": 168.0,
    "failure_probability": 1e-4,
    "c0": 8.89,
    "c1": 0.0507,
    "c2": 2.41,
    "c3": 0.0293,
    "c4": 0.0266,
    "scale": None,
}
_NEURAL_CONSTANTS = {
    "sigma": 740.0,
    "failure_probability": 1e-4,
    "c0": 1.63,
    "c1": 0.156,
    "c2": 7.16,
    "c3": 0.0507,
    "c4": 0.0113,
    "scale": None,
}
_OPKB = {"constants": _PAPER_CONSTANTS, "variant": "paper"}
_OPNN = {
    "width": 2048,
    "depth": 3,
    "steps": 100,
    "learning_rate": "auto",
    "weight_decay": 10.0,
    "train": True,
    "symmetric": False,
    "normalise": True,
    "device": None,
    "constants": _NEURAL_CONSTANTS,
    "variant": "paper",
}
_GPUCB = {"ridge": 0.05, "scale": 1.0, "noise": None, "bound": None, "failure_probability": 0.01, "beta": "ridge"}
_NEURAL_UCB = {
    **_GPUCB,
    "width": 100,
    "depth": 2,
    "steps": 100,
    "learning_rate": "auto",
    "every": 100,
    "symmetric": True,
    "device": None,
}
_PLAIN_UCB = {"switches": 1, "scale": 1.0, "noise": None}

FIRST_SETTINGS: dict[str, dict[str, Any]] = {
    "OPKB": _OPKB,
    "AdaOPKB": _OPKB,
    "OPNN": _OPNN,
    "AdaOPNN": _OPNN,
    "GPUCB": _GPUCB,
    "RestartGPUCB": {**_GPUCB, "period": None, "variation": 1.0},
    "SlidingWindowGPUCB": {**_GPUCB, "window": None, "variation": 1.0},
    "WeightedGPUCB": {**_GPUCB, "discount": None, "variation": 1.0, "width": "one_matrix"},
    "TimeVaryingGPUCB": {
        "rate": 3e-4,
        "ridge": None,
        "scale": 1.0,
        "noise": None,
        "failure_probability": 0.01,
        "beta": 1.0,
    },
    "EventTriggeredGPUCB": _GPUCB,
    "DetectionAugmentedGPUCB": {**_GPUCB, "cover": 10, "exploration": 0.3},
    "LinUCB": _GPUCB,
    "RestartLinUCB": {**_GPUCB, "period": None, "variation": 1.0},
    "SlidingWindowLinUCB": {**_GPUCB, "window": None, "variation": 1.0},
    "DiscountedLinUCB": {**_GPUCB, "discount": None, "variation": 1.0, "width": "two_matrix"},
    "LinearExp3": {"restart": None, "variation": 1.0, "kernel": False, "ridge": 0.05},
    "Master": {
        "base": "GPUCB",
        "mode": "practical",
        "length": None,
        "replay_scale": None,
        "tests": None,
        "c_rho": 1.0,
        "c1": 1.0,
        "c2": 1.0,
        "noise": None,
        "failure_probability": 0.01,
    },
    "BanditOverBandit": {
        "base": "SlidingWindowLinUCB",
        "candidates": None,
        "learner": "exp3",
        "block": None,
        "failure_probability": 0.01,
    },
    "NeuralUCB": _NEURAL_UCB,
    "SlidingWindowNeuralUCB": {**_NEURAL_UCB, "window": None, "variation": 1.0},
    "SlidingWindowUCB": {**_PLAIN_UCB, "window": None},
    "DiscountedUCB": {**_PLAIN_UCB, "discount": None},
    "GLRklUCB": {
        "divergence": "gaussian",
        "noise": None,
        "failure_probability": None,
        "threshold": "practical",
        "exploration": 0.1,
        "restart": "global",
        "test_every": 10,
        "split_every": 5,
        "scale": 1.0,
    },
    "Exp3S": {"switches": 1, "exploration": None, "share": None},
    "CalibratedOPKB": {"false_alarm": 0.1, "mode": "practical", "kernel": "auto", "order": "told"},
    "AutoBandit": {"kernel": "auto", "floor": 0.001, "rank": 100},
    "Uniform": {},
}
MASTER_BASE = {"beta": 1.0, "ridge": 0.05}  # of a GPUCB or LinUCB inside MASTER, in the place of their own
SIZES = ("window", "period", "discount", "restart")  # what BOB chooses for its base


def written_out(policy: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a policy, those of its base included: `settings`, and the first ones where they say nothing.

    A user's own class (`file.py:Class`) has no first settings, and is played with `settings` alone.

    >>> written_out("DiscountedUCB", {"discount": 0.99})
    {'switches': 1, 'scale': 1.0, 'noise': None, 'discount': 0.99}
    """
    every = {**FIRST_SETTINGS.get(policy, {}), **settings}
    if "base" not in every:
        return every
    base = FIRST_SETTINGS.get(every["base"], {})
    if policy == "Master" and "beta" in base:
        base = {**base, **MASTER_BASE}
    if policy == "BanditOverBandit":
        base = {name: value for name, value in base.items() if name not in SIZES}
    return {**every, "base_settings": {**base, **every.get("base_settings", {})}}
