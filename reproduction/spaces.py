"""What is searched for each policy: spaces for the equal search, and plain grids for the baselines of AutoBandit.

Spaces hold the settings that a policy's authors tune, over the paper's ranges and wider. Every space is searched with
the same number of points and runs, so a policy with more settings is searched more thinly: that is the price of having
them. FIRST_SETTINGS are always among the points, and so are the settings of the authors' files where those give some.

PAPER_GRIDS are those of section 6 of the paper, value by value; PAPER_SPACES searches them for ADA-OPKB and its two
rivals alike, each value of a point being the nearest of the grid.

Grids are on the natural scale of the suite's worlds. Rewards have a variance of about 0.1 where a kernel has diagonal
1, so a width of two standard deviations is a beta of about 0.6. An arm not yet seen promises beta: below 0.5 a policy
stays with the first good arm it finds; above 0.8, the largest mean of the suite, one with a short memory never stops
exploring. In between it knows what is good enough, as a policy tuned for these worlds may.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from driftbandits import policies
from driftbandits.policies import Constants, policy_label
from driftbandits.tuning.spaces import Space, Values
from driftbandits.tuning.study import Rungs
from reproduction.catalogue import GPUCB_PUBLISHED_SETTINGS

RIDGE_AND_SCALE = {"ridge": (0.01, 1.0), "scale": (0.02, 1.0)}
MEMORY_RANGE = (100.0, 10_000.0)
SW_GPUCB_PUBLISHED_POINT = {**GPUCB_PUBLISHED_SETTINGS, "window": 3_000.0}
# A discount of 0.9996; under the width of the analysis, which is what is searched, not the authors' own.
WGPUCB_PUBLISHED_POINT = {"ridge": 0.01, "scale": 0.5, "memory": 2_500.0}
PAPER_CONSTANTS = {  # within the paper's grid, where blocks are neither a few rounds nor the whole run
    "sigma": (10.0, 1000.0),
    "c0": (0.5, 20.0),
    "c1": (0.02, 1.0),
    "c2": (0.2, 10.0),
    "c3": (0.01, 0.5),
    "c4": (0.01, 3.0),
}
ONE_TWO_FIVE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_SIGMAS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
_REGRESSION = {"ridge": ONE_TWO_FIVE[3:], "scale": ONE_TWO_FIVE[:10]}  # lambda and v; the text has v from 0.001 to 1
_OPTIMISATION = {"sigma": _SIGMAS, **dict.fromkeys(("c0", "c1", "c2", "c3", "c4"), ONE_TWO_FIVE)}
WINDOWS = (100, 200, 500, 1_000, 2_000, 3_000, 4_000, 5_000, 7_000, 10_000)  # the text: 100, 200, 500, 1000, ..., 10000
DISCOUNTS = (0.99, 0.995, 0.999, 0.9995, 0.9999)
PAPER_GRIDS: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "ADA-OPKB": _OPTIMISATION,
    "ADA-OPNN": {
        **_OPTIMISATION,
        "learning_rate": (1e-9, 1e-8, 1e-7),
        "steps": (100, 1_000, 10_000),
        "weight_decay": (1.0, 10.0, 100.0, 1_000.0),
    },
    "SW-GPUCB": {**_REGRESSION, "window": WINDOWS},
    "WGPUCB": {**_REGRESSION, "discount": DISCOUNTS},
}
NARROW = 256
NARROW_ENDING = f" (m={NARROW})"


def _plain(values: Values) -> dict[str, Any]:
    return dict(values)


def _whole(name: str) -> Callable[[Values], dict[str, Any]]:
    """Settings with one that must be a whole number."""
    return lambda values: {key: round(value) if key == name else value for key, value in values.items()}


def _memory(values: Values) -> dict[str, Any]:
    """A memory of w rounds is a discount of 1 - 1 / w; searched as memory, for discounts crowd at 1."""
    rest = {name: value for name, value in values.items() if name != "memory"}
    return {**rest, "discount": 1.0 - 1.0 / values["memory"]} if values else rest


def _discount(values: Values) -> dict[str, Any]:
    """As `_memory`, rounded to what the paper writes."""
    return {name: round(v, 6) if name == "discount" else v for name, v in _memory(values).items()}


def _constants(values: Values) -> dict[str, Any]:
    return {"constants": Constants(**values)} if values else {}


def _narrow(values: Values) -> dict[str, Any]:
    """A narrow network: a run takes a second, at the paper's width of 2,048 it takes a minute."""
    return {**_constants(values), "width": NARROW}


def _based(base: str, own: tuple[str, ...] = ()) -> Callable[[Values], dict[str, Any]]:
    """Settings of a wrapper: those in `own` are its own, the others its base's."""

    def settings(values: Values) -> dict[str, Any]:
        mine = {name: round(value) if name == "length" else value for name, value in values.items() if name in own}
        return {**mine, "base": base, "base_settings": {k: v for k, v in values.items() if k not in own}}

    return settings


MASTER_RANGES = {"length": (64.0, 1024.0), "replay_scale": (0.1, 1.0), "beta": (0.8, 2.0)}
MASTER_OWN_SETTINGS = ("length", "replay_scale")


