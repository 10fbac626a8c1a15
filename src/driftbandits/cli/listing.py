"""`driftbandits list`: what there is, by name."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from driftbandits.cli.options import Json
from driftbandits.cli.show import print_json, print_table
from driftbandits.packages import installed_versions

Rows = list[dict[str, Any]]


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
    else:
        print_table(rows)


def _experiments() -> Rows:
    from driftbandits.experiments.definitions.catalogue import GROUPS
    from driftbandits.experiments.definitions.specs import cells_of

    return [
        {
            "id": experiment.id,
            "group": group,
            "environment": experiment.environment,
            "policies": len(experiment.policies),
            "seeds": len(experiment.seeds),
            "runs": len(cells_of(experiment)),
            "title": experiment.title,
        }
        for group, members in GROUPS.items()
        for experiment in members.values()
    ]


def _policies() -> Rows:
    from driftbandits.policies import POLICIES

    return [{"name": name, "what": _first_sentence(kind)} for name, kind in POLICIES.items()]


def _environments() -> Rows:
    from driftbandits import datasets
    from driftbandits.datasets.registry import DATASETS
    from driftbandits.environments.registry import ENVIRONMENTS
    from driftbandits.experiments.definitions.ids import REAL_PREFIX

    made = [
        {"name": name, "what": _first_sentence(kind), "settings": ", ".join(f"{k}={v}" for k, v in given.items())}
        for name, (kind, given) in ENVIRONMENTS.items()
    ]
    real = [
        {"name": f"{REAL_PREFIX}{name}", "what": _first_sentence(inspect.getmodule(DATASETS[name])), "settings": ""}
        for name in datasets.names()
    ]
    return [*made, *real]


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
    from driftbandits.experiments.running.engines import ENGINE_PACKAGES, ENGINES

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


def _can_be_imported(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _first_sentence(thing: object) -> str:
    """The first sentence of a docstring as one line; "et al." ends none."""
    paragraph = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    return re.split(r"(?<!\bal)\. ", paragraph)[0].removesuffix(".")
