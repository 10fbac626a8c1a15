"""Cells of a log: its arms or, where requests come in segments, every arm in every segment; and which were offered."""

from __future__ import annotations

import dataclasses

import numpy as np

from driftbandits.arms import ArmSet
from driftbandits.logs.log import Log
from driftbandits.types import Bools, Ints

MOST_CELLS = 160  # that beliefs and twins tell apart where there are segments


def cells_of(log: Log) -> Ints:
    """Arm and segment of every row as one number: those of a segment stand together."""
    return log.arm if log.segment is None else log.segment * len(log.names) + log.arm


def cell_count(log: Log) -> int:
    """How many there are."""
    return len(log.names) * max(len(log.segment_names), 1)


def cell_name(log: Log, cell: int) -> str:
    """What texts call a cell."""
    name = log.names[cell % len(log.names)]
    return name if log.segment is None else f"{name} ({log.segment_names[cell // len(log.names)]})"


def merged(log: Log) -> Log:
    """The log as beliefs and twins see it: without segments where these make too many cells to tell apart."""
    if log.segment is None or cell_count(log) <= MOST_CELLS:
        return log
    return dataclasses.replace(log, segment=None, segment_names=())


def arms_of(log: Log) -> ArmSet:
    """The log's arms; without points, arms that have nothing in common."""
    return log.arms if log.arms is not None else ArmSet.from_features(np.eye(len(log.names)), names=log.names)


def cell_arms(log: Log) -> ArmSet:
    """The cells as arms to be played."""
    return arms_of(log) if log.segment is None else ArmSet.crossed(arms_of(log), list(log.segment_names))


def is_masked(log: Log) -> bool:
    """Whether some rows do not offer every cell."""
    return log.segment is not None or log.allowed is not None


def offered(log: Log, rows: Ints) -> Bools | None:
    """Cells that could be played in some rows, (rows, cells): those of the row's segment, of the arms allowed.

    None where every cell always could.
    """
    if log.segment is None:
        return None if log.allowed is None else log.allowed[rows]
    own = np.arange(len(log.segment_names)) == log.segment[rows, None]
    arms = np.ones((len(rows), len(log.names)), dtype=bool) if log.allowed is None else log.allowed[rows]
    return np.asarray(own[:, :, None] & arms[:, None, :]).reshape(len(rows), -1)
