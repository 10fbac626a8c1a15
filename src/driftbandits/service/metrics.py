"""Metrics for Prometheus, and a monitor per open experiment: its counts can be read at any time, changes are logged.

Counts are the journal's own, so they survive restarts. Labels are the experiment and, of what the policy warns of, the
kind of warning. Requests that were refused are counted since the start, by reason.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any

import sqlalchemy as sa
from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from driftbandits.live import Database, Experiment, tables
from driftbandits.live.replica import Replica
from driftbandits.live.writer import Batch
from driftbandits.service.series import Observer, Progress

log = logging.getLogger("driftbandits.service")
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
COUNTS = {  # attributes of `Counts`
    "decisions": "Decisions made",
    "rewards": "Rewards that came in time",
    "late": "Rewards that came after their time",
    "expired": "Decisions closed by patience",
    "forgotten": "Decisions that were forgotten",
    "fallbacks": "Decisions of the fallback",
    "restarts": "Restarts of the policy",
    "guests": "Decisions for guests",
}
NOTICES = (  # kinds of warnings, see `driftbandits.errors`
    "ClippedRewardsWarning",
    "ConvergenceWarning",
    "DelayWarning",
    "DoubtWarning",
    "LateRewardsWarning",
    "RewardRangeWarning",
    "ZeroOneRewardsWarning",
)


class Monitor:
    """Follows one open experiment from its writer's thread."""

    def __init__(self, experiment: Experiment, note: Callable[[str, Batch], None], clock: Callable[[], int]) -> None:
        self.name, self.number = experiment.name, experiment.view.experiment
        self.observer = Observer(experiment.view, clock, lambda: Progress.of(self.replica.counts))
        self.decisions_by_key: dict[str, int] = {}
        self.shared: Any = None  # the summary that its readers share
        self._note = note
        inspect = {"inspect": lambda writer, replica: (replica, writer.recovery)}
        self.replica, recovery = experiment.submit("inspect", inspect).result()
        self.replayed = 0 if recovery is None else recovery.replayed
        self.replay_seconds = 0.0 if recovery is None else recovery.seconds
        self.changes_found = _changes(self.replica)
        self._restarts = self.replica.counts.restarts
        self._fell_back = self.replica.policy is None
        self._paused, self._arms, self._entries = self.replica.paused, _active(self.replica), self.replica.entries
        if recovery is not None:
            values = {"events": self.replayed, "seconds": round(self.replay_seconds, 3)}
            level = logging.INFO if self.replica.policy is not None else logging.ERROR
            log.log(level, "experiment %s is open: %s", self.name, recovery.way, extra=values)
        experiment.watch(self._on_batch)

    def _on_batch(self, batch: Batch) -> None:
        """A transaction is on disk."""
        replica = self.replica = batch.replica
        self._note(self.name, batch)
        found = _changes(replica)
        if found > self.changes_found and replica.policy is not None:
            for change in replica.policy.changes[self.changes_found - found :]:
                log.info("experiment %s: %s", self.name, change, extra={"round": change.round})
        self.changes_found = found
        if replica.counts.restarts != self._restarts:
            self._restarts = replica.counts.restarts
            log.info("experiment %s was restarted", self.name, extra={"restarts": self._restarts})
        if (replica.policy is None) != self._fell_back:
            self._fell_back = replica.policy is None
            log.warning("experiment %s: %s", self.name, replica.trouble or "its policy decides again")
        if replica.paused != self._paused:
            self._paused = replica.paused
            log.info("experiment %s was %s", self.name, "paused" if self._paused else "resumed")
        if replica.entries is not self._entries:  # a change of arms makes a new list
            self._entries, before = replica.entries, self._arms
            self._arms = _active(replica)
            come, gone = sorted(self._arms - before), sorted(before - self._arms)
            if come or gone:
                log.info("experiment %s has other arms", self.name, extra={"come": come, "gone": gone})

    def count_decisions(self, key_id: str, size: int) -> None:
        """A key asked for `count` decisions."""
        self.decisions_by_key[key_id] = self.decisions_by_key.get(key_id, 0) + size


def _active(replica: Replica) -> frozenset[str]:
    return frozenset(entry.option.name for entry in replica.entries if not entry.retired)


