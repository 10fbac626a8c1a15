"""A fully connected ReLU network and its training, on NumPy or torch arrays.

The few operations on large arrays that a network needs, on NumPy; `torch_arrays` has the same ones on torch.

symbol   shape      meaning
W        (out, in)  weights of one layer, C order
H        (N, in)    what enters the layer, one row per point
D        (N, out)   derivative of the output with respect to what the layer gives, one row per point

Nothing of the size of W is allocated: W is updated where it lies, and everything else is N rows. All large products go
through SciPy's BLAS, because NumPy's is another copy of it with threads of its own that would compete. Tried:
`np.matmul` in `send_back` alone. It gave the same bits, but for a single point or a width of 1; at m = 2,048, on cores
busy with other runs, the products of a step took 1 % less processor time on one thread, and 20 % more on two.

A fully connected ReLU network and its training by gradient descent on per-arm counts and means.

symbol   name           shape
m        width
L        depth          number of weight matrices
W_l      weights[l-1]   (m, d), then L - 2 of (m, m), then (1, m)
H_l      entering[l]    (N, .) what enters layer l + 1: the points, then relu(H W')
Delta_l  deltas[l-1]    (N, m) derivative of f / sqrt(m) with respect to what layer l gives before its relu
f        outputs        (N,) sqrt(m) W_L relu(W_(L-1) ... relu(W_1 x))
n, y     counts, means  (N,) how often each point was seen, and its mean reward
lambda   weight_decay

The loss over rounds, 1/2 sum_t (f(x_t) - y_t)^2 + m lambda / 2 ||W - W0||^2, is up to a constant the loss over arms,
1/2 sum_i n_i (f(x_i) - y_i)^2 + m lambda / 2 ||W - W0||^2: a step costs N rows whatever the number of rounds.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import scipy.linalg.blas

from driftbandits._util.seeding import stream
from driftbandits.errors import ConvergenceError, ConvergenceWarning, InputError
from driftbandits.types import Floats

Array = Any  # a NumPy array or a torch tensor; only the class that made it looks inside


class Arrays(Protocol):
    """Where the arrays of a network live, and what is done to them."""

    def take(self, values: npt.NDArray[Any]) -> Array:
        """A copy of `values` in this place and precision."""

    def give(self, array: Array) -> npt.NDArray[Any]:
        """The values as a NumPy array to be read, perhaps in the same memory."""

    def empty(self, rows: int, columns: int) -> Array:
        """Room for a matrix."""

    def activate(self, H: Array, W: Array, out: Array) -> None:
        """out = relu(H W')."""

    def spread(self, column: Array, w: Array, gate: Array, out: Array) -> None:
        """out = (column w) where gate > 0, else 0; `column` is (N, 1), `w` is (1, m)."""

    def send_back(self, D: Array, W: Array, gate: Array, out: Array) -> None:
        """out = (D W) where gate > 0, else 0."""

    def read_out(self, H: Array, w: Array) -> Floats:
        """H w' as a vector, for the last layer `w` of one row."""

    def descend(self, W: Array, W0: Array, D: Array, H: Array, *, rate: float, decay: float) -> None:
        """W = (1 - decay) W + decay W0 - rate D' H, in place."""

    def gram(self, H: Array) -> Floats:
        """H H' in double precision, so that sums and products of such matrices stay positive semi-definite."""


class NumpyArrays:
    """The operations on NumPy, in single precision unless told otherwise."""

    def __init__(self, dtype: npt.DTypeLike = np.float32) -> None:
        self.dtype = np.dtype(dtype)
        self._gemm, self._axpy = scipy.linalg.get_blas_funcs(("gemm", "axpy"), dtype=self.dtype)

    def take(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Copy in C order."""
        return np.array(values, dtype=self.dtype, order="C")

    def give(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The array itself."""
        return array

    def empty(self, rows: int, columns: int) -> npt.NDArray[Any]:
        """Not initialised."""
        return np.empty((rows, columns), dtype=self.dtype)

    def activate(self, H: Array, W: Array, out: Array) -> None:
        """BLAS wants column order, so it is given the transposes: out' = W H'."""
        self._gemm(1.0, W.T, H.T, trans_a=1, c=out.T, overwrite_c=1)
        np.maximum(out, 0.0, out=out)

    def spread(self, column: Array, w: Array, gate: Array, out: Array) -> None:
        """One outer product, gated."""
        np.multiply(column, w, out=out)
        np.multiply(out, gate > 0.0, out=out)  # a masked copy takes fifteen times as long

    def send_back(self, D: Array, W: Array, gate: Array, out: Array) -> None:
        """out' = W' D', gated."""
        self._gemm(1.0, W.T, D.T, c=out.T, overwrite_c=1)
        np.multiply(out, gate > 0.0, out=out)  # a masked copy takes fifteen times as long

    def read_out(self, H: Array, w: Array) -> Floats:
        """One number per point."""
        return np.asarray(H @ w[0], dtype=np.float64)

    def descend(self, W: Array, W0: Array, D: Array, H: Array, *, rate: float, decay: float) -> None:
        """One product that adds to W, one pass over W0."""
        self._gemm(-rate, H.T, D.T, trans_b=1, beta=1.0 - decay, c=W.T, overwrite_c=1)
        if decay:
            self._axpy(W0.ravel(), W.ravel(), a=decay)

    def gram(self, H: Array) -> Floats:
        """Half of the products, mirrored."""
        double = np.asarray(H, dtype=np.float64)
        upper = scipy.linalg.blas.dsyrk(1.0, double.T, trans=1)
        return np.asarray(np.triu(upper) + np.triu(upper, 1).T)


Weights = list[npt.NDArray[Any]]
_MOST_HALVINGS = 30  # of a step size that made the loss rise; by then it is a billionth
_AUTO_SHARE = 0.5  # of the largest stable step: 1 / L of a loss with curvature L


class Network:
    """Weights of one network, in the place `arrays` keeps them. Nothing here changes them but `train`."""

    def __init__(self, weights: list[Array], arrays: Arrays) -> None:
        self.weights = weights
        self.arrays = arrays
        self.width = int(weights[-1].shape[1])

    @classmethod
    def initial(
        cls,
        *,
        dimension: int,
        width: int,
        depth: int,
        seed: int,
        symmetric: bool = False,
        arrays: Arrays | None = None,
    ) -> Network:
        """A network with entries N(0, 2 / m) from the streams (seed, "network", layer).

        `symmetric`: two copies of a network of half the width whose outputs cancel, so that f = 0 at the start.
        """
        place = NumpyArrays() if arrays is None else arrays
        return cls([place.take(w) for w in initial_weights(dimension, width, depth, seed, symmetric)], place)

    def copy(self) -> Network:
        """A network of its own with the same weights."""
        return Network([self.arrays.take(self.arrays.give(w)) for w in self.weights], self.arrays)

    def outputs(self, points: Floats) -> Floats:
        """f(x; W) of every point, shape (N,)."""
        entering = self.activations(self.arrays.take(points))
        return math.sqrt(self.width) * self.arrays.read_out(entering[-1], self.weights[-1])

    def activations(self, points: Array, room: list[Array] | None = None) -> list[Array]:
        """What enters each layer, `points` first; written into `room` if given."""
        entering = [points]
        for number, W in enumerate(self.weights[:-1]):
            out = self.arrays.empty(len(points), len(W)) if room is None else room[number]
            self.arrays.activate(entering[-1], W, out)
            entering.append(out)
        return entering

    def sweep(self, points: Floats) -> tuple[list[Array], list[Array]]:
        """One pass forward and one back: what enters each layer, and the deltas of every layer but the last."""
        entering = self.activations(self.arrays.take(points))
        ones = self.arrays.take(np.ones((len(points), 1)))
        deltas = [self.arrays.empty(len(points), len(W)) for W in self.weights[:-1]]
        self.arrays.spread(ones, self.weights[-1], entering[-1], deltas[-1])
        for layer in range(len(deltas) - 1, 0, -1):
            self.arrays.send_back(deltas[layer], self.weights[layer], entering[layer], deltas[layer - 1])
        return entering, deltas


def weight_shapes(dimension: int, width: int, depth: int) -> list[tuple[int, int]]:
    """Shapes of the weight matrices, first to last."""
    return [(width, dimension), *[(width, width)] * (depth - 2), (1, width)]


def initial_weights(dimension: int, width: int, depth: int, seed: int, symmetric: bool = False) -> Weights:
    """The weights of `Network.initial` in single precision, on the host."""
    if depth < 2 or width < 1:
        raise InputError(
            f"a network needs a depth of at least 2 and a width of at least 1, got {depth!r} and {width!r}"
        )
    shapes = weight_shapes(dimension, width, depth)
    if symmetric:
        return _mirrored(shapes, seed)
    return [_normals(shape, 2.0 / width, seed, layer) for layer, shape in enumerate(shapes)]


def _normals(shape: tuple[int, int], variance: float, seed: int, layer: int) -> npt.NDArray[np.float32]:
    draws = stream(seed, "network", layer).standard_normal(shape, dtype=np.float32)
    draws *= np.float32(math.sqrt(variance))
    return draws


def _mirrored(shapes: list[tuple[int, int]], seed: int) -> Weights:
    """W_1 = (W; W), inner layers diag(W, W), last (w, -w): the two halves see the same and cancel at the end."""
    width = shapes[-1][1]
    if width % 2:
        raise InputError(f"a symmetric network needs an even width, got {width!r}")
    half = width // 2
    first = _normals((half, shapes[0][1]), 2.0 / width, seed, 0)
    weights: Weights = [np.vstack([first, first])]
    for layer in range(1, len(shapes) - 1):
        block = _normals((half, half), 4.0 / width, seed, layer)
        whole = np.zeros((width, width), dtype=np.float32)
        whole[:half, :half] = block
        whole[half:, half:] = block
        weights.append(whole)
    last = _normals((1, half), 2.0 / width, seed, len(shapes) - 1)
    return [*weights, np.hstack([last, -last])]


# --- training ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Training:
    """A trained network and how it went: the step size used, and the data part of the loss before and after."""

    network: Network
    learning_rate: float
    loss_before: float
    loss_after: float


def largest_step(gram: Floats, counts: Floats, *, width: int, weight_decay: float) -> float:
    """Step sizes below this are stable where training starts: 2 / (m (lambda + lambda_max(sqrt n K sqrt n))).

    `gram` is `tangent_gram` at the weights where training starts. The loss there has curvature
    m (lambda + lambda_max), and gradient descent on a curvature of C diverges from 2 / C on.

    >>> round(largest_step(np.eye(2), np.array([3.0, 0.0]), width=10, weight_decay=1.0), 6)
    0.05
    """
    root = np.sqrt(counts)
    top = float(np.linalg.eigvalsh(root[:, None] * gram * root)[-1]) if len(root) else 0.0
    curvature = width * (weight_decay + max(top, 0.0))
    return 2.0 / curvature if curvature > 0.0 else math.inf


def train(
    start: Network,
    points: Floats,
    counts: Floats,
    means: Floats,
    *,
    gram: Floats,
    steps: int,
    learning_rate: float | Literal["auto"] = "auto",
    weight_decay: float,
) -> Training:
    """TrainNN: `steps` full-batch gradient steps from `start` on points seen `counts` times with mean reward `means`.

    `gram` is `tangent_gram(start, points)`. A step size of `largest_step` or more is an InputError; "auto" takes half
    of it. The bound holds where training starts: should the loss rise above its start later on, training begins again
    with half the step size and a ConvergenceWarning, so that the weights returned are always finite.
    """
    seen = np.flatnonzero(counts > 0)
    points, counts, means, gram = points[seen], counts[seen], means[seen], gram[np.ix_(seen, seen)]
    bound = largest_step(gram, counts, width=start.width, weight_decay=weight_decay)
    rate = _AUTO_SHARE * bound if learning_rate == "auto" else float(learning_rate)
    if not 0.0 < rate < bound:
        raise InputError(
            f"learning_rate {learning_rate!r} would make training diverge; use 'auto' or at most "
            f"{_AUTO_SHARE * bound:.2g}"
        )
    if not len(seen):
        return Training(start.copy(), rate, 0.0, 0.0)
    for _ in range(_MOST_HALVINGS):
        found = _descend(start, points, counts, means, steps=steps, rate=rate, decay=rate * start.width * weight_decay)
        if found is not None:
            return found
        warnings.warn(
            f"training with step size {rate:.2g} made the loss rise; trying again with half of it",
            ConvergenceWarning,
            stacklevel=2,
        )
        rate /= 2.0
    raise ConvergenceError(
        "no step size made the loss fall; check that rewards and points are of usual size", best=start
    )


def _descend(
    start: Network, points: Floats, counts: Floats, means: Floats, *, steps: int, rate: float, decay: float
) -> Training | None:
    """The steps themselves; None as soon as the data part of the loss exceeds the whole loss at the start."""
    network, arrays, root = start.copy(), start.arrays, math.sqrt(start.width)
    inputs = arrays.take(points)
    activations = [arrays.empty(len(points), len(W)) for W in network.weights[:-1]]
    deltas = [arrays.empty(len(points), len(W)) for W in network.weights[:-1]]
    before = loss = math.inf
    slack = 0.0
    for step in range(steps + 1):
        entering = network.activations(inputs, activations)
        outputs = root * arrays.read_out(entering[-1], network.weights[-1])
        error = outputs - means
        loss = 0.5 * float(counts @ (error * error))
        if step == 0:
            before = loss
            slack = 1e-10 * float(counts @ (outputs * outputs + means * means))  # outputs are in single precision
        if not loss <= before * (1.0 + 1e-6) + slack:  # also where it is not a number
            return None
        if step < steps:
            pull = arrays.take((root * counts * error)[:, None])
            _step(network, start, entering, pull, deltas, rate=rate, decay=decay)
    return Training(network, rate, before, loss)


def _step(
    network: Network,
    start: Network,
    entering: list[Array],
    pull: Array,
    deltas: list[Array],
    *,
    rate: float,
    decay: float,
) -> None:
    """One gradient step, from the last layer to the first; a layer sends back before it moves."""
    arrays, weights = network.arrays, network.weights
    coming = pull
    for layer in range(len(weights) - 1, -1, -1):
        W, below = weights[layer], deltas[layer - 1] if layer else None
        if below is not None:
            send = arrays.spread if layer == len(weights) - 1 else arrays.send_back
            send(coming, W, entering[layer], below)
        arrays.descend(W, start.weights[layer], coming, entering[layer], rate=rate, decay=decay)
        coming = below
