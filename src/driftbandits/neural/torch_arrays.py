"""The operations of `network` on torch, for a GPU; on a CPU they agree with NumPy's to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits.errors import InputError, MissingExtraError
from driftbandits.neural.network import Array
from driftbandits.types import Floats

try:
    import torch
except ModuleNotFoundError:
    raise MissingExtraError("torch", extra="torch", purpose="device='cpu' or 'cuda'") from None


class TorchArrays:
    """The operations on tensors of a torch device such as "cpu" or "cuda"."""

    def __init__(self, device: str, dtype: npt.DTypeLike = np.float32) -> None:
        self.dtype = torch.float64 if np.dtype(dtype) == np.float64 else torch.float32
        try:
            self.device = torch.device(device)
            torch.ones(1, device=self.device).item()
        except (RuntimeError, AssertionError, ImportError) as error:
            reason = str(error).splitlines()[0][:100]
            raise InputError(f"torch cannot use device={device!r} here ({reason}); use None for NumPy") from error

    def take(self, values: npt.NDArray[Any]) -> Array:
        """Copy to the device."""
        return torch.tensor(np.ascontiguousarray(values), dtype=self.dtype, device=self.device)

    def give(self, array: Array) -> npt.NDArray[Any]:
        """On the host."""
        return np.asarray(array.cpu().numpy())

    def empty(self, rows: int, columns: int) -> Array:
        """Not initialised."""
        return torch.empty((rows, columns), dtype=self.dtype, device=self.device)

    def activate(self, H: Array, W: Array, out: Array) -> None:
        """out = relu(H W')."""
        torch.mm(H, W.T, out=out).clamp_(min=0.0)

    def spread(self, column: Array, w: Array, gate: Array, out: Array) -> None:
        """One outer product, gated."""
        torch.mul(column, w, out=out).masked_fill_(gate <= 0.0, 0.0)

    def send_back(self, D: Array, W: Array, gate: Array, out: Array) -> None:
        """out = D W, gated."""
        torch.mm(D, W, out=out).masked_fill_(gate <= 0.0, 0.0)

    def read_out(self, H: Array, w: Array) -> Floats:
        """The one vector a step that leaves the device."""
        return np.asarray((H.double() @ w[0].double()).cpu().numpy())

    def descend(self, W: Array, W0: Array, D: Array, H: Array, *, rate: float, decay: float) -> None:
        """One product that adds to W, one pass over W0."""
        W.addmm_(D.T, H, beta=1.0 - decay, alpha=-rate)
        if decay:
            W.add_(W0, alpha=decay)

    def gram(self, H: Array) -> Floats:
        """On the device, in double precision."""
        double = H.double()
        return np.asarray((double @ double.T).cpu().numpy())
