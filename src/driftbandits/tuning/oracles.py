"""The yardstick of AutoBandit: baselines tuned for every suite world apart, and the best single setting of each.

`driftbandits tune oracles` plays plain grids (`grids`) on tuning seeds, told kernel and noise, by halving: all points
on one seed or two, the best on more. A point's score is the geometric mean over the search's worlds of its mean regret
over seeds, so in one world the mean regret. What is found is committed as `experiments/definitions/oracles.json`.

All searches go up together, a rung at a time: whole rungs are one call of the runner, and a search for one setting
over all worlds shares its cells with those in every world.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftbandits.experiments.definitions.prior_knowledge import informed_spec
from driftbandits.experiments.definitions.seeds import TUNING_SEEDS
from driftbandits.experiments.definitions.specs import Cell, Experiment, cells_of
from driftbandits.experiments.definitions.suite import SUITE, suite_name
from driftbandits.experiments.files.folder_store import FolderStore
from driftbandits.experiments.files.store import Store, distinct, missing
from driftbandits.experiments.running.engines import Engine
from driftbandits.experiments.running.runner import run_cells
from driftbandits.files import write_whole
from driftbandits.progress import progress_bar
from driftbandits.tuning.grids import GRIDS, Grid
from driftbandits.tuning.launch import make_folder
from driftbandits.tuning.records import BestSettings, Tuned
from driftbandits.tuning.rungs import Rungs, count_cells

COMMAND = "driftbandits tune oracles"
OVER_ALL_WORLDS = "single"  # the name of a search that is not in one world

Play = Callable[[Sequence[Cell]], Mapping[str, float]]  # cells to their final regrets by key


@dataclasses.dataclass(frozen=True)
class Ladder:
    """One search: a grid in some worlds, and the points still in it, best first, with their scores."""

    name: str
    label: str
    grid: Grid
    worlds: tuple[Experiment, ...]
    rungs: Rungs
    alive: tuple[int, ...]
    scores: tuple[float, ...] = ()
    seeds: int = 0

    def cells(self, point: int, seeds: int) -> list[Cell]:
        """The cells of a point on so many tuning seeds, world by world."""
        return [cell for world in self.worlds for cell in self._cells(point, world, seeds)]

    def _cells(self, point: int, world: Experiment, seeds: int) -> list[Cell]:
        spec = informed_spec(self.label, self.grid.policy, self.grid.points[point], world)
        return cells_of(dataclasses.replace(world, policies=(spec,), seeds=TUNING_SEEDS[:seeds]))


def ladders(grids: Mapping[str, Grid] = GRIDS, worlds: Sequence[Experiment] = tuple(SUITE.values())) -> list[Ladder]:
    """The searches of these grids: in every world apart where a grid has rungs for that, then over all worlds."""
    tuned = [
        Ladder(suite_name(world), label, grid, (world,), grid.tuned, tuple(range(len(grid.points))))
        for label, grid in grids.items()
        if grid.tuned is not None
        for world in worlds
    ]
    return tuned + [
        Ladder(OVER_ALL_WORLDS, label, grid, tuple(worlds), grid.single, tuple(range(len(grid.points))))
        for label, grid in grids.items()
    ]


def climb(searches: Sequence[Ladder], play: Play) -> list[Ladder]:
    """All searches up to their last rung."""
    for rung in range(max(len(search.rungs) for search in searches)):
        going = [search for search in searches if rung < len(search.rungs)]
        regrets = play([cell for search in going for cell in _rung_cells(search, rung)])
        searches = [_ranked(search, rung, regrets) if rung < len(search.rungs) else search for search in searches]
    return list(searches)


def _rung_cells(search: Ladder, rung: int) -> list[Cell]:
    keep, seeds = search.rungs[rung]
    return [cell for point in search.alive[:keep] for cell in search.cells(point, seeds)]


def _ranked(search: Ladder, rung: int, regrets: Mapping[str, float]) -> Ladder:
    """The search after a rung: of equals the point with the lower number is better."""
    keep, seeds = search.rungs[rung]
    scored = sorted((_score(search, point, seeds, regrets), point) for point in search.alive[:keep])
    scores, alive = zip(*scored, strict=True)
    return dataclasses.replace(search, alive=alive, scores=scores, seeds=seeds)


def _score(search: Ladder, point: int, seeds: int, regrets: Mapping[str, float]) -> float:
    found = np.array([regrets[cell.key] for cell in search.cells(point, seeds)]).reshape(len(search.worlds), seeds)
    return float(np.exp(np.mean(np.log(found.mean(axis=1)))))


def tune_oracles(
    *,
    out: Path,
    engine: Engine = Engine(),  # noqa: B008  # frozen
    show: bool = False,
    searches: Sequence[Ladder] | None = None,
) -> Tuned:
    """Run the searches, by default all, and write what they found into `out/oracles.json`.

    Finished cells are kept in `out/oracles`; the same call goes on from there. `show` shows progress on standard error.
    """
    begun, path, store = time.monotonic(), out / "oracles.json", FolderStore(out / "oracles")
    make_folder(out)
    asked: set[str] = set()
    played = 0

    def play(cells: Sequence[Cell]) -> Mapping[str, float]:
        nonlocal played
        asked.update(first := distinct(cells))
        played += len(missing(store, first.values()))
        return _play(list(first.values()), store, engine, show=show)

    done = climb(ladders() if searches is None else searches, play)
    _write(path, done)
    best = tuple(map(_best_settings, done))
    return Tuned(best, path, str(store.folder), len(asked), played, time.monotonic() - begun)


def _play(cells: Sequence[Cell], store: Store, engine: Engine, *, show: bool) -> dict[str, float]:
    with progress_bar(len(cells), "runs", show=show) as advance:
        results = run_cells(cells, store=store, engine=engine, progress=lambda finished: advance(len(finished)))
    return {cell.key: float(result.regret[-1]) for cell, result in zip(cells, results, strict=True)}


def _best_settings(search: Ladder) -> BestSettings:
    settings = search.grid.points[search.alive[0]]
    cells = count_cells(len(search.grid.points), search.rungs, worlds=len(search.worlds))
    name = f"{search.label}, {search.name}"
    return BestSettings(name, search.grid.policy, {}, settings, "search", search.scores[0], cells, ())


def oracle_entry(search: Ladder) -> dict[str, Any]:
    """What `oracles.json` says of a search; the told noise and kernel are added where the settings are used."""
    score = "geometric_mean_on_tuning_seeds" if search.name == OVER_ALL_WORLDS else "regret_on_tuning_seeds"
    return {
        "policy": search.grid.policy,
        "settings": dict(search.grid.points[search.alive[0]]),
        score: round(search.scores[0], 1),
        "seeds": search.seeds,
    }


def how_it_was_made() -> str:
    """What `oracles.json` says of itself."""
    seeds = max(rungs[-1][1] for grid in GRIDS.values() for rungs in (grid.single, grid.tuned or grid.single))
    return (
        f"{COMMAND}: grids on the suite's {len(SUITE)} worlds, told kernel and noise, by halving over tuning seeds "
        f"{TUNING_SEEDS[0]} to {TUNING_SEEDS[seeds - 1]}"
    )


def _write(path: Path, searches: Sequence[Ladder]) -> None:
    """Write whole or not at all."""
    worlds: dict[str, dict[str, Any]] = {}
    for search in searches:
        if search.name != OVER_ALL_WORLDS:
            worlds.setdefault(search.name, {})[search.label] = oracle_entry(search)
    singles = {search.label: oracle_entry(search) for search in searches if search.name == OVER_ALL_WORLDS}
    text = json.dumps({"how": how_it_was_made(), "singles": singles, "worlds": worlds}, indent=1) + "\n"
    write_whole(path, text.encode())
