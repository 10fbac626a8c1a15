"""`driftbandits doctor`: what is installed, reachable and writable, and how long a commit takes."""

from __future__ import annotations

import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from driftbandits import machine
from driftbandits.cli.live import USUAL
from driftbandits.cli.options import Json
from driftbandits.cli.show import print_json, print_table
from driftbandits.packages import installed_versions
from driftbandits.showing import first_line
from driftbandits.version import __version__

PACKAGES = ("numpy", "scipy", "scikit-learn", "sqlalchemy", "pyarrow", "psycopg", "pandas", "torch")
COMMITS = 20


def doctor(
    database: Annotated[str, typer.Option("--database", "-d", envvar="DRIFTBANDITS_DATABASE", help="Its URL.")] = USUAL,
    json: Json = False,
) -> None:
    """Say what is installed, whether the database can be reached and written to, and how long a commit takes."""
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
