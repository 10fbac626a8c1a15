"""A world given as a table of means."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits.arms.arm_set import ArmSet
from driftbandits.environments.base import Environment, Shape, check_arm_set, check_array, check_mask
from driftbandits.environments.noise import Noise, usual_noise
from driftbandits.types import Bools, Floats, read_only


class Tabular(Environment):
    """Mean rewards from a table: r_t(x) = means[t, x], shape (T, N), copied and frozen.

    The one world that holds T times N numbers; for a few constant stretches use `Piecewise`.

    Parameters
    ----------
    arms : ArmSet of N arms
    means : array, shape (T, N)
        May be NaN where an arm is not allowed, and nowhere else.
    noise : distribution of rewards around their means; default `usual_noise` of them
    allowed : boolean array, shape (T, N), optional
        Which arms each round offers, at least one each; by default all. What `means` holds elsewhere is thrown away,
        so that a value nobody could have played never becomes the benchmark.
    name : what tables and plots call this world

    Raises
    ------
    InputError
        For means or masks of another shape, means of allowed arms that are not finite, and rounds that allow no arm.

    >>> from driftbandits.environments import GaussianNoise
    >>> arms = ArmSet([[0.0], [1.0]])
    >>> world = Tabular(arms, [[0.0, 0.5], [0.0, 0.5], [0.75, 0.5]], noise=GaussianNoise(0.0))
    >>> world.change_rounds, world.segments, world.variation, world.best_arm_changes
    (array([2]), 2, 0.75, 1)
    >>> world.rewards(1, [0, 0], seed=0)
    array([0.  , 0.75])
    >>> mask = [[True, True], [True, False]]
    >>> away = Tabular(arms, [[0.0, 0.5], [0.0, np.nan]], allowed=mask, noise=GaussianNoise(0.0))
    >>> away.best(0, 2), away.variation
    (array([0.5, 0. ]), 0.0)
    """

    def __init__(
        self,
        arms: ArmSet,
        means: npt.ArrayLike,
        *,
        noise: Noise | None = None,
        allowed: npt.ArrayLike | None = None,
        name: str = "tabular",
    ) -> None:
        size = len(check_arm_set(arms))
        self._mask = None if allowed is None else check_mask(allowed, "allowed", arms=size)
        if self._mask is None:
            table = check_array(means, "means", shape=(None, size))
        else:
            given = check_array(means, "means", shape=self._mask.shape, where=self._mask)
            table = read_only(np.where(self._mask, given, np.nan))
        self._table = table
        mean_range = (float(np.nanmin(table)), float(np.nanmax(table)))
        chosen = usual_noise(*mean_range) if noise is None else noise
        super().__init__(arms, horizon=len(table), noise=chosen, mean_range=mean_range, name=name)

    def means(self, start: int, size: int = 1) -> Floats:
        """Rows of the table, shape (size, N), read-only; NaN where an arm is not offered."""
        self._check_rounds(start, size)
        return self._table[start : start + size]

    def allowed(self, start: int, size: int = 1) -> Bools | None:
        """Rows of the mask, shape (size, N), read-only; None if every arm is always offered."""
        if self._mask is None:
            return None
        self._check_rounds(start, size)
        return self._mask[start : start + size]

    def means_of(self, start: int, arms: npt.ArrayLike) -> Floats:
        """Means of the arms chosen in rounds start, start + 1, ..., shape (n,)."""
        chosen = self._check_choice(start, arms)
        values: Floats = self._table[np.arange(start, start + len(chosen)), chosen]
        return values

    def _settings(self) -> dict[str, Any]:
        shape = Shape(self._table.shape)
        return {"means": shape} if self._mask is None else {"means": shape, "allowed": shape}
