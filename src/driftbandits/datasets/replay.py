"""A world that gives back what was recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from driftbandits.arms import ArmSet
from driftbandits.datasets.cells import Cells
from driftbandits.environments import Noise, Tabular
from driftbandits.errors import InputError
from driftbandits.types import Floats


@dataclass(frozen=True)
class RecordedNoise(Noise):
    """Stands for noise that is a draw from a record, with rewards from `low` to `high`.

    What is drawn depends on round and arm, not on the mean alone, so only the world's `rewards` can draw it.
    """

    low: float
    high: float

    def sample(self, means: Floats, uniforms: Floats) -> Floats:  # noqa: ARG002
        """Refuse: a mean does not say which record to draw from."""
        self._refuse()

    def deviation(self, means: Floats) -> Floats:  # noqa: ARG002
        """Refuse: it differs from cell to cell."""
        self._refuse()

    def range(self, low: float, high: float) -> tuple[float, float]:  # noqa: ARG002
        """The declared range, whatever the means."""
        return self.low, self.high

    def _refuse(self) -> NoReturn:
        raise InputError("recorded rewards are drawn by round and arm, not by mean; use the world's rewards(...)")


class SeriesReplay(Tabular):
    """A world whose reward is one recorded reward of (round, arm), drawn with the round's uniform.

    An arm without a record in a round is not offered then. The mean, which is what regret is measured against, is
    the mean of the cell, or that given as `means` where `shift` is added to what is drawn.

    Parameters
    ----------
    arms : ArmSet of N arms
    cells : what was recorded, T rounds by N arms
    reward_range : declared (low, high) that holds every reward
    means, shift : arrays, shape (T, N), optional
        The truth, and what is added to a recorded reward; both finite wherever there is a record.
    name : what tables and plots call this world

    >>> from driftbandits.datasets.cells import from_table
    >>> arms = ArmSet([[0.0], [1.0]])
    >>> world = SeriesReplay(arms, from_table(np.array([[0.0, 0.5], [0.25, np.nan]])), reward_range=(-1, 1))
    >>> world.rewards(0, [1, 0], seed=0), world.best(0, 2), world.allowed(1)
    (array([0.5 , 0.25]), array([0.5 , 0.25]), array([[ True, False]]))
    """

    def __init__(
        self,
        arms: ArmSet,
        cells: Cells,
        *,
        reward_range: tuple[float, float],
        means: Floats | None = None,
        shift: Floats | None = None,
        name: str = "replay",
    ) -> None:
        offered = cells.offered
        super().__init__(
            arms,
            cells.means if means is None else means,
            noise=RecordedNoise(*map(float, reward_range)),
            allowed=None if offered.all() else offered,
            name=name,
        )
        self._cells = cells
        self._shift = shift

    def observe(self, start: int, arms: npt.NDArray[Any], means: Floats, uniforms: Floats) -> Floats:  # noqa: ARG002
        """Recorded rewards of arms offered in rounds start, start + 1, ..., shape (n,)."""
        rounds = np.arange(start, start + len(arms))
        drawn = self._cells.draw(rounds, arms, uniforms)
        return drawn if self._shift is None else drawn + self._shift[rounds, arms]
