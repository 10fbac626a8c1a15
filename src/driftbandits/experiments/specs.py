"""What an experiment is: a world, the policies that play it, and the seeds; all of it plain values.

Everything in a cell can be written as JSON, so a cell has a key that is the same on every machine, and a configuration
file can say all that a program can.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from driftbandits.configuration.references import is_reference, load, source_of
from driftbandits.errors import InputError
from driftbandits.experiments.seeds import DEFAULT_SEEDS
from driftbandits.policies import POLICIES, Policy
from driftbandits.text import shown
from driftbandits.version import __version__


def policy_class(name: str) -> type[Policy]:
    """The class called `name`, registered or a user's `file.py:Class`.

    `Policy` itself if the class cannot be loaded, because its file is gone or broken.

    >>> policy_class("SlidingWindowGPUCB").__name__, policy_class("gone.py:Mine").__name__
    ('SlidingWindowGPUCB', 'Policy')
    """
    if not is_reference(name):
        return POLICIES.get(name, Policy)
    try:
        found = load(name)
    except (Exception, SystemExit):  # noqa: BLE001  # whatever a user's file does; who plays it will be told
        return Policy
    return found if isinstance(found, type) and issubclass(found, Policy) else Policy


HORIZON = 10_000  # rounds of the paper's experiments, and of all that are compared with them
CLIP_REWARDS = {"out_of_range": "clip"}  # a setting of policies whose world may leave its reward range
# Settings that a world or a policy has, but the experiment decides; each with the reason.
NOT_WORLD_SETTINGS = {"seed": "the seeds are those of the experiment"}
NOT_POLICY_SETTINGS = {
    "arms": "a policy plays the arms of its world",
    "horizon": "a policy plays as many rounds as its world has; set the horizon of the environment",
    "seed": "the seeds are those of the experiment",
}


@dataclass(frozen=True)
class PolicySpec:
    """A policy as a figure shows it: its label, its name and settings as plain values.

    Parameters
    ----------
    label : what tables and legends call it
    name : a registered name, or `file.py:Class` for a user's own
    settings : by name, plain values as in JSON
    kernel : what the policy is told instead of the world's kernel, a mapping of `kernel_from_config`
    seeds : it plays only the first `seeds` seeds, because a run is long

    Raises
    ------
    InputError
        For a name that is no text: a class is played by `driftbandits.compare`.

    >>> PolicySpec("window of 200", "SlidingWindowGPUCB", {"window": 200}).settings
    {'window': 200}
    """

    label: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    kernel: Mapping[str, Any] | None = None
    seeds: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InputError(
                f"the policy {self.label!r} needs the name of a registered policy, or file.py:Class, got "
                f"{shown(self.name)}; to play a class or an object itself use driftbandits.compare"
            )


@dataclass(frozen=True)
class Experiment:
    """A world by name and settings, the policies that play it, and the seeds.

    Parameters
    ----------
    id : its name, unique
    title : for people
    environment : a registered world, or `file.py:Class` for a user's own
    settings : of the world, plain values as in JSON
    policies : those that play
    seeds : of worlds, noise and policies
    common : settings that go to every policy

    >>> world = {"horizon": 300, "switches": [150], "size": 10}
    >>> mine = Experiment("mine", "One switch", "switching/1", world, (PolicySpec("any arm", "Uniform"),), seeds=(0, 1))
    >>> mine.id, len(mine.policies), mine.seeds
    ('mine', 1, (0, 1))
    """

    id: str
    title: str
    environment: str
    settings: Mapping[str, Any]
    policies: tuple[PolicySpec, ...]
    seeds: tuple[int, ...] = DEFAULT_SEEDS
    common: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """One run: a policy in a world, on one seed. Everything random in it follows from its fields."""

    environment: str
    settings: Mapping[str, Any]
    policy: PolicySpec
    seed: int

    @property
    def key(self) -> str:
        """Twenty hexadecimal digits that name this run: what is played, not what it is called.

        >>> one = Cell("switching/1", {"horizon": 500}, PolicySpec("a label", "OPKB"), 0)
        >>> other = Cell("switching/1", {"horizon": 500}, PolicySpec("another", "OPKB"), 0)
        >>> one.key == other.key, len(one.key)
        (True, 20)
        """
        what = {
            "version": __version__,
            "environment": [self.environment, source_of(self.environment), self.settings],
            "policy": [self.policy.name, source_of(self.policy.name), self.policy.settings, self.policy.kernel],
            "seed": self.seed,
            **self._behaviour(),
        }
        try:
            text = json.dumps(what, sort_keys=True, separators=(",", ":"))
        except TypeError as error:
            raise InputError(f"settings of an experiment must be plain values, as in JSON: {error}") from None
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def _behaviour(self) -> dict[str, int]:
        """What tells runs kept of a registered policy from those it played before it was changed; at first nothing."""
        number = 1 if is_reference(self.policy.name) else policy_class(self.policy.name).behaviour
        return {} if number == 1 else {"behaviour": number}


def cells_of(experiment: Experiment) -> list[Cell]:
    """Every cell of an experiment, whole seeds first should it be interrupted."""
    return [
        Cell(experiment.environment, experiment.settings, _with_common(policy, experiment.common), seed)
        for number, seed in enumerate(experiment.seeds)
        for policy in experiment.policies
        if policy.seeds is None or number < policy.seeds
    ]


def _with_common(policy: PolicySpec, common: Mapping[str, Any]) -> PolicySpec:
    settings = {**common, **policy.settings}
    return PolicySpec(policy.label, policy.name, settings, policy.kernel, policy.seeds)
