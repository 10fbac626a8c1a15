"""Checks of the arms, tables and masks that a world is built from, with messages that name the value and the cure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits._util.checks import FLOAT_BYTES, as_float, as_floats, check_memory
from driftbandits.arms.arm_set import ArmSet
from driftbandits.errors import InputError
from driftbandits.text import shown
from driftbandits.types import Bools, Floats, read_only


def check_arm_set(arms: ArmSet) -> ArmSet:
    """Give `arms` back if they are an ArmSet."""
    if not isinstance(arms, ArmSet):
        raise InputError(
            f"arms must be an ArmSet, got {type(arms).__name__}; wrap points as ArmSet(points, kernel=...)"
        )
    return arms


def check_finite(name: str, value: Any) -> float:
    """Give `value` as a float that is neither infinite nor NaN; it may be negative."""
    try:
        number = as_float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        raise InputError(f"{name} must be a finite number, got {shown(value)}")
    return number


def check_room(numbers: int, what: str) -> None:
    """Refuse a world that would keep more numbers than there is memory for."""
    check_memory(FLOAT_BYTES * numbers, what, cure="take a shorter horizon, fewer switches or fewer arms")


def check_mask(values: npt.ArrayLike, what: str, *, arms: int) -> Bools:
    """Give `values` as a read-only boolean copy of shape (T, arms) with an arm in every row."""
    mask = np.array(values, order="C")
    if mask.dtype != np.bool_ or mask.ndim != 2 or mask.shape[1] != arms or not len(mask):
        raise InputError(f"{what} must be booleans of shape (rounds, {arms}), got {mask.dtype} of shape {mask.shape}")
    if not mask.any(axis=1).all():
        empty = int(np.argmin(mask.any(axis=1)))
        raise InputError(f"{what} offers no arm in round {empty}; allow at least one, or leave the round out")
    return read_only(mask)  # type: ignore[no-any-return]


def check_array(
    values: npt.ArrayLike, what: str, *, shape: tuple[int | None, ...], where: Bools | None = None
) -> Floats:
    """Give `values` as a read-only float copy of this shape (None: any length above 0), finite (only `where`)."""
    try:
        array = np.array(as_floats(values), order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what} must be numbers in rows of equal length: {error}") from None
    fits = array.ndim == len(shape) and all(
        got > 0 and want in (None, got) for got, want in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted = tuple("any" if want is None else want for want in shape)
        raise InputError(f"{what} must have shape {wanted}, got {array.shape}")
    wrong = ~np.isfinite(array) if where is None else ~np.isfinite(array) & where
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        every = "every entry" if where is None else "every entry that is offered"
        raise InputError(f"{what}{list(place)} is {array[place]}; {every} must be a finite number")
    return read_only(array)  # type: ignore[no-any-return]
