"""Snapshots, and recovery: an experiment's state from its latest good snapshot and the journal since, or a fallback.

 1. the newest snapshot, and a replay of later events; if it does not load or the policy fails, the next older one;
 2. a replay from the beginning;
 3. counts, arms and open decisions from every undamaged event, and a new policy that learns from the decisions and
    rewards among them;
 4. the same without a policy: the fallback decides.

Which way it was is said in the log and in the summary. A snapshot is a sealed file of JSON values and arrays.
"""

from __future__ import annotations

import json
import logging
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.errors import DriftbanditsError, GoneError, JournalError, StateError
from driftbandits.live.definition import Definition, Entry, Option
from driftbandits.live.journal import Event, Journal, check_event
from driftbandits.live.replica import Counts, Open, Replica
from driftbandits.policies import find_policy
from driftbandits.state import archive
from driftbandits.text import first_line
from driftbandits.version import __version__

log = logging.getLogger("driftbandits.live")
FORMAT = 1
SECONDS = 0.4  # of processor for replaying what came since, at least, before the next snapshot


def snapshot_of(replica: Replica) -> dict[str, Any]:
    """The state of a replica, as `load_snapshot` takes it; it does not change when the replica goes on."""
    rows = [(seq, *one) for seq, one in replica.open.items()]
    return {
        "snapshot": FORMAT,
        "library": __version__,
        **replica.plain_values(),
        "open": np.array(rows, dtype=np.int64).reshape(-1, 4),
        "expired": np.array(list(replica.expired.items()), dtype=np.int64).reshape(-1, 2),
        "policy": None if replica.policy is None else replica.policy.state_dict(),
    }


def load_snapshot(content: bytes, definition: Definition) -> Replica:
    """A replica that goes on from a stored snapshot, every value checked; StateError if one is wrong."""
    reader = states.Reader(archive.unpack(content, limit=states.LIMIT), "snapshot")
    reader.integer("snapshot", low=FORMAT, high=FORMAT)
    replica = Replica(definition, with_policy=False)
    replica.seq, replica.time, replica.seal = (reader.integer(name) for name in ("seq", "time", "seal"))
    replica.paused, replica.trouble = reader.flag("paused"), reader.text("trouble")
    replica.shift = reader.integer("shift") if reader.has("shift") else 0  # 0.3.0 put no clock back
    replica.notices = _read_notices(reader)
    replica.patience = None if reader.raw("patience") is None else reader.number("patience")
    replica.fallback = None if reader.raw("fallback") is None else reader.text("fallback")
    counts = reader.reader("counts")
    known = [name for name in Counts.__slots__ if name != "guests" or counts.has(name)]  # 0.3.0 had no guests
    replica.counts = Counts(**{name: counts.integer(name) for name in known})
    replica.entries = _read_entries(reader)
    rows = reader.array("open", np.int64, (None, 4))
    inside = (rows[:, 0] > 0) & (rows[:, 0] <= replica.seq) & (rows[:, 2] >= 0) & (rows[:, 2] < len(replica.entries))
    states.check(bool(inside.all() and (np.diff(rows[:, 0]) > 0).all()), "open decisions")
    replica.open = OrderedDict((seq, Open(*rest)) for seq, *rest in rows.tolist())
    if reader.has("expired"):  # snapshots of 0.3.0 have none
        late = reader.array("expired", np.int64, (None, 2))
        states.check(bool((late[:, 0] > 0).all() and (late[:, 0] <= replica.seq).all()), "expired decisions")
        replica.expired = OrderedDict((seq, ident) for seq, ident in late.tolist())
    replica.number_arms()
    if reader.raw("policy") is not None:
        replica.adopt(find_policy(definition.policy).restore(replica.build_arms(), reader.raw("policy")))
    return replica


def _read_notices(reader: states.Reader) -> dict[str, str]:
    try:
        return {str(kind): str(said) for kind, said in json.loads(reader.text("notices")).items()}
    except (ValueError, AttributeError) as error:
        raise StateError(f"the notices in the snapshot are not usable: {error}") from error


def _read_entries(reader: states.Reader) -> list[Entry]:
    try:
        listed = json.loads(reader.text("arms"))
        entries = [Entry(Option(str(name), tuple(map(float, features))), bool(gone)) for name, features, gone in listed]
    except (ValueError, TypeError) as error:
        raise StateError(f"the arms in the snapshot are not usable: {error}") from error
    states.check(bool(entries), "arms")
    return entries


# --- recovery --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recovery:
    """A recovered replica: how it was recovered, from which snapshot (0: none), and how long that took."""

    replica: Replica
    way: str
    snapshot: int
    replayed: int
    seconds: float
    problems: tuple[str, ...] = ()


def recover(journal: Journal, definition: Definition) -> Recovery:
    """The state after the newest event, by the best available method."""
    begun = time.perf_counter()
    problems: list[str] = []
    for seq in [*reversed(journal.snapshot_places()), 0]:
        name = f"the snapshot after event {seq}" if seq else "the beginning"
        try:
            replica, count = replayed_from(journal, definition, seq)
        except Exception as error:  # noqa: BLE001  # whatever fails, there is a next way
            problems.append(f"from {name}: {type(error).__name__}: {first_line(error)}")
            log.error("an experiment could not be brought back from %s: %s", name, error)
            if isinstance(error, JournalError):  # a damaged event lies on the way from older snapshots too
                break
            continue
        if replica.differing:
            log.warning(
                "in %d rounds of the replay the policy would have drawn otherwise (another processor or version?); "
                "what was journaled counts",
                replica.differing,
            )
        return Recovery(replica, f"replayed from {name}", seq, count, time.perf_counter() - begun, tuple(problems))
    replica, count, way = _learned(journal, definition, problems)
    return Recovery(replica, way, 0, count, time.perf_counter() - begun, tuple(problems))


