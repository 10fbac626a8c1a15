"""Fully connected ReLU networks on a fixed set of points: their tangent features, and training from per-arm sums."""

from driftbandits.neural.inputs import on_sphere
from driftbandits.neural.model import ArmsSeen, NetworkModel, NetworkView
from driftbandits.neural.network import Network, Training, largest_step, train
from driftbandits.neural.tangent import NeuralTangentKernel, tangent_gram

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
