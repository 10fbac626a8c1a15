"""Settings on the command line: `key=value` with YAML values, and `inner.key=value` for what lies inside."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from driftbandits.configuration.files import read_value
from driftbandits.configuration.names import default_label
from driftbandits.configuration.references import resolve
from driftbandits.errors import InputError
from driftbandits.experiments.specs import PolicySpec


def read_settings(items: Sequence[str]) -> dict[str, Any]:
    """Settings from `key=value` items.

    >>> read_settings(["horizon=2000", "noise.name=gaussian", "noise.sd=0.5", "switches=[500, 900]"])
    {'horizon': 2000, 'noise': {'name': 'gaussian', 'sd': 0.5}, 'switches': [500, 900]}
    """
    settings: dict[str, Any] = {}
    for item in items:
        key, equals, text = item.partition("=")
        if not equals or not re.fullmatch(r"\w+(\.\w+)*", key.strip()):
            raise InputError(f"{item!r} is not a setting; write key=value, as in horizon=2000 or noise.sd=0.5")
        *outer, last = key.strip().split(".")
        inside = settings
        for name in outer:
            inside = inside.setdefault(name, {})
            if not isinstance(inside, dict):
                raise InputError(f"{item!r}: {name!r} was given a value of its own before")
        inside[last] = read_value(text)
    return settings


def merge(settings: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` with those of `over` in their place, mappings inside merged alike.

    >>> merge({"size": 20, "noise": {"name": "gaussian", "sd": 0.1}}, {"noise": {"sd": 0.5}})
    {'size': 20, 'noise': {'name': 'gaussian', 'sd': 0.5}}
    """
    merged = dict(settings)
    for key, value in over.items():
        both = isinstance(merged.get(key), Mapping) and isinstance(value, Mapping)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def read_policy(text: str) -> PolicySpec:
    """A policy from `name,key=value,...`; `label` is what tables call it, all other keys are its settings.

    >>> read_policy("AdaOPKB,label=mine,constants.preset=published,constants.c0=2.0")
    PolicySpec(label='mine', name='AdaOPKB', settings={'constants': {'preset': 'published', 'c0': 2.0}}, ...)
    """
    first, *rest = _split(text)
    if not first or "=" in first:
        raise InputError(f"{text!r} does not begin with a policy; write name,key=value, as in AdaOPKB,label=mine")
    settings = read_settings(rest)
    label = str(settings.pop("label", default_label(first)))
    return PolicySpec(label, resolve(first), settings)


def _split(text: str) -> list[str]:
    """The parts between commas that are not inside brackets or quotes.

    >>> _split("X,a=[1, 2],b='x, y'")
    ['X', 'a=[1, 2]', "b='x, y'"]
    """
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        else:
            depth += (character in "[{") - (character in "]}")
        if character == "," and not quote and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
