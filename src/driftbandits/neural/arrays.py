"""The few operations on large arrays that a network needs, on NumPy; `torch_arrays` has the same ones on torch.

symbol   shape      meaning
W        (out, in)  weights of one layer, C order
H        (N, in)    what enters the layer, one row per point
D        (N, out)   derivative of the output with respect to what the layer gives, one row per point

Nothing of the size of W is allocated: W is updated where it lies, and everything else is N rows. All large products go
through SciPy's BLAS, because NumPy's is another copy of it with threads of its own that would compete. Tried:
`np.matmul` in `send_back` alone. It gave the same bits, but for a single point or a width of 1; at m = 2,048, on cores
busy with other runs, the products of a step took 1 % less processor time on one thread, and 20 % more on two.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.linalg.blas

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
