"""What a store of finished cells is: three methods, and what follows from them.

FolderStore and MemoryStore are two of them. One of your own needs no base class; `testing.STORE_CHECKS` says whether it
keeps what it promises.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from driftbandits.errors import InputError
from driftbandits.experiments.definitions.specs import Cell
from driftbandits.experiments.files.cell_result import CellResult

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


def missing(store: Store, cells: Iterable[Cell]) -> list[Cell]:
    """The cells still to be played, in their order; of those with equal keys only the first."""
    finished = store.finished()
    return [cell for key, cell in distinct(cells).items() if key not in finished]


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
