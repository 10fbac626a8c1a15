"""Experiments in, results out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from driftbandits._util.progress import Pace, progress_bar
from driftbandits.errors import InputError
from driftbandits.experiments.building import check_experiment, cost_of
from driftbandits.experiments.engines import Engine
from driftbandits.experiments.folder_store import FolderStore
from driftbandits.experiments.results import Results, collect
from driftbandits.experiments.run_files import check_labels
from driftbandits.experiments.runner import run_cells
from driftbandits.experiments.seeds import check_seeds
from driftbandits.experiments.specs import Cell, Experiment, cells_of
from driftbandits.experiments.stores import Store, distinct
from driftbandits.experiments.study import load_study
from driftbandits.text import shown


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
    experiments : of your own; in a checkout also ids and groups of the study of the paper (`switching/1`, `suite`)
    store : where finished runs are kept, and taken from when the same is played again: a folder, or any Store; without
        one they are kept in memory until all are played
    engine : on what they are played; results do not depend on it
    show : whether to show progress on standard error

    Returns
    -------
    Results

    Raises
    ------
    InputError
        For what cannot be played: before anything is kept, experiments of your own are built and play one round.
    RunError
        If a run fails or is interrupted; what is finished stays in the store.

    >>> from driftbandits.experiments import Engine, Experiment, PolicySpec, play
    >>> world = {"horizon": 100, "switches": [50], "size": 5}
    >>> small = Experiment("small", "Small", "switching/1", world, (PolicySpec("any arm", "Uniform"),), seeds=(0, 1))
    >>> play([small], engine=Engine(jobs=1))
    Results(small: 1 policy, 2 of 2 runs)

    """
    chosen = _chosen(experiments)
    kept = FolderStore(store) if isinstance(store, str | os.PathLike) else store
    return played(chosen, missing(chosen, kept), store=kept, engine=engine, show=show)


def played(
    experiments: Sequence[Experiment],
    new: Mapping[str, Cell],
    *,
    store: Store | None,
    engine: Engine,
    show: bool,
    label: str = "runs",
    pace: Pace | None = None,
    after: float = 0.0,
) -> Results:
    """Play what is missing of experiments that are known to play: the cells `new`, by key.

    `pace` is that of earlier calls, and `after` the cost of what will be played later, for the progress shown.
    """
    cells = [cell for experiment in experiments for cell in cells_of(experiment)]
    cost = sum(map(cost_of, new.values()))
    with progress_bar(len(cells), label, cost=cost, show=show, pace=pace or Pace(), after=after) as advance:

        def tell(finished: list[Cell]) -> None:
            advance(len(finished), sum(cost_of(cell) for key, cell in distinct(finished).items() if key in new))

        return collect(experiments, run_cells(cells, store=store, engine=engine, progress=tell))


def missing(experiments: Sequence[Experiment], store: Store | None) -> dict[str, Cell]:
    """The cells that the store does not hold, by key."""
    held = set() if store is None else store.finished()
    cells = distinct(cell for experiment in experiments for cell in cells_of(experiment))
    return {key: cell for key, cell in cells.items() if key not in held}


def _chosen(given: Sequence[Experiment | str]) -> list[Experiment]:
    """The experiments meant, each once."""
    if isinstance(given, str | Experiment):
        raise InputError(f"experiments are given as a list, got {given!r}; put it into [ ]")
    found: dict[str, Experiment] = {}
    for one in given:
        for experiment in _named(one) if isinstance(one, str) else [_checked(one)]:
            if found.setdefault(experiment.id, experiment) != experiment:
                raise InputError(f"two experiments are called {experiment.id!r}; give one of them an id of its own")
    return list(found.values())


def _named(name: str) -> list[Experiment]:
    found: list[Experiment] = load_study("groups", purpose=f"the experiment {name!r}").find_experiments([name])
    return found


def _checked(experiment: Experiment) -> Experiment:
    """Give it back if its labels and seeds tell runs apart, and all of it plays."""
    if not isinstance(experiment, Experiment):
        raise InputError(f"an experiment is an Experiment or the id of one, got {shown(experiment)}")
    check_labels(experiment.policies)
    check_seeds(experiment.seeds)
    check_experiment(experiment)
    return experiment
