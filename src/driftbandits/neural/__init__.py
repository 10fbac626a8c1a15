"""Fully connected ReLU networks on a fixed set of points: their tangent features, and training from per-arm sums."""

import typing

from driftbandits.neural.model import ArmsSeen, NetworkModel, NetworkView, on_sphere, tangent_gram
from driftbandits.neural.network import Network, Training, largest_step, train

if typing.TYPE_CHECKING:
    from driftbandits.arms.sklearn_kernels import NeuralTangentKernel as NeuralTangentKernel

__all__ = [
    "ArmsSeen",
    "Network",
    "NetworkModel",
    "NetworkView",
    "NeuralTangentKernel",
    "Training",
    "largest_step",
    "on_sphere",
    "tangent_gram",
    "train",
]


def __getattr__(name: str) -> typing.Any:
    """The kernel is a class of scikit-learn's, which takes a second to import: loaded where it is asked for."""
    if name == "NeuralTangentKernel":
        from driftbandits.arms.sklearn_kernels import NeuralTangentKernel

        return NeuralTangentKernel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
