"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftbandits.cli import complete
from driftbandits.errors import InputError

if TYPE_CHECKING:
    from driftbandits.experiments.engines import Engine


def _not_zero(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("must not be 0; use -1 for one process per core")
    return jobs


Out = Annotated[Path, typer.Option("--out", help="Folder for everything that is written.", show_default=True)]
Jobs = Annotated[int, typer.Option("--jobs", callback=_not_zero, help="How many processes; -1: one per core.")]
EngineName = Annotated[
    str, typer.Option("--engine", autocompletion=complete.engines, help="Where runs are played: loky, ray or dask.")
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
        autocompletion=complete.policies,
        help="A policy that joins: a name or file.py:Class, then settings and a label if wanted, as in "
        "'SlidingWindowGPUCB,window=500,label=short'. May be given several times.",
    ),
]


def engine_of(name: str, jobs: int, address: str | None) -> Engine:
    """The engine these options name; wrong usage if there is none such."""
    from driftbandits.experiments.engines import Engine

    try:
        return Engine(name, jobs=jobs, address=address)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
