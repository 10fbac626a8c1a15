"""Finished cells in memory: for a notebook, and for whatever need not outlive the process."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

from driftbandits.experiments.definitions.specs import Cell
from driftbandits.experiments.files.cell_result import CellResult
from driftbandits.showing import counted


class MemoryStore:
    """A store that keeps results as long as it is there itself.

    >>> from driftbandits.experiments.definitions.specs import PolicySpec
    >>> from driftbandits.experiments.running.cells import run_cell
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
        """Keep a copy that nobody can write to.

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
