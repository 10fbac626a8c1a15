"""Experiments that live in a database: decisions and rewards that survive threads, crashes and kill -9.

`driftbandits.live.open(url)` opens a database, `.create(name, arms=...)` makes an experiment in it, `.experiment(name)`
opens one. `docs/live-experiments.md` is the guide. Needs the extra `live`; Postgres the extra `postgres`.
"""

from __future__ import annotations

from driftbandits.errors import MissingExtraError

try:
    import sqlalchemy  # noqa: F401
except ModuleNotFoundError:
    raise MissingExtraError("sqlalchemy", extra="live", purpose="an experiment in a database") from None

from driftbandits.live.asynchronous import AsyncExperiment
from driftbandits.live.database import Database
from driftbandits.live.database import open_database as open  # noqa: A004  # its public name
from driftbandits.live.experiment import Experiment
from driftbandits.live.looking import ArmSummary, ExperimentSummary
from driftbandits.live.looking_back import DecisionRecord
from driftbandits.live.requests import LiveDecision, Rejected, RewardAnswer
from driftbandits.live.views import Check, View

__all__ = [
    "ArmSummary",
    "AsyncExperiment",
    "Check",
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
