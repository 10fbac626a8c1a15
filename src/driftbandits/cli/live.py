"""`driftbandits experiments`, `db`, `serve` and `keys`: experiments that live in a database, and over HTTP."""

from __future__ import annotations

import dataclasses
import json as json_text
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftbandits.cli.options import Json, print_json, print_table, say
from driftbandits.errors import InputError
from driftbandits.text import counted

if TYPE_CHECKING:
    from driftbandits.live import Database

USUAL = "sqlite:///driftbandits.db"
Where = Annotated[str, typer.Option("--database", "-d", envvar="DRIFTBANDITS_DATABASE", help="URL of the database.")]
Name = Annotated[str, typer.Argument(help="Name of the experiment.")]

experiments = typer.Typer(no_args_is_help=True, help="Experiments that live in a database: make, list, show, export.")
db = typer.Typer(no_args_is_help=True, help="The database of experiments: bring it up to date, check it.")


def _open(url: str, *, create: bool = False) -> Database:
    from driftbandits import live

    return live.open(url, create=create)


def _show(rows: list[dict[str, Any]], json: bool, *, none: str) -> None:
    """A list for programs or for people, to whom `none` is said in place of an empty one."""
    if json:
        print_json(rows)
    elif rows:
        print_table(rows)
    else:
        say(none)


@experiments.command("create")
def create(
    name: Name,
    file: Annotated[Path, typer.Argument(help="JSON file with arms and whatever else it is made with.")],
    database: Where = USUAL,
) -> None:
    """Make an experiment from a JSON file, such as {"arms": ["red", "blue"], "reward_range": [0, 1]}."""
    from driftbandits.live.definition import define

    try:
        fields = json_text.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{file} is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise InputError(f"{file} must hold a mapping, such as {{'arms': ['red', 'blue']}}")
    fields.pop("name", None)
    with _open(database, create=True) as opened:
        opened.make(name, define(**fields))
    say(f"experiment {name} is made, in {database}")


@experiments.command("list")
def list_all(database: Where = USUAL, json: Json = False) -> None:
    """List the experiments of a database."""
    with _open(database) as opened:
        rows = [_row(opened, name) for name in opened.names()]
    _show(rows, json, none="there are no experiments yet; make one with: driftbandits experiments create NAME FILE")


def _row(database: Database, name: str) -> dict[str, Any]:
    view = database.view(name)
    with view.journal() as journal:
        newest = journal.newest()
    return {
        "name": name,
        "policy": view.definition.policy,
        "arms": len(view.definition.arms),
        "events": 0 if newest is None else newest.seq,
    }


@experiments.command("show")
def show(name: Name, database: Where = USUAL, json: Json = False) -> None:
    """Show what an experiment plays and expects now, beside whoever decides in it."""
    with _open(database) as opened:
        summary = opened.view(name).summary()
    if json:
        print_json(dataclasses.asdict(summary))
    else:
        typer.echo(str(summary))


@experiments.command("export")
def export(
    name: Name,
    out: Annotated[Path, typer.Argument(help="Parquet file to write.")],
    database: Where = USUAL,
) -> None:
    """Write all decisions of an experiment and their rewards to a Parquet file."""
    from driftbandits.live.export import export_log

    with _open(database) as opened:
        rows = export_log(opened.view(name), out)
    say(f"{counted(rows, 'decision')} written to {out}")


@db.command("upgrade")
def upgrade(database: Annotated[str, typer.Argument(help="URL of the database.")] = USUAL) -> None:
    """Bring the tables of a database to those of this version; take a backup before."""
    from driftbandits.live import Database

    with Database(database) as opened:
        steps = opened.upgrade()
    say(f"made: {', '.join(steps)}" if steps else "nothing to do: the database is up to date")


@db.command("repair-clock")
def repair_clock(database: Annotated[str, typer.Argument(help="URL of the database.")] = USUAL) -> None:
    """Put the time of every experiment back to the clock's, after the clock was ahead; stop the servers before.

    Events have the newest time that was seen, so nothing runs out of patience until the clock has caught up. Here the
    time goes on from now; what is open and was decided later than now waits as if it had been decided now.
    """
    from driftbandits.live.requests import clock

    with _open(database) as opened:
        for name in opened.names():
            with opened.view(name).journal() as journal:
                newest = journal.newest()
            if newest is not None and not newest.damage and newest.time > clock():
                seconds = opened.experiment(name).submit("clock", {}).result()["seconds"]
                say(f"{name}: put back by {seconds:,.0f} s")
            else:
                say(f"{name}: not ahead")


_VERDICTS = {"identical": "sound and identical", "sound": "sound", "damaged": "DAMAGED"}


