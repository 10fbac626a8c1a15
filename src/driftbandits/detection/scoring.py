"""How well changes were found."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Detection:
    """What became of the true changes of a run.

    A true change counts as found by the first alarm after it and before the next true change; every other alarm is
    false.

    Parameters
    ----------
    delays : rounds from each change that was found to its alarm
    missed : number of changes that were not found
    false_alarms : number of alarms that belong to no change

    >>> Detection(delays=(30,), missed=1, false_alarms=1).delays
    (30,)
    """

    delays: tuple[int, ...]
    missed: int
    false_alarms: int


def detections(true_changes: Sequence[int], alarms: Sequence[int]) -> Detection:
    """Match alarms with true changes.

    Parameters
    ----------
    true_changes : first rounds of new reward functions
    alarms : first rounds of new epochs: `change.round` of each change found

    Returns
    -------
    Detection

    >>> detections([100, 500], [130, 140])
    Detection(delays=(30,), missed=1, false_alarms=1)
    """
    truth = sorted(int(t) for t in true_changes)
    rounds = sorted(int(a) for a in alarms)
    delays = []
    for change, following in pairwise([*truth, sys.maxsize]):
        found = [a for a in rounds if change < a <= following]
        if found:
            delays.append(found[0] - change)
    return Detection(delays=tuple(delays), missed=len(truth) - len(delays), false_alarms=len(rounds) - len(delays))
