"""Experiments that live in a database: decisions and rewards that survive threads, crashes and kill -9.

`driftbandits.live.open(url)` opens a database, `.create(name, arms=...)` makes an experiment in it, `.experiment(name)`
opens one. `docs/live-experiments.md` is the guide. Needs the extra `live`; Postgres the extra `postgres`.
"""

from __future__ import annotations

import importlib
import typing

from driftbandits.errors import MissingExtraError

if typing.TYPE_CHECKING:
    from driftbandits.live.client import AsyncClient as AsyncClient
    from driftbandits.live.client import Client as Client
    from driftbandits.live.database import Database as Database
    from driftbandits.live.database import open_database as open  # noqa: A004  # its public name
    from driftbandits.live.decision_audit import DecisionRecord as DecisionRecord
    from driftbandits.live.experiment import AsyncExperiment as AsyncExperiment
    from driftbandits.live.experiment import Experiment as Experiment
    from driftbandits.live.requests import LiveDecision as LiveDecision
    from driftbandits.live.requests import Rejected as Rejected
    from driftbandits.live.requests import RewardAnswer as RewardAnswer
    from driftbandits.live.summary import ArmSummary as ArmSummary
    from driftbandits.live.summary import ExperimentSummary as ExperimentSummary
    from driftbandits.live.views import Check as Check
    from driftbandits.live.views import View as View

_HOMES = {
    "ArmSummary": "summary",
    "AsyncClient": "client",
    "AsyncExperiment": "experiment",
    "Check": "views",
    "Client": "client",
    "Database": "database",
    "DecisionRecord": "decision_audit",
    "Experiment": "experiment",
    "ExperimentSummary": "summary",
    "LiveDecision": "requests",
    "Rejected": "requests",
    "RewardAnswer": "requests",
    "View": "views",
    "open": "database",
}
__all__ = [
    "ArmSummary",
    "AsyncClient",
    "AsyncExperiment",
    "Check",
    "Client",
    "Database",
    "DecisionRecord",
    "Experiment",
    "ExperimentSummary",
    "LiveDecision",
    "Rejected",
    "RewardAnswer",
    "View",
    "open",
]


def __getattr__(name: str) -> typing.Any:
    """Load public names on first use: their dependencies may not be installed."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        home = importlib.import_module(f"{__name__}.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        if error.name != "sqlalchemy":
            raise
        raise MissingExtraError("sqlalchemy", extra="live", purpose="an experiment in a database") from None
    found = getattr(home, "open_database" if name == "open" else name)
    globals()[name] = found
    return found
