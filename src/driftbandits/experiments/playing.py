"""Playing experiments and collecting their results: the front door for programs and notebooks."""

from __future__ import annotations

import os
from collections.abc import Sequence

from driftbandits.errors import InputError
from driftbandits.experiments.definitions.seeds import check_seeds
from driftbandits.experiments.definitions.specs import Cell, Experiment, cells_of
from driftbandits.experiments.files.config import check_labels
from driftbandits.experiments.files.folder_store import FolderStore
from driftbandits.experiments.files.store import Store
from driftbandits.experiments.groups import EXPERIMENTS, find_experiments
from driftbandits.experiments.judging.results import Results, collect
from driftbandits.experiments.running.cost import cost_of
from driftbandits.experiments.running.engines import Engine
from driftbandits.experiments.running.preflight import check_experiment
from driftbandits.experiments.running.runner import run_cells
from driftbandits.progress import progress_bar
from driftbandits.showing import shown


def play(
    experiments: Sequence[Experiment | str],
    *,
    store: Store | str | os.PathLike[str] | None = None,
    engine: Engine = Engine(),  # noqa: B008  # frozen
    show: bool = False,
) -> Results:
    """Play what is missing of the experiments, and give the results of all.

    Parameters
    ----------
    experiments : of your own, or ids and groups of those there are (`switching/1`, `suite`)
    store : where finished runs are kept, and taken from when the same is played again: a folder, or any Store; without
        one they are kept in memory until all are played
    engine : on what they are played; results do not depend on it
    show : whether to show progress on standard error

    Before anything is kept, experiments of your own are built and play one round: InputError says what is wrong with
    them. Raises RunError if a run fails or is interrupted; what is finished stays in the store.

    >>> from driftbandits.experiments import Engine, Experiment, PolicySpec, play
    >>> world = {"horizon": 100, "switches": [50], "size": 5}
    >>> small = Experiment("small", "Small", "switching/1", world, (PolicySpec("any arm", "Uniform"),), seeds=(0, 1))
    >>> play([small], engine=Engine(jobs=1))
    Results(small: 1 policy, 2 of 2 runs)

    """
    chosen = _chosen(experiments)
    cells = [cell for experiment in chosen for cell in cells_of(experiment)]
    kept = FolderStore(store) if isinstance(store, str | os.PathLike) else store
    with progress_bar(len(cells), "runs", cost=sum(map(cost_of, cells)), show=show) as advance:

        def tell(finished: list[Cell]) -> None:
            advance(len(finished), sum(map(cost_of, finished)))

        return collect(chosen, run_cells(cells, store=kept, engine=engine, progress=tell))


def _chosen(given: Sequence[Experiment | str]) -> list[Experiment]:
    """The experiments meant, each once."""
    if isinstance(given, str | Experiment):
        raise InputError(f"experiments are given as a list, got {given!r}; put it into [ ]")
    found: dict[str, Experiment] = {}
    for one in given:
        for experiment in find_experiments([one]) if isinstance(one, str) else [_checked(one)]:
            if found.setdefault(experiment.id, experiment) != experiment:
                raise InputError(f"two experiments are called {experiment.id!r}; give one of them an id of its own")
    return list(found.values())


def _checked(experiment: Experiment) -> Experiment:
    """Give it back if its labels and seeds tell runs apart and, unless it is one of the library's, all of it plays."""
    if not isinstance(experiment, Experiment):
        raise InputError(f"an experiment is an Experiment or the id of one, got {shown(experiment)}")
    check_labels(experiment.policies)
    check_seeds(experiment.seeds)
    if experiment.id not in EXPERIMENTS:
        check_experiment(experiment)
    return experiment
