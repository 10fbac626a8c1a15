"""`driftbandits reproduce`: experiments of the study of the paper, which is the folder `reproduction` of a checkout."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from driftbandits.cli import complete
from driftbandits.cli.options import Address, EngineName, Jobs, Json, Out, Policies, Resume, Seeds, engine_of


def _positive(minutes: float | None) -> float | None:
    if minutes is not None and not 0 < minutes < math.inf:
        raise typer.BadParameter("must be a number above 0")
    return minutes


Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID",
        autocompletion=complete.experiments,
        help="Ids, groups (paper, growth, linear, comparison, suite, real, yardstick, calibrated, five) or beginnings "
        "of ids; by default paper growth linear.",
    ),
]


def reproduce(
    ids: Ids = None,
    out: Out = Path("results/reproduce"),
    seeds: Seeds = None,
    policy: Policies = [],  # noqa: B006  (Typer makes a new list)
    tuned: Annotated[
        list[Path],
        typer.Option(
            "--tuned",
            metavar="FILE",
            help="What driftbandits tune found for a policy of yours: it joins with the settings for each dimension; "
            "experiments of other dimensions are left out. May be given several times.",
        ),
    ] = [],  # noqa: B006
    quick: Annotated[
        bool, typer.Option("--quick", help="The first pass alone: two seeds, narrow networks, short sweeps.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="All seeds for trained networks too, and the group five.")
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", callback=_positive, help="End after the pass in which so many minutes are over."),
    ] = None,
    resume: Resume = False,
    jobs: Jobs = -1,
    engine: EngineName = "loky",
    address: Address = None,
    json: Json = False,
) -> None:
    """Run the paper's experiments; write tables, checked claims, figures and a report.

    If no ID is given, in passes: the whole report is written again and again, sharper each time, the first after
    minutes. Every finished run is kept at once: after an interruption, go on with --resume.
    """
    if quick and full:
        raise typer.BadParameter("--quick and --full exclude each other")
    if minutes is not None and (ids or quick or full):
        raise typer.BadParameter("--minutes ends a run between passes, which it has without ID, --quick and --full")
    where = engine_of(engine, jobs, address)
    from driftbandits.experiments.study import load_study

    load_study("commands", purpose="driftbandits reproduce").reproduce(
        ids or [],
        out=out,
        seeds=seeds,
        policies=policy,
        tuned=tuned,
        length="quick" if quick else "full" if full else "standard",
        minutes=minutes,
        resume=resume,
        engine=where,
        as_json=json,
    )
