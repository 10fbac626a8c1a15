"""Experiments of your own: played, kept and tabulated.

>>> from driftbandits import experiments
>>> mine = experiments.PolicySpec("window of 200", "SlidingWindowGPUCB", {"window": 200})
>>> one = experiments.Experiment("mine", "One switch", "switching/1", {"horizon": 2000}, (mine,), seeds=(0, 1))
>>> results = experiments.play([one], store="results/mine")  # doctest: +SKIP

Names listed here are loaded at first use: they need the extra `experiments`. The experiments of the paper are in the
folder `reproduction` of a checkout.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from driftbandits.errors import MissingExtraError

if TYPE_CHECKING:
    from driftbandits.experiments.engines import Engine as Engine
    from driftbandits.experiments.folder_store import FolderStore as FolderStore
    from driftbandits.experiments.playing import play as play
    from driftbandits.experiments.results import Results as Results
    from driftbandits.experiments.specs import Experiment as Experiment
    from driftbandits.experiments.specs import PolicySpec as PolicySpec
    from driftbandits.experiments.stores import MemoryStore as MemoryStore
    from driftbandits.experiments.stores import Store as Store
    from driftbandits.experiments.stores import StoreError as StoreError
    from driftbandits.experiments.stores import plain_result as plain_result
    from driftbandits.experiments.stores import result_of as result_of

_MODULES = {
    "Engine": "engines",
    "Experiment": "specs",
    "FolderStore": "folder_store",
    "MemoryStore": "stores",
    "PolicySpec": "specs",
    "Results": "results",
    "Store": "stores",
    "StoreError": "stores",
    "plain_result": "stores",
    "play": "playing",
    "result_of": "stores",
}
_OF_THE_STUDY = ("EXPERIMENTS", "GROUPS", "Group", "Judgement", "Judgements", "find_experiments", "judge")

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _OF_THE_STUDY:
        raise AttributeError(f"{name} is in the study of the paper: `from reproduction import {name}` in a checkout")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise MissingExtraError(package, extra="experiments", purpose=f"experiments.{name}") from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
