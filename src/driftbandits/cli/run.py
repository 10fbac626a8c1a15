"""`driftbandits run`: any policies on any world, from a file or from options."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftbandits.cli.options import (
    Address,
    EngineName,
    Jobs,
    Json,
    Out,
    Policies,
    Resume,
    Seeds,
    complete_environments,
    complete_experiments,
    engine_of,
    print_json,
)
from driftbandits.errors import InputError

if TYPE_CHECKING:
    from driftbandits.experiments.specs import Experiment


def run(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="What to play, as YAML or TOML.")] = None,
    environment: Annotated[
        str | None,
        typer.Option(
            "--environment",
            metavar="NAME",
            autocompletion=complete_environments,
            help="Instead of a file: the world, a name or file.py:Class.",
        ),
    ] = None,
    policy: Policies = [],  # noqa: B006  (Typer makes a new list)
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the world, as in horizon=2000, noise.sd=0.5 or switches='[500, 900]'. May be given "
            "several times, and goes over what the file says.",
        ),
    ] = [],  # noqa: B006
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, help="How many seeds, counted from 0; by default 25.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for everything that is written.  [default: results/ID]")
    ] = None,
    resume: Resume = False,
    jobs: Jobs = -1,
    engine: EngineName = "loky",
    address: Address = None,
    json: Json = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of the file and exit.")] = False,
) -> None:
    """Run any policies on any world; write tables, figures and a report.

    driftbandits run experiment.yaml

    driftbandits run --environment switching/1 --set horizon=2000 --policy AdaOPKB --policy my.py:Mine,rate=0.1
    """
    if schema:
        from driftbandits.experiments.run_files import run_schema

        print_json(run_schema())
        return
    where = engine_of(engine, jobs, address)
    experiment = read(file, environment, policy, settings, seeds)
    from driftbandits.cli.run_folder import RUN_MODE, play_into, print_outputs
    from driftbandits.configuration.models import folder_name
    from driftbandits.experiments.building import check_experiment

    try:
        check_experiment(experiment)
    except InputError as error:
        place = "" if file is None else f"{file}: "
        raise InputError("\n".join(place + line for line in str(error).splitlines())) from None
    folder = out or Path("results") / folder_name(experiment.id)
    outputs = play_into(folder, [experiment], title=experiment.title, mode=RUN_MODE, engine=where, resume=resume)
    print_outputs(outputs, as_json=json)


def read(
    file: Path | None, environment: str | None, policies: Sequence[str], settings: Sequence[str], seeds: int | None
) -> Experiment:
    """The experiment that a file or options describe; options go over the file."""
    from driftbandits.cli.options import merge, read_policy, read_settings
    from driftbandits.configuration.references import resolve
    from driftbandits.experiments.run_files import check_labels, read_experiment
    from driftbandits.experiments.seeds import DEVELOPMENT, check_seed_count, default_seeds
    from driftbandits.experiments.specs import Experiment

    if (file is None) == (environment is None):
        raise typer.BadParameter("give either a file or --environment, as in: driftbandits run experiment.yaml")
    if file is None and not policies:
        raise typer.BadParameter("name who plays, as in --policy AdaOPKB; all names: driftbandits list policies")
    if file is not None:
        base = read_experiment(file)
    else:
        name = resolve(str(environment))
        short = name.rpartition(":")[2]
        base = Experiment(short, short, name, {}, (), seeds=default_seeds(name))
    return dataclasses.replace(
        base,
        settings=merge(base.settings, read_settings(settings)),
        policies=check_labels([*base.policies, *(read_policy(text) for text in policies)]),
        seeds=base.seeds if seeds is None else DEVELOPMENT.take(check_seed_count(seeds)),
    )


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


def _positive(minutes: float | None) -> float | None:
    if minutes is not None and not 0 < minutes < math.inf:
        raise typer.BadParameter("must be a number above 0")
    return minutes


Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID",
        autocompletion=complete_experiments,
        help="Ids, groups (paper, growth, linear, comparison, suite, real, series, yardstick, calibrated, five) or "
        "beginnings of ids; by default paper growth linear.",
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
        bool, typer.Option("--quick", help="The first pass alone; with ID two seeds, narrow networks, short sweeps.")
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
