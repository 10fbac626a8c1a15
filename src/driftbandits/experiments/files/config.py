"""A run as a configuration file: its model, and the experiment it means.

environment: switching/1            # or {name: ..., settings: {horizon: 2000, noise: {name: gaussian, sd: 0.1}}}
policies:
  - AdaOPKB                         # a registered name, or my_policy.py:MyPolicy
  - name: SlidingWindowGPUCB
    label: window 500
    settings: {window: 500}
seeds: 10

A file says what is played; where, and on how many cores, is said on the command line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from driftbandits.configuration.files import ConfigFile, read_config_file
from driftbandits.configuration.models import (
    ConfigDict,
    Field,
    NamedEnvironment,
    NamedPolicy,
    PolicyConfig,
    Settings,
    StrictModel,
    validated,
)
from driftbandits.configuration.names import check_name, default_label, folder_name
from driftbandits.configuration.problems import Problems
from driftbandits.configuration.references import resolve
from driftbandits.errors import InputError
from driftbandits.experiments.definitions.seeds import (
    EVALUATION_SEEDS,
    check_seed_count,
    check_seeds,
    default_seeds,
)
from driftbandits.experiments.definitions.specs import Experiment, PolicySpec

Seed = Annotated[int, Field(ge=0)]


class RunConfig(StrictModel):
    """One experiment: a world, the policies that play it, and the seeds."""

    model_config = ConfigDict(title="driftbandits run")

    id: str | None = Field(default=None, min_length=1, description="Name in tables; by default that of the file.")
    title: str | None = Field(default=None, description="Title of its figure; by default the id.")
    environment: NamedEnvironment = Field(description="The world, by name alone or with settings.")
    policies: list[NamedPolicy] = Field(min_length=1, description="Who plays, each by name alone or with settings.")
    seeds: Annotated[int, Field(ge=1)] | Annotated[list[Seed], Field(min_length=1)] | None = Field(
        default=None,
        description=f"How many seeds, counted from 0, or a list of them; {len(EVALUATION_SEEDS)} by default.",
    )
    common: Settings = Field(default={}, description="Settings of every policy, where its own do not say otherwise.")


def read_experiment(path: Path) -> Experiment:
    """The experiment a YAML or TOML file describes. Raises InputError with the place and the nearest valid key."""
    file = read_config_file(path, needs=("environment", "policies"), example="environment: switching/1")
    config = validated(RunConfig, file)
    try:
        return experiment_of(config, default_id=path.stem, folder=path.parent)
    except InputError as error:
        raise InputError("\n".join(f"{path}: {line}" for line in str(error).splitlines())) from None


def experiment_of(config: RunConfig, *, default_id: str, folder: Path | None = None) -> Experiment:
    """The experiment a configuration means; files of classes are looked for in `folder` first, then here."""
    name = config.id or default_id
    title, world = config.title or name, config.environment.name
    seeds: tuple[int, ...] = ()
    policies: list[PolicySpec] = []
    problems = Problems()
    with problems.noted():
        folder_name(name)  # results go into a folder of that name
    with problems.noted():
        check_name(title, "title")
    with problems.noted():
        world = resolve(world, folder=folder)
    with problems.noted():
        seeds = _seeds(config.seeds, world)
    for policy in config.policies:
        with problems.noted():
            policies.append(_policy_spec(policy, folder))
    with problems.noted():
        check_labels(policies)
    problems.raise_all()
    return Experiment(name, title, world, config.environment.settings, tuple(policies), seeds, config.common)


def plain_experiment(experiment: Experiment) -> dict[str, Any]:
    """The experiment as the values of a configuration file; `experiment_of` gives it back."""
    return {
        "id": experiment.id,
        "title": experiment.title,
        "environment": {"name": experiment.environment, "settings": dict(experiment.settings)},
        "policies": [
            {key: value for key, value in dataclasses.asdict(policy).items() if value not in (None, {})}
            for policy in experiment.policies
        ],
        "seeds": list(experiment.seeds),
        "common": dict(experiment.common),
    }


def plain_to_experiment(values: Mapping[str, Any]) -> Experiment:
    """The inverse of `plain_experiment`, checked."""
    return experiment_of(validated(RunConfig, ConfigFile(Path("run.json"), dict(values))), default_id="run")


def check_labels(policies: Sequence[PolicySpec]) -> tuple[PolicySpec, ...]:
    """Give the policies back if no two share a label: tables and stores tell runs apart by it."""
    labels = [check_name(policy.label, "label") for policy in policies]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"two policies are called {label!r}; give one of them a label of its own")
    return tuple(policies)


def _seeds(given: int | list[int] | None, environment: str) -> tuple[int, ...]:
    if given is None:
        return default_seeds(environment)
    return check_seeds(tuple(range(check_seed_count(given))) if isinstance(given, int) else tuple(given))


def _policy_spec(config: PolicyConfig, folder: Path | None) -> PolicySpec:
    name = resolve(config.name, folder=folder)
    return PolicySpec(config.label or default_label(name), name, config.settings, config.kernel, config.seeds)
