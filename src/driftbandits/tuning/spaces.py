"""What is searched for each policy of the comparison: the settings its authors tune, over the paper's ranges and wider.

Every space is searched with the same number of points and runs, so a policy with more settings is searched more thinly:
that is the price of having them. The policy's settings in `definitions.first_settings` are always among the points, and
so are the settings of the authors' files where those give some.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from driftbandits.experiments.definitions.rows import GPUCB_PUBLISHED_SETTINGS
from driftbandits.policies import Constants
from driftbandits.tuning.points import Space, Values

RIDGE_AND_SCALE = {"ridge": (0.01, 1.0), "scale": (0.02, 1.0)}
MEMORY_RANGE = (100.0, 10_000.0)
SW_GPUCB_PUBLISHED_POINT = {**GPUCB_PUBLISHED_SETTINGS, "window": 3_000.0}
WGPUCB_PUBLISHED_POINT = {"ridge": 0.01, "scale": 0.5, "memory": 2_500.0}  # a discount of 0.9996
PAPER_CONSTANTS = {  # within the paper's grid, where blocks are neither a few rounds nor the whole run
    "sigma": (10.0, 1000.0),
    "c0": (0.5, 20.0),
    "c1": (0.02, 1.0),
    "c2": (0.2, 10.0),
    "c3": (0.01, 0.5),
    "c4": (0.01, 3.0),
}


def _plain(values: Values) -> dict[str, Any]:
    return dict(values)


def _whole(name: str) -> Callable[[Values], dict[str, Any]]:
    """Settings with one that must be a whole number."""
    return lambda values: {key: round(value) if key == name else value for key, value in values.items()}


def _memory(values: Values) -> dict[str, Any]:
    """A memory of w rounds is a discount of 1 - 1 / w; searched as memory, for discounts crowd at 1."""
    rest = {name: value for name, value in values.items() if name != "memory"}
    return {**rest, "discount": 1.0 - 1.0 / values["memory"]} if values else rest


def _constants(values: Values) -> dict[str, Any]:
    return {"constants": Constants(**values)} if values else {}


def _narrow(values: Values) -> dict[str, Any]:
    """A network of width 256: a run takes a second, at the paper's width of 2,048 it takes a minute."""
    return {**_constants(values), "width": 256}


def _based(base: str, own: tuple[str, ...] = ()) -> Callable[[Values], dict[str, Any]]:
    """Settings of a wrapper: those in `own` are its own, the others its base's."""

    def settings(values: Values) -> dict[str, Any]:
        mine = {name: round(value) if name == "length" else value for name, value in values.items() if name in own}
        return {**mine, "base": base, "base_settings": {k: v for k, v in values.items() if k not in own}}

    return settings


MASTER_RANGES = {"length": (64.0, 1024.0), "replay_scale": (0.1, 1.0), "beta": (0.8, 2.0)}
MASTER_OWN_SETTINGS = ("length", "replay_scale")

