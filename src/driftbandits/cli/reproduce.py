"""`driftbandits reproduce`: experiments of the catalogue, by default those of the paper."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftbandits.cli import complete
from driftbandits.cli.options import Address, EngineName, Jobs, Json, Out, Policies, Resume, Seeds, engine_of
from driftbandits.errors import InputError

if TYPE_CHECKING:
    from driftbandits.experiments.definitions.specs import Experiment, PolicySpec

Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID",
        autocompletion=complete.experiments,
        help="Ids, groups (paper, growth, comparison, suite, real, yardstick, calibrated, five) or beginnings of ids; "
        "by default paper growth.",
    ),
]


def reproduce(
    ids: Ids = None,
    out: Out = Path("results/reproduce"),
    seeds: Seeds = None,
    policy: Policies = [],  # noqa: B006  (Typer makes a new list)
    quick: Annotated[bool, typer.Option("--quick", help="A taste: two seeds, narrow networks, short sweeps.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="All seeds for trained networks too, and the group five.")
    ] = False,
    resume: Resume = False,
    jobs: Jobs = -1,
    engine: EngineName = "loky",
    address: Address = None,
    json: Json = False,
) -> None:
    """Run the paper's experiments; write tables, checked claims, figures and a report.

    Every finished run is kept at once: after an interruption, go on with --resume.
    """
    if quick and full:
        raise typer.BadParameter("--quick and --full exclude each other")
    where = engine_of(engine, jobs, address)
    from driftbandits.cli.run_folder import play, print_outputs, write_outputs
    from driftbandits.cli.settings import read_policy

    chosen = choose(ids or [], quick=quick, full=full, seeds=seeds)
    chosen = [join(experiment, [read_policy(text) for text in policy]) for experiment in chosen]
    mode = "quick" if quick else "full" if full else "standard"
    record = play(chosen, title=_title(ids or []), mode=mode, out=out, engine=where, resume=resume)
    print_outputs(write_outputs(record, out), record, as_json=json)


def choose(ids: Sequence[str], *, quick: bool, full: bool, seeds: int | None) -> list[Experiment]:
    """The experiments named, each as long as asked for."""
    from driftbandits.experiments.definitions import catalogue
    from driftbandits.experiments.definitions.growth import SWEEPS, quick_sweep

    names = ids or (*catalogue.DEFAULT_GROUPS, *(["five"] if full else []))
    found = catalogue.find_experiments(names)
    if quick:
        short = {e.id: e for sweep in SWEEPS for e in quick_sweep(sweep).experiments}
        found = [short.get(e.id) or catalogue.quick(e) for e in found if e.id in short or e.id not in catalogue.GROWTH]
        if not found:
            raise InputError(f"nothing of {', '.join(names)} is short enough for --quick; leave it out")
    if full:
        found = [catalogue.full(experiment) for experiment in found]
    return [dataclasses.replace(experiment, seeds=experiment.seeds[:seeds]) for experiment in found]


def join(experiment: Experiment, policies: Sequence[PolicySpec]) -> Experiment:
    """The experiment with these policies as well, checked."""
    from driftbandits.experiments.files.config import check_labels
    from driftbandits.experiments.running.preflight import check_experiment

    if not policies:
        return experiment
    joined = dataclasses.replace(experiment, policies=check_labels([*experiment.policies, *policies]))
    check_experiment(joined, labels=[policy.label for policy in policies])
    return joined


def _title(ids: Sequence[str]) -> str:
    return f"driftbandits: {', '.join(ids)}" if ids else "Non-stationary kernel bandits: the paper's experiments"