def _changes(replica: Replica) -> int:
    return 0 if replica.policy is None else replica.policy.changes_found


class Metrics:
    """All metrics of one server."""

    def __init__(
        self,
        database: Database,
        monitors: Callable[[], Iterable[Monitor]],
        clock: Callable[[], int],
        refused: Counter[str],
    ) -> None:
        self.registry = CollectorRegistry()
        named: Any = {"registry": self.registry, "labelnames": ["experiment"], "namespace": "driftbandits"}
        self.decide = Histogram("decide_seconds", "From request to answer, of decisions", buckets=_SECONDS, **named)
        self.reward = Histogram("reward_seconds", "From request to answer, of rewards", buckets=_SECONDS, **named)
        self._batch = Histogram("batch_requests", "Requests that share a transaction", buckets=_SIZES, **named)
        self._commit = Histogram("commit_seconds", "Commit of a transaction", buckets=_SECONDS, **named)
        self._step = Histogram("step_seconds", "Deciding and learning in a transaction", buckets=_SECONDS, **named)
        self.health = Gauge("health_sentences", "Sentences about its health", **named)
        self.registry.register(_Counts(database, monitors, clock, refused))

    def note(self, name: str, batch: Batch) -> None:
        """A transaction is on disk."""
        self._batch.labels(name).observe(batch.requests)
        self._commit.labels(name).observe(batch.commit_seconds)
        self._step.labels(name).observe(batch.step_seconds)

    def text(self) -> bytes:
        """The metrics in Prometheus format."""
        return generate_latest(self.registry)


class _Counts(Collector):
    """Read when they are asked for."""

    def __init__(
        self,
        database: Database,
        monitors: Callable[[], Iterable[Monitor]],
        clock: Callable[[], int],
        refused: Counter[str],
    ) -> None:
        self._database, self._monitors, self._clock, self._refused = database, monitors, clock, refused

    def collect(self) -> Iterator[Any]:
        """One family per count."""
        monitors = list(self._monitors())

        def family(kind: Any, name: str, text: str, value: Callable[[Monitor], float | None]) -> Any:
            found = kind(f"driftbandits_{name}", text, labels=["experiment"])
            for monitor in monitors:
                number = value(monitor)
                if number is not None:
                    found.add_metric([monitor.name], number)
            return found

        counter, gauge, ages = CounterMetricFamily, GaugeMetricFamily, self._snapshot_ages()
        for name, text in COUNTS.items():
            yield family(counter, name, text, attrgetter(f"replica.counts.{name}"))
        refusals = CounterMetricFamily("driftbandits_refusals", "Requests that were refused", labels=["reason"])
        for reason, count in dict(self._refused).items():
            refusals.add_metric([reason], count)
        yield refusals
        yield family(counter, "changes", "Changes found", lambda one: one.changes_found)
        yield family(gauge, "open_decisions", "Decisions that wait for a reward", lambda one: len(one.replica.open))
        yield self._notices(monitors)
        yield family(gauge, "replayed_events", "Events replayed at the start", lambda one: one.replayed)
        yield family(gauge, "replay_seconds", "How long that took", lambda one: one.replay_seconds)
        yield family(gauge, "snapshot_age_seconds", "Age of the newest snapshot", lambda one: ages.get(one.number))

    @staticmethod
    def _notices(monitors: Iterable[Monitor]) -> Any:
        """1 for every kind of warning that stands, 0 for the others; the kinds are few, whatever a policy says."""
        found = GaugeMetricFamily("driftbandits_notices", "What the policy warns of", labels=["experiment", "kind"])
        for monitor in monitors:
            standing = {kind if kind in NOTICES else "other" for kind in monitor.replica.notices.copy()}
            for kind in (*NOTICES, "other"):
                found.add_metric([monitor.name, kind], float(kind in standing))
        return found

    def _snapshot_ages(self) -> dict[int, float]:
        table, now = tables.snapshots, self._clock()
        wanted = sa.select(table.c.experiment, sa.func.max(table.c.time)).group_by(table.c.experiment)
        with self._database.engine.connect() as connection:
            return {int(row[0]): max(now - row[1], 0) / 1e6 for row in connection.execute(wanted).all()}
