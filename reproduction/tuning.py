"""How the settings of the study were found, on tuning seeds only: `driftbandits tune STUDY`.

comparison  every policy alike on environment 1 (one switch) in every dimension apart, as the paper tunes; all other
            worlds are then met with those settings: `settings/tuned.json`
paper       the grids of section 6 of the paper, from end to end, for ADA-OPKB, SW-GPUCB and WGPUCB with one larger
            budget: what the study plays of them is compared with what is found, `settings/tuned_paper.json`
linear      the same budget on the linear world with one switch: `settings/tuned_linear.json`
constants   the default constants of ADA-OPKB: points in the logarithms of sigma and c0 to c4 on environment 1 at d = 10
            (as published) and d = 2 (where the kernel matters); 512 points and 2,464 cells of 10,000 rounds
neural      those of ADA-OPNN, at infinite width, where a run takes as long as one of ADA-OPKB
oracles     plain grids in every suite world, told kernel and noise, by halving: `settings/oracles.json`

All but the last are Optuna studies, which machines may share. The last keeps its cells in a folder instead: one search
over all worlds and those in every world apart share them. Both are decided by the same halving.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from driftbandits._util.checks import check_count
from driftbandits._util.files import write_whole
from driftbandits._util.progress import progress_bar
from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.engines import Engine
from driftbandits.experiments.folder_store import FolderStore
from driftbandits.experiments.runner import run_cells
from driftbandits.experiments.seeds import TUNING, check_tuning_world
from driftbandits.experiments.specs import Cell, Experiment, cells_of
from driftbandits.experiments.stores import Store, distinct
from driftbandits.policies import Constants
from driftbandits.tuning.own import (
    EQUAL_DIMENSIONS,
    EQUAL_RUNGS,
    Found,
    equal_search,
    read_found,
    tuned_entry,
    write_found,
)
from driftbandits.tuning.search import launch, make_folder
from driftbandits.tuning.spaces import Space, TuningWorld, environment_1
from driftbandits.tuning.study import (
    BestSettings,
    Rungs,
    Search,
    Slot,
    Standing,
    Tuned,
    count_cells,
    geometric_mean_regret,
    slots,
    standing,
)
from reproduction.autobandit import informed_spec
from reproduction.catalogue import ADA_OPNN_INFINITE, COMPARISON_FILE, LINEAR_FILE, PAPER_FILE, written_out
from reproduction.linear import one_switch
from reproduction.paper import PUBLISHED_DIMENSION
from reproduction.spaces import GRIDS, PAPER_CONSTANTS, PAPER_SPACES, SPACES, Grid
from reproduction.suite import SUITE, suite_name

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
CONSTANTS_RUNGS: Rungs = ((512, 1), (128, 3), (32, 10), (8, 32), (2, 64))  # (points kept, tuning seeds played so far)
PAPER_RUNGS: Rungs = ((128, 1), (32, 4), (6, 16))
CONSTANTS_WORLDS = (environment_1(10), environment_1(2))
CONSTANTS_STUDIES = {
    "constants": Space("AdaOPKB", PAPER_CONSTANTS, lambda values: {"constants": Constants(**values)}),
    "neural": Space(
        "AdaOPNN", PAPER_CONSTANTS, lambda values: {**ADA_OPNN_INFINITE.settings, "constants": Constants(**values)}
    ),
}
OVER_ALL_WORLDS = "single"  # the name of a search that is not in one world
Plan = Mapping[tuple[str, int], Search]  # searches by label and dimension
Play = Callable[[Sequence[Cell]], Mapping[str, float]]  # cells to their final regrets by key


def how_it_was_made(command: str, *, world: str = "environment 1") -> str:
    """What a file of settings found by such a search says of itself."""
    points, seeds = EQUAL_RUNGS[0][0], EQUAL_RUNGS[-1][1]
    cells = count_cells(points, EQUAL_RUNGS, worlds=1)
    return (
        f"{command}: {points} points and {cells} cells of {world} per policy and dimension, "
        f"on tuning seeds {TUNING.first} to {TUNING.first + seeds - 1}"
    )


def missing(store: Store, cells: Iterable[Cell]) -> list[Cell]:
    """The cells still to be played, in their order; of those with equal keys only the first."""
    finished = store.finished()
    return [cell for key, cell in distinct(cells).items() if key not in finished]


def tune_study(
    study: str,
    *,
    out: Path,
    labels: Sequence[str] = (),
    dimensions: Sequence[int] = EQUAL_DIMENSIONS,
    storage: str | None = None,
    engine: Engine = Engine(),  # noqa: B008  # frozen
    show: bool = False,
) -> Tuned:
    """Run a study by name, and write what was found into the folder `out`.

    `labels` and `dimensions` choose among the searches of the comparison. Optuna studies are kept in `out/tuning.db`,
    or at the URL `storage`; the same call continues from there, on this machine and on others. `show` shows progress on
    standard error.
    """
    if study == "oracles":
        return tune_oracles(out=out, engine=engine, show=show)
    where: dict[str, Any] = {"storage": storage, "engine": engine, "show": show}
    if study in CONSTANTS_STUDIES:
        return _tune_constants(study, out, **where)
    if study == "comparison":
        order = dict.fromkeys((f"d={dimension}" for dimension in EQUAL_DIMENSIONS), tuple(SPACES))
        how = how_it_was_made("driftbandits tune comparison")
        return _tune_plan(comparison_searches(labels, dimensions), out / COMPARISON_FILE, order, how, **where)
    if study == "paper":
        plan = paper_searches()
        return _tune_plan(plan, out / PAPER_FILE, {"d=10": tuple(PAPER_SPACES)}, how_the_paper_was_tuned(), **where)
    if study == "linear":
        order = dict.fromkeys((f"d={dimension}" for dimension in LINEAR_DIMENSIONS), LINEAR_LABELS)
        how = how_it_was_made("driftbandits tune linear", world="the linear world with one switch")
        return _tune_plan(linear_searches(), out / LINEAR_FILE, order, how, **where)
    known = (*CONSTANTS_STUDIES, "comparison", "paper", "linear", "oracles")
    raise InputError(f"no study is called {study!r}; {did_you_mean(study, known, cutoff=0.4)}known: {', '.join(known)}")


# --- every policy alike ---------------------------------------------------------------------------------------------


def comparison_searches(labels: Sequence[str] = (), dimensions: Sequence[int] = EQUAL_DIMENSIONS) -> Plan:
    """The searches of the comparison.

    Without labels all spaces are searched where all policies are compared, and those that experiments use elsewhere.
    """
    for label in labels:
        if label not in SPACES:
            hint = did_you_mean(label, SPACES, cutoff=0.4)
            raise InputError(f"no policy of the comparison is called {label!r}; {hint}known: {', '.join(SPACES)}")
    for dimension in dimensions:
        check_count("dimension", dimension)
    return {
        (label, dimension): equal_search(
            label, SPACES[label], environment_1(dimension), dimension, complete=written_out
        )
        for dimension in dict.fromkeys(dimensions)
        for label in dict.fromkeys(labels or _labels(dimension))
    }


def _labels(dimension: int) -> Iterable[str]:
    return SPACES if dimension in DIMENSIONS_WITH_ALL_POLICIES else POLICIES_ELSEWHERE


def paper_searches() -> Plan:
    """The search of the paper's own grids, on environment 1 as published, with defaults and what was published."""
    world = environment_1(PUBLISHED_DIMENSION)
    return {
        (label, PUBLISHED_DIMENSION): Search(f"{label}, section 6", space, (world,), PAPER_RUNGS, complete=written_out)
        for label, space in PAPER_SPACES.items()
    }