SPACES: dict[str, Space] = {
    "ADA-OPKB": Space("AdaOPKB", PAPER_CONSTANTS, _constants),
    "OPKB": Space("OPKB", PAPER_CONSTANTS, _constants),
    "ADA-OPNN (m=256)": Space("AdaOPNN", PAPER_CONSTANTS, _narrow),
    "OPNN (m=256)": Space("OPNN", PAPER_CONSTANTS, _narrow),
    "NeuralUCB": Space("NeuralUCB", RIDGE_AND_SCALE, _plain),
    "SW-NeuralUCB": Space("SlidingWindowNeuralUCB", {**RIDGE_AND_SCALE, "window": MEMORY_RANGE}, _whole("window")),
    "GPUCB": Space("GPUCB", RIDGE_AND_SCALE, _plain, GPUCB_PUBLISHED_SETTINGS),
    "R-GPUCB": Space("RestartGPUCB", {**RIDGE_AND_SCALE, "period": MEMORY_RANGE}, _whole("period")),
    "SW-GPUCB": Space(
        "SlidingWindowGPUCB", {**RIDGE_AND_SCALE, "window": MEMORY_RANGE}, _whole("window"), SW_GPUCB_PUBLISHED_POINT
    ),
    "WGPUCB": Space("WeightedGPUCB", {**RIDGE_AND_SCALE, "memory": MEMORY_RANGE}, _memory, WGPUCB_PUBLISHED_POINT),
    "TV-GP-UCB": Space("TimeVaryingGPUCB", {"rate": (1e-5, 1e-2), "ridge": (0.001, 0.1), "beta": (0.2, 3.0)}, _plain),
    "ET-GP-UCB": Space(
        "EventTriggeredGPUCB", {"ridge": (0.01, 1.0), "beta": (0.3, 3.0), "failure_probability": (1e-4, 0.1)}, _plain
    ),
    "GPUCB+MASTER": Space("Master", MASTER_RANGES, _based("GPUCB", MASTER_OWN_SETTINGS)),
    "LinUCB": Space("LinUCB", RIDGE_AND_SCALE, _plain),
    "RestartUCB": Space("RestartLinUCB", {**RIDGE_AND_SCALE, "period": MEMORY_RANGE}, _whole("period")),
    "SW-LinUCB": Space("SlidingWindowLinUCB", {**RIDGE_AND_SCALE, "window": MEMORY_RANGE}, _whole("window")),
    "D-LinUCB": Space("DiscountedLinUCB", {**RIDGE_AND_SCALE, "memory": MEMORY_RANGE}, _memory),
    "LinUCB+MASTER": Space("Master", MASTER_RANGES, _based("LinUCB", MASTER_OWN_SETTINGS)),
    "SW-LinUCB+BOB": Space("BanditOverBandit", RIDGE_AND_SCALE, _based("SlidingWindowLinUCB")),
    "RestartUCB+BOB": Space("BanditOverBandit", RIDGE_AND_SCALE, _based("RestartLinUCB")),
    "Restart-Adv": Space("LinearExp3", {"restart": MEMORY_RANGE}, _whole("restart")),
    "Restart-Adv+BOB": Space("BanditOverBandit", {}, _based("LinearExp3")),
    "SW-UCB (plain)": Space("SlidingWindowUCB", {"scale": (0.1, 3.0), "window": MEMORY_RANGE}, _whole("window")),
    "D-UCB (plain)": Space("DiscountedUCB", {"scale": (0.1, 3.0), "memory": MEMORY_RANGE}, _memory),
    "GLR-klUCB (plain)": Space("GLRklUCB", {"scale": (0.2, 3.0), "exploration": (0.01, 1.0)}, _plain),
    "Exp3.S (plain)": Space("Exp3S", {"exploration": (0.01, 1.0), "share": (1e-6, 1e-2)}, _plain),
    "AutoBandit": Space("AutoBandit", {}, _plain),
    "CalibratedOPKB": Space("CalibratedOPKB", {}, _plain),
    "Uniform": Space("Uniform", {}, _plain),
}

FAMILIES = {
    "nothing to set": ("AutoBandit", "CalibratedOPKB"),
    "optimisation (OPKB)": ("ADA-OPKB", "OPKB"),
    "neural": ("ADA-OPNN (m=256)", "OPNN (m=256)", "NeuralUCB", "SW-NeuralUCB"),
    "Gaussian process": ("GPUCB", "R-GPUCB", "SW-GPUCB", "WGPUCB", "TV-GP-UCB", "ET-GP-UCB"),
    "linear": ("LinUCB", "RestartUCB", "SW-LinUCB", "D-LinUCB", "Restart-Adv"),
    "wrappers (MASTER, BOB)": ("GPUCB+MASTER", "LinUCB+MASTER", "SW-LinUCB+BOB", "RestartUCB+BOB", "Restart-Adv+BOB"),
    "plain, no features": ("SW-UCB (plain)", "D-UCB (plain)", "GLR-klUCB (plain)", "Exp3.S (plain)", "Uniform"),
}
