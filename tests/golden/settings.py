"""All policies with every setting written out, so that a new default changes no golden run."""

from __future__ import annotations

from typing import Any

from driftbandits import Constants, Variant

_VARIANT = Variant(share=0.5, lowest_index=0, threshold="smaller_index", test_block=True, good_arms_by="initial_gain")
_BLOCKS = Constants(
    sigma=1.0, failure_probability=1e-2, c0=1.3, c1=0.5, c2=0.3, c3=0.02, c4=0.5, scale=None
)  # several blocks and restarts
_PAPER = {"constants": _BLOCKS, "variant": _VARIANT}
_NETWORK = {
    **_PAPER,
    "width": 16,
    "depth": 2,
    "steps": 5,
    "learning_rate": "auto",
    "weight_decay": 1.0,
    "symmetric": False,
    "normalise": True,
    "device": None,
    "train": True,
}
_GP = {"ridge": 0.05, "scale": 1.0, "noise": 0.1, "bound": 1.0, "failure_probability": 0.01, "beta": "ridge"}
_SAMPLED = {**_GP, "beta": 1.0, "samples": 64}
_NEURAL = {
    **_GP,
    "width": 16,
    "depth": 2,
    "steps": 5,
    "learning_rate": "auto",
    "symmetric": True,
    "device": None,
    "every": 50,
}

SETTINGS: dict[str, dict[str, Any]] = {
    "OPKB": _PAPER,
    "AdaOPKB": _PAPER,
    "OPNN": _NETWORK,
    "AdaOPNN": _NETWORK,
    "GPUCB": _GP,
    "RestartGPUCB": {**_GP, "period": 400, "variation": 1.0},
    "SlidingWindowGPUCB": {**_GP, "window": 300, "variation": 1.0},
    "WeightedGPUCB": {**_GP, "discount": 0.99, "variation": 1.0, "width": "one_matrix"},
    "TimeVaryingGPUCB": {
        "rate": 0.003,
        "ridge": 0.05,
        "scale": 1.0,
        "noise": 0.1,
        "failure_probability": 0.01,
        "beta": 1.0,
    },
    "EventTriggeredGPUCB": _GP,
    "DetectionAugmentedGPUCB": {**_GP, "cover": 5, "exploration": 0.3},
    "LinUCB": _GP,
    "RestartLinUCB": {**_GP, "period": 400, "variation": 1.0},
    "SlidingWindowLinUCB": {**_GP, "window": 300, "variation": 1.0},
    "DiscountedLinUCB": {**_GP, "discount": 0.99, "variation": 1.0, "width": "two_matrix"},
    "LinearExp3": {"restart": 500, "variation": 1.0, "kernel": False, "ridge": 0.05},
    "Master": {
        "base": "GPUCB",
        "base_settings": {
            "beta": 1.0,
            "ridge": 0.05,
            "scale": 1.0,
            "noise": 0.1,
            "bound": 1.0,
            "failure_probability": 0.01,
        },
        "mode": "practical",
        "length": 32,
        "replay_scale": 0.3,
        "tests": "calibrated",
        "c_rho": 1.0,
        "c1": 1.0,
        "c2": 1.0,
        "noise": 0.1,
        "failure_probability": 0.01,
    },
    "BanditOverBandit": {
        "base": "SlidingWindowLinUCB",
        "candidates": (50, 200, 800),
        "learner": "exp3",
        "block": 100,
        "base_settings": {
            "ridge": 0.05,
            "scale": 1.0,
            "noise": 0.1,
            "bound": 1.0,
            "failure_probability": 0.01,
            "beta": "ridge",
        },
        "failure_probability": 0.01,
    },
    "NeuralUCB": _NEURAL,
    "SlidingWindowNeuralUCB": {**_NEURAL, "window": 300, "variation": 1.0},
    "SlidingWindowUCB": {"window": 300, "switches": 1.0, "scale": 1.0, "noise": 0.1},
    "DiscountedUCB": {"discount": 0.99, "switches": 1.0, "scale": 1.0, "noise": 0.1},
    "GLRklUCB": {
        "divergence": "gaussian",
        "noise": 0.1,
        "failure_probability": 0.001,
        "threshold": "practical",
        "exploration": 0.1,
        "restart": "global",
        "test_every": 10,
        "split_every": 5,
        "scale": 1.0,
    },
    "Exp3S": {"switches": 1.0, "exploration": 0.1, "share": 0.001},
    "CalibratedOPKB": {"false_alarm": 0.1, "mode": "practical", "kernel": "auto", "order": "told"},
    "AutoBandit": {"kernel": "auto", "floor": 0.001, "rank": 100},
    "Uniform": {},
    "ThompsonSampling": {
        "prior": "gaussian",
        "discount": 0.99,
        "switches": 1.0,
        "scale": 1.0,
        "noise": 0.1,
        "samples": 64,
    },
    "SlidingWindowThompson": {
        "prior": "beta",
        "window": 300,
        "switches": 1.0,
        "scale": 1.0,
        "noise": 0.1,
        "samples": 64,
    },
    "GPThompson": {**_SAMPLED},
    "LinThompson": {**_SAMPLED},
    "WeightedGPThompson": {**_SAMPLED, "discount": 0.99, "variation": 1.0, "width": "one_matrix"},
    "DiscountedLinThompson": {**_SAMPLED, "discount": 0.99, "variation": 1.0, "width": "two_matrix"},
    "DisjointLinUCB": {"discount": 0.997, "beta": 0.3, "ridge": 1.0},
    "DisjointLinThompson": {"discount": 0.997, "beta": 0.3, "ridge": 1.0, "samples": 64},
    "TimeVaryingGPThompson": {
        "rate": 0.003,
        "ridge": 0.05,
        "scale": 1.0,
        "noise": 0.1,
        "failure_probability": 0.01,
        "beta": 1.0,
        "samples": 64,
    },
    "UCB1": {"scale": 0.2, "discount": 1.0, "switches": None, "noise": None},
    "KLUCB": {"exploration": 0.0, "scale": 1.0, "discount": 1.0, "switches": None, "noise": None},
    "EpsilonGreedy": {"epsilon": 0.1, "decay": None, "discount": 0.99, "switches": 1.0, "noise": 0.1},
    "MUCB": {"window": 40, "threshold": 5.0, "exploration": 0.1, "switches": 1.0, "scale": 0.2},
    "CUSUMUCB": {"warmup": 10, "drift": 0.05, "threshold": 2.0, "exploration": 0.1, "scale": 0.2},
    "DetectionAugmented": {
        "base": "ThompsonSampling",
        "base_settings": {"prior": "gaussian", "discount": 1.0, "scale": 1.0, "noise": 0.1, "samples": 64},
        "cover": 5,
        "exploration": 0.3,
        "noise": 0.1,
        "failure_probability": 0.01,
    },
}
