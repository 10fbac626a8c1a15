"""What is sent to another process: a world, a policy and a seed, as objects and classes that have no plain form.

This file imports little, for every worker has to.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from threadpoolctl import threadpool_limits

from driftbandits.blas_threads import one_blas_thread
from driftbandits.environments import Environment
from driftbandits.errors import InputError
from driftbandits.experiments.definitions.specs import Cell, PolicySpec
from driftbandits.experiments.files.cell_result import CellResult
from driftbandits.experiments.running.build import build_policy, build_world
from driftbandits.experiments.running.cells import play_in
from driftbandits.experiments.running.limits import check_world
from driftbandits.policies import Policy


def _copied(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings for one run: what it does to a list among them, no other run sees, as in processes of their own."""
    copies = {}
    for name, value in settings.items():
        try:
            copies[name] = copy.deepcopy(value)
        except Exception as error:
            raise InputError(
                f"the setting {name!r} cannot be copied for every run ({type(error).__name__}: {error}); give a "
                "function that builds with it in place of the class, and jobs=1"
            ) from error
    return copies


@dataclass(frozen=True)
class World:
    """A world to be compared in: `maker` is the world itself, a name, a resolved `file.py:Class`, or what is called.

    `common` are settings of all policies there.
    """

    label: str
    maker: Environment | str | Callable[..., Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    common: Mapping[str, Any] = field(default_factory=dict)

    def build(self, seed: int) -> Environment:
        """The world of this seed."""
        if isinstance(self.maker, Environment):
            return self.maker
        if isinstance(self.maker, str):
            return build_world(self.maker, _copied(self.settings), seed)
        world = self.maker(seed=seed, **_copied(self.settings))
        if not isinstance(world, Environment):
            raise InputError(f"{self.label} gave {type(world).__name__}; it must give a driftbandits Environment")
        check_world(f"world {self.label!r}", world)
        return world


@dataclass(frozen=True)
class Contestant:
    """A policy to be compared; `maker` is a registered name, a resolved `file.py:Class`, or what is called."""

    label: str
    maker: str | Callable[..., Any]
    settings: Mapping[str, Any]

    def build(self, world: Environment, seed: int, common: Mapping[str, Any]) -> Policy:
        """A fresh policy for `world`; `common` settings are those of all policies there."""
        settings = _copied({**common, **self.settings})
        if isinstance(self.maker, str):
            return build_policy(PolicySpec(self.label, self.maker, settings), world, seed)
        policy = self.maker(world.arms, horizon=world.horizon, seed=seed, **settings)
        if not isinstance(policy, Policy):
            raise InputError(f"{self.label} gave {type(policy).__name__}; it must give a driftbandits Policy")
        return policy


@dataclass(frozen=True)
class LiveCell(Cell):
    """A run; its key means something in one comparison alone."""

    world: World
    contestant: Contestant

    @property
    def key(self) -> str:
        """Names the run among those of one comparison; quoted, for a label may hold any separator."""
        return repr((self.environment, self.policy.label, self.seed))

    @one_blas_thread
    def play(self) -> CellResult:
        """Play it. The result does not carry the objects: it may come from another process."""
        plain = Cell(self.environment, self.settings, self.policy, self.seed)
        with threadpool_limits(limits=1, user_api="openmp"):  # that is torch
            world = self.world.build(self.seed)
            return play_in(world, self.contestant.build(world, self.seed, self.world.common), plain)
