"""A run as a configuration file: its model, the experiment it describes, and the JSON Schema for editors.

environment: switching/1            # or {name: ..., settings: {horizon: 2000, noise: {name: gaussian, sd: 0.1}}}
policies:
  - AdaOPKB                         # a registered name, or my_policy.py:MyPolicy
  - tuned.json                      # every policy of a file that driftbandits tune wrote
  - name: SlidingWindowGPUCB
    label: window 500
    settings: {window: 500}
seeds: 10

A file says what is played; where, and on how many cores, is said on the command line. `driftbandits run --schema`
prints the schema: the models give the keys, and every registered name adds the settings it knows. Whether a value is
valid is for the world and the policy to say, when they are built.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from driftbandits import datasets
from driftbandits.arms.kernels import COMBINED, NAMED
from driftbandits.configuration.files import ConfigFile, read_config_file
from driftbandits.configuration.models import (
    PRESETS,
    ConfigDict,
    Field,
    NamedEnvironment,
    NamedPolicy,
    PolicyConfig,
    Problems,
    Settings,
    StrictModel,
    check_name,
    default_label,
    folder_name,
    validated,
)
from driftbandits.configuration.references import resolve
from driftbandits.datasets import COPIES, REAL_PREFIX
from driftbandits.environments.registry import ENVIRONMENTS, NOISES, settings_of
from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.seeds import DEFAULT_SEEDS, DEVELOPMENT, check_seed_count, check_seeds, default_seeds
from driftbandits.experiments.specs import NOT_POLICY_SETTINGS, NOT_WORLD_SETTINGS, Experiment, PolicySpec
from driftbandits.policies import POLICIES
from driftbandits.policies.inputs import known_settings

TUNED_FILE = ".json"


class TunedEntry(StrictModel):
    """What a search found for one policy in one dimension."""

    policy: str
    settings: Settings
    origin: str
    regret_on_tuning_seeds: float


class TunedSettings(StrictModel):
    """A file of settings found: `how` it was made, and entries by label under every key: a dimension ("d=10"), or the
    worlds that were searched.
    """

    model_config = ConfigDict(extra="allow")

    how: str
    __pydantic_extra__: dict[str, dict[str, TunedEntry]]

    @property
    def entries(self) -> dict[str, dict[str, TunedEntry]]:
        """Entries by label, by key; keys without any are left out."""
        found: dict[str, Any] = self.model_extra or {}
        return {key: entries for key, entries in found.items() if entries}

    def specs(self, dimension: int) -> tuple[PolicySpec, ...]:
        """The policies with the settings found in this dimension; none where nothing was searched there."""
        return _specs(self.entries.get(f"d={dimension}", {}))


def _specs(entries: Mapping[str, TunedEntry]) -> tuple[PolicySpec, ...]:
    return tuple(PolicySpec(label, resolve(entry.policy), entry.settings) for label, entry in entries.items())


def read_tuned(path: Path) -> TunedSettings:
    """The settings that a search wrote to this file. Raises InputError with the place of what is wrong in it."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no file {str(path)!r}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise InputError(f'{path} holds no keys; a search writes "how", and one such as "d=10" per dimension')
    return validated(TunedSettings, ConfigFile(path, values))


def is_tuned(text: str) -> bool:
    """Whether a text in the place of a policy names a file of settings found.

    >>> is_tuned("results/tune/tuned.json#d=10"), is_tuned("my.py:Mine")
    (True, False)
    """
    return text.partition("#")[0].endswith(TUNED_FILE)


def tuned_policies(text: str, *, folder: Path | None = None) -> tuple[PolicySpec, ...]:
    """The policies of a file of settings found, by its path; searched in `folder` first, then here."""
    name, _, key = text.partition("#")
    path = Path(name)
    if folder is not None and (folder / path).exists():
        path = folder / path
    entries = read_tuned(path).entries
    if not entries:
        raise InputError(f"{path} has no settings found; driftbandits tune writes some")
    if not key and len(entries) > 1:
        raise InputError(
            f"{path} has settings for {', '.join(entries)}; name one, as in '{name}#{next(iter(entries))}'"
        )
    if key and key not in entries:
        raise InputError(
            f"{path} has nothing for {key!r}; {did_you_mean(key, list(entries))}it has {', '.join(entries)}"
        )
    return _specs(entries[key or next(iter(entries))])


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
        description=f"How many seeds, counted from 0, or a list of them; {len(DEFAULT_SEEDS)} by default.",
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
    """The experiment a configuration means; files of classes are searched in `folder` first, then here."""
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
            policies += _policy_specs(policy, folder)
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
    return check_seeds(DEVELOPMENT.take(check_seed_count(given)) if isinstance(given, int) else tuple(given))


