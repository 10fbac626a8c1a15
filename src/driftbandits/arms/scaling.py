"""How arms are measured: what the first set of arms decides for all sets that follow it.

A kernel is divided by its largest k(x, x), a length scale that nobody gave is guessed from distances, and policies that
try length scales measure distances in standard deviations of the columns. All of that follows from the points. Were it
computed anew when arms come and go, what is known of the old arms would change its meaning, so it stays as it was.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.spatial

from driftbandits import state as states
from driftbandits._util.checks import FLOAT_BYTES, check_memory
from driftbandits.arms.kernels import POINTS_SAMPLED, some_rows, typical_distance
from driftbandits.errors import InputError
from driftbandits.types import Floats

_LARGEST = 1e300  # of a number kept


@dataclass(frozen=True, slots=True)
class Gauge:
    """What distances and kernels are measured by.

    scale : what the kernel is divided by
    length_scale : of the kernel that was guessed; None where one was given
    spreads : standard deviation of every column; 0 for one in which no two arms differ, which says nothing
    typical : median distance between arms in these units, 1 where no two differ
    nearest : median distance of an arm to the next

    >>> Gauge.of(np.array([[0.0, 7.0], [2.0, 7.0]]), scale=1.0, length_scale=None).spreads
    (1.0, 0.0)
    """

    scale: float
    length_scale: float | None
    spreads: tuple[float, ...]
    typical: float
    nearest: float

    @classmethod
    def of(cls, points: Floats, *, scale: float, length_scale: float | None) -> Gauge:
        """The gauge of a first set of arms, with these points (N, d)."""
        with np.errstate(all="ignore"):  # of numbers near the ends of what floats can hold
            spread = points.std(axis=0)
            told = np.isfinite(spread) & (spread > 1e-12 * np.abs(points).max(axis=0))
        bare = cls(scale, length_scale, tuple(np.where(told, spread, 0.0).tolist()), 1.0, 0.0)
        return bare._with_distances(points)

    def _with_distances(self, points: Floats) -> Gauge:
        scaled = self.standardised(points)
        if not scaled.shape[1]:
            return self
        some = some_rows(scaled, POINTS_SAMPLED)
        nearest = scipy.spatial.cKDTree(scaled).query(some, k=min(2, len(scaled)))[0].max(axis=-1)
        return dataclasses.replace(
            self, typical=typical_distance(scaled) or 1.0, nearest=float(np.median(nearest)), spreads=self.spreads
        )

    def standardised(self, points: Floats) -> Floats:
        """The columns in which arms differ, in units of their spread."""
        spread = np.array(self.spreads)
        told = spread > 0.0
        scaled: Floats = points[:, told] / spread[told]
        return scaled

    def extended(self, points: Floats) -> Gauge:
        """The gauge for these points too: a column in which no two arms have differed so far gets its spread now.

        Distances between the arms before are as they were, for none of them differ in it.
        """
        if all(self.spreads):
            return self
        own = Gauge.of(points, scale=self.scale, length_scale=self.length_scale)
        if not any(self.spreads):
            return own
        spreads = tuple(mine or other for mine, other in zip(self.spreads, own.spreads, strict=True))
        return dataclasses.replace(self, spreads=spreads)

    def export(self) -> dict[str, Any]:
        """As JSON values."""
        return {**dataclasses.asdict(self), "spreads": list(self.spreads)}

    @classmethod
    def load(cls, state: states.Reader, *, dimension: int) -> Gauge:
        """Inverse of `export`, for points of this dimension."""
        spreads = state.raw("spreads")
        fine = isinstance(spreads, (list, tuple)) and len(spreads) == dimension
        states.check(fine and all(type(value) is float and 0.0 <= value < _LARGEST for value in spreads), "spreads")
        length = None if state.raw("length_scale") is None else state.number("length_scale")
        gauge = cls(state.number("scale"), length, tuple(spreads), state.number("typical"), state.number("nearest"))
        sizes = (gauge.scale, gauge.typical, 1.0 if length is None else length)
        states.check(all(0.0 < size < _LARGEST for size in sizes) and 0.0 <= gauge.nearest < _LARGEST, "gauge")
        return gauge


_MOST_AXES = 64  # of a NumPy array
_CELL_BITS = 62  # beyond, the number of cubes is not worth writing down
_SOBOL_BITS = 30  # of a coordinate of SciPy's Sobol points


def _check_points(count: int, dimension: int, *, copies: int, cure: str = "take fewer points") -> None:
    needed = copies * FLOAT_BYTES * count * dimension
    check_memory(needed, f"a box of {count:,} points in {dimension:,} dimensions", cure=cure)


def cell_centres(sides: Floats, error: float) -> Floats:
    """Centres, on the unit cube, of cubes with sides of at most error / d in a box with these sides."""
    dimension = len(sides)
    _check_axes(dimension, cure="discretise fewer")
    # a division that should be whole may come out a last digit above; error / 2 has room for that
    wanted = np.maximum(dimension * sides / error * (1.0 - 1e-12), 1.0)
    if np.log2(wanted).sum() > _CELL_BITS:
        raise InputError(f"error={error:g} cuts the box into more than 2^{_CELL_BITS} cubes; take a larger error")
    steps = [math.ceil(number) for number in wanted.tolist()]
    _check_points(math.prod(steps), dimension, copies=2, cure="take a larger error")
    return _product([(np.arange(count) + 0.5) / count for count in steps])


def _product(axes: list[Floats]) -> Floats:
    """All points with these coordinates, the last axis fastest."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def _check_axes(dimension: int, *, cure: str) -> None:
    if dimension > _MOST_AXES:
        raise InputError(f"a grid has at most {_MOST_AXES} dimensions, got {dimension}; {cure}")


def unit_points(dimension: int, count: int, method: str) -> Floats:
    """About `count` points of a grid on the unit cube, ends included, or exactly `count` Sobol points."""
    if method == "grid":
        _check_axes(dimension, cure="use method='sobol'")
        steps = round(count ** (1.0 / dimension))
        steps -= steps**dimension > count
        _check_points(steps**dimension, dimension, copies=2)  # the axes' coordinates, and the points they make
        axis = np.linspace(0.0, 1.0, steps) if steps > 1 else np.array([0.5])
        return _product([axis] * dimension)
    from scipy.stats import qmc  # half a second to import, and only boxes need it

    if dimension > qmc.Sobol.MAXDIM:
        raise InputError(f"Sobol points have at most {qmc.Sobol.MAXDIM:,} dimensions, got {dimension:,}")
    power = math.ceil(math.log2(count))
    if power > _SOBOL_BITS:
        raise InputError(f"Sobol points number at most 2^{_SOBOL_BITS}, got {count:,}; take fewer points")
    _check_points(2**power, dimension, copies=1)
    return np.asarray(qmc.Sobol(dimension, scramble=False).random_base2(power)[:count])
