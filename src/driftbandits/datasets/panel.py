"""A data set made ready to be played."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driftbandits.arms import ArmSet
from driftbandits.datasets.cells import Cells
from driftbandits.types import Ints

OFFSETS = 5  # replicates by start offset
_ONE_STEP_IN = 20  # a twentieth of the rounds makes the recipe, and is the step from replicate to replicate


@dataclass(frozen=True)
class Panel:
    """All rounds of a data set in their order, with what its copies need to know.

    The first 5% of the rounds made the recipe (which arms, which kernel, which scale) and are not played. Replicate k
    of `OFFSETS` starts k times 5% of the rounds later; all replicates have the same length, so that their regrets can
    be averaged, and none wraps around.

    Parameters
    ----------
    name : of the data set
    arms : of the bandit that is made from it
    cells : what was recorded, rounds by arms
    reward_range : that holds every reward
    block : how many rounds a shuffled copy keeps together: long enough for what hangs together in the short run
    smoothing : how many rounds on either side the truth of the semi-real copy averages over
    changes : the rounds in which something is known to have changed

    >>> from driftbandits.datasets import load
    >>> panel = load("digits")
    >>> panel.name, len(panel.arms), len(panel.cells), len(panel.played(0))
    ('digits', 42, 2800, 2100)
    """

    name: str
    arms: ArmSet
    cells: Cells
    reward_range: tuple[float, float]
    block: int
    smoothing: int
    changes: tuple[int, ...] = ()

    @property
    def preparation(self) -> int:
        """Rounds at the beginning that made the recipe."""
        return preparation(len(self.cells))

    def played(self, offset: int) -> Ints:
        """Rounds that a replicate plays.

        Parameters
        ----------
        offset : number of the replicate

        Returns
        -------
        array of rounds
        """
        step = len(self.cells) // _ONE_STEP_IN
        length = len(self.cells) - self.preparation - (OFFSETS - 1) * step
        start = self.preparation + offset * step
        return np.arange(start, start + length)


def preparation(rounds: int) -> int:
    """How many of so many rounds make the recipe: 5%, rounded up.

    >>> preparation(2190)
    110
    """
    return -(-rounds // _ONE_STEP_IN)