def _memory_of(discount: float) -> float:
    return 1.0 / (1.0 - discount)


def _on_grid(label: str, settings: Callable[[Values], dict[str, Any]]) -> Callable[[Values], dict[str, Any]]:
    """Settings from the nearest values of the paper's grid, by their ratio; of discounts by the memory."""

    def nearest(values: Values) -> dict[str, Any]:
        grid = {name: tuple(map(_memory_of, g)) if name == "discount" else g for name, g in PAPER_GRIDS[label].items()}
        found = {name: min(grid[_in_grid(name)], key=lambda x: abs(math.log(x / v))) for name, v in values.items()}
        return settings(found)

    return nearest


def _in_grid(name: str) -> str:
    return "discount" if name == "memory" else name


def _paper_space(policy: type[policies.Policy], settings: Callable[[Values], dict[str, Any]], **more: Any) -> Space:
    """The paper's grid from end to end; a discount is searched as a memory."""
    ends = {name: (min(grid), max(grid)) for name, grid in PAPER_GRIDS[policies.policy_label(policy)].items()}
    if "discount" in ends:
        low, high = map(_memory_of, ends.pop("discount"))
        ends["memory"] = (low, high)
    return Space(policy.__name__, ends, _on_grid(policies.policy_label(policy), settings), **more)


PLAIN_ENDING = " (plain)"  # regresses on no features


def _space(
    policy: type[policies.Policy],
    ranges: Mapping[str, tuple[float, float]],
    settings: Callable[[Values], dict[str, Any]] = _plain,
    published: Values | None = None,
    *,
    ending: str = "",
) -> tuple[str, Space]:
    return policy_label(policy) + ending, Space(policy.__name__, ranges, settings, published)


def _wrapped(
    base: type[policies.Policy],
    wrapper: type[policies.Policy],
    ranges: Mapping[str, tuple[float, float]],
    own: tuple[str, ...] = (),
) -> tuple[str, Space]:
    return f"{policy_label(base)}+{policy_label(wrapper)}", Space(wrapper.__name__, ranges, _based(base.__name__, own))


_MASTER = (policies.Master, MASTER_RANGES, MASTER_OWN_SETTINGS)
_WINDOW = ({**RIDGE_AND_SCALE, "window": MEMORY_RANGE}, _whole("window"))
_PERIOD = ({**RIDGE_AND_SCALE, "period": MEMORY_RANGE}, _whole("period"))
_DISCOUNT = ({**RIDGE_AND_SCALE, "memory": MEMORY_RANGE}, _memory)
_PLAIN_WINDOW = ({"scale": (0.1, 3.0), "window": MEMORY_RANGE}, _whole("window"))
_PLAIN_DISCOUNT = ({"scale": (0.1, 3.0), "memory": MEMORY_RANGE}, _memory)
_DRIFT = {"rate": (1e-5, 1e-2), "ridge": (0.001, 0.1), "beta": (0.2, 3.0)}
_TRIGGER = {"ridge": (0.01, 1.0), "beta": (0.3, 3.0), "failure_probability": (1e-4, 0.1)}
_COVER = {"ridge": (0.01, 1.0), "beta": (0.3, 3.0), "cover": (10.0, 100.0), "exploration": (0.01, 1.0)}
SPACES: dict[str, Space] = dict(
    (
        _space(policies.AdaOPKB, PAPER_CONSTANTS, _constants),
        _space(policies.OPKB, PAPER_CONSTANTS, _constants),
        _space(policies.AdaOPNN, PAPER_CONSTANTS, _narrow, ending=NARROW_ENDING),
        _space(policies.OPNN, PAPER_CONSTANTS, _narrow, ending=NARROW_ENDING),
        _space(policies.NeuralUCB, RIDGE_AND_SCALE),
        _space(policies.SlidingWindowNeuralUCB, *_WINDOW),
        _space(policies.GPUCB, RIDGE_AND_SCALE, published=GPUCB_PUBLISHED_SETTINGS),
        _space(policies.RestartGPUCB, *_PERIOD),
        _space(policies.SlidingWindowGPUCB, *_WINDOW, SW_GPUCB_PUBLISHED_POINT),
        _space(policies.WeightedGPUCB, *_DISCOUNT, WGPUCB_PUBLISHED_POINT),
        _space(policies.TimeVaryingGPUCB, _DRIFT),
        _space(policies.EventTriggeredGPUCB, _TRIGGER),
        _space(policies.DetectionAugmentedGPUCB, _COVER, _whole("cover")),
        _wrapped(policies.GPUCB, *_MASTER),
        _space(policies.LinUCB, RIDGE_AND_SCALE),
        _space(policies.RestartLinUCB, *_PERIOD),
        _space(policies.SlidingWindowLinUCB, *_WINDOW),
        _space(policies.DiscountedLinUCB, *_DISCOUNT),
        _wrapped(policies.LinUCB, *_MASTER),
        _wrapped(policies.SlidingWindowLinUCB, policies.BanditOverBandit, RIDGE_AND_SCALE),
        _wrapped(policies.RestartLinUCB, policies.BanditOverBandit, RIDGE_AND_SCALE),
        _space(policies.LinearExp3, {"restart": MEMORY_RANGE}, _whole("restart")),
        _wrapped(policies.LinearExp3, policies.BanditOverBandit, {}),
        _space(policies.SlidingWindowUCB, *_PLAIN_WINDOW, ending=PLAIN_ENDING),
        _space(policies.DiscountedUCB, *_PLAIN_DISCOUNT, ending=PLAIN_ENDING),
        _space(policies.GLRklUCB, {"scale": (0.2, 3.0), "exploration": (0.01, 1.0)}, ending=PLAIN_ENDING),
        _space(policies.Exp3S, {"exploration": (0.01, 1.0), "share": (1e-6, 1e-2)}, ending=PLAIN_ENDING),
        _space(policies.AutoBandit, {}),
        _space(policies.CalibratedOPKB, {}),
        _space(policies.Uniform, {}),
    )
)
PAPER_SPACES: dict[str, Space] = {
    "ADA-OPKB": _paper_space(policies.AdaOPKB, _constants),
    "SW-GPUCB": _paper_space(policies.SlidingWindowGPUCB, _whole("window"), published=SW_GPUCB_PUBLISHED_POINT),
    "WGPUCB": _paper_space(policies.WeightedGPUCB, _discount, published=WGPUCB_PUBLISHED_POINT),
}
MEMORY_ROUNDS = (100, 200, 400, 800, 1_600, 3_200, 10_000)


