"""The settings of a network as the neural policies take them, checked in one place."""

from __future__ import annotations

from typing import Any

from driftbandits.arms import ArmSet
from driftbandits.errors import InputError
from driftbandits.neural.model import INFINITE, NetworkModel
from driftbandits.policies.checks import check_count, check_positive

WIDEST = 65_536  # beyond this a weight matrix takes more than 16 GiB: surely a slip


def network_model(
    arms: ArmSet,
    *,
    seed: int,
    width: Any,
    depth: Any,
    steps: Any,
    learning_rate: Any,
    weight_decay: Any,
    symmetric: Any,
    normalise: Any,
    device: Any,
) -> NetworkModel:
    """The model of a network on the arms' points, every setting checked."""
    if check_flag("symmetric", symmetric) and not isinstance(width, str) and check_count("width", width) % 2:
        raise InputError(f"a symmetric network needs an even width, got {width!r}; use {width + 1}")
    return NetworkModel(
        arms.points,
        seed=seed,
        width=_check_width(width),
        depth=check_depth(depth),
        steps=check_count("steps", steps),
        learning_rate="auto" if learning_rate == "auto" else check_positive("learning_rate", learning_rate),
        weight_decay=check_positive("weight_decay", weight_decay),
        symmetric=symmetric,
        normalise=check_flag("normalise", normalise),
        device=_check_device(device),
    )


def check_flag(name: str, value: Any) -> bool:
    """Give `value` if it is True or False."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be True or False, got {value!r}")
    return value


def _check_width(width: Any) -> Any:
    if isinstance(width, str):
        if width != INFINITE:
            raise InputError(f"width must be a whole number or {INFINITE!r}, got {width!r}")
        return INFINITE
    number = check_count("width", width)
    if number > WIDEST:
        raise InputError(f"width must be at most {WIDEST:,}, got {width!r}; {INFINITE!r} is the limit of all widths")
    return number


def check_depth(depth: Any) -> int:
    """Give `depth` as an int of at least 2."""
    number = check_count("depth", depth)
    if number < 2:
        raise InputError(f"depth, the number of weight matrices, must be at least 2, got {depth!r}")
    return number


def _check_device(device: Any) -> str | None:
    if device is not None and not isinstance(device, str):
        raise InputError(f"device must be None for NumPy or a torch device such as 'cpu' or 'cuda', got {device!r}")
    return device


def check_rate(model: NetworkModel, horizon: int | None) -> None:
    """Refuse a fixed step size that could make some training within the horizon diverge."""
    if model.learning_rate == "auto":
        return
    if horizon is None:
        raise InputError(
            f"a fixed learning_rate such as {model.learning_rate!r} can only be checked against a known horizon; give "
            f"horizon=..., or learning_rate='auto'"
        )
    model.check_rate(horizon)