def replayed_from(journal: Journal, definition: Definition, seq: int, upto: int | None = None) -> tuple[Replica, int]:
    """A replica that starts from a snapshot (0: from nothing) and replays later events, and how many those were."""
    if seq:
        replica = replica_from(journal, definition, seq)
    else:
        oldest = journal.oldest()
        if oldest is not None and oldest.seq != 1:
            raise GoneError(f"events before {oldest.seq} were deleted by retention")
        replica = Replica(definition)
    count = replica.replay(journal.events(seq, upto))
    return replica, count


def replica_from(journal: Journal, definition: Definition, seq: int) -> Replica:
    """A replica from the snapshot after event `seq`, if that belongs to this journal."""
    replica = load_snapshot(journal.snapshot(seq), definition)
    if replica.seq != seq:
        raise StateError(f"the snapshot after event {seq} says that it is one after event {replica.seq}")
    event, newest = journal.event(seq), journal.newest()
    if newest is None or newest.seq < seq:
        raise StateError(f"it is ahead of the journal, whose newest event is {0 if newest is None else newest.seq}")
    if event is not None and event.seal != replica.seal:  # where retention has deleted it, the next event's seal tells
        raise StateError(f"it belongs to another journal: its seal is not that of event {seq}")
    return replica


def _learned(journal: Journal, definition: Definition, problems: list[str]) -> tuple[Replica, int, str]:
    """Ways 3 and 4 of the list above."""
    replica, rows = _undamaged(journal, definition, problems)
    count = len(rows)
    try:
        replica.restart_policy()
        if rows and replica.policy is not None:
            replica.policy.learn(_columns(rows, replica))
    except Exception as error:  # noqa: BLE001  # the last way is the fallback
        replica.give_up(error)
        problems.append(f"by learning from the journal: {type(error).__name__}: {first_line(error)}")
        return replica, count, "not brought back: the fallback decides"
    log.warning("the policy learned anew from %d journaled decisions", count)
    return replica, count, "learned anew from the journal"


def replica_before(journal: Journal, definition: Definition) -> Replica:
    """The replica, without its policy, before the first event that retention has left: from the snapshot it keeps."""
    oldest = journal.oldest()
    if oldest is None or oldest.seq == 1:
        return Replica(definition, with_policy=False)
    replica = load_snapshot(journal.snapshot(oldest.seq - 1), definition)
    replica.policy = None
    return replica


def _undamaged(journal: Journal, definition: Definition, problems: list[str]) -> tuple[Replica, list[list[Any]]]:
    """Everything but the policy, from all events that can be read; its decisions since the last restart, with rewards.

    A row is segment, arm, probability, reward, the number of decisions before which that was told, and the context.
    """
    replica = replica_before(journal, definition)
    rows: dict[int, list[Any]] = {}
    before: Event | None = None
    for event in journal.events():
        try:
            check_event(event, before, replica.seal if before is None else before.seal)
            _take_in(replica, event, rows)
        except (DriftbanditsError, ValueError, TypeError, KeyError, IndexError) as error:
            problems.append(f"event {event.seq} is left out: {first_line(error)}")
            log.error("event %d is left out: %s", event.seq, error)
            replica.pass_over(event)
        before = event
    replica.disown()
    return replica, list(rows.values())


def _take_in(replica: Replica, event: Event, rows: dict[int, list[Any]]) -> None:
    if event.kind == "decided":
        if event.arm is None or not 0 <= event.arm < len(replica.entries):
            raise JournalError(f"it decides for arm {event.arm}, which there is not")
        details = event.details
        if replica.contexts is not None:
            replica.contexts.read(details.get("context"))
        replica.replay_decisions([event])
        if not details.get("fallback") and not details.get("guest"):
            place = replica.segment_number(details.get("segment"))
            rows[event.seq] = [
                place,
                event.arm,
                float(event.probability or 0.0),
                np.nan,
                np.nan,
                details.get("context"),
            ]
        return
    closed = list(replica.open) if event.kind == "expired" else []
    if event.kind == "restarted":  # the policy is built at the end
        rows.clear()
        replica.counts.restarts += 1
        replica.disown()
        replica.take(event)
        return
    replica.apply(event)
    missing = replica.definition.missing
    if event.kind == "rewarded" and event.decision in rows:
        rows[event.decision or 0][3:5] = [float(event.reward or 0.0), len(rows)]
    for seq in closed:
        if seq not in replica.open and seq in rows and isinstance(missing, (int, float)):
            rows[seq][3:5] = [float(missing), len(rows)]


def _columns(rows: list[list[Any]], replica: Replica) -> dict[str, object]:
    """Rows as a log; those of arms that the policy no longer has are left out."""
    table = np.array([row[:5] for row in rows])
    kept = np.flatnonzero(np.isin(table[:, 1].astype(np.int64), replica.numbers))
    segments, arms, probabilities, rewards, told = table[kept].T
    places = np.array([replica.places[int(arm)] for arm in arms], dtype=np.int64)
    return {
        **_context_columns([rows[row][5] for row in kept], replica.definition.contexts),
        "arm": places + len(replica.numbers) * segments.astype(np.int64),
        "probability": probabilities,
        "reward": rewards,
        "round": kept,
        "told": np.maximum(told, kept + 1),
    }


def _context_columns(contexts: list[Any], spec: Any) -> dict[str, list[Any]]:
    """Contexts as columns of a log."""
    if isinstance(spec, int):
        return {f"context.{k}": [one[k] for one in contexts] for k in range(spec)}
    return {f"context.{name}": [one.get(name) for one in contexts] for name in spec or ()}
