"""What hooks of a policy must give, whoever writes them: laws that are probabilities, estimates that are numbers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits.errors import InputError, LawError
from driftbandits.showing import shown
from driftbandits.types import Bools, Floats

TOLERANCE = 1e-6  # by which the sum may be off


def is_frozen(law: npt.NDArray[Any]) -> bool:
    """Whether nobody can write to the law: neither to the array nor to one that it is a view of.

    >>> law = np.array([0.5, 0.5])
    >>> view = law.view()
    >>> view.flags.writeable = False
    >>> is_frozen(view)
    False
    """
    part: Any = law
    while isinstance(part, np.ndarray):
        if part.flags.writeable:
            return False
        part = part.base
    return part is None


def freeze(law: Floats) -> Floats:
    """The law, which nobody can write to any more: it may be kept from round to round and is looked at once."""
    law.flags.writeable = False
    return law


def check_law(law: Any, *, arms: int, policy: str, now: int) -> None:
    """Refuse what is not a probability vector over the arms, naming the policy and the fault.

    >>> check_law(np.array([0.5, 0.5]), arms=2, policy="Mine", now=7)
    >>> check_law(np.array([0.5, np.nan]), arms=2, policy="Mine", now=7)
    Traceback (most recent call last):
    ...
    driftbandits.errors.LawError: the law of Mine in round 7 has a probability of nan at arm 1; nothing was decided in
    it
    """
    if isinstance(law, np.ndarray) and law.shape == (arms,) and law.dtype == np.float64:
        total = np.add.reduce(law)
        if abs(total - 1.0) <= TOLERANCE and law.item(law.argmin()) >= 0.0:  # a NaN makes the sum one
            return
    raise LawError(f"the law of {policy} in round {now} {_fault(law, arms)}; nothing was decided in it")


def _fault(law: Any, arms: int) -> str:
    if not isinstance(law, np.ndarray):
        return f"is a {type(law).__name__}, not a NumPy array of shape ({arms},)"
    if law.shape != (arms,):
        return f"has shape {law.shape}, not ({arms},)"
    if law.dtype != np.float64:
        return f"has entries of type {law.dtype}, not float64"
    unfit = ~(np.isfinite(law) & (law >= 0.0))
    if unfit.any():
        arm = int(unfit.argmax())
        return f"has a probability of {law[arm]:.6g} at arm {arm}"
    return f"sums to {law.sum():.9g}, not to 1"


def check_estimate(values: Any, *, arms: int, policy: str, now: int) -> Floats:
    """The estimate as an array; refuse what is not one finite number per arm, naming the policy.

    >>> check_estimate([0.5, 0], arms=2, policy="Mine", now=7)
    array([0.5, 0. ])
    >>> check_estimate(0.5, arms=2, policy="Mine", now=7)
    Traceback (most recent call last):
    ...
    driftbandits.errors.InputError: _estimate of Mine gave 0.5 in round 7; it must give one finite number per arm, ...
    """
    try:
        estimate = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        estimate = np.empty(0)
    if estimate.shape != (arms,) or not np.isfinite(estimate).all():
        raise InputError(
            f"_estimate of {policy} gave {shown(values)} in round {now}; it must give one finite number per arm, shape "
            f"({arms},)"
        )
    return estimate


def check_interval(ends: Any, *, arms: int, policy: str, now: int) -> Floats:
    """Both ends as one array (2, N); refuse what is not two finite numbers per arm, naming the policy.

    >>> check_interval(([0.5, 0], [1, 1]), arms=2, policy="Mine", now=7).tolist()
    [[0.5, 0.0], [1.0, 1.0]]
    """
    try:
        interval = np.array(ends, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        interval = np.empty(0)
    if interval.shape != (2, arms) or not np.isfinite(interval).all():
        raise InputError(
            f"_interval of {policy} gave {shown(ends)} in round {now}; it must give lower and upper ends, two "
            f"arrays of one finite number per arm, shape ({arms},)"
        )
    return interval


def check_steady(rounds: Any, *, policy: str, hook: str = "_steady") -> int:
    """The number of rounds for which a law stays; less than one would never end."""
    try:
        count = operator.index(rounds)
    except TypeError:
        count = 0
    if count < 1:
        raise InputError(f"{hook} of {policy} gave {shown(rounds)}; it must give a whole number from 1")
    return count


def restrict(law: Floats, mask: Bools) -> tuple[Floats, bool]:
    """Law given that the arm is allowed, and whether the mask took any mass away.

    >>> restrict(np.array([0.5, 0.25, 0.25]), np.array([False, True, True]))
    (array([0. , 0.5, 0.5]), True)
    """
    kept = np.where(mask, law, 0.0)
    if not law[~mask].any():
        return law, False
    total = kept.sum()
    return (kept / total if total > 0 else mask / mask.sum()), True
