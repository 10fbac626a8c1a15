"""A world given number by number."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits.arms import ArmSet
from driftbandits.environments.base import Environment, Shape
from driftbandits.environments.checks import check_arm_set, check_array
from driftbandits.environments.noise import PLAIN_NOISE, Noise
from driftbandits.types import Floats


class Tabular(Environment):
    """Mean rewards from a table: r_t(x) = means[t, x], shape (T, N), copied and frozen.

    The one world that holds T times N numbers; for a few constant stretches use `Piecewise`.

    >>> from driftbandits.environments import Gaussian
    >>> arms = ArmSet([[0.0], [1.0]])
    >>> world = Tabular(arms, [[0.0, 0.5], [0.0, 0.5], [0.75, 0.5]], noise=Gaussian(0.0))
    >>> world.change_rounds, world.segments, world.variation, world.best_arm_changes
    (array([2]), 2, 0.75, 1)
    >>> world.rewards(1, [0, 0], seed=0)
    array([0.  , 0.75])
    """

    def __init__(
        self, arms: ArmSet, means: npt.ArrayLike, *, noise: Noise = PLAIN_NOISE, name: str = "tabular"
    ) -> None:
        table = check_array(means, "means", shape=(None, len(check_arm_set(arms))))
        self._table = table
        mean_range = (float(table.min()), float(table.max()))
        super().__init__(arms, horizon=len(table), noise=noise, mean_range=mean_range, name=name)

    def means(self, start: int, size: int = 1) -> Floats:
        """Rows of the table, shape (size, N), read-only."""
        self._check_rounds(start, size)
        return self._table[start : start + size]

    def means_of(self, start: int, arms: npt.ArrayLike) -> Floats:
        """Means of the arms chosen in rounds start, start + 1, ..., shape (n,)."""
        chosen = self._check_choice(start, arms)
        values: Floats = self._table[np.arange(start, start + len(chosen)), chosen]
        return values

    def _settings(self) -> dict[str, Any]:
        return {"means": Shape(self._table.shape)}
