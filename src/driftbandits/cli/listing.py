"""`driftbandits list`: what there is, by name."""

from __future__ import annotations

import importlib.util
import inspect
import platform
import re
import statistics
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from driftbandits._util.machine import installed_versions
from driftbandits.cli.live import USUAL
from driftbandits.cli.options import Json, print_json, print_table
from driftbandits.text import first_line
from driftbandits.version import __version__

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
    return rows + _of_others("driftbandits.policies")


def _of_others(group: str) -> Rows:
    """What installed packages register; nothing of theirs is imported for a list."""
    from driftbandits.configuration.references import registered_by_others

    return [{"name": name, "what": place, "settings": {}} for name, place in registered_by_others(group).items()]


def _environments() -> Rows:
    from driftbandits import datasets
    from driftbandits.datasets import DATASETS, REAL_PREFIX
    from driftbandits.environments.registry import ENVIRONMENTS, settings_of

    rows = []
    for name, (kind, given) in ENVIRONMENTS.items():
        defaults = {**settings_of(kind), **given}
        settings = {key: _plain(default) for key, default in defaults.items() if key != "name"}
        rows.append({"name": name, "what": _first_sentence(kind), "settings": settings})
    rows += _of_others("driftbandits.environments")
    for name in datasets.names():
        parameters = inspect.signature(datasets.create).parameters.values()
        settings = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        what = _first_sentence(inspect.getmodule(DATASETS[name]))
        rows.append({"name": f"{REAL_PREFIX}{name}", "what": what, "settings": settings})
    return rows


def _datasets() -> Rows:
    """Without reading any: that takes seconds."""
    from driftbandits.datasets import DATASETS

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


PACKAGES = ("numpy", "scipy", "scikit-learn", "sqlalchemy", "pyarrow", "psycopg", "pandas", "torch")
COMMITS = 20


def doctor(
    database: Annotated[str, typer.Option("--database", "-d", envvar="DRIFTBANDITS_DATABASE", help="Its URL.")] = USUAL,
    json: Json = False,
) -> None:
    """Say what is installed, whether the database can be reached and written to, and how long a commit takes."""
    from driftbandits._util import machine

    rows = [_row("driftbandits", __version__), _row("python", f"{platform.python_version()} ({sys.platform})")]
    rows.append(_row("arithmetic", machine.fingerprint()))
    versions = installed_versions(PACKAGES)
    rows += [_row(package, versions.get(package, "not installed")) for package in PACKAGES]
    found = _database(database) if "sqlalchemy" in versions else [_row("database", "needs the extra live", fine=False)]
    rows += found
    if json:
        print_json(rows)
    else:
        print_table(rows)
    if not all(row["fine"] for row in rows):
        raise typer.Exit(1)


def _row(what: str, found: str, *, fine: bool = True) -> dict[str, Any]:
    return {"what": what, "found": found, "fine": fine}


def _database(url: str) -> list[dict[str, Any]]:
    import sqlalchemy as sa

    from driftbandits import live
    from driftbandits.errors import DriftbanditsError

    try:
        if (file := _missing_file(url)) is not None:
            rows = [_row("database", f"there is none at {file} yet; measured beside it")]
            with tempfile.TemporaryDirectory(dir=file.parent) as aside, live.open(f"sqlite:///{aside}/x.db") as opened:
                times = commit_seconds(opened)
        else:
            with live.open(url) as opened:
                rows = [_row("database", opened.url.render_as_string()), _row("experiments", str(len(opened.names())))]
                times = commit_seconds(opened)
    except (DriftbanditsError, sa.exc.SQLAlchemyError, OSError) as error:
        return [_row("database", first_line(error), fine=False)]
    middle, most = 1e3 * statistics.median(times), 1e3 * max(times)
    return [*rows, _row("commit", f"{middle:.2f} ms in the middle of {len(times)}, {most:.2f} ms at most")]


def _missing_file(url: str) -> Path | None:
    """The file of a SQLite database that is not there; the doctor does not make it."""
    from driftbandits.live.connections import read_url, sqlite_file

    parsed = read_url(url)
    file = sqlite_file(parsed) if parsed.get_backend_name() == "sqlite" else None
    return None if file is None or file.exists() else file


def commit_seconds(database: Any) -> list[float]:
    """How long a commit of one row takes, some times over; the row is of no experiment, and gone after."""
    import sqlalchemy as sa

    from driftbandits.live import tables

    table, times = tables.answers, []
    for number in range(COMMITS):
        begun = time.perf_counter()
        with database.writing() as connection:
            row = {"experiment": -1, "key": f"doctor {number}", "time": 0, "digest": "", "answer": ""}
            connection.execute(sa.insert(table).values(row))
        times.append(time.perf_counter() - begun)
    with database.writing() as connection:
        connection.execute(sa.delete(table).where(table.c.experiment == -1))
    return times
