"""Window, restart period and discount from the variation V_T, by the corrected analyses and the earlier ones.

Zhao and Zhou (2021) found an error in the lemma behind the published sizes. The corrected ones balance
sqrt(g) w^(3/2) V against g T / sqrt(w), with g the information gain (half convention) or the dimension. All are
worst-case choices: a window tuned for a single flip is several times longer.

The variation is the total drift of the reward function, knowledge that the ADA family does without.
"""

from __future__ import annotations

import math

from driftbandits.errors import InputError


def _check(horizon: int, variation: float, dimension: float) -> None:
    if horizon < 1 or not math.isfinite(variation) or variation < 0 or not math.isfinite(dimension) or dimension <= 0:
        given = f"{horizon!r}, {variation!r}, {dimension!r}"
        raise InputError(f"wants horizon >= 1, variation >= 0 and a positive dimension, got {given}")


def _clip(size: float, horizon: int) -> int:
    return int(min(max(size, 1), horizon))


def kernel_window(*, horizon: int, variation: float, gain: float) -> int:
    """Window or restart period of SW-GPUCB and R-GPUCB: ceil(g^(1/4) sqrt(T / (1 + V))), in [1, T].

    >>> kernel_window(horizon=10_000, variation=1.6, gain=200.0)
    234
    """
    _check(horizon, variation, gain)
    return _clip(math.ceil(gain**0.25 * math.sqrt(horizon / (1.0 + variation))), horizon)


def kernel_window_before_erratum(*, horizon: int, variation: float, gain: float) -> int:
    """The size published before the correction: ceil((g T / V)^(2/3)), in [1, T]."""
    _check(horizon, variation, gain)
    return horizon if variation == 0 else _clip(math.ceil((gain * horizon / variation) ** (2 / 3)), horizon)


def kernel_discount(*, horizon: int, variation: float, gain: float) -> float:
    """Discount of WGPUCB: memory 1 / (1 - eta) equal to `kernel_window`: eta = 1 - min(1, g^(-1/4) sqrt((1 + V) / T)).

    >>> round(kernel_discount(horizon=10_000, variation=1.6, gain=200.0), 4)
    0.9957
    """
    _check(horizon, variation, gain)
    return _keep_some(1.0 - min(1.0, gain**-0.25 * math.sqrt((1.0 + variation) / horizon)))


def kernel_discount_before_erratum(*, horizon: int, variation: float, gain: float) -> float:
    """The discount with the memory of `kernel_window_before_erratum`: 1 - (V / (g T))^(2/3)."""
    _check(horizon, variation, gain)
    return _keep_some(1.0 - min(1.0, (variation / (gain * horizon)) ** (2 / 3)))


def linear_window(*, horizon: int, variation: float, dimension: int) -> int:
    """Window of SW-UCB: ceil(d^(1/4) sqrt(T / V)), in [1, T].

    >>> linear_window(horizon=10_000, variation=1.0, dimension=16)
    200
    """
    _check(horizon, variation, dimension)
    return horizon if variation == 0 else _clip(math.ceil(dimension**0.25 * math.sqrt(horizon / variation)), horizon)


def linear_window_before_erratum(*, horizon: int, variation: float, dimension: int) -> int:
    """The window published before the correction: ceil((d T / V)^(2/3)), in [1, T]."""
    _check(horizon, variation, dimension)
    return horizon if variation == 0 else _clip(math.ceil((dimension * horizon / variation) ** (2 / 3)), horizon)


def linear_period(*, horizon: int, variation: float, dimension: int) -> int:
    """Restart period of RestartUCB: floor(d^(1/4) sqrt(T / (1 + V))), in [1, T]."""
    _check(horizon, variation, dimension)
    return _clip(math.floor(dimension**0.25 * math.sqrt(horizon / (1.0 + variation))), horizon)


def linear_period_before_erratum(*, horizon: int, variation: float, dimension: int) -> int:
    """The period published before the correction: floor((d T / (1 + V))^(2/3)), in [1, T]."""
    _check(horizon, variation, dimension)
    return _clip(math.floor((dimension * horizon / (1.0 + variation)) ** (2 / 3)), horizon)


def linear_discount(*, horizon: int, variation: float, dimension: int) -> float:
    """Discount of D-LinUCB: 1 - d^(-1/4) sqrt(V / T)."""
    _check(horizon, variation, dimension)
    return _keep_some(1.0 - min(1.0, dimension**-0.25 * math.sqrt(variation / horizon)))


def linear_discount_before_erratum(*, horizon: int, variation: float, dimension: int) -> float:
    """The discount published before the correction: 1 - (V / (d T))^(2/3)."""
    _check(horizon, variation, dimension)
    return _keep_some(1.0 - min(1.0, (variation / (dimension * horizon)) ** (2 / 3)))


def _keep_some(discount: float) -> float:
    """A discount of 0 would forget the present round too: keep at least the last few."""
    return max(discount, 0.5)
