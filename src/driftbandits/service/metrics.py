"""Prometheus metrics. Counts are the journal's own, so they survive restarts; the label is the experiment alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import sqlalchemy as sa
from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from driftbandits.live import Database, tables
from driftbandits.live.writer import Batch
from driftbandits.service.watching import Watch

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
COUNTS = {  # metric: attribute of `Counts`, and what it is
    "decisions": ("decisions", "Decisions made"),
    "rewards": ("rewards", "Rewards that came in time"),
    "late": ("late", "Rewards that came after their time"),
    "expired": ("expired", "Decisions closed by patience"),
    "forgotten": ("forgotten", "Decisions that were forgotten"),
    "fallbacks": ("fallbacks", "Decisions of the fallback"),
    "restarts": ("restarts", "Restarts of the policy"),
}


class Metrics:
    """All metrics of one server."""

    def __init__(self, database: Database, watches: Callable[[], Iterable[Watch]], clock: Callable[[], int]) -> None:
        self.registry = CollectorRegistry()
        named: Any = {"registry": self.registry, "labelnames": ["experiment"], "namespace": "driftbandits"}
        self.decide = Histogram("decide_seconds", "From request to answer, of decisions", buckets=_SECONDS, **named)
        self.reward = Histogram("reward_seconds", "From request to answer, of rewards", buckets=_SECONDS, **named)
        self._batch = Histogram("batch_requests", "Requests that share a transaction", buckets=_SIZES, **named)
        self._commit = Histogram("commit_seconds", "Commit of a transaction", buckets=_SECONDS, **named)
        self._step = Histogram("step_seconds", "Deciding and learning in a transaction", buckets=_SECONDS, **named)
        self.health = Gauge("health_sentences", "Sentences about its health", **named)
        self.registry.register(_Counts(database, watches, clock))

    def note(self, name: str, batch: Batch) -> None:
        """A transaction is on disk."""
        self._batch.labels(name).observe(batch.requests)
        self._commit.labels(name).observe(batch.commit_seconds)
        self._step.labels(name).observe(batch.step_seconds)

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self.registry)


class _Counts(Collector):
    """Read when they are asked for."""

    def __init__(self, database: Database, watches: Callable[[], Iterable[Watch]], clock: Callable[[], int]) -> None:
        self._database, self._watches, self._clock = database, watches, clock

    def collect(self) -> Iterator[Any]:
        """One family per count."""
        watches = list(self._watches())
        for metric, (attribute, text) in COUNTS.items():
            family = CounterMetricFamily(f"driftbandits_{metric}", text, labels=["experiment"])
            for watch in watches:
                family.add_metric([watch.name], getattr(watch.replica.counts, attribute))
            yield family
        yield _family("changes", "Changes found", watches, lambda watch: watch.changes_found, counter=True)
        yield _family(
            "open_decisions", "Decisions that wait for a reward", watches, lambda watch: len(watch.replica.open)
        )
        yield _family("replayed_events", "Events replayed at the start", watches, lambda watch: watch.replayed)
        yield _family("replay_seconds", "How long that took", watches, lambda watch: watch.replay_seconds)
        ages = self._snapshot_ages()
        found = [watch for watch in watches if watch.number in ages]
        yield _family("snapshot_age_seconds", "Age of the newest snapshot", found, lambda watch: ages[watch.number])

    def _snapshot_ages(self) -> dict[int, float]:
        table, now = tables.snapshots, self._clock()
        wanted = sa.select(table.c.experiment, sa.func.max(table.c.time)).group_by(table.c.experiment)
        with self._database.engine.connect() as connection:
            return {int(row[0]): max(now - row[1], 0) / 1e6 for row in connection.execute(wanted).all()}


def _family(
    name: str, text: str, watches: list[Watch], value: Callable[[Watch], float], *, counter: bool = False
) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if counter else GaugeMetricFamily
    family = kind(f"driftbandits_{name}", text, labels=["experiment"])
    for watch in watches:
        family.add_metric([watch.name], value(watch))
    return family
