"""The JSON Schema of a configuration file, for editors and other programs; `driftbandits run --schema` prints it.

The models give the keys; to them are added, for every registered name, the settings it knows. Whether a value suits is
for the world and the policy to say, when they are built.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from driftbandits import datasets
from driftbandits.configuration.presets import PRESETS
from driftbandits.datasets import COPIES
from driftbandits.environments.registry import ENVIRONMENTS, NOISES, settings_of
from driftbandits.experiments.definitions.ids import REAL_PREFIX
from driftbandits.experiments.definitions.specs import NOT_POLICY_SETTINGS, NOT_WORLD_SETTINGS
from driftbandits.experiments.files.config import RunConfig
from driftbandits.kernels import COMBINED, NAMED
from driftbandits.policies import POLICIES
from driftbandits.policies.inputs import known_settings

Schema = dict[str, Any]

SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
REFERENCE_SCHEMA = {"type": "string", "pattern": ":"}  # file.py:Class


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
    parts["PolicyName"] = {"anyOf": [{"enum": list(POLICIES)}, REFERENCE_SCHEMA]}
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
