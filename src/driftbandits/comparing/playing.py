"""Plays a comparison: every policy in every world on every seed, in this process or in many."""

from __future__ import annotations

import operator
import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import SupportsIndex, TypeVar

from driftbandits.checks import check_count
from driftbandits.comparing.cells import Contestant, LiveCell, World
from driftbandits.comparing.comparison import Comparison, tabulated
from driftbandits.comparing.worlds import check_named
from driftbandits.environments import Environment
from driftbandits.errors import DriftbanditsError, InputError
from driftbandits.experiments.definitions.seeds import check_seed_count, check_seeds
from driftbandits.experiments.definitions.specs import Cell, PolicySpec
from driftbandits.experiments.files.cell_result import CellResult
from driftbandits.experiments.judging.results import RunRow
from driftbandits.experiments.running.engines import Engine
from driftbandits.experiments.running.preflight import check_one_horizon
from driftbandits.experiments.running.runner import CellError, RunError, run_cells
from driftbandits.policies import Policy
from driftbandits.progress import progress_bar
from driftbandits.seeding import check_seed
from driftbandits.showing import shown
from driftbandits.simulation import simulate

Made = TypeVar("Made")

SEEDS = "a whole number from 1, or a list of whole numbers from 0"


def play(
    policies: Sequence[Contestant],
    worlds: Sequence[World],
    *,
    seeds: int | Iterable[int],
    engine: Engine,
    show: bool | None,
) -> Comparison:
    """Check everything, play all, and make tables of it; `show` of None shows progress to people alone."""
    numbers = read_seeds(seeds)
    first = {world.label: _first(world, numbers) for world in worlds}
    changes = {world.label: _true_changes(world, first[world.label], numbers) for world in worlds}
    reporting = {p.label for w in worlds for p in policies if _try(p, w, first[w.label], numbers[0]).reports_changes}
    cells = [_cell(world, policy, seed) for world in worlds for policy in policies for seed in numbers]
    with progress_bar(len(cells), "runs", show=_is_watched() if show is None else show) as advance:
        results = _run(cells, engine, lambda finished: advance(len(finished)))
    rows = [RunRow(result.cell.environment, result.cell.policy.label, result) for result in results]
    return tabulated(rows, true_changes=changes, reporting=frozenset(reporting))


def read_seeds(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """How many, counted from 0, or which.

    >>> read_seeds(3), read_seeds([5, 7])
    ((0, 1, 2), (5, 7))
    """
    if isinstance(seeds, str | bytes | bool | None) or not isinstance(seeds, SupportsIndex | Iterable):
        raise InputError(f"seeds must be {SEEDS}, got {shown(seeds)}")
    if not isinstance(seeds, Iterable):
        return tuple(range(check_seed_count(check_count("seeds", seeds))))
    try:
        given = tuple(seeds)
    except TypeError:  # an array without a dimension
        raise InputError(f"seeds must be {SEEDS}, got {shown(seeds)}; write seeds=int(...)") from None
    if not given or any(seed is None for seed in given):
        raise InputError(f"seeds must be {SEEDS}, got {shown(seeds)}")
    return check_seeds(tuple(check_seed(seed) for seed in given))


def _cell(world: World, policy: Contestant, seed: int) -> LiveCell:
    name = policy.maker if isinstance(policy.maker, str) else getattr(policy.maker, "__name__", policy.label)
    return LiveCell(world.label, {}, PolicySpec(policy.label, name, policy.settings), seed, world, policy)


def _is_watched() -> bool:
    """Whether somebody looks at standard error: in a terminal, or in a notebook, where it is none."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


# Before anything long begins.


def _first(world: World, seeds: tuple[int, ...]) -> Environment:
    """The world of the first seed."""
    what = f"world {world.label!r}, seed {seeds[0]}"
    _trying(what, partial(check_named, world, seeds))
    return _trying(what, partial(world.build, seeds[0]))


def _try(policy: Contestant, world: World, first: Environment, seed: int) -> Policy:
    """The policy after one round in the world of the first seed."""
    what = f"policy {policy.label!r} in world {world.label!r}, seed {seed}"
    fresh = _trying(what, partial(policy.build, first, seed, world.common))
    _trying(what, partial(simulate, fresh, first, seed=seed, rounds=1))
    return fresh


def _true_changes(world: World, first: Environment, seeds: tuple[int, ...]) -> list[int]:
    """Rounds in which the world changes; none where they differ from seed to seed. Its horizon may not differ."""
    rounds: list[int] = first.change_rounds.tolist()
    if isinstance(world.maker, Environment):
        return rounds
    horizons, agree = {seeds[0]: first.horizon}, True
    for seed in seeds[1:]:
        other = _trying(f"world {world.label!r}, seed {seed}", partial(world.build, seed))
        horizons[seed] = other.horizon
        agree = agree and other.change_rounds.tolist() == rounds
    check_one_horizon(f"world {world.label!r}", horizons)
    return rounds if agree else []


def _trying(what: str, make: Callable[[], Made]) -> Made:
    """One kind of error that names policy, world and seed; the user's own error with its traceback is its cause."""
    try:
        return make()
    except ImportError:
        raise  # what is not installed, with its cure
    except DriftbanditsError as error:
        raise InputError(f"{what}: {error}") from error
    except Exception as error:
        raise InputError(f"{what}: {type(error).__name__}: {error}") from error


# The runs.


def _run(cells: Sequence[LiveCell], engine: Engine, progress: Callable[[list[Cell]], None]) -> list[CellResult]:
    try:
        return run_cells(cells, engine=engine, progress=progress, play=operator.methodcaller("play"))
    except RunError as error:
        cure = ""
        if isinstance(error.__cause__, pickle.PicklingError):
            cure = "; something of a policy or a world cannot be sent to other processes: jobs=1 plays in this one"
        error.args = (f"{error.reason}{cure}",)
        if isinstance(error, CellError):
            error.add_note(f"In the run:\n{error.details}")
        raise
