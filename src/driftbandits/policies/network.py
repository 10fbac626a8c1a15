"""The settings of a network as the neural policies take them, checked in one place."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from driftbandits._util.checks import FLOAT_BYTES, check_count, check_depth, check_flag, check_memory, check_positive
from driftbandits.arms.arm_set import ArmSet
from driftbandits.errors import InputError
from driftbandits.neural.model import INFINITE, NetworkModel
from driftbandits.text import shown

LARGEST_WIDTH = 65_536  # beyond this a weight matrix takes more than 16 GiB: surely a slip
MOST_STEPS = 1_000_000  # of a training: hours for a narrow network
_SETTINGS = ("width", "depth", "steps", "learning_rate", "weight_decay", "symmetric", "normalise", "device")
_WEIGHT_BYTES = 4  # in single precision
_GRAMS_AT_ONCE = 4  # matrices of N x N numbers, for a tangent kernel


class NetworkFacts:
    """Facts of the neural policies: they train, unless they are told not to or no training could move their features.

    >>> NetworkFacts.trains({}), NetworkFacts.trains({"train": False}), NetworkFacts.trains({"width": "infinite"})
    (True, False, False)
    """

    @classmethod
    def trains(cls, settings: Mapping[str, Any]) -> bool:
        """Whether a policy with these settings trains its network."""
        return settings.get("train", True) is True and settings.get("width") != INFINITE


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
    checked_width, checked_depth = _check_width(width), check_network_depth(depth)
    _check_room(len(arms), arms.dimension, checked_width, checked_depth)
    return NetworkModel(
        arms.points,
        seed=seed,
        width=checked_width,
        depth=checked_depth,
        steps=_check_at_most("steps", steps, MOST_STEPS, cure="100 are usual"),
        learning_rate="auto" if learning_rate == "auto" else check_positive("learning_rate", learning_rate),
        weight_decay=check_positive("weight_decay", weight_decay),
        symmetric=symmetric,
        normalise=check_flag("normalise", normalise),
        device=_check_device(device),
    )


def network_settings(model: NetworkModel, *, without: Collection[str] = ()) -> dict[str, Any]:
    """The settings that `network_model` made the model from, but those a policy decides itself."""
    return {name: getattr(model, name) for name in _SETTINGS if name not in without}


def _check_width(width: Any) -> Any:
    if isinstance(width, str):
        if width != INFINITE:
            raise InputError(f"width must be a whole number or {INFINITE!r}, got {shown(width)}")
        return INFINITE
    return _check_at_most("width", width, LARGEST_WIDTH, cure=f"{INFINITE!r} is the limit of all widths")


def _check_at_most(name: str, value: Any, most: int, *, cure: str) -> int:
    number = check_count(name, value)
    if number > most:
        raise InputError(f"{name} must be at most {most:,}, got {shown(value)}; {cure}")
    return number


def check_network_depth(depth: Any) -> int:
    """Give `depth` as an int from 2 to 10,000; a tangent kernel may have 1."""
    return check_depth(check_count("depth", depth, least=2, cure="it is the number of weight matrices"))


def _check_room(size: int, dimension: int, width: int | str, depth: int) -> None:
    """Refuse a network whose weights, what passes through it, or tangent kernel on the arms cannot be held."""
    kernel = _GRAMS_AT_ONCE * FLOAT_BYTES * size**2
    check_memory(kernel, f"the tangent kernel of a network on {size:,} arms", cure="take fewer arms, or another policy")
    if isinstance(width, str):
        return
    weights = _WEIGHT_BYTES * width * (dimension + (depth - 2) * width)
    passing = 2 * _WEIGHT_BYTES * size * width * (depth - 1)  # forwards and back
    check_memory(
        weights + passing,
        f"a network of width {width:,} and depth {depth:,} on {size:,} arms",
        cure=f"take a smaller width or depth, or width={INFINITE!r}",
    )


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
