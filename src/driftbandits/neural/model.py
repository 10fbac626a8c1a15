"""A network as a source of features for a fixed set of arms, before and after training on what was seen of them.

The tangent kernel of a network of finite width, layer by layer; `arms/sklearn_kernels.py` has the closed form.

The gradient of f / sqrt(m) with respect to the weights of layer l is an outer product: delta_l of what comes back from
the output, and h_(l-1) of what enters. So the Gram matrix of whole gradients is

    K = sum over l of (Delta_l Delta_l') * (H_(l-1) H_(l-1)')      (* entry by entry, Delta_L = 1)

and a vector with as many entries as the network has weights (4 million at m = 2,048) is never formed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from driftbandits._util.checks import FLOAT_BYTES, check_count, check_depth, check_flag, check_memory, check_positive
from driftbandits.arms.arm_set import ArmSet
from driftbandits.errors import InputError, KernelError
from driftbandits.neural.network import Arrays, Network, NumpyArrays, Training, train, weight_shapes
from driftbandits.text import shown
from driftbandits.types import Floats, read_only

_EQUAL_SHARE = 1e-9  # of the spread of the points: lengths that differ by less are equal


def on_sphere(points: Floats) -> Floats:
    """Points of length 1, different for different points, shape (N, d) or (N, d + 1).

    A network without biases sees only directions: it cannot tell prices 1 and 2 apart but by a factor, and nothing can
    be learned at the origin. Points of equal length, as in the paper, are divided by it and nothing else. Others are
    centred, divided by the largest length R, and lifted to the sphere by one more coordinate, sqrt(1 - |x|^2 / R^2).

    >>> on_sphere(np.array([[0.0], [1.0], [2.0]]))
    array([[-1.,  0.],
           [ 0.,  1.],
           [ 1.,  0.]])
    """
    lengths = np.linalg.norm(points, axis=1)
    centred = points - points.mean(axis=0)
    radius = float(np.linalg.norm(centred, axis=1).max())
    if float(lengths.min()) > 0.0 and float(np.ptp(lengths)) <= _EQUAL_SHARE * radius:
        return np.asarray(points / lengths.max())
    scaled = centred / radius if radius > 0.0 else centred
    height = np.sqrt(np.maximum(1.0 - np.einsum("ij,ij->i", scaled, scaled), 0.0))
    return np.column_stack([scaled, height])


def tangent_gram(network: Network, points: Floats) -> Floats:
    """Gram matrix of g(x; W) / sqrt(m) over the points, shape (N, N), in double precision.

    As the width grows it approaches `NeuralTangentKernel(depth)`, with an error of order 1 / sqrt(m).

    >>> from driftbandits import NeuralTangentKernel
    >>> network = Network.initial(dimension=2, width=2048, depth=3, seed=0)
    >>> points = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> bool(np.abs(tangent_gram(network, points) - NeuralTangentKernel(3)(points)).mean() < 0.3)
    True
    """
    entering, deltas = network.sweep(points)
    gram = network.arrays.gram
    total = gram(entering[-1])
    for H, D in zip(entering[:-1], deltas, strict=True):
        total += gram(H) * gram(D)
    return np.asarray(total)


INFINITE = "infinite"
Width = int | Literal["infinite"]
Rate = float | Literal["auto"]


@dataclass(frozen=True)
class NetworkView:
    """What a network says of the arms.

    features : (N, r), their products are the tangent kernel divided by `scale`
    outputs : (N,), f(x; W)
    scale : what the tangent kernel was divided by
    """

    features: Floats
    outputs: Floats
    scale: float


@dataclass
class ArmsSeen:
    """How often each arm was seen and the sum of its rewards: all that training needs of the past."""

    counts: Floats
    sums: Floats

    @classmethod
    def none(cls, size: int) -> ArmsSeen:
        """Nothing seen of `size` arms."""
        return cls(np.zeros(size), np.zeros(size))

    def add(self, arm: int, reward: float) -> None:
        """Take in one reward."""
        self.counts[arm] += 1.0
        self.sums[arm] += reward

    def add_many(self, arms: npt.NDArray[np.int64], rewards: Floats) -> None:
        """Take in rewards in their order, with the same bits as one by one."""
        np.add.at(self.counts, arms, 1.0)
        np.add.at(self.sums, arms, rewards)

    @property
    def means(self) -> Floats:
        """Mean reward of each arm, 0 where none was seen."""
        return np.asarray(self.sums / np.maximum(self.counts, 1.0))


class NetworkModel:
    """A network on the arms' points, at its initial weights and trained.

    Parameters
    ----------
    points : (N, d), scaled to the unit sphere by `on_sphere`
    seed : of the initial weights
    width, depth : m and the number of weight matrices; "infinite" is the limit of all widths, whose features are those
        of `NeuralTangentKernel(depth)` and are not moved by training
    steps, learning_rate, weight_decay : J, eta and lambda of `train`
    symmetric : start from a network whose output is 0
    normalise : divide the tangent kernel by its largest k(x, x), which is about `depth`
    device : None for NumPy, or a torch device such as "cpu" or "cuda"
    """

    def __init__(
        self,
        points: Floats,
        *,
        seed: int,
        width: Width,
        depth: int,
        steps: int,
        learning_rate: Rate,
        weight_decay: float,
        symmetric: bool = False,
        normalise: bool = True,
        device: str | None = None,
    ) -> None:
        self.points = on_sphere(points)
        self.seed, self.width, self.depth, self.symmetric = seed, width, depth, symmetric
        self.steps, self.learning_rate, self.weight_decay = steps, learning_rate, weight_decay
        self.normalise, self.device = normalise, device
        self.arrays: Arrays = NumpyArrays() if device is None else _torch_arrays(device)

    @cached_property
    def start(self) -> Network:
        """The network at its initial weights W^(0)."""
        if self.width == INFINITE:
            raise InputError("a network of infinite width has no weights")
        return Network.initial(
            dimension=self.points.shape[1],
            width=int(self.width),
            depth=self.depth,
            seed=self.seed,
            symmetric=self.symmetric,
            arrays=self.arrays,
        )

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Shapes of the weight matrices; none at infinite width."""
        return [] if self.width == INFINITE else weight_shapes(self.points.shape[1], int(self.width), self.depth)

    @cached_property
    def start_gram(self) -> Floats:
        """Tangent kernel at W^(0), as it is, shape (N, N)."""
        if self.width == INFINITE:
            from driftbandits.arms.sklearn_kernels import NeuralTangentKernel  # with scikit-learn, a second to import

            return np.asarray(NeuralTangentKernel(self.depth)(self.points))
        return tangent_gram(self.start, self.points)

    @cached_property
    def initial(self) -> NetworkView:
        """The view at W^(0)."""
        outputs = np.zeros(len(self.points)) if self.width == INFINITE else self.start.outputs(self.points)
        return self._view(self.start_gram, outputs)

    def train(self, seen: ArmsSeen) -> Training:
        """The network trained from W^(0) on everything `seen`."""
        return train(
            self.start,
            self.points,
            seen.counts,
            seen.means,
            gram=self.start_gram,
            steps=self.steps,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
        )

    def view(self, network: Network) -> NetworkView:
        """What `network` says of the arms."""
        return self._view(tangent_gram(network, self.points), network.outputs(self.points))

    def _view(self, gram: Floats, outputs: Floats) -> NetworkView:
        largest = float(gram.diagonal().max())
        if not np.isfinite(gram).all():
            raise KernelError("the network's tangent kernel is not finite; use a smaller learning_rate")
        if largest <= 0.0:
            raise KernelError(f"the network is zero on every arm; use a width above {self.width}")
        features = ArmSet(self.points, kernel=gram / largest).features
        if self.normalise:
            return NetworkView(features, read_only(outputs), largest)
        return NetworkView(read_only(math.sqrt(largest) * features), read_only(outputs), 1.0)

    def check_rate(self, rounds: int) -> None:
        """Refuse a fixed step size that could diverge within `rounds` rounds, all of them on the worst arm."""
        if self.learning_rate == "auto" or self.width == INFINITE:
            return
        worst = float(self.start_gram.diagonal().max())
        bound = 2.0 / (int(self.width) * (self.weight_decay + rounds * worst))
        if self.learning_rate >= bound:
            raise InputError(
                f"learning_rate={self.learning_rate:g} can make training diverge within {rounds:,} rounds (the bound "
                f"is {bound:.2g}); use learning_rate='auto' or at most {0.5 * bound:.2g}"
            )

    def restore(self, weights: list[npt.NDArray[Any]]) -> Network:
        """A network with stored weights."""
        return Network([self.arrays.take(w) for w in weights], self.arrays)


def _torch_arrays(device: str) -> Arrays:
    from driftbandits.neural.torch_arrays import TorchArrays

    return TorchArrays(device)


LARGEST_WIDTH = 65_536  # beyond this a weight matrix takes more than 16 GiB: surely a slip
MOST_STEPS = 1_000_000  # of a training: hours for a narrow network
NETWORK_SETTINGS = ("width", "depth", "steps", "learning_rate", "weight_decay", "symmetric", "normalise", "device")
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
