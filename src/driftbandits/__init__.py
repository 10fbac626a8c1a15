"""Kernel bandits that notice when the world changes: `import driftbandits as db` is the whole interface.

Names are loaded where they are asked for: numpy and scipy take a third of a second to import, which `--help` spares.
"""

import importlib
import typing

from driftbandits.version import __version__ as __version__

if typing.TYPE_CHECKING:
    from driftbandits import detection as detection
    from driftbandits import environments as environments
    from driftbandits import errors as errors
    from driftbandits import experiments as experiments
    from driftbandits import live as live
    from driftbandits import logs as logs
    from driftbandits import plots as plots
    from driftbandits import policies as policies
    from driftbandits import testing as testing
    from driftbandits.arms.arm_set import ArmSet as ArmSet
    from driftbandits.arms.contexts import Contexts as Contexts
    from driftbandits.arms.contexts import cyclic as cyclic
    from driftbandits.arms.contexts import optional as optional
    from driftbandits.arms.kernels import kernel_from_config as kernel_from_config
    from driftbandits.arms.sklearn_kernels import NeuralTangentKernel as NeuralTangentKernel
    from driftbandits.design import Design as Design
    from driftbandits.design import Status as Status
    from driftbandits.design import effective_dimension as effective_dimension
    from driftbandits.design import information_gain as information_gain
    from driftbandits.design import solve_design as solve_design
    from driftbandits.detection import DriftDetector as DriftDetector
    from driftbandits.detection import first_detectable_horizon as first_detectable_horizon
    from driftbandits.errors import DriftbanditsError as DriftbanditsError
    from driftbandits.experiments.comparing import compare as compare
    from driftbandits.policies import *  # noqa: F403  # every policy: that list is the only one
    from driftbandits.policies.decisions import Feedback as Feedback
    from driftbandits.simulation import Trace as Trace
    from driftbandits.simulation import simulate as simulate
    from driftbandits.state import Reader as _Reader
    from driftbandits.tuning.own import tune as tune
    from driftbandits.types import Change as Change
    from driftbandits.types import Decision as Decision
    from driftbandits.types import Decisions as Decisions
    from driftbandits.types import Floats as Floats

    StateReader = _Reader

# Where the public names are at home; the policies are in `driftbandits.policies` and nowhere else listed.
_HOMES = {
    "ArmSet": "arms.arm_set",
    "Change": "types",
    "Contexts": "arms.contexts",
    "Decision": "types",
    "Decisions": "types",
    "Design": "design",
    "DriftDetector": "detection",
    "DriftbanditsError": "errors",
    "Feedback": "policies.decisions",
    "Floats": "types",
    "NeuralTangentKernel": "arms.sklearn_kernels",
    "StateReader": "state",
    "Status": "design",
    "Trace": "simulation",
    "compare": "experiments.comparing",
    "cyclic": "arms.contexts",
    "effective_dimension": "design",
    "first_detectable_horizon": "detection",
    "information_gain": "design",
    "kernel_from_config": "arms.kernels",
    "optional": "arms.contexts",
    "simulate": "simulation",
    "solve_design": "design",
    "tune": "tuning.own",
}
_MODULES = ("detection", "environments", "errors", "experiments", "live", "logs", "plots", "testing")


def __getattr__(name: str) -> typing.Any:
    """Load a name at its first use."""
    value: typing.Any
    if name in _HOMES:
        value = getattr(importlib.import_module(f"driftbandits.{_HOMES[name]}"), _ALIASES.get(name, name))
    elif name == "__all__":
        value = [*_HOMES, *_MODULES, *importlib.import_module("driftbandits.policies").__all__]
    elif name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    elif (value := _module(name)) is None:  # first: packages ask for one another while they are loaded
        policies = importlib.import_module("driftbandits.policies")
        if name not in policies.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(policies, name)
    globals()[name] = value
    return value


_ALIASES = {"StateReader": "Reader"}


def _module(name: str) -> typing.Any:
    """A package of the library by name; None if there is none."""
    try:
        return importlib.import_module(f"driftbandits.{name}")
    except ModuleNotFoundError as error:
        if error.name == f"driftbandits.{name}":
            return None
        raise


def __dir__() -> list[str]:
    """Public names alone, those that are not loaded yet too."""
    return sorted({*__getattr__("__all__"), "__version__"})
