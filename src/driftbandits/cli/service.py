"""`driftbandits serve`, `driftbandits keys`: experiments over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from driftbandits.cli.live import USUAL, Where
from driftbandits.cli.options import Json, print_json, print_table, say

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
def create(
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
    from driftbandits import live
    from driftbandits.service.keys import create_key

    with live.open(database) as opened:
        typer.echo(create_key(opened, name, scope, per_minute=per_minute, days=days))
    say("keep it: the database has its hash alone. Within two seconds every request needs a key")


@keys.command("list")
def list_all(database: Where = USUAL, json: Json = False) -> None:
    """List the keys of a database, without their secrets."""
    from driftbandits import live
    from driftbandits.service.keys import list_keys

    with live.open(database, create=False) as opened:
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
    if json:
        print_json(rows)
    elif rows:
        print_table(rows)
    else:
        say("there are no keys: only this machine is served, without one")


@keys.command("rotate")
def rotate(
    ident: Annotated[str, typer.Argument(metavar="ID", help="The id of a key, as `keys list` shows it.")],
    hours: Annotated[float, typer.Option(help="For which the old key works beside the new one.")] = 24.0,
    database: Where = USUAL,
) -> None:
    """Make a new key like an old one, which ends after a while, and print it; it is shown this once."""
    from driftbandits import live
    from driftbandits.service.keys import rotate_key

    with live.open(database, create=False) as opened:
        typer.echo(rotate_key(opened, ident, hours=hours))
    say(f"key {ident} ends in {hours:g} hours; give its program the new one")


@keys.command("revoke")
def revoke(
    ident: Annotated[str, typer.Argument(metavar="ID", help="The id of a key, as `keys list` shows it.")],
    database: Where = USUAL,
) -> None:
    """Make a key useless; a server that runs knows within two seconds."""
    from driftbandits import live
    from driftbandits.service.keys import revoke_key

    with live.open(database, create=False) as opened:
        revoke_key(opened, ident)
    say(f"key {ident} is revoked")


def _day(time: int | None) -> str:
    return "" if time is None else datetime.fromtimestamp(time / 1e6, UTC).isoformat(timespec="seconds")
