"""Points that fill a unit cube: a grid, Sobol points, or the centres of cubes so small that little is lost."""

from __future__ import annotations

import math

import numpy as np

from driftbandits.errors import InputError
from driftbandits.memory import FLOAT_BYTES, check_memory
from driftbandits.types import Floats

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
