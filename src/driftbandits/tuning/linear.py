"""Tunes the policies of the linear bandits alike: the budget, rungs and seeds of the comparison, on a linear world.

The result is the data file `experiments/definitions/tuned_linear.json`.
"""

from __future__ import annotations

from pathlib import Path

from driftbandits.experiments.definitions.linear_worlds import one_switch
from driftbandits.experiments.definitions.tuned_settings import LINEAR_FILE
from driftbandits.experiments.running.engines import Engine
from driftbandits.tuning.comparison import COMPARISON_RUNGS, how_it_was_made
from driftbandits.tuning.launch import launch
from driftbandits.tuning.points import TuningWorld
from driftbandits.tuning.records import BestSettings, Tuned
from driftbandits.tuning.spaces import SPACES
from driftbandits.tuning.study import Search
from driftbandits.tuning.tuned_file import read_found, tuned_entry, write_found

LINEAR_DIMENSIONS = (5, 2)  # of the sphere, and of the box
# Those of the linear experiments that have anything to search.
LINEAR_LABELS = (
    "ADA-OPKB",
    "LinUCB",
    "RestartUCB",
    "SW-LinUCB",
    "D-LinUCB",
    "LinUCB+MASTER",
    "SW-LinUCB+BOB",
    "RestartUCB+BOB",
    "Restart-Adv",
)
COMMAND = "driftbandits tune linear"
WORLD = "the linear world with one switch"


def tune_linear(
    *,
    out: Path,
    storage: str | None = None,
    engine: Engine = Engine(),  # noqa: B008  # frozen
    show: bool = False,
) -> Tuned:
    """Search all linear spaces in all dimensions, and write what was found into `out/tuned_linear.json`.

    Storage, engine and `show` are as in `tune_comparison`; the same call goes on where it was stopped.
    """
    plan = linear_searches()
    path = out / LINEAR_FILE
    written = read_found(path)
    places = {search.name: place for place, search in plan.items()}

    def keep(found: BestSettings) -> None:
        label, dimension = places[found.name]
        written.setdefault(f"d={dimension}", {})[label] = tuned_entry(found)
        ordered = {
            f"d={d}": {name: known[name] for name in LINEAR_LABELS if name in known}
            for d in LINEAR_DIMENSIONS
            if (known := written.get(f"d={d}"))
        }
        write_found(path, ordered, how=how_it_was_made(COMMAND, world=WORLD))

    return launch(list(plan.values()), path=path, storage=storage, engine=engine, show=show, keep=keep)


def linear_searches() -> dict[tuple[str, int], Search]:
    """The searches by label and dimension."""
    return {
        (label, dimension): Search(
            name=f"{label}, linear, d = {dimension}",
            space=SPACES[label],
            worlds=(_world(dimension),),
            rungs=COMPARISON_RUNGS,
        )
        for dimension in LINEAR_DIMENSIONS
        for label in LINEAR_LABELS
    }


def _world(dimension: int) -> TuningWorld:
    world = one_switch(dimension)
    return TuningWorld(world.environment, world.settings)
