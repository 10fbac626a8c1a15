"""What every store of finished cells must do, as plain functions that raise AssertionError.

Each takes a factory that opens one store, empty at first, and when it is called again opens the same one again:
`lambda: MyStore(tmp_path / "cells.db")`.

Two promises of a store are not checked, for only its author can break what it keeps: that a damaged entry goes to
`on_damage` and counts as not played, and that a kill in the middle of a write leaves the whole entry or none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from driftbandits.detection import Detection
from driftbandits.experiments.specs import Cell, PolicySpec
from driftbandits.experiments.stores import CellResult, Store, plain_result
from driftbandits.testing.helpers import require

StoreFactory = Callable[[], Store]
WORLD = {"horizon": 40, "switches": [20], "size": 4}


def a_cell(seed: int = 0, label: str = "a label") -> Cell:
    """A cell that is played in no time."""
    return Cell("switching/1", WORLD, PolicySpec(label, "Uniform"), seed)


def a_result(cell: Cell) -> CellResult:
    """A result with numbers that are easily spoilt: not short in decimals, very small, very large."""
    return CellResult(
        cell=cell,
        rounds=np.array([1, 20, 40 + 2**40 * cell.seed]),
        regret=np.array([0.1 + 0.2, 7e-300, 1e300 / 3]),
        changes=(21, 35),
        detection=Detection(delays=(1,), missed=0, false_alarms=1),
        turnover=1 / 3,
        seconds=1.5,
    )


def _write(store: Store, *results: CellResult) -> None:
    for result in results:
        store.write(result.cell.key, result)


def _finished(store: Store) -> set[str]:
    found = store.finished()
    require(isinstance(found, set), f"finished gives a {type(found).__name__}; it must give a set of keys")
    return found


def _load(store: Store, *cells: Cell) -> list[CellResult]:
    """What is loaded of the cells, in their order; a damage fails the check."""

    def refuse(damage: str) -> None:
        raise AssertionError(f"says that a result it was given is damaged: {damage}")

    found = store.load({cell.key: cell for cell in cells}, on_damage=refuse)
    require(isinstance(found, dict), f"load gives a {type(found).__name__}; it must give a dict of results by key")
    for result in found.values():
        require(isinstance(result, CellResult), f"a result is loaded as a {type(result).__name__}, not a CellResult")
    return [found[cell.key] for cell in cells if cell.key in found]


def _load_written(store: Store, *cells: Cell) -> list[CellResult]:
    """The results of cells that were written, each of which must be there."""
    found = _load(store, *cells)
    require(len(found) == len(cells), f"of {len(cells)} results that were written it loads {len(found)}")
    return found


def _require_same(found: CellResult, wanted: CellResult) -> None:
    require(plain_result(found) == plain_result(wanted), "a result comes back with other numbers")
    kinds = (found.rounds.dtype, found.regret.dtype)
    require(kinds == (np.dtype(np.int64), np.dtype(np.float64)), f"arrays come back as {kinds}")


def is_empty_at_first(make: StoreFactory) -> None:
    """Nothing is finished, and nothing is loaded, also before the place it writes to exists."""
    store = make()
    require(_finished(store) == set(), "a new store has finished cells")
    require(_load(store, a_cell()) == [], "a new store loads results")


def gives_back_every_number(make: StoreFactory) -> None:
    """A result comes back bit for bit, under its key."""
    store = make()
    _write(store, a_result(a_cell(0)), a_result(a_cell(1)))
    require(_finished(store) == {a_cell(0).key, a_cell(1).key}, "finished does not name what was written")
    for found, seed in zip(_load_written(store, a_cell(0), a_cell(1)), (0, 1), strict=True):
        _require_same(found, a_result(a_cell(seed)))


def keeps_results_without_changes(make: StoreFactory) -> None:
    """Empty tuples come back as empty tuples."""
    store, cell = make(), a_cell()
    nothing = CellResult(cell, np.array([40]), np.array([0.0]), (), Detection((), 1, 0), 0.0, 0.0)
    _write(store, nothing)
    (found,) = _load_written(store, cell)
    _require_same(found, nothing)
    require((found.changes, found.detection.delays) == ((), ()), "empty tuples come back as something else")


def holds_the_same_when_opened_again(make: StoreFactory) -> None:
    """What was written is visible to anyone who opens the store, immediately and without closing anything."""
    _write(make(), a_result(a_cell(0)))
    again = make()
    require(_finished(again) == {a_cell(0).key}, "opened again, it does not have what was written")
    _require_same(_load_written(again, a_cell(0))[0], a_result(a_cell(0)))
    _write(again, a_result(a_cell(1)))
    require(len(_load(make(), a_cell(0), a_cell(1))) == 2, "opened again, it cannot be written to as well")


def gives_only_what_was_asked_for(make: StoreFactory) -> None:
    """Cells that are not finished are left out, and finished ones that nobody asked for too."""
    store = make()
    _write(store, a_result(a_cell(0)), a_result(a_cell(1)))
    found = store.load({a_cell(1).key: a_cell(1), a_cell(2).key: a_cell(2)}, on_damage=lambda _: None)
    require(set(found) == {a_cell(1).key}, f"asked for one finished cell and one other, it gives {len(found)} results")


def results_carry_the_asked_cell(make: StoreFactory) -> None:
    """The label is that of the cell that is asked for: two experiments may call one run differently."""
    store = make()
    _write(store, a_result(a_cell(label="as written")))
    (found,) = _load_written(store, a_cell(label="as asked"))
    require(found.cell == a_cell(label="as asked"), f"the result has the label {found.cell.policy.label!r}")


def the_later_result_counts(make: StoreFactory) -> None:
    """Writing a key again replaces its result."""
    store, cell = make(), a_cell()
    later = CellResult(cell, np.array([40]), np.array([9.0]), (), Detection((), 0, 0), 0.5, 2.0)
    _write(store, a_result(cell), later)
    _require_same(_load_written(store, cell)[0], later)
    require(_finished(store) == {cell.key}, "a key that was written twice is not there once")


def what_is_kept_is_a_copy(make: StoreFactory) -> None:
    """Neither the arrays that were given nor those that were loaded change what is kept."""
    store, cell = make(), a_cell()
    given = a_result(cell)
    _write(store, given)
    given.regret[:] = -1.0
    _require_same(_load_written(store, cell)[0], a_result(cell))
    loaded = _load_written(store, cell)[0]
    if loaded.regret.flags.writeable:
        loaded.regret[:] = -1.0
    _require_same(_load_written(store, cell)[0], a_result(cell))


def says_where_it_is(make: StoreFactory) -> None:
    """Its str is one line that a message can end with."""
    text = str(make())
    require(text and "\n" not in text, f"str gives {text!r}")
    require(" object at 0x" not in text, f"str says nothing of the place: {text}")


def a_run_goes_on_from_it(make: StoreFactory) -> None:
    """`run_cells` plays what is missing, and nothing twice."""
    from driftbandits.experiments.engines import Engine
    from driftbandits.experiments.runner import run_cells

    cells, told = [a_cell(seed) for seed in range(3)], []

    def play(count: int) -> list[CellResult]:
        return run_cells(
            cells[:count], store=make(), engine=Engine(jobs=1), progress=lambda done: told.append(len(done))
        )

    first = play(2)
    told.clear()
    both = play(3)
    require(told == [2, 1], f"of three cells, two of them finished, it told of {told}")
    for found, wanted in zip(both[:2], first, strict=True):
        _require_same(found, wanted)


STORE_CHECKS: tuple[Callable[[StoreFactory], None], ...] = (
    is_empty_at_first,
    gives_back_every_number,
    keeps_results_without_changes,
    holds_the_same_when_opened_again,
    gives_only_what_was_asked_for,
    results_carry_the_asked_cell,
    the_later_result_counts,
    what_is_kept_is_a_copy,
    says_where_it_is,
    a_run_goes_on_from_it,
)
