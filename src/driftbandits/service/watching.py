"""An eye on every open experiment: what changes in it is logged, and what it counts can be read at any time."""

from __future__ import annotations

import logging
from collections.abc import Callable

from driftbandits.live import Experiment
from driftbandits.live.replica import Replica
from driftbandits.live.writer import Batch
from driftbandits.service.observing import Observer, Progress

log = logging.getLogger("driftbandits.service")


class Watch:
    """One experiment, watched from its writer's thread."""

    def __init__(self, experiment: Experiment, note: Callable[[str, Batch], None], clock: Callable[[], int]) -> None:
        self.name, self.number = experiment.name, experiment.view.experiment
        self.observer = Observer(experiment.view, clock, lambda: Progress.of(self.replica.counts))
        self.decisions_by_key: dict[str, int] = {}
        self._note = note
        self.replica, recovery = experiment.submit(
            "inspect", {"inspect": lambda writer, replica: (replica, writer.recovery)}
        ).result()
        self.replayed = 0 if recovery is None else recovery.replayed
        self.replay_seconds = 0.0 if recovery is None else recovery.seconds
        self.changes_found = _changes(self.replica)
        self._restarts = self.replica.counts.restarts
        self._fell_back = self.replica.policy is None
        self._paused, self._arms = self.replica.paused, _active(self.replica)
        if recovery is not None:
            values = {"events": self.replayed, "seconds": round(self.replay_seconds, 3)}
            level = logging.INFO if self.replica.policy is not None else logging.ERROR
            log.log(level, "experiment %s is open: %s", self.name, recovery.way, extra=values)
        experiment.watch(self._look)

    def _look(self, batch: Batch) -> None:
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
        self._tell_steering(replica)

    def _tell_steering(self, replica: Replica) -> None:
        """What a person has done to it."""
        if replica.paused != self._paused:
            self._paused = replica.paused
            log.info("experiment %s was %s", self.name, "paused" if self._paused else "resumed")
        active = _active(replica)
        if active != self._arms:
            come, gone = sorted(active - self._arms), sorted(self._arms - active)
            self._arms = active
            log.info("experiment %s has other arms", self.name, extra={"come": come, "gone": gone})

    def count_decisions(self, key_id: str, size: int) -> None:
        """A key asked for so many decisions."""
        self.decisions_by_key[key_id] = self.decisions_by_key.get(key_id, 0) + size


def _active(replica: Replica) -> frozenset[str]:
    return frozenset(entry.option.name for entry in replica.entries if not entry.retired)


def _changes(replica: Replica) -> int:
    return 0 if replica.policy is None else replica.policy.changes_found
