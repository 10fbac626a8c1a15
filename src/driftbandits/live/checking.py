"""Checking a journal: it is replayed, and every snapshot is compared with what the replay gives.

The books (ids, arms, rewards, counts, order) are compared exactly. So are the beliefs of the policy where the same kind
of machine and the same version wrote the snapshot; where another kind did, they may differ by `TOLERANCE`. A policy
that behaves otherwise than the one that wrote the snapshot has other beliefs: then the books decide alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from driftbandits.errors import JournalError
from driftbandits.live import snapshots
from driftbandits.live.definition import Definition
from driftbandits.live.journal import Journal
from driftbandits.live.player import Player
from driftbandits.live.recovery import player_from
from driftbandits.showing import first_line
from driftbandits.state import archive
from driftbandits.state.differences import TOLERANCE, Difference, compare
from driftbandits.version import __version__

# Of a policy, what every version counts in the same way.
_POLICY_BOOKS = ("policy", "arms", "rounds", "pending", "clipped", "forgotten", "late", "expired", "dropped")


@dataclass(frozen=True, slots=True)
class Check:
    """What a check of a journal found.

    Its `verdict` is "identical" where every snapshot is what a replay gives, bit for bit; "sound" where the books
    (ids, arms, rewards, counts, order) are the same and beliefs differ by no more than kinds of machines or versions
    do; and "damaged" where there are `problems`.

    Parameters
    ----------
    events : how many were replayed
    snapshots : how many there are
    differing : rounds in which the policy would now draw something else than it did, as on another machine
    problems : one sentence each, with what is damaged and where
    largest : the largest difference between a belief in a snapshot and the same belief in the replay
    notes : who wrote the snapshots, if it was another kind of machine or another version; one sentence each

    >>> Check(events=12, snapshots=1, differing=0, problems=()).verdict
    'identical'
    """

    events: int
    snapshots: int
    differing: int
    problems: tuple[str, ...]
    largest: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def fine(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def verdict(self) -> str:
        """In a word: "identical", "sound" or "damaged"."""
        if self.problems:
            return "damaged"
        return "sound" if self.largest or self.notes else "identical"


def replay_and_compare(journal: Journal, definition: Definition) -> Check:
    """The body of `View.check`."""
    places = journal.snapshot_places()
    found = _Findings()
    count = differing = 0
    try:
        player = _beginning(journal, definition)
        newest = journal.newest()
        last = player.seq if newest is None else newest.seq
        for place in sorted({place for place in places if player.seq < place <= last} | {last}):
            count += player.replay(journal.events(player.seq, place))
            if place in places:
                found.add(place, journal, player)
        differing = player.differing
        if places and places[-1] > last:
            found.problems.append(
                f"events {last + 1:,} to {places[-1]:,} are missing: the newest event is {last:,}, and there is a "
                f"snapshot after event {places[-1]:,}"
            )
    except Exception as error:  # noqa: BLE001  # what is wrong is the answer
        found.problems.append(f"{type(error).__name__}: {first_line(error)}")
    return Check(count, len(places), differing, tuple(found.problems), found.largest, tuple(dict.fromkeys(found.notes)))


def _beginning(journal: Journal, definition: Definition) -> Player:
    """A player at the beginning of the journal: nothing learned, or the snapshot that retention has left."""
    oldest = journal.oldest()
    if oldest is None:
        raise JournalError("all events are missing, even the one that made the experiment")
    if oldest.seq == 1:
        return Player(definition)
    if oldest.seq - 1 not in journal.snapshot_places():
        raise JournalError(
            f"events 1 to {oldest.seq - 1:,} are missing, and so is the snapshot after event {oldest.seq - 1:,}, which "
            f"retention would have left"
        )
    return player_from(journal, definition, oldest.seq - 1)


class _Findings:
    """Problems, notes and the largest difference of beliefs, over all snapshots."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.largest = 0.0

    def add(self, place: int, journal: Journal, player: Player) -> None:
        """Compare the snapshot after event `place` with the replay up to it."""
        expected = snapshots.export(player)
        try:
            stored = archive.unpack(journal.snapshot(place), limit=float("inf"), look=lambda _: None)
            wrong = _books(stored, expected) or self._beliefs(stored, expected)
        except Exception as error:  # noqa: BLE001  # what is wrong is the answer
            self.problems.append(f"the snapshot after event {place:,} does not load: {first_line(error)}")
            return
        if wrong is not None:
            size = "" if wrong.size == float("inf") else f" by {wrong.size:.2g}"
            self.problems.append(f"the snapshot after event {place:,} differs from the replay in {wrong.place}{size}")

    def _beliefs(self, stored: dict[str, Any], expected: dict[str, Any]) -> Difference | None:
        """What is wrong with the beliefs of the policy, if anything is."""
        if stored["policy"] is None:
            return None
        here = expected["policy"]["provenance"][-1]
        others = [one for one in _provenance(stored["policy"]) if one != here]
        difference = compare(stored["policy"], expected["policy"])
        self.notes += _notes(others, here)
        if any(one[0] != here[0] for one in others):
            return None
        tolerance = TOLERANCE if others or stored.get("library") != __version__ else 0.0
        if difference.size > tolerance:
            return Difference(difference.size, f"policy.{difference.place}")
        self.largest = max(self.largest, difference.size)
        return None


def _books(stored: dict[str, Any], expected: dict[str, Any]) -> Difference | None:
    """Where the books of a snapshot are not those of the replay."""
    difference = compare(*({**one, "policy": _policy_books(one["policy"])} for one in (stored, expected)))
    return difference if difference.size else None


def _policy_books(state: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if state is None else {name: state[name] for name in _POLICY_BOOKS}


def _provenance(policy: dict[str, Any]) -> list[list[Any]]:
    """Behaviour and machine of whoever wrote a state; of older versions neither is known."""
    written = policy.get("provenance")
    if not isinstance(written, list):
        return [[0, f"a machine that driftbandits {policy.get('library')} did not note"]]
    return [one if isinstance(one, list) and len(one) == 2 else [None, str(one)] for one in written]


def _notes(others: list[list[Any]], here: list[Any]) -> Iterator[str]:
    for behaviour, machine in others:
        if behaviour != here[0]:
            known = "an unknown behaviour" if not behaviour else f"behaviour {behaviour}"
            yield f"written with {known} of the policy, which has behaviour {here[0]} here: beliefs are not compared"
        yield f"written on {machine}"
