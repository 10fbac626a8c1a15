"""Bringing an experiment back: the latest good snapshot and what came since, or less good ways, down to the fallback.

 1. the newest snapshot, and a replay of what came since; if it does not load or the policy fails, the next older one;
 2. a replay from the beginning;
 3. the books from every event that is undamaged, and a new policy that learns from the decisions and rewards in them;
 4. the books alone: the fallback decides.

Which way it was is said in the log and in the summary.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

import numpy as np

from driftbandits.errors import DriftbanditsError, GoneError, JournalError, StateError
from driftbandits.live import snapshots
from driftbandits.live.definition import Definition
from driftbandits.live.events import Event, check_event
from driftbandits.live.journal import Journal
from driftbandits.live.player import Player
from driftbandits.showing import first_line

log = logging.getLogger("driftbandits.live")


@dataclass(frozen=True, slots=True)
class Recovery:
    """A player brought back, by which way, from which snapshot (0: none), and how long that took."""

    player: Player
    way: str
    snapshot: int
    replayed: int
    seconds: float
    problems: tuple[str, ...] = ()


def recover(journal: Journal, definition: Definition) -> Recovery:
    """The state after the newest event, by the best way there is."""
    begun = time.perf_counter()
    problems: list[str] = []
    for seq in [*reversed(journal.snapshot_places()), 0]:
        name = f"the snapshot after event {seq}" if seq else "the beginning"
        try:
            player, count = replayed_from(journal, definition, seq)
        except Exception as error:  # noqa: BLE001  # whatever fails, there is a next way
            problems.append(f"from {name}: {type(error).__name__}: {first_line(error)}")
            log.error("an experiment could not be brought back from %s: %s", name, error)
            if isinstance(error, JournalError):  # a damaged event lies on the way from older snapshots too
                break
            continue
        _report(player)
        return Recovery(player, f"replayed from {name}", seq, count, time.perf_counter() - begun, tuple(problems))
    player, count, way = _learned(journal, definition, problems)
    return Recovery(player, way, 0, count, time.perf_counter() - begun, tuple(problems))


def _report(player: Player) -> None:
    if player.differing:
        log.warning(
            "in %d rounds of the replay the policy would have drawn otherwise (another processor or version?); what "
            "was journaled counts",
            player.differing,
        )


def replayed_from(journal: Journal, definition: Definition, seq: int, upto: int | None = None) -> tuple[Player, int]:
    """A player brought from a snapshot (0: from nothing) through the events since, and how many those were."""
    if seq:
        player = player_from(journal, definition, seq)
    else:
        oldest = journal.oldest()
        if oldest is not None and oldest.seq != 1:
            raise GoneError(f"events before {oldest.seq} were deleted by retention")
        player = Player(definition)
    count = player.replay(journal.events(seq, upto))
    return player, count


def player_from(journal: Journal, definition: Definition, seq: int) -> Player:
    """A player from the snapshot after event `seq`, if that belongs to this journal."""
    player = snapshots.unpack(journal.snapshot(seq), definition)
    if player.seq != seq:
        raise StateError(f"the snapshot after event {seq} says that it is one after event {player.seq}")
    event, newest = journal.event(seq), journal.newest()
    if newest is None or newest.seq < seq:
        raise StateError(f"it is ahead of the journal, whose newest event is {0 if newest is None else newest.seq}")
    if event is not None and event.seal != player.seal:  # where retention has deleted it, the next event's seal tells
        raise StateError(f"it belongs to another journal: its seal is not that of event {seq}")
    return player


def _learned(journal: Journal, definition: Definition, problems: list[str]) -> tuple[Player, int, str]:
    """Ways 3 and 4."""
    player, rows = _books(journal, definition, problems)
    count = len(rows)
    try:
        player.restart_policy()
        if rows and player.policy is not None:
            player.policy.learn(_columns(rows, player))
    except Exception as error:  # noqa: BLE001  # the last way is the fallback
        player.give_up(error)
        problems.append(f"by learning from the journal: {type(error).__name__}: {first_line(error)}")
        return player, count, "not brought back: the fallback decides"
    log.warning("the policy learned anew from %d journaled decisions", count)
    return player, count, "learned anew from the journal"


def books_before(journal: Journal, definition: Definition) -> Player:
    """The books before the first event that retention has left; they are in the snapshot that it keeps."""
    oldest = journal.oldest()
    if oldest is None or oldest.seq == 1:
        return Player(definition, with_policy=False)
    player = snapshots.unpack(journal.snapshot(oldest.seq - 1), definition)
    player.policy = None
    return player


def _books(journal: Journal, definition: Definition, problems: list[str]) -> tuple[Player, list[list[float]]]:
    """Everything but the policy, from all events that can be read; its decisions since the last restart, with rewards.

    A row is segment, arm, probability, reward and the number of decisions before which that was told.
    """
    player = books_before(journal, definition)
    rows: dict[int, list[float]] = {}
    before: Event | None = None
    for event in journal.events():
        try:
            check_event(event, before, player.seal if before is None else before.seal)
            _take_in(player, event, rows)
        except (DriftbanditsError, ValueError, TypeError, KeyError, IndexError) as error:
            problems.append(f"event {event.seq} is left out: {first_line(error)}")
            log.error("event %d is left out: %s", event.seq, error)
            player.pass_over(event)
        before = event
    player.disown()
    return player, list(rows.values())


def _take_in(player: Player, event: Event, rows: dict[int, list[float]]) -> None:
    if event.kind == "decided":
        if event.arm is None or not 0 <= event.arm < len(player.entries):
            raise JournalError(f"it decides for arm {event.arm}, which there is not")
        player.replay_decisions([event])
        details = event.details
        if not details.get("fallback"):
            place = player.segment_number(details.get("segment"))
            rows[event.seq] = [place, event.arm, float(event.probability or 0.0), np.nan, np.nan]
        return
    closed = list(player.open) if event.kind == "expired" else []
    if event.kind == "restarted":  # the policy is built at the end
        rows.clear()
        player.counts.restarts += 1
        player.disown()
        player.take(event)
        return
    player.apply(event)
    missing = player.definition.missing
    if event.kind == "rewarded" and event.decision in rows:
        rows[event.decision or 0][3:] = [float(event.reward or 0.0), len(rows)]
    for seq in closed:
        if seq not in player.open and seq in rows and isinstance(missing, (int, float)):
            rows[seq][3:] = [float(missing), len(rows)]


def _columns(rows: list[list[float]], player: Player) -> dict[str, object]:
    """Rows as a log; those of arms that the policy no longer has are left out."""
    table = np.array(rows)
    kept = np.flatnonzero(np.isin(table[:, 1].astype(np.int64), player.numbers))
    segments, arms, probabilities, rewards, told = table[kept].T
    places = np.array([player.places[int(arm)] for arm in arms], dtype=np.int64)
    return {
        "arm": places + len(player.numbers) * segments.astype(np.int64),
        "probability": probabilities,
        "reward": rewards,
        "round": kept,
        "told": np.maximum(told, kept + 1),
    }
