"""Settings of a policy as plain values: what a file can hold, and what a policy is given."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any

from driftbandits.errors import InputError, did_you_mean
from driftbandits.policies import Constants, Variant

PRESETS: dict[str, dict[str, Any]] = {
    "constants": {
        "tuned": Constants.tuned,
        "published": Constants.published,
        "neural": Constants.neural,
        "published_neural": Constants.published_neural,
        "published_stationary": Constants.published_stationary,
        "theory": partial(Constants.theory, bound=3.0, noise=0.3),  # about what the paper's worlds have
    },
    "variant": {"paper": Variant.paper, "published": Variant.published},
}


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
