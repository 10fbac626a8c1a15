"""Experiments in, results out: `play`, and `play_passes` for what is written again and again with more seeds.

What a pass has in common with earlier ones is not played again: a run has one key, whichever pass asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from driftbandits._util.progress import Advance, Pace, progress_bar
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


@dataclass(frozen=True)
class Pass:
    """What is played before the report is written again: `title` says what is new in it, `experiments` are all of it.

    >>> Pass("runs", ()).cells
    []
    """

    title: str
    experiments: tuple[Experiment, ...]

    @property
    def cells(self) -> list[Cell]:
        """All its cells, those with equal keys too."""
        return [cell for experiment in self.experiments for cell in cells_of(experiment)]

    @property
    def distinct_cells(self) -> dict[str, Cell]:
        """Its cells by key."""
        return distinct(self.cells)


def left_to_play(passes: Sequence[Pass], held: set[str]) -> list[dict[str, Cell]]:
    """What each pass adds to those before it, by key; of `held` nothing is left."""
    known, added = set(held), []
    for one in passes:
        new = {key: cell for key, cell in one.distinct_cells.items() if key not in known}
        known.update(new)
        added.append(new)
    return added


def first_to_play(added: Sequence[dict[str, Cell]]) -> int:
    """Where to begin: with the last of the passes that lack nothing, whose report can be written at once.

    >>> cell = Cell("switching/1", {}, None, 0)
    >>> first_to_play([{}, {}, {"key": cell}, {}]), first_to_play([{"key": cell}, {}])
    (1, 0)
    """
    lacking = next((number for number, cells in enumerate(added) if cells), len(added))
    return max(lacking - 1, 0)


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
    (done,) = play_passes([Pass("runs", tuple(_chosen(experiments)))], store=store, engine=engine, show=show)
    return done.results


@dataclass(frozen=True, eq=False)  # results have no single truth value to compare by
class PassDone:
    """A pass that has been played: its number among `of`, what is there now, and what the next will take in seconds."""

    number: int
    of: int
    experiments: tuple[Experiment, ...]
    results: Results
    following: Pass | None
    seconds_to_come: float


def play_passes(
    passes: Sequence[Pass],
    *,
    store: Store | str | os.PathLike[str] | None = None,
    engine: Engine = Engine(),  # noqa: B008  # frozen
    show: bool = False,
) -> Iterator[PassDone]:
    """Play the passes one after the other, and give each as soon as it is done.

    Passes that lack nothing are left out, but for the last of them. Arguments and errors are those of `play`; without
    a store, what passes have in common is played by each.
    """
    kept = FolderStore(store) if isinstance(store, str | os.PathLike) else store
    added = left_to_play(passes, set() if kept is None else kept.finished())
    costs = [sum(map(cost_of, cells.values())) for cells in added]
    pace = Pace()
    for at in range(first_to_play(added), len(passes)):
        one, new = passes[at], added[at]
        label = "runs" if len(passes) == 1 else f"pass {at + 1} of {len(passes)}"
        cells = one.cells
        with progress_bar(
            len(cells), label, cost=costs[at], show=show, pace=pace, after=sum(costs[at + 1 :])
        ) as advance:

            def tell(finished: list[Cell], new: Mapping[str, Cell] = new, advance: Advance = advance) -> None:
                played = [cell for key, cell in distinct(finished).items() if key in new]
                advance(len(finished), sum(map(cost_of, played)))

            results = collect(one.experiments, run_cells(cells, store=kept, engine=engine, progress=tell))
        following = passes[at + 1] if at + 1 < len(passes) else None
        cost = costs[at + 1] if following else 0.0
        seconds = pace.seconds_for(cost)
        if seconds is None:  # nothing has been played yet
            seconds = cost / engine.local_jobs
        yield PassDone(at + 1, len(passes), one.experiments, results, following, seconds)


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
