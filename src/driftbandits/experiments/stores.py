"""Results of finished cells, and what a store of them is: three methods, and what follows from them.

`MemoryStore` keeps results as long as the process lives, `FolderStore` (`folder_store`) on disk. A store of your own
needs no base class; `testing.STORE_CHECKS` says whether it keeps what it promises.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from driftbandits.detection import Detection
from driftbandits.errors import InputError
from driftbandits.experiments.specs import Cell
from driftbandits.text import counted


@dataclass(frozen=True)
class CellResult:
    """What is kept of a run.

    `regret` is cumulative, after `rounds` rounds played; `changes` are the rounds at which changes were found;
    `turnover` is the share of rounds in which another arm was played than in the round before; `seconds` is the time
    of the run itself.
    """

    cell: Cell
    rounds: npt.NDArray[np.int64]
    regret: npt.NDArray[np.float64]
    changes: tuple[int, ...]
    detection: Detection
    turnover: float
    seconds: float


def plain_result(result: CellResult) -> dict[str, Any]:
    """A result without its cell, as numbers and lists of them; JSON gives every one back bit for bit.

    Parameters
    ----------
    result : of a finished run

    Returns
    -------
    dict

    >>> from driftbandits.experiments.specs import PolicySpec
    >>> from driftbandits.experiments.runner import run_cell
    >>> cell = Cell("switching/1", {"horizon": 50, "switches": [25], "size": 5}, PolicySpec("a label", "Uniform"), 0)
    >>> sorted(plain_result(run_cell(cell)))[:4]
    ['changes', 'delays', 'false_alarms', 'missed']
    """
    return {
        "rounds": result.rounds.tolist(),
        "regret": result.regret.tolist(),
        "changes": list(result.changes),
        "delays": list(result.detection.delays),
        "missed": result.detection.missed,
        "false_alarms": result.detection.false_alarms,
        "turnover": result.turnover,
        "seconds": result.seconds,
    }


def result_of(plain: Mapping[str, Any], cell: Cell) -> CellResult:
    """The inverse of `plain_result`.

    Parameters
    ----------
    plain : what `plain_result` gave
    cell : the one that was asked for

    Returns
    -------
    CellResult
        Its arrays cannot be written to.

    Raises
    ------
    KeyError, TypeError, ValueError
        If `plain` is not a plain result.

    >>> from driftbandits.experiments.specs import PolicySpec
    >>> from driftbandits.experiments.runner import run_cell
    >>> cell = Cell("switching/1", {"horizon": 50, "switches": [25], "size": 5}, PolicySpec("a label", "Uniform"), 0)
    >>> result = run_cell(cell)
    >>> bool((result_of(plain_result(result), cell).regret == result.regret).all())
    True
    """
    rounds, regret = np.array(plain["rounds"], dtype=np.int64), np.array(plain["regret"], dtype=np.float64)
    rounds.flags.writeable = regret.flags.writeable = False
    return CellResult(
        cell=cell,
        rounds=rounds,
        regret=regret,
        changes=tuple(plain["changes"]),
        detection=Detection(tuple(plain["delays"]), plain["missed"], plain["false_alarms"]),
        turnover=plain["turnover"],
        seconds=plain["seconds"],
    )


MOST_DAMAGES_IN_MESSAGE = 5


class StoreError(InputError):
    """Results cannot be listed, or one cannot be written; the message says which, and the cure.

    >>> issubclass(StoreError, InputError)
    True
    """


class DamagedPartWarning(UserWarning):
    """A kept result was left out: it is damaged, or is that of another cell or schema version."""


class Store(Protocol):
    """Where finished cells are kept, by their keys. Its `str` says where that is, for messages.

    A protocol: a class with these methods is one, and need not derive from it. A result that was written is there for
    everybody who opens the same store, also after a kill: whole or not at all. A key always means the same run, so
    writing it twice is no error, and the later result counts.

    >>> from driftbandits.experiments import MemoryStore
    >>> MemoryStore().finished()
    set()
    """

    def finished(self) -> set[str]:
        """Keys of all cells with a whole result.

        Returns
        -------
        set of str
        """
        ...

    def load(self, cells: Mapping[str, Cell], *, on_damage: Callable[[str], None]) -> dict[str, CellResult]:
        """Results of the finished ones among some cells, each with the asked cell, and so with its label.

        Parameters
        ----------
        cells : by key
        on_damage : called for each result that is there but cannot be used, with words that name it; its cell counts as
            not played

        Returns
        -------
        dict of results by key
        """
        ...

    def write(self, key: str, result: CellResult) -> None:
        """Keep a result.

        Parameters
        ----------
        key : of its cell
        result : of the run

        Raises
        ------
        StoreError
            If that is not possible.
        """
        ...


def warn_of_damage(damage: str) -> None:
    """What is done about damages unless said otherwise."""
    warnings.warn(f"{damage}; it counts as not played", DamagedPartWarning, stacklevel=3)


def read(store: Store, cells: Iterable[Cell], *, on_damage: Callable[[str], None] = warn_of_damage) -> list[CellResult]:
    """Results of the finished ones among `cells`, in their order, each with the asked cell, and so its label.

    Results that are damaged are left out; `on_damage` is called for each, with what is wrong. By default that is a
    DamagedPartWarning.
    """
    keyed = [(cell.key, cell) for cell in cells]
    found = store.load(dict(keyed), on_damage=on_damage)
    return [dataclasses.replace(found[key], cell=cell) for key, cell in keyed if key in found]


def distinct(cells: Iterable[Cell]) -> dict[str, Cell]:
    """The first cell of each key, in order: two experiments may ask for the same run under two labels."""
    first: dict[str, Cell] = {}
    for cell in cells:
        first.setdefault(cell.key, cell)
    return first


def damage_summary(damages: Sequence[str]) -> str:
    """What `on_damage` was called with, in one line that names the first few.

    >>> damage_summary([f"{n}.parquet is no finished run (it is damaged)" for n in range(12)])
    '0.parquet is no finished run (it is damaged); 1.parquet is ...; and 7 more'
    """
    more = [f"and {len(damages) - MOST_DAMAGES_IN_MESSAGE} more"] if len(damages) > MOST_DAMAGES_IN_MESSAGE else []
    return "; ".join([*damages[:MOST_DAMAGES_IN_MESSAGE], *more])


class MemoryStore:
    """A store that keeps results in memory.

    >>> from driftbandits.experiments.specs import PolicySpec
    >>> from driftbandits.experiments.runner import run_cell
    >>> cell = Cell("switching/1", {"horizon": 50, "switches": [25], "size": 5}, PolicySpec("a label", "Uniform"), 0)
    >>> store = MemoryStore()
    >>> store.write(cell.key, run_cell(cell))
    >>> store, store.finished() == {cell.key}
    (MemoryStore(1 result), True)
    """

    def __init__(self) -> None:
        self._results: dict[str, CellResult] = {}

    def finished(self) -> set[str]:
        """Keys of all finished cells.

        Returns
        -------
        set of str
        """
        return set(self._results)

    def load(self, cells: Mapping[str, Cell], *, on_damage: Callable[[str], None]) -> dict[str, CellResult]:
        """Results of the finished ones among `cells`, by key; nothing here is ever damaged.

        Parameters
        ----------
        cells : by key
        on_damage : never called

        Returns
        -------
        dict of results by key
        """
        del on_damage
        return {
            key: dataclasses.replace(self._results[key], cell=cell)
            for key, cell in cells.items()
            if key in self._results
        }

    def write(self, key: str, result: CellResult) -> None:
        """Keep a read-only copy.

        Parameters
        ----------
        key : of the cell
        result : of the cell
        """
        rounds, regret = np.array(result.rounds), np.array(result.regret)
        rounds.flags.writeable = regret.flags.writeable = False
        self._results[key] = dataclasses.replace(result, rounds=rounds, regret=regret)

    def __str__(self) -> str:
        """Where results are, as messages have it."""
        return "memory"

    def __repr__(self) -> str:
        """How many there are."""
        return f"MemoryStore({counted(len(self._results), 'result')})"
