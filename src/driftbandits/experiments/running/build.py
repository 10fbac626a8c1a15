"""From plain values to the world and the policy of a cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driftbandits import datasets, environments
from driftbandits.arms import ArmSet
from driftbandits.configuration.presets import read_settings
from driftbandits.configuration.references import is_reference, load
from driftbandits.environments import Environment
from driftbandits.errors import InputError
from driftbandits.experiments.definitions.ids import REAL_PREFIX
from driftbandits.experiments.definitions.specs import PolicySpec
from driftbandits.experiments.running.limits import check_sizes, check_world
from driftbandits.kernels import kernel_from_config
from driftbandits.policies import Policy, create_policy


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
