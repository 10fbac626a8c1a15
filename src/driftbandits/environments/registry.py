"""The only list of worlds and noises by name, for configuration files."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from driftbandits.environments.base import Environment
from driftbandits.environments.drifting import ForgettingDrift, Trending
from driftbandits.environments.linear import DriftingLinear, SwitchingLinear
from driftbandits.environments.noise import (
    BernoulliNoise,
    GaussianNoise,
    Noise,
    StudentTNoise,
    TruncatedGaussianNoise,
    UniformNoise,
)
from driftbandits.environments.requests import Requests
from driftbandits.environments.reward_functions import SLOW_DRIFT, STILL, CosineBandit, SphereWorld
from driftbandits.environments.switching import PROBLEMS, SMPyBanditsProblem, SwitchingKernel
from driftbandits.errors import InputError, near_and_valid

# What `environments` passes on: a world that can be named, or a noise, is one more name here.
__all__ = [
    "BernoulliNoise",
    "CosineBandit",
    "DriftingLinear",
    "ForgettingDrift",
    "GaussianNoise",
    "Requests",
    "SMPyBanditsProblem",
    "StudentTNoise",
    "SwitchingKernel",
    "SwitchingLinear",
    "Trending",
    "TruncatedGaussianNoise",
    "UniformNoise",
    "create",
    "names",
    "noise_from_config",
]

NOISES: dict[str, type[Noise]] = {
    "gaussian": GaussianNoise,
    "truncated_gaussian": TruncatedGaussianNoise,
    "bernoulli": BernoulliNoise,
    "uniform": UniformNoise,
    "student_t": StudentTNoise,
}

_SIXTHS = (1667, 3333, 5000, 6667, 8333)
# How to build it, and the settings that differ from the class's own.
ENVIRONMENTS: dict[str, tuple[type[SphereWorld], dict[str, Any]]] = {
    "switching": (SwitchingKernel, {}),
    "switching/1": (SwitchingKernel, {"switches": (3000,)}),
    "switching/2": (SwitchingKernel, {"switches": (1500, 5000)}),
    "cosine": (CosineBandit, {}),
    "cosine/stationary": (CosineBandit, {"size": 256, "dimension": 8, "phase": STILL}),
    "cosine/slow": (CosineBandit, {"size": 100, "dimension": 10, "phase": SLOW_DRIFT}),
    "forgetting": (ForgettingDrift, {}),
    "linear/switching": (SwitchingLinear, {}),
    "linear/drifting": (DriftingLinear, {}),
    "recurring": (SwitchingKernel, {"kind": "recurring", "switches": _SIXTHS}),
    "bumps": (SwitchingKernel, {"kind": "bump", "switches": _SIXTHS}),
    "adversarial": (SwitchingKernel, {"kind": "upset", "switches": _SIXTHS}),
    "rotting": (Trending, {"kind": "falling"}),
    "rising": (Trending, {"kind": "rising"}),
    "requests/stationary": (Requests, {"kind": "stationary"}),
    "requests/switch": (Requests, {"kind": "switch"}),
    "requests/drift": (Requests, {"kind": "drift"}),
    "requests/part": (Requests, {"kind": "part"}),
    "requests/mix": (Requests, {"kind": "mix"}),
    "requests/rhythm": (Requests, {"kind": "rhythm"}),
    "requests/useless": (Requests, {"kind": "useless"}),
    "requests/columns-2": (Requests, {"columns": 2}),
    "requests/columns-4": (Requests, {"columns": 4, "kind": "drift"}),
    "requests/columns-32": (Requests, {"columns": 32}),
    "requests/arms-4": (Requests, {"size": 4}),
    "requests/arms-100": (Requests, {"size": 100, "dimension": 2}),
    "requests/clicks": (Requests, {"clicks": True}),
    **{f"smpybandits/{number}": (SMPyBanditsProblem, {"problem": number}) for number in PROBLEMS},
}


# The same names for editors, which complete them inside strings.
WorldName = Literal[
    "switching",
    "switching/1",
    "switching/2",
    "cosine",
    "cosine/stationary",
    "cosine/slow",
    "forgetting",
    "linear/switching",
    "linear/drifting",
    "recurring",
    "bumps",
    "adversarial",
    "rotting",
    "rising",
    "requests/stationary",
    "requests/switch",
    "requests/drift",
    "requests/part",
    "requests/mix",
    "requests/rhythm",
    "requests/useless",
    "requests/columns-2",
    "requests/columns-4",
    "requests/columns-32",
    "requests/arms-4",
    "requests/arms-100",
    "requests/clicks",
    "smpybandits/0",
    "smpybandits/1",
    "smpybandits/2",
    "smpybandits/3",
    "smpybandits/4",
    "smpybandits/5",
]


def names() -> tuple[str, ...]:
    """Names that `create` knows.

    Returns
    -------
    tuple of strings

    >>> names()[:3]
    ('switching', 'switching/1', 'switching/2')
    """
    return tuple(ENVIRONMENTS)


def create(name: WorldName | str, **settings: Any) -> Environment:
    """Build a world by its name, on arms drawn from the unit sphere.

    `switching/1` and `/2`, `cosine/stationary` and `/slow` are the paper's.

    Parameters
    ----------
    name : one of `names()`
    settings : go over those of the name. They are those of the class's `sample` and of the class: seed, size,
        dimension, kernel, horizon, noise, ...; `noise` and `kernel` may be configuration mappings

    Returns
    -------
    Environment

    Raises
    ------
    InputError
        For an unknown name or setting, with the nearest valid one.

    >>> world = create("switching/1", dimension=3, seed=3, noise={"name": "gaussian", "sd": 0.1})
    >>> world.name, world.horizon, world.noise, world.change_rounds
    ('switching/1', 10000, GaussianNoise(sd=0.1), array([3000]))
    """
    if name not in ENVIRONMENTS:
        raise InputError(f"unknown environment {name!r}; {near_and_valid(name, ENVIRONMENTS)}")
    kind, given = ENVIRONMENTS[name]
    _check_settings(f"environment {name!r}", settings, settings_of(kind))
    if isinstance(settings.get("noise"), Mapping):
        settings["noise"] = noise_from_config(settings["noise"])
    return kind.sample(**{"name": name, **given, **settings})


def noise_from_config(config: Mapping[str, Any]) -> Noise:
    """Build noise from plain values.

    Parameters
    ----------
    config : a mapping with the `name` of a noise and its parameters

    Returns
    -------
    Noise

    Raises
    ------
    InputError
        For an unknown name or parameter, with the nearest valid one, and for a parameter that is missing.

    >>> noise_from_config({"name": "student_t", "scale": 0.1, "df": 4})
    StudentTNoise(scale=0.1, df=4)
    """
    settings = dict(config)
    name = settings.pop("name", None)
    if name not in NOISES:
        raise InputError(f"unknown noise {name!r}; {near_and_valid(name, NOISES)}")
    parameters = inspect.signature(NOISES[name]).parameters
    _check_settings(f"noise {name!r}", settings, parameters)
    for key, parameter in parameters.items():
        if key not in settings and parameter.default is parameter.empty:
            raise InputError(f"noise {name!r} needs {key!r}; for example {{'name': {name!r}, {key!r}: 0.1}}")
    return NOISES[name](**settings)


def settings_of(kind: type[SphereWorld]) -> dict[str, Any]:
    """Keyword settings with which a world of this kind can be drawn, and their defaults.

    >>> settings_of(CosineBandit)["dimension"]
    8
    """
    samplers = [
        base.sample for base in reversed(kind.__mro__) if issubclass(base, SphereWorld) and "sample" in vars(base)
    ]
    makers: tuple[Callable[..., Environment], ...] = (kind, *samplers)  # later ones decide
    return {key: default for maker in makers for key, default in _keywords(maker).items()}


def _keywords(maker: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(maker).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def _check_settings(what: str, settings: Iterable[str], known: Iterable[str]) -> None:
    valid = list(known)
    unknown = [key for key in settings if key not in valid]
    if unknown:
        raise InputError("\n".join(f"{what} has no setting {key!r}; {near_and_valid(key, valid)}" for key in unknown))
