"""`driftbandits reproduce`: experiments of the catalogue, by default those of the paper."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand

from driftbandits.cli import complete
from driftbandits.cli.options import Address, EngineName, Jobs, Json, Out, Policies, Resume, Seeds, engine_of
from driftbandits.cli.show import say
from driftbandits.errors import InputError

if TYPE_CHECKING:
    from driftbandits.experiments.definitions.specs import Experiment, PolicySpec
    from driftbandits.experiments.groups.passes import Pass


def _positive(minutes: float | None) -> float | None:
    if minutes is not None and not 0 < minutes < math.inf:
        raise typer.BadParameter("must be a number above 0")
    return minutes


Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID",
        autocompletion=complete.experiments,
        help="Ids, groups ({groups}) or beginnings of ids; by default {defaults}.",
    ),
]


class NamingGroups(TyperCommand):
    """A command whose help names the groups; they are loaded when help is asked for, which takes a second."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Fill in the names."""
        from driftbandits.experiments.groups import default_groups, group_names

        names = {"groups": ", ".join(group_names()), "defaults": " ".join(default_groups())}
        for parameter in self.params:
            if parameter.name == "ids" and isinstance(parameter, TyperArgument) and parameter.help:
                parameter.help = parameter.help.format(**names)
        super().format_help(ctx, formatter)


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
    in_passes = not (ids or quick or full)
    if minutes is not None and not in_passes:
        raise typer.BadParameter("--minutes ends a run between passes, which it has without ID, --quick and --full")
    where = engine_of(engine, jobs, address)
    from driftbandits.cli.run_folder import play_into, print_outputs
    from driftbandits.cli.settings import read_policy
    from driftbandits.experiments.groups.passes import Pass, standard_passes

    if in_passes:
        passes = [
            dataclasses.replace(one, experiments=first_seeds(one.experiments, seeds)) for one in standard_passes()
        ]
    else:
        passes = [Pass("runs", tuple(choose(ids or [], quick=quick, full=full, seeds=seeds)))]
    guests = [read_policy(text) for text in policy]
    passes = with_guests(passes, guests, tuned)
    mode = "quick" if quick else "full" if full else "standard"
    outputs = play_into(out, passes, title=_title(ids or []), mode=mode, engine=where, resume=resume, minutes=minutes)
    print_outputs(outputs, as_json=json)


def choose(ids: Sequence[str], *, quick: bool, full: bool, seeds: int | None) -> list[Experiment]:
    """The experiments named, each as long as asked for."""
    from driftbandits.experiments.definitions import lengths
    from driftbandits.experiments.groups import default_groups, find_experiments, group_of

    names = ids or default_groups(full=full)
    try:
        found = find_experiments(names)
    except InputError as error:
        raise InputError(f"{error}; driftbandits list experiments shows them") from None
    if quick:
        found = [short for e in found if (short := group_of(e.id).quick(e)) is not None]
        if not found:
            raise InputError(f"nothing of {', '.join(names)} is short enough for --quick; leave it out")
    if full:
        found = [lengths.full(experiment) for experiment in found]
    return list(first_seeds(found, seeds))


def first_seeds(experiments: Sequence[Experiment], seeds: int | None) -> tuple[Experiment, ...]:
    """The experiments on their first so many seeds, all if None."""
    return tuple(dataclasses.replace(experiment, seeds=experiment.seeds[:seeds]) for experiment in experiments)


def with_guests(passes: Sequence[Pass], guests: Sequence[PolicySpec], tuned: Sequence[Path]) -> list[Pass]:
    """The passes with these policies, and those of these files; all are checked in the last pass, which has it all."""
    whole = passes[-1].experiments
    joined = [join(experiment, guests) for experiment in whole]
    if tuned:
        joined = join_tuned(joined, tuned)
    own = {experiment.id: len(experiment.policies) for experiment in whole}
    added = {experiment.id: experiment.policies[own[experiment.id] :] for experiment in joined}

    def joining(experiments: Sequence[Experiment]) -> tuple[Experiment, ...]:
        return tuple(
            dataclasses.replace(experiment, policies=(*experiment.policies, *added[experiment.id]))
            for experiment in experiments
            if experiment.id in added
        )

    return [dataclasses.replace(one, experiments=joining(one.experiments)) for one in passes]


def join(experiment: Experiment, policies: Sequence[PolicySpec]) -> Experiment:
    """The experiment with these policies as well, checked."""
    from driftbandits.experiments.files.config import check_labels
    from driftbandits.experiments.running.preflight import check_experiment

    if not policies:
        return experiment
    joined = dataclasses.replace(experiment, policies=check_labels([*experiment.policies, *policies]))
    check_experiment(joined, labels=[policy.label for policy in policies])
    return joined


def join_tuned(experiments: Sequence[Experiment], files: Sequence[Path]) -> list[Experiment]:
    """The experiments with the policies of these files as well; those that a file has nothing for are left out."""
    from driftbandits.experiments.running.tuned_guests import tuned_guests

    joining = tuned_guests(files, experiments)
    if left_out := [experiment.id for experiment in experiments if experiment.id not in joining]:
        say(f"left out, as nothing was searched in their dimension: {', '.join(left_out)}")
    return [join(experiment, joining[experiment.id]) for experiment in experiments if experiment.id in joining]


def _title(ids: Sequence[str]) -> str:
    return f"driftbandits: {', '.join(ids)}" if ids else "Non-stationary kernel bandits: the paper's experiments"
