"""Experiments: played, judged and shown.

>>> from driftbandits import experiments
>>> results = experiments.play(["switching/1"], store="results/mine")  # doctest: +SKIP
>>> experiments.judge(results).verdicts  # doctest: +SKIP

In six rooms: `playing`, `groups`, `judging`, `running`, `files`, `definitions`; each may import those named after it.
What is listed here is loaded at first use: it needs the extra `experiments`, and importing a room does not need all.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from driftbandits.errors import MissingExtraError

if TYPE_CHECKING:
    from driftbandits.experiments.definitions.specs import Experiment, PolicySpec
    from driftbandits.experiments.files.cell_result import plain_result, result_of
    from driftbandits.experiments.files.folder_store import FolderStore
    from driftbandits.experiments.files.memory_store import MemoryStore
    from driftbandits.experiments.files.store import Store, StoreError
    from driftbandits.experiments.groups import EXPERIMENTS, GROUPS, find_experiments
    from driftbandits.experiments.groups.group import Group
    from driftbandits.experiments.groups.judgements import Judgements, judge
    from driftbandits.experiments.judging.judgement import Judgement
    from driftbandits.experiments.judging.results import Results
    from driftbandits.experiments.playing import play
    from driftbandits.experiments.running.engines import Engine

_MODULES = {
    "Experiment": "definitions.specs",
    "PolicySpec": "definitions.specs",
    "FolderStore": "files.folder_store",
    "MemoryStore": "files.memory_store",
    "Store": "files.store",
    "StoreError": "files.store",
    "plain_result": "files.cell_result",
    "result_of": "files.cell_result",
    "EXPERIMENTS": "groups",
    "GROUPS": "groups",
    "find_experiments": "groups",
    "Group": "groups.group",
    "Judgements": "groups.judgements",
    "judge": "groups.judgements",
    "Judgement": "judging.judgement",
    "Results": "judging.results",
    "play": "playing",
    "Engine": "running.engines",
}

__all__ = [
    "EXPERIMENTS",
    "GROUPS",
    "Engine",
    "Experiment",
    "FolderStore",
    "Group",
    "Judgement",
    "Judgements",
    "MemoryStore",
    "PolicySpec",
    "Results",
    "Store",
    "StoreError",
    "find_experiments",
    "judge",
    "plain_result",
    "play",
    "result_of",
]


def __getattr__(name: str) -> Any:
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
