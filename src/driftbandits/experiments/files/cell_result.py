"""What is kept of a finished cell, and the same as plain values, which any store can write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits.experiments.definitions.specs import Cell
from driftbandits.simulation import Detection


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

    >>> from driftbandits.experiments.definitions.specs import PolicySpec
    >>> from driftbandits.experiments.running.cells import run_cell
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
        For what is no plain result.

    >>> from driftbandits.experiments.definitions.specs import PolicySpec
    >>> from driftbandits.experiments.running.cells import run_cell
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