def how_the_paper_was_tuned() -> str:
    """What `tuned_paper.json` says of itself."""
    points, seeds = PAPER_RUNGS[0][0], PAPER_RUNGS[-1][1]
    cells = count_cells(points, PAPER_RUNGS, worlds=1)
    return (
        f"driftbandits tune paper: {points} points of the grids of section 6 and {cells} cells of environment 1 per "
        f"policy, on tuning seeds {TUNING.first} to {TUNING.first + seeds - 1}"
    )


def linear_searches() -> Plan:
    """The searches of the linear bandits."""
    worlds = {dimension: one_switch(dimension) for dimension in LINEAR_DIMENSIONS}
    return {
        (label, dimension): equal_search(
            label,
            SPACES[label],
            TuningWorld(world.environment, world.settings),
            dimension,
            kind=", linear",
            complete=written_out,
        )
        for dimension, world in worlds.items()
        for label in LINEAR_LABELS
    }


def _tune_plan(plan: Plan, path: Path, order: Mapping[str, Sequence[str]], how: str, **where: Any) -> Tuned:
    """Run the searches; entries that the file has and that are not searched stay, and the `order` of all is fixed."""
    written = read_found(path)
    places = {search.name: place for place, search in plan.items()}

    def keep(found: BestSettings) -> None:
        label, dimension = places[found.name]
        written.setdefault(f"d={dimension}", {})[label] = tuned_entry(found)
        write_found(path, in_order(written, order), how=how)

    return launch(list(plan.values()), path=path, keep=keep, **where)