@db.command("check")
def check(
    database: Annotated[str, typer.Argument(help="URL of the database.")] = USUAL,
    name: Annotated[list[str], typer.Option("--only", help="This experiment; may be given several times.")] = [],  # noqa: B006
) -> None:
    """Replay every journal and compare its snapshots with the replay; exit code 1 if one is damaged.

    Nothing is changed. On another kind of machine than the one that wrote a journal, beliefs differ in their last
    digits: that is no damage, and said.
    """
    wrong = 0
    with _open(database) as opened:
        names = name or opened.names()
        if not names:
            say("there are no experiments to check")
        for each in names:
            found = opened.view(each).check()
            differing = f", {found.differing:,} rounds would be drawn otherwise here" if found.differing else ""
            size = f"{counted(found.events, 'event')}, {counted(found.snapshots, 'snapshot')}"
            largest = f", largest difference {found.largest:.2g}" if found.largest else ""
            typer.echo(f"{each}: {_VERDICTS[found.verdict]}{largest}; {size}{differing}")
            for sentence in (*found.problems, *found.notes):
                typer.echo(f"  {sentence}")
            wrong += not found.fine
    if wrong:
        raise typer.Exit(1)


keys = typer.Typer(no_args_is_help=True, help="Keys: who may send requests to a server.")


def serve(
    database: Annotated[str | None, typer.Option("--database", "-d", help="URL of the database.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen at.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen at; 0 takes a free one.")] = None,
    advertise: Annotated[str | None, typer.Option(help="URL at which other servers reach this one.")] = None,
    forward_plain: Annotated[
        bool | None, typer.Option(help="Forward keys over plain HTTP to servers on other machines.")
    ] = None,
    public_url: Annotated[str | None, typer.Option(help="URL that browsers use, behind a proxy.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    most_body: Annotated[int | None, typer.Option(help="Bytes of a request's body.")] = None,
    most_arms: Annotated[int | None, typer.Option(help="Arms of an experiment.")] = None,
    most_open: Annotated[int | None, typer.Option(help="Decisions of an experiment that wait for a reward.")] = None,
    most_experiments: Annotated[int | None, typer.Option(help="Experiments of the database.")] = None,
    most_connections: Annotated[int | None, typer.Option(help="Connections at a time.")] = None,
    most_per_address: Annotated[int | None, typer.Option(help="Connections of one address.")] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file with settings.")] = None,
) -> None:
    """Serve experiments over HTTP, with a page, on 127.0.0.1:8350 with a SQLite file unless told otherwise."""
    flags = {name: value for name, value in locals().items() if name != "config"}
    from driftbandits.service.server import serve as serve_forever
    from driftbandits.service.settings import read_settings

    serve_forever(read_settings(flags, config), lambda where: say(f"serving experiments; the page is at {where}"))


@keys.command("create")
def make_key(
    scope: Annotated[
        str,
        typer.Option(help="guest: decisions that teach nothing; decide: and rewards; read: look; admin: everything."),
    ],
    per_minute: Annotated[int | None, typer.Option(help="Decisions per minute; 600 for a guest.")] = None,
    days: Annotated[float | None, typer.Option(help="After which it ends; without this, when it is revoked.")] = None,
    name: Annotated[str, typer.Option(help="For whom it is.")] = "unnamed",
    database: Where = USUAL,
) -> None:
    """Make a key and print it; it is shown this once."""
    from driftbandits.service.keys import create_key

    with _open(database, create=True) as opened:
        typer.echo(create_key(opened, name, scope, per_minute=per_minute, days=days))
    say("keep it: the database has its hash alone. Within two seconds every request needs a key")


@keys.command("list")
def show_keys(database: Where = USUAL, json: Json = False) -> None:
    """List the keys of a database, without their secrets."""
    from driftbandits.service.keys import list_keys

    with _open(database) as opened:
        found = list_keys(opened)
    rows = [
        {
            "id": row.id,
            "name": row.name,
            "scope": row.scope,
            "per_minute": row.per_minute or "",
            "created": _day(row.created),
            "expires": _day(row.expires),
            "revoked": _day(row.revoked),
        }
        for row in found
    ]
    _show(rows, json, none="there are no keys: only this machine is served, without one")


@keys.command("rotate")
def rotate(
    ident: Annotated[str, typer.Argument(metavar="ID", help="The id of a key, as `keys list` shows it.")],
    hours: Annotated[float, typer.Option(help="For which the old key works beside the new one.")] = 24.0,
    database: Where = USUAL,
) -> None:
    """Make a new key like an old one, which ends after a while, and print it; it is shown this once."""
    from driftbandits.service.keys import rotate_key

    with _open(database) as opened:
        typer.echo(rotate_key(opened, ident, hours=hours))
    say(f"key {ident} ends in {hours:g} hours; give its program the new one")


@keys.command("revoke")
def revoke(
    ident: Annotated[str, typer.Argument(metavar="ID", help="The id of a key, as `keys list` shows it.")],
    database: Where = USUAL,
) -> None:
    """Make a key useless; a server that runs knows within two seconds."""
    from driftbandits.service.keys import revoke_key

    with _open(database) as opened:
        revoke_key(opened, ident)
    say(f"key {ident} is revoked")


def _day(time: int | None) -> str:
    return "" if time is None else datetime.fromtimestamp(time / 1e6, UTC).isoformat(timespec="seconds")