@dataclass(frozen=True)
class Grid:
    """Points of one policy.

    `single` are the rungs of the search for one setting over all worlds, `tuned` those of the search in every world
    apart, None where there is none such.
    """

    policy: str
    points: tuple[Mapping[str, Any], ...]
    single: Rungs
    tuned: Rungs | None = None


def _product(**values: tuple[Any, ...]) -> tuple[dict[str, Any], ...]:
    return tuple(dict(zip(values, point, strict=True)) for point in itertools.product(*values.values()))


def _weighted() -> tuple[dict[str, Any], ...]:
    """A memory of w rounds is a discount of 1 - 1 / w. A run takes long: only long memories are tried more widely."""
    points = (*_product(memory=MEMORY_ROUNDS, beta=(0.6, 0.7)), *_product(memory=(800, 1_600, 3_200), beta=(0.9,)))
    return tuple({"discount": round(1.0 - 1.0 / p["memory"], 8), "beta": p["beta"]} for p in points)


def _master() -> tuple[dict[str, Any], ...]:
    lengths = ((250, 0.3, 1.0), (250, 0.13, 0.92), (426, 0.13, 0.92), (426, 0.13, 1.07), (992, 0.13, 0.92))
    return tuple(
        {"length": length, "replay_scale": scale, "base": "GPUCB", "base_settings": {"beta": beta}}
        for length, scale, beta in (*lengths, (992, 0.325, 1.07))
    )


# All points play one seed, the window's two, lest a lucky seed drop the best; the best then play more.
ALL_ON_ONE_SEED: Rungs = ((99, 1),)
TWO_ON_A_SECOND_SEED: Rungs = ((99, 1), (2, 2))
TWO_ON_THREE_SEEDS: Rungs = ((99, 1), (2, 3))
GRIDS: dict[str, Grid] = {
    "SW-GPUCB": Grid(
        "SlidingWindowGPUCB",
        _product(window=MEMORY_ROUNDS, beta=(0.6, 0.7, 0.85, 1.2)),
        single=((99, 2), (4, 3)),
        tuned=((99, 2), (6, 4), (3, 6)),
    ),
    "WGPUCB": Grid("WeightedGPUCB", _weighted(), single=TWO_ON_A_SECOND_SEED, tuned=((99, 1), (3, 3))),
    "TV-GP-UCB": Grid(
        "TimeVaryingGPUCB",
        _product(rate=(1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2), beta=(0.6, 0.75)),
        single=TWO_ON_THREE_SEEDS,
    ),
    "ET-GP-UCB": Grid(
        "EventTriggeredGPUCB", _product(failure_probability=(0.001, 0.05), beta=(0.6, 0.75)), single=TWO_ON_THREE_SEEDS
    ),
    "DAL-GP-UCB": Grid(
        "DetectionAugmentedGPUCB",
        _product(cover=(10, 30, 100), exploration=(0.03, 0.1), beta=(0.6, 0.75)),
        single=TWO_ON_THREE_SEEDS,
    ),
    "GPUCB+MASTER": Grid("Master", _master(), single=ALL_ON_ONE_SEED),
    "GLR-klUCB": Grid("GLRklUCB", _product(scale=(0.25, 0.45, 0.8), exploration=(0.02, 0.08)), single=ALL_ON_ONE_SEED),
    "GPUCB": Grid("GPUCB", _product(beta=(0.6, 0.7, 0.85, 1.2)), single=TWO_ON_A_SECOND_SEED, tuned=((99, 3),)),
    "R-GPUCB": Grid("RestartGPUCB", _product(period=(400, 1_000, 2_500), beta=(0.6, 0.75)), single=TWO_ON_THREE_SEEDS),
}