def in_order(found: Found, order: Mapping[str, Sequence[str]]) -> Found:
    """Entries by dimension and label in a fixed order, so that the same findings are the same file."""
    keys = [*order, *(key for key in found if key not in order)]
    return {
        key: {name: found[key][name] for name in order.get(key, tuple(SPACES)) if name in found[key]}
        for key in keys
        if key in found
    }


# --- constants ------------------------------------------------------------------------------------------------------


def _tune_constants(study: str, out: Path, **where: Any) -> Tuned:
    """Write every point's score into `out/<study>.csv`; there is one best point, and its `values` are the constants."""
    search = constants_search(study)
    tuned = launch([search], path=out / f"{study}.csv", **where)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["point", *PAPER_CONSTANTS, "cells", "regret"])
    for score in tuned.best[0].scores:
        table.writerow([score.number, *(score.values[name] for name in PAPER_CONSTANTS), score.cells, score.regret])
    write_whole(tuned.path, text.getvalue().encode())
    return tuned


def constants_search(study: str) -> Search:
    """The search of one of the CONSTANTS_STUDIES."""
    space = CONSTANTS_STUDIES[study]
    return Search(study, space, CONSTANTS_WORLDS, CONSTANTS_RUNGS, default=False, complete=written_out)


# --- grids in every world -------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class GridSearch:
    """A grid in some worlds; `regrets` has what every point has played."""

    name: str
    label: str
    grid: Grid
    worlds: tuple[Experiment, ...]
    rungs: Rungs
    regrets: tuple[dict[Slot, float], ...]

    def __post_init__(self) -> None:
        for world in self.worlds:
            check_tuning_world(world.environment)

    def cell(self, point: int, slot: Slot) -> Cell:
        """The run of one point on one tuning seed in one world."""
        seed, number = slot
        world = self.worlds[number]
        spec = informed_spec(self.label, self.grid.policy, self.grid.points[point], world)
        (cell,) = cells_of(dataclasses.replace(world, policies=(spec,), seeds=TUNING.take(seed + 1)[-1:]))
        return cell

    def standing(self) -> Standing:
        """How far the search is: in several worlds, points are ranked by the geometric mean over them."""
        return standing(self.regrets, self.rungs, worlds=len(self.worlds), score=geometric_mean_regret)

    @property
    def best(self) -> int:
        """The best point so far."""
        return self.standing().alive[0]

    @property
    def score(self) -> float:
        """The best point's, over all tuning seeds of the last rung."""
        return geometric_mean_regret(self.regrets[self.best], slots(self.rungs[-1][1], len(self.worlds)))


