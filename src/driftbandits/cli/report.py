"""`driftbandits report`: tables, claims and report again, from the finished runs of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from driftbandits.cli.options import Json


def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The --out of an earlier reproduce or run.")],
    json: Json = False,
) -> None:
    """Write tables, claims and report of a folder again, from its finished runs; nothing is played."""
    from driftbandits.cli.record import read_record
    from driftbandits.cli.run_folder import print_outputs, read_results, write_outputs

    record = read_record(folder)
    print_outputs(write_outputs(record, read_results(record, folder), folder), as_json=json)
