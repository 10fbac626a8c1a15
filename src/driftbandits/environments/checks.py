"""Checks of what a caller passes, with messages that name the value and the cure."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits.arms import ArmSet
from driftbandits.errors import InputError
from driftbandits.memory import FLOAT, check_memory
from driftbandits.numeric import as_floats
from driftbandits.showing import shown
from driftbandits.types import Bools, Floats, read_only

_MOST = 2**62  # of anything counted: rounds are whole numbers of 64 bits


def check_arm_set(arms: ArmSet) -> ArmSet:
    """Give `arms` back if they are an ArmSet."""
    if not isinstance(arms, ArmSet):
        raise InputError(
            f"arms must be an ArmSet, got {type(arms).__name__}; wrap points as ArmSet(points, kernel=...)"
        )
    return arms


def check_integer(value: int, what: str, *, least: int) -> int:
    """Give `value` as an int of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{what} must be a whole number, got {shown(value)}") from None
    if isinstance(value, bool) or number < least:
        raise InputError(f"{what} must be at least {least}, got {shown(value)}")
    if number > _MOST:
        raise InputError(f"{what} must be at most 2^62, about {_MOST:.1e}, got {shown(value)}")
    return number


def check_number(value: Any, what: str, *, positive: bool = False) -> float:
    """Give `value` as a finite float, above 0 where `positive`."""
    if not is_finite(value) or (positive and value <= 0):
        raise InputError(f"{what} must be a finite {'positive ' if positive else ''}number, got {shown(value)}")
    return float(value)


def is_finite(value: Any) -> bool:
    """Whether `value` is a number, not True or False, that a float can hold."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, (bool, np.timedelta64)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond floats
        return False


def check_room(numbers: int, what: str) -> None:
    """Refuse a world that would keep more numbers than there is memory for."""
    check_memory(FLOAT * numbers, what, cure="take a shorter horizon, fewer switches or fewer arms")


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
