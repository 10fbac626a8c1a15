"""A run as a configuration file: models of it, checks with the nearest valid name, and the published JSON Schema.

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
from driftbandits.configuration.names import check_name, folder_name
from driftbandits.configuration.references import is_reference, resolve
from driftbandits.datasets import OFFSETS
from driftbandits.errors import InputError, MissingExtraError, did_you_mean
from driftbandits.experiments.definitions.specs import EVALUATION_SEEDS, Experiment, PolicySpec
from driftbandits.experiments.running.build import REAL_PREFIX
from driftbandits.experiments.running.limits import check_seed_count

try:
    from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
except ModuleNotFoundError:
    raise MissingExtraError("pydantic", extra="experiments", purpose="a configuration file") from None

Settings = dict[str, Any]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class EnvironmentConfig(_Strict):
    """A world: its name and what differs from its defaults."""

    name: str = Field(description="A registered name (driftbandits list environments), or file.py:Class.")
    settings: Settings = Field(default={}, description="Settings of the world: horizon, size, noise, kernel, ...")


class PolicyConfig(_Strict):
    """A policy: its name, what tables call it, and what differs from its defaults."""

    name: str = Field(description="A registered name (driftbandits list policies), or file.py:Class.")
    label: str | None = Field(
        default=None, min_length=1, description="Name in tables and figures; the class by default."
    )
    settings: Settings = Field(default={}, description="Settings of the policy; constants and variant may be presets.")
    kernel: Settings | None = Field(default=None, description="The kernel it is told instead of the world's own.")
    seeds: int | None = Field(default=None, ge=1, description="It plays only the first so many seeds.")


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


Seed = Annotated[int, Field(ge=0)]


class RunConfig(_Strict):
    """One experiment: a world, the policies that play it, and the seeds."""

    model_config = ConfigDict(title="driftbandits run")

    id: str | None = Field(default=None, min_length=1, description="Name in tables; by default that of the file.")
    title: str | None = Field(default=None, description="Title of its figure; by default the id.")
    environment: Annotated[
        EnvironmentConfig, BeforeValidator(_named, json_schema_input_type=str | EnvironmentConfig)
    ] = Field(description="The world, by name alone or with settings.")
    policies: list[Annotated[PolicyConfig, BeforeValidator(_named, json_schema_input_type=str | PolicyConfig)]] = Field(
        min_length=1, description="Who plays, each by name alone or with settings."
    )
    seeds: Annotated[int, Field(ge=1)] | Annotated[list[Seed], Field(min_length=1)] | None = Field(
        default=None,
        description=f"How many seeds, counted from 0, or a list of them; {len(EVALUATION_SEEDS)} by default.",
    )
    common: Settings = Field(default={}, description="Settings of every policy, where its own do not say otherwise.")


def read_experiment(path: Path) -> Experiment:
    """The experiment a YAML or TOML file describes. Raises InputError with the place and the nearest valid key."""
    file = read_config_file(path)
    config = _validated(file)
    try:
        return experiment_of(config, default_id=path.stem, folder=path.parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def experiment_of(config: RunConfig, *, default_id: str, folder: Path | None = None) -> Experiment:
    """The experiment a configuration means; files of classes are looked for in `folder` first, then here."""
    name = config.id or default_id
    folder_name(name)  # results go into a folder of that name
    world = _resolved(config.environment.name, folder)
    seeds = _seeds(config.seeds, world)
    return Experiment(
        id=name,
        title=check_name(config.title or name, "title"),
        environment=world,
        settings=config.environment.settings,
        policies=unlike([_policy_spec(policy, folder) for policy in config.policies]),
        seeds=seeds,
        common=config.common,
    )


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
    return experiment_of(_validated(ConfigFile(Path("run.json"), dict(values))), default_id="run")


def default_label(name: str) -> str:
    """What a policy is called where nothing is said: its name, or that of its class.

    >>> default_label("AdaOPKB"), default_label("/home/me/mine.py:MyPolicy")
    ('AdaOPKB', 'MyPolicy')
    """
    return name.rpartition(":")[2]


def default_seeds(environment: str) -> tuple[int, ...]:
    """The seeds where nothing is said: of real data, whose seeds are start offsets, all there are."""
    return tuple(range(OFFSETS)) if environment.startswith(REAL_PREFIX) else EVALUATION_SEEDS


def unlike(policies: Sequence[PolicySpec]) -> tuple[PolicySpec, ...]:
    """The policies, if no two share a label: tables and stores tell runs apart by it."""
    labels = [check_name(policy.label, "label") for policy in policies]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"two policies are called {label!r}; give one of them a label of its own")
    return tuple(policies)


def _seeds(given: int | list[int] | None, environment: str) -> tuple[int, ...]:
    if given is None:
        return default_seeds(environment)
    seeds = tuple(range(check_seed_count(given))) if isinstance(given, int) else tuple(given)
    if len(set(seeds)) < len(seeds):
        raise InputError(f"seeds must differ from one another, got {list(seeds)}")
    return seeds


def _policy_spec(config: PolicyConfig, folder: Path | None) -> PolicySpec:
    name = _resolved(config.name, folder)
    return PolicySpec(config.label or default_label(name), name, config.settings, config.kernel, config.seeds)


def _resolved(name: str, folder: Path | None) -> str:
    if folder is not None and is_reference(name):
        module, _, attribute = name.rpartition(":")
        if module.endswith(".py") and (folder / module).is_file():
            return f"{(folder / module).resolve()}:{attribute}"
    return resolve(name)


def _validated(file: ConfigFile) -> RunConfig:
    try:
        return RunConfig.model_validate(file.values)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        wrong = [p for p in problems if p["type"] == "extra_forbidden"] or problems  # a typo explains a missing key
        lines = dict.fromkeys(f"{file.where(p['loc'])}: {_explain(p)}" for p in wrong)
        raise InputError("\n".join(lines)) from None


def _explain(problem: Mapping[str, Any]) -> str:
    *parents, last = problem["loc"]
    if "seeds" in problem["loc"]:
        return f"seeds must be a whole number from 1, or a list of seeds from 0, got {problem['input']!r}"
    path = _dotted(problem["loc"])
    match problem["type"]:
        case "extra_forbidden":
            valid = list(_model_at(parents).model_fields)
            inside = f" in {_dotted(parents)}" if parents else ""
            return f"there is no key {last!r}{inside}; {did_you_mean(last, valid)}valid: {', '.join(valid)}"
        case "missing":
            return f"{path} is missing"
        case "model_type":
            return f"{path} must be a name, or a mapping with 'name' and 'settings', got {problem['input']!r}"
        case _:
            return f"{path}: {problem['msg'][0].lower()}{problem['msg'][1:]}, got {problem['input']!r}"


def _model_at(parents: Sequence[str | int]) -> type[BaseModel]:
    models: dict[str | int, type[BaseModel]] = {"environment": EnvironmentConfig, "policies": PolicyConfig}
    return models.get(parents[0], RunConfig) if parents else RunConfig


def _dotted(location: Sequence[str | int]) -> str:
    """policies[1].label"""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location).removeprefix(".")
