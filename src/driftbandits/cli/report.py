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
    from driftbandits.cli.run_folder import RUN_MODE, Findings, print_outputs, read_record, read_results, write_outputs
    from driftbandits.experiments.study import load_study

    record = read_record(folder)
    make_findings = Findings
    if record.about.get("mode") != RUN_MODE:
        make_findings = load_study("commands", purpose=f"the report of {folder}").StudyFindings
    print_outputs(write_outputs(record, make_findings(read_results(record, folder)), folder), as_json=json)
