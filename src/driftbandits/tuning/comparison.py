"""Tunes every policy of the comparison alike: same world, same tuning seeds, same number of points and cells.

Each policy is tuned on environment 1 (one switch) in every dimension apart, as the paper tunes; all other worlds are
then met with those settings. The result is the data file `experiments/definitions/tuned.json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from driftbandits.checks import check_count
from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.definitions.seeds import TUNING_SEEDS
from driftbandits.experiments.running.engines import Engine
from driftbandits.tuning.launch import launch
from driftbandits.tuning.points import Space, environment_1
from driftbandits.tuning.records import BestSettings, Tuned
from driftbandits.tuning.rungs import Rungs, count_cells
from driftbandits.tuning.spaces import SPACES
from driftbandits.tuning.study import Search
from driftbandits.tuning.tuned_file import Found, read_found, tuned_entry, write_found

COMPARISON_RUNGS: Rungs = ((32, 1), (8, 4), (2, 16))  # (points kept, tuning seeds played so far)
COMPARISON_DIMENSIONS = (10, 3, 2)
DIMENSIONS_WITH_ALL_POLICIES = (10, 2)  # where they are compared
# The policies that other experiments (the paper's figures, the suite) play with tuned settings in other dimensions.
POLICIES_ELSEWHERE = (
    "ADA-OPKB",
    "GPUCB",
    "SW-GPUCB",
    "WGPUCB",
    "TV-GP-UCB",
    "ET-GP-UCB",
    "DAL-GP-UCB",
    "GPUCB+MASTER",
    "GLR-klUCB (plain)",
    "Uniform",
)
COMMAND = "driftbandits tune comparison"


def tune_comparison(
    *,
    out: Path,
    labels: Sequence[str] = (),
    dimensions: Sequence[int] = COMPARISON_DIMENSIONS,
    storage: str | None = None,
    engine: Engine = Engine(),  # noqa: B008  # frozen
    show: bool = False,
) -> Tuned:
    """Search the spaces called `labels` in these dimensions, and write what was found into `out/tuned.json`.

    Without labels all spaces are searched where all policies are compared, and those that experiments use elsewhere.
    Entries that the file already has and that are not searched stay. The studies are kept in `out/tuning.db`, or at the
    URL `storage`; the same call goes on from there, on this machine and on others. `show` shows progress on standard
    error.
    """
    plan = comparison_searches(labels, dimensions)
    path = out / "tuned.json"
    written = read_found(path)
    keys = {search.name: key for key, search in plan.items()}

    def keep(found: BestSettings) -> None:
        label, dimension = keys[found.name]
        written.setdefault(f"d={dimension}", {})[label] = tuned_entry(found)
        _write(path, written)

    return launch(list(plan.values()), path=path, storage=storage, engine=engine, show=show, keep=keep)


def comparison_searches(
    labels: Sequence[str] = (), dimensions: Sequence[int] = COMPARISON_DIMENSIONS
) -> dict[tuple[str, int], Search]:
    """The searches of the comparison by label and dimension."""
    for label in labels:
        if label not in SPACES:
            hint = did_you_mean(label, SPACES, cutoff=0.4)
            raise InputError(f"no policy of the comparison is called {label!r}; {hint}known: {', '.join(SPACES)}")
    for dimension in dimensions:
        check_count("dimension", dimension)
    return {
        (label, dimension): comparison_search(label, SPACES[label], dimension)
        for dimension in dict.fromkeys(dimensions)
        for label in dict.fromkeys(labels or _labels(dimension))
    }


def comparison_search(label: str, space: Space, dimension: int, *, default: bool = True) -> Search:
    """The search that every policy of the comparison gets: same world, seeds and budget."""
    return Search(
        name=f"{label}, d = {dimension}",
        space=space,
        worlds=(environment_1(dimension),),
        rungs=COMPARISON_RUNGS,
        default=default,
    )


def _labels(dimension: int) -> Iterable[str]:
    return SPACES if dimension in DIMENSIONS_WITH_ALL_POLICIES else POLICIES_ELSEWHERE


def how_it_was_made(command: str = COMMAND, *, world: str = "environment 1") -> str:
    """What a file of settings found by such a search says of itself."""
    points, seeds = COMPARISON_RUNGS[0][0], COMPARISON_RUNGS[-1][1]
    cells = count_cells(points, COMPARISON_RUNGS, worlds=1)
    return (
        f"{command}: {points} points and {cells} cells of {world} per policy and dimension, "
        f"on tuning seeds {TUNING_SEEDS[0]} to {TUNING_SEEDS[seeds - 1]}"
    )


def _write(path: Path, found: Found) -> None:
    """Write in the order of SPACES, so that the same findings are the same file."""
    order = [f"d={dimension}" for dimension in COMPARISON_DIMENSIONS]
    order += [key for key in found if key not in order]
    ordered = {
        key: {label: found[key][label] for label in SPACES if label in found[key]} for key in order if key in found
    }
    write_found(path, ordered, how=how_it_was_made())