def _policy_specs(config: PolicyConfig, folder: Path | None) -> tuple[PolicySpec, ...]:
    """One policy, or all of a file of settings found."""
    if is_tuned(config.name):
        if config.label is not None or config.settings:
            raise InputError(f"{config.name} has the labels and settings of its policies; leave them out here")
        found = tuned_policies(config.name, folder=folder)
        return tuple(dataclasses.replace(spec, kernel=config.kernel, seeds=config.seeds) for spec in found)
    name = resolve(config.name, folder=folder)
    return (PolicySpec(config.label or default_label(name), name, config.settings, config.kernel, config.seeds),)


Schema = dict[str, Any]
SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
REFERENCE_SCHEMA = {"type": "string", "pattern": ":"}  # file.py:Class
TUNED_SCHEMA = {"type": "string", "pattern": r"\.json(#.+)?$"}  # settings that driftbandits tune found


def run_schema() -> Schema:
    """The schema.

    >>> run_schema()["required"]
    ['environment', 'policies']
    """
    schema = RunConfig.model_json_schema()
    parts = schema["$defs"]
    real = {f"{REAL_PREFIX}{name}": _closed(["copy"], copy={"enum": list(COPIES)}) for name in datasets.names()}
    parts["Kernel"] = _by_name(NAMED, terms=COMBINED)
    parts["Noise"] = _by_name(NOISES)
    parts.update({f"Preset of {key}": _presets(presets) for key, presets in PRESETS.items()})
    parts["EnvironmentName"] = {"anyOf": [{"enum": [*ENVIRONMENTS, *real]}, REFERENCE_SCHEMA]}
    parts["PolicyName"] = {"anyOf": [{"enum": list(POLICIES)}, REFERENCE_SCHEMA, TUNED_SCHEMA]}
    worlds = {**{name: _world_settings(name) for name in ENVIRONMENTS}, **real}
    _describe(parts["EnvironmentConfig"], worlds, "EnvironmentName")
    _describe(parts["PolicyConfig"], {name: _policy_settings(name) for name in POLICIES}, "PolicyName")
    _name_alone(schema["properties"]["environment"], "EnvironmentName")
    _name_alone(schema["properties"]["policies"]["items"], "PolicyName")
    kernel = parts["PolicyConfig"]["properties"]["kernel"]
    kernel["anyOf"] = [{"$ref": "#/$defs/Kernel"}, {"type": "null"}]
    return {"$schema": SCHEMA_DIALECT, **schema}


def _describe(config: Schema, settings: Mapping[str, Schema], name: str) -> None:
    """Let `name` decide which `settings` there are."""
    described = config["properties"]["name"].get("description", "")
    config["properties"]["name"] = {"$ref": f"#/$defs/{name}", "description": described}
    config["allOf"] = [
        {"if": {"properties": {"name": {"const": key}}}, "then": {"properties": {"settings": schema}}}
        for key, schema in settings.items()
    ]


def _name_alone(place: Schema, name: str) -> None:
    place["anyOf"] = [{"$ref": f"#/$defs/{name}"} if "type" in entry else entry for entry in place["anyOf"]]


def _world_settings(name: str) -> Schema:
    kind, _ = ENVIRONMENTS[name]
    names = [setting for setting in settings_of(kind) if setting not in NOT_WORLD_SETTINGS]
    return _closed(names, noise={"$ref": "#/$defs/Noise"}, kernel={"$ref": "#/$defs/Kernel"})


def _policy_settings(name: str) -> Schema:
    names = sorted(known_settings(POLICIES[name]) - set(NOT_POLICY_SETTINGS))
    return _closed(names, **{key: {"$ref": f"#/$defs/Preset of {key}"} for key in PRESETS})


def _closed(names: Iterable[str], **known: Schema) -> Schema:
    """An object with these keys and no others."""
    return {"properties": {key: known.get(key, {}) for key in dict.fromkeys(names)}, "additionalProperties": False}


def _by_name(makers: Mapping[str, Any], terms: Iterable[str] = ()) -> Schema:
    """A mapping with a `name`, and the parameters of what it names."""
    choices = [
        {
            "properties": {"name": {"const": name}, **{key: {} for key in inspect.signature(maker).parameters}},
            "additionalProperties": False,
        }
        for name, maker in makers.items()
    ]
    for name in terms:
        listed = {"type": "array", "items": {"$ref": "#/$defs/Kernel"}, "minItems": 1}
        choices.append({"properties": {"name": {"const": name}, "terms": listed}, "additionalProperties": False})
    return {"type": "object", "required": ["name"], "oneOf": choices}


def _presets(presets: Mapping[str, Any]) -> Schema:
    """A preset by name, or with what differs from it."""
    fields = [field.name for makers in presets.values() for field in dataclasses.fields(makers())]
    changed = _closed(fields)
    changed["properties"]["preset"] = {"enum": list(presets)}
    return {"anyOf": [{"enum": list(presets)}, {"type": "object", **changed}]}
