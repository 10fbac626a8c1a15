"""An eye on every open experiment: what changes in it is logged, and what it counts can be read at any time."""

from __future__ import annotations

import logging
from collections.abc import Callable

from driftbandits.live import Experiment
from driftbandits.live.player import Player
from driftbandits.live.writer import Batch
from driftbandits.service.observing import Observer, Progress

log = logging.getLogger("driftbandits.service")


class Watch:
    """One experiment, watched from its writer's thread."""

    def __init__(self, experiment: Experiment, note: Callable[[str, Batch], None], clock: Callable[[], int]) -> None:
        self.name, self.number = experiment.name, experiment.view.experiment
        self.observer = Observer(experiment.view, clock, lambda: Progress.of(self.player.counts))
        self.decisions_by_key: dict[str, int] = {}
        self._note = note
        self.player, recovery = experiment.submit(
            "look", {"look": lambda writer, player: (player, writer.recovery)}
        ).result()
        self.replayed = 0 if recovery is None else recovery.replayed
        self.replay_seconds = 0.0 if recovery is None else recovery.seconds
        self.changes_found = _changes(self.player)
        self._restarts = self.player.counts.restarts
        self._fell_back = self.player.policy is None
        self._paused, self._arms = self.player.paused, _active(self.player)
        if recovery is not None:
            values = {"events": self.replayed, "seconds": round(self.replay_seconds, 3)}
            level = logging.INFO if self.player.policy is not None else logging.ERROR
            log.log(level, "experiment %s is open: %s", self.name, recovery.way, extra=values)
        experiment.watch(self._look)

    def _look(self, batch: Batch) -> None:
        """A transaction is on disk."""
        player = self.player = batch.player
        self._note(self.name, batch)
        found = _changes(player)
        if found > self.changes_found and player.policy is not None:
            for change in player.policy.changes[self.changes_found - found :]:
                log.info("experiment %s: %s", self.name, change, extra={"round": change.round})
        self.changes_found = found
        if player.counts.restarts != self._restarts:
            self._restarts = player.counts.restarts
            log.info("experiment %s was restarted", self.name, extra={"restarts": self._restarts})
        if (player.policy is None) != self._fell_back:
            self._fell_back = player.policy is None
            log.warning("experiment %s: %s", self.name, player.trouble or "its policy decides again")
        self._tell_steering(player)

    def _tell_steering(self, player: Player) -> None:
        """What a person has done to it."""
        if player.paused != self._paused:
            self._paused = player.paused
            log.info("experiment %s was %s", self.name, "paused" if self._paused else "resumed")
        active = _active(player)
        if active != self._arms:
            come, gone = sorted(active - self._arms), sorted(self._arms - active)
            self._arms = active
            log.info("experiment %s has other arms", self.name, extra={"come": come, "gone": gone})

    def count_decisions(self, key_id: str, size: int) -> None:
        """A key asked for so many decisions."""
        self.decisions_by_key[key_id] = self.decisions_by_key.get(key_id, 0) + size


def _active(player: Player) -> frozenset[str]:
    return frozenset(entry.option.name for entry in player.entries if not entry.retired)


def _changes(player: Player) -> int:
    return 0 if player.policy is None else player.policy.changes_found