def grid_searches(
    grids: Mapping[str, Grid] = GRIDS, worlds: Sequence[Experiment] = tuple(SUITE.values())
) -> list[GridSearch]:
    """The searches of these grids: in every world apart where a grid has rungs for that, then over all worlds."""

    def search(name: str, label: str, grid: Grid, where: Sequence[Experiment], rungs: Rungs) -> GridSearch:
        return GridSearch(name, label, grid, tuple(where), rungs, tuple({} for _ in grid.points))

    return [
        *(
            search(suite_name(world), label, grid, (world,), grid.tuned)
            for label, grid in grids.items()
            if grid.tuned is not None
            for world in worlds
        ),
        *(search(OVER_ALL_WORLDS, label, grid, worlds, grid.single) for label, grid in grids.items()),
    ]


def play_grids(searches: Sequence[GridSearch], play: Play) -> None:
    """Play all searches to their end, a rung of all of them at a time: they share cells."""
    while wanted := [
        (search, point, slot, search.cell(point, slot))
        for search in searches
        for point, left in search.standing().missing.items()
        for slot in left
    ]:
        found = play([cell for *_, cell in wanted])
        for search, point, slot, cell in wanted:
            search.regrets[point][slot] = found[cell.key]


def tune_oracles(
    *,
    out: Path,
    engine: Engine = Engine(),  # noqa: B008  # frozen
    show: bool = False,
    searches: Sequence[GridSearch] | None = None,
) -> Tuned:
    """Run the searches, by default all, and write what they found into `out/oracles.json`.

    Finished cells are kept in `out/oracles`; the same call continues from there.
    """
    begun, path, store = time.monotonic(), out / "oracles.json", FolderStore(out / "oracles")
    make_folder(out)
    done = grid_searches() if searches is None else list(searches)
    asked: set[str] = set()
    played = 0

    def play(cells: Sequence[Cell]) -> Mapping[str, float]:
        nonlocal played
        first = distinct(cells)
        asked.update(first)
        played += len(missing(store, first.values()))
        with progress_bar(len(first), "runs", show=show) as advance:
            results = run_cells(
                list(first.values()), store=store, engine=engine, progress=lambda finished: advance(len(finished))
            )
        return {key: float(result.regret[-1]) for key, result in zip(first, results, strict=True)}

    play_grids(done, play)
    _write_oracles(path, done)
    return Tuned(
        tuple(map(_best_settings, done)), path, str(store.folder), len(asked), played, time.monotonic() - begun
    )


def _best_settings(search: GridSearch) -> BestSettings:
    settings = search.grid.points[search.best]
    cells = count_cells(len(search.grid.points), search.rungs, worlds=len(search.worlds))
    name = f"{search.label}, {search.name}"
    return BestSettings(name, search.grid.policy, {}, settings, "search", search.score, cells, ())


def oracle_entry(search: GridSearch) -> dict[str, Any]:
    """What `oracles.json` says of a search; the told noise and kernel are added where the settings are used."""
    score = "geometric_mean_on_tuning_seeds" if search.name == OVER_ALL_WORLDS else "regret_on_tuning_seeds"
    return {
        "policy": search.grid.policy,
        "settings": dict(search.grid.points[search.best]),
        score: round(search.score, 1),
        "seeds": search.rungs[-1][1],
    }


def how_oracles_were_made() -> str:
    """What `oracles.json` says of itself."""
    seeds = max(rungs[-1][1] for grid in GRIDS.values() for rungs in (grid.single, grid.tuned or grid.single))
    return (
        f"driftbandits tune oracles: grids on the suite's {len(SUITE)} worlds, told kernel and noise, by halving over "
        f"tuning seeds {TUNING.first} to {TUNING.first + seeds - 1}"
    )


def _write_oracles(path: Path, searches: Sequence[GridSearch]) -> None:
    """Write whole or not at all."""
    worlds: dict[str, dict[str, Any]] = {}
    for search in searches:
        if search.name != OVER_ALL_WORLDS:
            worlds.setdefault(search.name, {})[search.label] = oracle_entry(search)
    singles = {search.label: oracle_entry(search) for search in searches if search.name == OVER_ALL_WORLDS}
    text = json.dumps({"how": how_oracles_were_made(), "singles": singles, "worlds": worlds}, indent=1) + "\n"
    write_whole(path, text.encode())
