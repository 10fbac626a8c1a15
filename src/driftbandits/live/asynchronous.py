"""The methods of an experiment as coroutines: nothing waits in the event loop's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from driftbandits.live.docstrings import described_by
from driftbandits.live.experiment import Asked, Experiment, Names, Rewards
from driftbandits.live.looking import ExperimentSummary
from driftbandits.live.looking_back import DecisionRecord
from driftbandits.live.requests import LiveDecision, RewardAnswer
from driftbandits.types import Change


@described_by(Experiment)
class AsyncExperiment:
    """An experiment for asyncio: the methods of `Experiment`, to be awaited.

    Parameters
    ----------
    experiment : that it asks; `Experiment.asynchronous` gives this object for it

    >>> import asyncio, tempfile
    >>> import driftbandits as db
    >>> async def play(shop):
    ...     choice = await shop.decide()
    ...     return await shop.reward(choice, 1.0)
    >>> with tempfile.TemporaryDirectory() as folder, db.live.open(f"sqlite:///{folder}/shop.db") as database:
    ...     asyncio.run(play(database.create("prices", arms=["9 EUR", "12 EUR"], seed=0).asynchronous)).accepted
    1
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.name = experiment.name

    async def decide(
        self,
        size: int | None = None,
        *,
        allowed: Iterable[str] | None = None,
        segment: str | None = None,
        key: str | None = None,
    ) -> LiveDecision | list[LiveDecision]:
        """See `Experiment.decide`."""
        found: LiveDecision | list[LiveDecision] = await asyncio.wrap_future(
            self.experiment._decide(size, allowed, segment, key)
        )
        return found

    async def reward(self, id: Asked, reward: float, *, key: str | None = None) -> RewardAnswer:  # noqa: A002
        """See `Experiment.reward`."""
        found: RewardAnswer = await asyncio.wrap_future(self.experiment._reward(id, reward, key))
        return found

    async def rewards(self, rewards: Rewards, *, key: str | None = None) -> RewardAnswer:
        """See `Experiment.rewards`."""
        found: RewardAnswer = await asyncio.wrap_future(self.experiment._rewards(rewards, key))
        return found

    async def forget(self, ids: Asked | Iterable[Asked], *, key: str | None = None) -> int:
        """See `Experiment.forget`."""
        found: int = await asyncio.wrap_future(self.experiment._forget(ids, key))
        return found

    async def arms(
        self, *, add: Any = None, retire: Names = (), bring_back: Names = (), key: str | None = None
    ) -> dict[str, Any]:
        """See `Experiment.arms`."""
        found: dict[str, Any] = await asyncio.wrap_future(self.experiment._arms(add, retire, bring_back, key))
        return found

    async def pause(self, *, key: str | None = None) -> None:
        """See `Experiment.pause`."""
        await asyncio.to_thread(self.experiment.pause, key=key)

    async def resume(self, *, key: str | None = None) -> None:
        """See `Experiment.resume`."""
        await asyncio.to_thread(self.experiment.resume, key=key)

    async def restart(self, *, key: str | None = None) -> None:
        """See `Experiment.restart`."""
        await asyncio.to_thread(self.experiment.restart, key=key)

    async def settings(self, *, key: str | None = None, **given: Any) -> dict[str, Any]:
        """See `Experiment.settings`."""
        return await asyncio.to_thread(self.experiment.settings, key=key, **given)

    async def summary(self) -> ExperimentSummary:
        """See `Experiment.summary`."""
        return await asyncio.to_thread(self.experiment.summary)

    async def changes(self) -> tuple[Change, ...]:
        """See `Experiment.changes`."""
        return await asyncio.to_thread(self.experiment.changes)

    async def history(self) -> Any:
        """See `Experiment.history`."""
        return await asyncio.to_thread(self.experiment.history)

    async def events(self, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """See `Experiment.events`."""
        return await asyncio.to_thread(self.experiment.events, after, limit)

    async def decision(self, id: Asked) -> DecisionRecord:  # noqa: A002
        """See `Experiment.decision`."""
        return await asyncio.to_thread(self.experiment.decision, id)

    async def export(self, path: str | Path) -> int:
        """See `Experiment.export`."""
        return await asyncio.to_thread(self.experiment.export, path)
