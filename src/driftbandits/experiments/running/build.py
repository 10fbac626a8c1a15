"""From plain values to the world and the policy of a cell."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any

from driftbandits import datasets, environments
from driftbandits.arms import ArmSet
from driftbandits.configuration.references import is_reference, load
from driftbandits.environments import Environment
from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.definitions.specs import PolicySpec
from driftbandits.experiments.running.limits import check_sizes, check_world
from driftbandits.kernels import kernel_from_config
from driftbandits.policies import Constants, Policy, Variant, create_policy

REAL_PREFIX = "real/"  # worlds from real data, whose seed is the number of the start offset

PRESETS: dict[str, dict[str, Any]] = {
    "constants": {
        "tuned": Constants.tuned,
        "published": Constants.published,
        "neural": Constants.neural,
        "published_neural": Constants.published_neural,
        "theory": partial(Constants.theory, bound=3.0, noise=0.3),  # about what the paper's worlds have
    },
    "variant": {"paper": Variant.paper, "published": Variant.published},
}


def build_world(name: str, settings: Mapping[str, Any], seed: int) -> Environment:
    """The world called `name`: registered, `real/...`, or what a user's `file.py:Class` gives for seed and settings."""
    if name.startswith(REAL_PREFIX):
        return datasets.create(name.removeprefix(REAL_PREFIX), offset=seed, seed=seed, **settings)
    if not is_reference(name):
        check_sizes(f"environment {name!r}", settings)
        return environments.create(name, seed=seed, **settings)
    world = load(name)(seed=seed, **settings)
    if not isinstance(world, Environment):
        raise InputError(f"{name} gave {type(world).__name__}; it must give a driftbandits Environment")
    check_world(f"environment {name!r}", world)
    return world


def build_policy(spec: PolicySpec, world: Environment, seed: int) -> Policy:
    """A fresh policy for `world`, on the kernel the spec tells it (by default the world's own)."""
    arms = world.arms if spec.kernel is None else ArmSet(world.arms.points, kernel=kernel_from_config(spec.kernel))
    settings = read_settings(spec.settings)
    if not is_reference(spec.name):
        return create_policy(spec.name, arms, horizon=world.horizon, seed=seed, **settings)
    policy = load(spec.name)(arms, horizon=world.horizon, seed=seed, **settings)
    if not isinstance(policy, Policy):
        raise InputError(
            f"{spec.name} gave {type(policy).__name__}; it must be a class derived from driftbandits.Policy"
        )
    return policy


def read_settings(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a policy from plain values: `constants` and `variant` by preset, or by preset and what differs.

    >>> read_settings({"constants": {"preset": "published", "c0": 2.0}})["constants"].c0
    2.0
    """
    settings = dict(plain)
    for key, presets in PRESETS.items():
        if key in settings:
            settings[key] = _preset(key, presets, settings[key])
    if isinstance(settings.get("base_settings"), Mapping):
        settings["base_settings"] = read_settings(settings["base_settings"])
    return settings


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `read_settings`: constants and variants as mappings.

    >>> plain_settings({"variant": Variant.paper()})["variant"]["share"]
    0.5
    """
    return {
        key: dataclasses.asdict(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type)
        else plain_settings(value)
        if isinstance(value, Mapping)
        else value
        for key, value in settings.items()
    }


def _preset(key: str, presets: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, str):
        value = {"preset": value}
    if not isinstance(value, Mapping):
        raise InputError(f"{key} must be one of {', '.join(presets)}, or a mapping, got {value!r}")
    changed = dict(value)
    name = changed.pop("preset", next(iter(presets)))
    if name not in presets:
        raise InputError(f"{key} has no preset {name!r}; {did_you_mean(name, presets)}known: {', '.join(presets)}")
    base = presets[name]()
    known = ["preset", *(field.name for field in dataclasses.fields(base))]
    for field_name in changed:
        if field_name not in known:
            hint = did_you_mean(field_name, known)
            raise InputError(f"{key} has no setting {field_name!r}; {hint}known: {', '.join(known)}")
    return dataclasses.replace(base, **changed)
