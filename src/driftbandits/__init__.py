"""Kernel bandits that notice when the world changes: `import driftbandits as db` is the whole interface."""

import importlib
import typing

from driftbandits import detection, environments, errors, policies
from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.kernels import kernel_from_config
from driftbandits.design import Design, Status, effective_dimension, information_gain, solve_design
from driftbandits.detection import DriftDetector, first_detectable_horizon
from driftbandits.errors import DriftbanditsError
from driftbandits.experiments.comparing import compare
from driftbandits.policies import *  # noqa: F403  # every policy: that list is the only one
from driftbandits.policies.decisions import Feedback
from driftbandits.simulation import Trace, simulate
from driftbandits.state import Reader as StateReader
from driftbandits.types import Change, Decision, Decisions, Floats
from driftbandits.version import __version__ as __version__

if typing.TYPE_CHECKING:
    from driftbandits import experiments as experiments
    from driftbandits import live as live
    from driftbandits import logs as logs
    from driftbandits import plots as plots
    from driftbandits import testing as testing
    from driftbandits.arms.tangent_kernel import NeuralTangentKernel as NeuralTangentKernel

__all__ = [
    "ArmSet",
    "Change",
    "Decision",
    "Decisions",
    "Design",
    "DriftDetector",
    "DriftbanditsError",
    "Feedback",
    "Floats",
    "NeuralTangentKernel",
    "StateReader",
    "Status",
    "Trace",
    "compare",
    "detection",
    "effective_dimension",
    "environments",
    "errors",
    "experiments",
    "first_detectable_horizon",
    "information_gain",
    "kernel_from_config",
    "live",
    "logs",
    "plots",
    "simulate",
    "solve_design",
    "testing",
]
__all__ += policies.__all__


def __getattr__(name: str) -> typing.Any:
    """What a program that asks and tells does not need, loaded where it is asked for."""
    if name in ("experiments", "live", "logs", "plots", "testing"):
        return importlib.import_module(f"driftbandits.{name}")
    if name == "NeuralTangentKernel":  # a class of scikit-learn's, which takes a second to import
        globals()[name] = importlib.import_module("driftbandits.arms.tangent_kernel").NeuralTangentKernel
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names that are not loaded yet are there too."""
    return sorted({*globals(), *__all__})
