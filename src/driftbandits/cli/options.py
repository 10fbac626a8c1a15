"""What the commands share: options with the completion of names, settings on the command line, output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftbandits.errors import InputError
from driftbandits.text import aligned


def complete_experiments(incomplete: str) -> list[str]:
    """Groups and ids of experiments."""
    from driftbandits.experiments.study import load_study, study_folder

    if study_folder() is None:
        return []
    groups = load_study("groups", purpose="completion")
    return _beginning(incomplete, [*(group.name for group in groups.GROUPS), *groups.EXPERIMENTS])


def complete_policies(incomplete: str) -> list[str]:
    """Names of registered policies."""
    from driftbandits.policies import POLICIES

    return _beginning(incomplete, POLICIES)


def complete_environments(incomplete: str) -> list[str]:
    """Names of registered worlds."""
    from driftbandits import datasets, environments

    return _beginning(incomplete, [*environments.names(), *(f"real/{name}" for name in datasets.names())])


def complete_engines(incomplete: str) -> list[str]:
    """Names of engines."""
    from driftbandits.experiments.engines import ENGINES

    return _beginning(incomplete, ENGINES)


def complete_searches(incomplete: str) -> list[str]:
    """What can be searched: the studies, and policies one by one."""
    from driftbandits.cli.tune import STUDIES
    from driftbandits.policies import POLICIES

    return _beginning(incomplete, [*STUDIES, *POLICIES])


def complete_labels(incomplete: str) -> list[str]:
    """Policies of the comparison."""
    from driftbandits.experiments.study import load_study, study_folder

    return [] if study_folder() is None else _beginning(incomplete, load_study("spaces", purpose="completion").SPACES)


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


if TYPE_CHECKING:
    from driftbandits.experiments.engines import Engine
    from driftbandits.experiments.specs import PolicySpec


def say(message: str) -> None:
    """A message, beside the data."""
    typer.echo(message, err=True)


def print_json(value: Any) -> None:
    """Data for programs."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Data for people: aligned columns under the keys of the rows, numbers to the right."""
    if not rows:
        return
    names = list(rows[0])
    cells = [[_text(row[name]) for name in names] for row in rows]
    rule = ["-" * max(len(name), *(len(row[k]) for row in cells)) for k, name in enumerate(names)]
    left = [any(type(row[name]) not in (int, float) for row in rows) for name in names]
    typer.echo("\n".join(aligned([names, rule, *cells], left=left)))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}" if isinstance(value, float) else str(value)


def _not_zero(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("must not be 0; use -1 for one process per core")
    return jobs


Out = Annotated[Path, typer.Option("--out", help="Folder for everything that is written.", show_default=True)]
Jobs = Annotated[int, typer.Option("--jobs", callback=_not_zero, help="How many processes; -1: one per core.")]
EngineName = Annotated[
    str, typer.Option("--engine", autocompletion=complete_engines, help="Where runs are played: loky, ray or dask.")
]
Address = Annotated[
    str | None, typer.Option("--address", help="Of a running ray or dask cluster; without it one is started here.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Keep the finished runs in --out and play only what is missing.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to standard output, and nothing else there.")]
Seeds = Annotated[int | None, typer.Option("--seeds", min=1, help="Play only the first so many seeds.")]
Policies = Annotated[
    list[str],
    typer.Option(
        "--policy",
        metavar="POLICY",
        autocompletion=complete_policies,
        help="A policy that joins: a name or file.py:Class, then settings and a label if wanted, as in "
        "'SlidingWindowGPUCB,window=500,label=short'. May be given several times.",
    ),
]


def engine_of(name: str, jobs: int, address: str | None) -> Engine:
    """The engine these options name; wrong usage if there is no such engine."""
    from driftbandits.experiments.engines import Engine

    try:
        return Engine(name, jobs=jobs, address=address)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None


def read_settings(items: Sequence[str]) -> dict[str, Any]:
    """Settings from `key=value` items.

    >>> read_settings(["horizon=2000", "noise.name=gaussian", "noise.sd=0.5", "switches=[500, 900]"])
    {'horizon': 2000, 'noise': {'name': 'gaussian', 'sd': 0.5}, 'switches': [500, 900]}
    """
    from driftbandits.configuration.files import read_value

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
    from driftbandits.configuration.models import default_label
    from driftbandits.configuration.references import resolve
    from driftbandits.experiments.specs import PolicySpec

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
