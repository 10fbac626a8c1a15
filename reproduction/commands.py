"""What the commands of the study do: `driftbandits reproduce`, `tune STUDY` and `report` call these functions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from driftbandits.cli.options import read_policy, say
from driftbandits.cli.run_folder import print_outputs
from driftbandits.errors import InputError
from driftbandits.experiments.building import build_world, check_experiment
from driftbandits.experiments.engines import Engine
from driftbandits.experiments.results import Results
from driftbandits.experiments.run_files import TunedSettings, check_labels, read_tuned
from driftbandits.experiments.specs import Experiment, PolicySpec
from driftbandits.text import counted
from reproduction import catalogue
from reproduction.groups import default_groups, find_experiments, group_of, judge, standard_passes
from reproduction.page import NOT_DECIDED, VERDICT_ORDER, counted_verdicts, write_report
from reproduction.passes import Pass, PassFindings, play_passes_into

Length = Literal["quick", "standard", "full"]


def reproduce(
    ids: Sequence[str],
    *,
    out: Path,
    seeds: int | None,
    policies: Sequence[str],
    tuned: Sequence[Path],
    length: Length,
    minutes: float | None,
    resume: bool,
    engine: Engine,
    as_json: bool,
) -> None:
    """Play experiments into a folder: those named, or all of the paper's in passes."""
    if ids or length != "standard":
        passes = [Pass("runs", tuple(choose(ids, quick=length == "quick", full=length == "full", seeds=seeds)))]
    else:
        passes = [
            dataclasses.replace(one, experiments=first_seeds(one.experiments, seeds)) for one in standard_passes()
        ]
    passes = with_guests(passes, [read_policy(text) for text in policies], tuned)
    outputs = play_passes_into(
        out,
        passes,
        title=_title(ids),
        mode=length,
        engine=engine,
        resume=resume,
        minutes=minutes,
        make_findings=StudyFindings,
    )
    print_outputs(outputs, as_json=as_json)


class StudyFindings(PassFindings):
    """Claims of the paper and targets, judged once for the page, the files and the lines."""

    def __init__(self, results: Results) -> None:
        super().__init__(results)
        self.judgements = judge(results)

    @property
    def files(self) -> Mapping[str, str]:
        """The tables of all judgements."""
        return self.judgements.files

    @property
    def progress(self) -> str:
        """How many claims are decided."""
        claims = self.judgements.claims
        decided = sum(claim.verdict not in NOT_DECIDED for claim in claims)
        return f"claims decided so far: {decided} of {len(claims)}" if claims else ""

    def lines(self) -> list[str]:
        """How many claims and targets have which verdict."""
        claims, statuses = self.judgements.claims, [verdict.status for verdict in self.judgements.verdicts]
        lines = []
        if claims:
            ids = {verdict: [claim.id for claim in claims if claim.verdict == verdict] for verdict in VERDICT_ORDER}
            lines.append(f"{counted(len(claims), 'claim')}: {counted_verdicts(claims)}")
            lines += [f"  {verdict}: {', '.join(those)}" for verdict, those in ids.items() if those]
        if statuses:
            lines.append(f"targets: {', '.join(f'{statuses.count(s)} {s}' for s in dict.fromkeys(statuses))}")
        return lines

    def values(self) -> dict[str, Any]:
        """Claims that something was played for, and targets, as plain values."""
        claims = [claim for claim in self.judgements.claims if claim.verdict != "not run"]
        return {
            "claims": [_plain({"verdict": c.verdict, **dataclasses.asdict(c)}) for c in claims],
            "targets": [_plain({"status": v.status, **dataclasses.asdict(v)}) for v in self.judgements.verdicts],
        }

    def write_page(self, out: Path, *, title: str, about: Mapping[str, object]) -> Path:
        """The page of the study."""
        return write_report(self.results, self.judgements, out=out, title=title, about=about)


def _plain(value: Any) -> Any:
    """As JSON has it: nothing in place of numbers that are none."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def choose(ids: Sequence[str], *, quick: bool, full: bool, seeds: int | None) -> list[Experiment]:
    """The experiments named, each as long as asked for; a quick run of nothing named is the first pass."""
    if quick and not ids:
        return list(first_seeds(standard_passes()[0].experiments, seeds))
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
        found = [catalogue.full(experiment) for experiment in found]
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
    if not policies:
        return experiment
    joined = dataclasses.replace(experiment, policies=check_labels([*experiment.policies, *policies]))
    check_experiment(joined, labels=[policy.label for policy in policies])
    return joined


def join_tuned(experiments: Sequence[Experiment], files: Sequence[Path]) -> list[Experiment]:
    """The experiments with the policies of these files as well; those that a file has nothing for are left out."""

    joining = tuned_guests(files, experiments)
    if left_out := [experiment.id for experiment in experiments if experiment.id not in joining]:
        say(f"left out, as nothing was searched in their dimension: {', '.join(left_out)}")
    return [join(experiment, joining[experiment.id]) for experiment in experiments if experiment.id in joining]


def _title(ids: Sequence[str]) -> str:
    return f"driftbandits: {', '.join(ids)}" if ids else "Non-stationary kernel bandits: the paper's experiments"


def tuned_guests(files: Sequence[Path], experiments: Sequence[Experiment]) -> dict[str, tuple[PolicySpec, ...]]:
    """The policies of all files as they join each experiment, by its id: with what was found in its dimension.

    Experiments in whose dimension one of the files has nothing are left out: nobody was searched there. Raises
    InputError if none is left.
    """
    found = {path: read_tuned(path) for path in files}
    joining: dict[str, tuple[PolicySpec, ...]] = {}
    for experiment in experiments:
        dimension = _dimension(experiment)
        guests = [tuned.specs(dimension) for tuned in found.values()]
        if all(guests):
            joining[experiment.id] = tuple(spec for specs in guests for spec in specs)
    if not joining:
        wanted = ", ".join(f"d = {d}" for d in sorted({_dimension(experiment) for experiment in experiments}))
        there = "; ".join(f"{path} has {_dimensions(tuned)}" for path, tuned in found.items())
        raise InputError(
            f"no settings were found for these experiments, which need {wanted}: {there}; search there too"
        )
    return joining


def _dimension(experiment: Experiment) -> int:
    """That of the world's arms; an experiment need not say it."""
    world = build_world(experiment.environment, experiment.settings, experiment.seeds[0])
    return int(world.arms.points.shape[1])


def _dimensions(tuned: TunedSettings) -> str:
    return ", ".join(key.replace("=", " = ") for key in tuned.entries) or "none"
