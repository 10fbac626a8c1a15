"""Reading an experiment beside the process that decides in it: nothing is locked, nothing is changed.

`View.check` replays the journal and compares every snapshot with the replay. Everything that every version counts in
the same way (ids, arms, rewards, counts, order) is compared exactly. So are the beliefs of the policy, if the same kind
of machine and the same version wrote the snapshot; from another kind of machine they may differ by `TOLERANCE`. If the
policy's `behaviour` has changed since, beliefs are not compared. `docs/machines.md` says what is the same where.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from driftbandits.errors import JournalError
from driftbandits.live.definition import Definition
from driftbandits.live.journal import Journal
from driftbandits.live.recovery import recover, replayed_from, replica_from, snapshot_of
from driftbandits.live.replica import Replica
from driftbandits.live.summary import ExperimentSummary, summarise
from driftbandits.policies import find_policy
from driftbandits.state import archive
from driftbandits.text import first_line, shown
from driftbandits.version import __version__

# Between kinds of machines, of 1 or of the number itself if that is larger. Measured: 2e-11; one reward in a thousand
# that is off by 1 % of the range makes 4e-4.
TOLERANCE = 1e-5
# Networks are trained in single precision, and rounding grows with every step. Measured with the default width: 5e-3.
NETWORK_TOLERANCE = 0.05
LONGEST_MACHINE = 400  # characters of its fingerprint that are shown
OF_THE_WRITER = ("library", "provenance")  # what says who wrote a state, and nothing of what is in it


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest difference between two states.

    Parameters
    ----------
    size : of floats, as a part of 1 or of the number itself if that is larger; infinite where anything else differs
    place : where in the state that is

    >>> compare({"rounds": 3, "mean": 0.5}, {"rounds": 3, "mean": 0.75})
    Difference(size=0.25, place='mean')
    >>> compare({"rounds": 3, "mean": 0.5}, {"rounds": 4, "mean": 0.5}).size
    inf
    """

    size: float = 0.0
    place: str = ""


def compare(one: Any, other: Any) -> Difference:
    """The largest difference between two states; who wrote them is not compared."""
    largest = Difference()
    for found in _differences(one, other, ""):
        if found.size == np.inf:
            return found
        if found.size > largest.size:
            largest = found
    return largest


def _differences(one: Any, other: Any, place: str) -> Iterator[Difference]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        names = [name for name in {**one, **other} if name not in OF_THE_WRITER]
        for name in names:
            here = f"{place}.{name}" if place else str(name)
            if name in one and name in other:
                yield from _differences(one[name], other[name], here)
            else:
                yield Difference(np.inf, here)
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _differences(left, right, f"{place}[{number}]")
    elif isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        yield from _between_arrays(one, other, place)
    elif isinstance(one, float) and isinstance(other, float):
        yield Difference(_largest(np.array([one]), np.array([other])), place)
    elif type(one) is not type(other) or one != other:
        yield Difference(np.inf, place)


def _between_arrays(one: npt.NDArray[Any], other: npt.NDArray[Any], place: str) -> Iterator[Difference]:
    if one.shape != other.shape or one.dtype != other.dtype:
        yield Difference(np.inf, place)
    elif one.dtype.names:
        for name in one.dtype.names:
            yield from _between_arrays(one[name], other[name], f"{place}.{name}")
    elif one.dtype.kind == "f":
        yield Difference(_largest(one, other), place)
    elif not np.array_equal(one, other):
        yield Difference(np.inf, place)


def _largest(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
    """Of floats; two that are not numbers are equal."""
    left, right = one.astype(np.float64), other.astype(np.float64)
    unequal = ~((left == right) | (np.isnan(left) & np.isnan(right)))
    if not unequal.any():
        return 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        sizes = np.abs(left - right)[unequal] / np.maximum(1.0, np.abs(right[unequal]))
    return float(np.nan_to_num(sizes, nan=np.inf).max())


# Of a policy, what every version counts in the same way.
_POLICY_COUNTS = ("policy", "arms", "rounds", "pending", "clipped", "forgotten", "late", "expired", "dropped")
_OF_A_DECISION = ("id", "arm", "probability")  # the number of its law follows from how the policy learns


@dataclass(frozen=True, slots=True)
class Check:
    """What a check of a journal found.

    Its `verdict` is "identical" where every snapshot is what a replay gives, bit for bit; "sound" where ids,
    arms, rewards, counts and order are the same and beliefs differ by no more than kinds of machines or versions do;
    and "damaged" where there are `problems`.

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
        """Whether the verdict is not "damaged"."""
        return not self.problems

    @property
    def verdict(self) -> str:
        """ "identical", "sound" or "damaged"."""
        if self.problems:
            return "damaged"
        return "sound" if self.largest or self.notes or self.differing else "identical"


def replay_and_compare(journal: Journal, definition: Definition) -> Check:
    """The body of `View.check`."""
    places = journal.snapshot_places()
    found = _Findings(trains=_trains(definition))
    count = differing = 0
    try:
        replica = _beginning(journal, definition)
        newest = journal.newest()
        last = replica.seq if newest is None else newest.seq
        for place in sorted({place for place in places if replica.seq < place <= last} | {last}):
            count += replica.replay(journal.events(replica.seq, place))
            if place in places:
                found.add(place, journal, replica)
        differing = replica.differing
        if places and places[-1] > last:
            found.problems.append(
                f"events {last + 1:,} to {places[-1]:,} are missing: the newest event is {last:,}, and there is a "
                f"snapshot after event {places[-1]:,}"
            )
    except Exception as error:  # noqa: BLE001  # what is wrong is the answer
        found.problems.append(f"{type(error).__name__}: {first_line(error)}")
    if not places:
        found.notes.append("there is no snapshot yet: beliefs are not compared with anything")
    return Check(count, len(places), differing, tuple(found.problems), found.largest, tuple(dict.fromkeys(found.notes)))


def _trains(definition: Definition) -> bool:
    kind = find_policy(definition.policy)
    return kind.trains(definition.settings)


def _beginning(journal: Journal, definition: Definition) -> Replica:
    """A replica at the beginning of the journal: nothing learned, or the snapshot that retention has left."""
    oldest = journal.oldest()
    if oldest is None:
        raise JournalError("all events are missing, even the one that made the experiment")
    if oldest.seq == 1:
        return Replica(definition)
    if oldest.seq - 1 not in journal.snapshot_places():
        raise JournalError(
            f"events 1 to {oldest.seq - 1:,} are missing, and so is the snapshot after event {oldest.seq - 1:,}, which "
            f"retention would have left"
        )
    return replica_from(journal, definition, oldest.seq - 1)


class _Findings:
    """Problems, notes and the largest difference of beliefs, over all snapshots."""

    def __init__(self, *, trains: bool) -> None:
        self._trains = trains  # whether the policy trains a network
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.largest = 0.0

    def add(self, place: int, journal: Journal, replica: Replica) -> None:
        """Compare the snapshot after event `place` with the replay up to it."""
        expected = snapshot_of(replica)
        try:
            stored = archive.unpack(journal.snapshot(place), limit=float("inf"))
            wrong = _counts_differ(stored, expected) or self._beliefs(stored, expected)
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
        if difference.size > (NETWORK_TOLERANCE if self._trains else TOLERANCE):
            return Difference(difference.size, f"policy.{difference.place}")
        if difference.size and not others and stored.get("library") == __version__:
            self.notes.append("its last digits differ though its fingerprint is the same")
        self.largest = max(self.largest, difference.size)
        return None


def _counts_differ(stored: dict[str, Any], expected: dict[str, Any]) -> Difference | None:
    """Where a snapshot differs from the replay in what every version counts in the same way."""
    counted = [{**one, "policy": _policy_counts(one["policy"])} for one in (stored, expected)]
    for name in ("expired", "shift"):  # a snapshot of 0.3.0, which learned no late rewards and put no clock back
        if name not in stored:
            del counted[1][name]
    if "guests" not in stored["counts"]:  # nor had guests
        counted[1]["counts"] = {name: count for name, count in expected["counts"].items() if name != "guests"}
    difference = compare(*counted)
    return difference if difference.size else None


def _policy_counts(state: dict[str, Any] | None) -> dict[str, Any] | None:
    if state is None:
        return None
    counts = {name: state[name] for name in _POLICY_COUNTS}
    pending = {name: counts["pending"][name] for name in _OF_A_DECISION}
    return {**counts, "pending": pending}


def _provenance(policy: dict[str, Any]) -> list[list[Any]]:
    """Behaviour and machine of the writer of a state; older versions recorded neither."""
    written = policy.get("provenance")
    if not isinstance(written, list):
        return [[0, f"a machine that driftbandits {policy.get('library')} did not note"]]
    readable = [isinstance(one, list) and len(one) == 2 and isinstance(one[0], int) for one in written]
    return [one if good else [None, one] for one, good in zip(written or [None], readable or [False], strict=True)]


def _notes(others: list[list[Any]], here: list[Any]) -> Iterator[str]:
    for behaviour, machine in others:
        if behaviour != here[0]:
            known = "an unknown behaviour" if not behaviour else f"behaviour {behaviour}"
            yield f"written with {known} of the policy, which has behaviour {here[0]} here: beliefs are not compared"
        yield f"written on {_safe(machine)}"


def _safe(machine: Any) -> str:
    """What a state says of its machine, in one line of printable characters."""
    text = machine if isinstance(machine, str) else f"an unknown machine: {shown(machine)}"
    return text if text.isprintable() and len(text) <= LONGEST_MACHINE else shown(text[:LONGEST_MACHINE])


class View:
    """An experiment to be read; `Database.view` gives it.

    Parameters
    ----------
    engine : by which the database is read
    url : of the database
    name : of the experiment
    experiment : its number
    token : its first part of ids
    definition : what it was made with

    >>> import tempfile
    >>> import driftbandits as db
    >>> with tempfile.TemporaryDirectory() as folder, db.live.open(f"sqlite:///{folder}/shop.db") as database:
    ...     shop = database.create("prices", arms=["9 EUR", "12 EUR"], seed=0)
    ...     choices = shop.decide(3)
    ...     view = database.view("prices")
    ...     view.summary().decisions, view.check().fine
    (3, True)
    """

    def __init__(
        self, engine: sa.Engine, url: str, name: str, experiment: int, token: str, definition: Definition
    ) -> None:
        self.engine, self.url, self.name = engine, url, name
        self.experiment, self.token, self.definition = experiment, token, definition

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        """A consistent view of the journal at this moment.

        Yields
        ------
        Journal
        """
        with self.engine.connect() as connection:
            if connection.dialect.name == "postgresql":  # SQLite reads so by itself
                connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield Journal(connection, self.experiment, self.token)

    def events(self, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """Rows of the journal, as plain values.

        Parameters
        ----------
        after : number of the event after which to start
        limit : how many at most

        Returns
        -------
        list of dict
        """
        with self.journal() as journal:
            return [event._asdict() for event in journal.events(after, after + limit)]

    def summary(self) -> ExperimentSummary:
        """The experiment at a glance.

        Returns
        -------
        ExperimentSummary
        """
        with self.journal() as journal:
            found = recover(journal, self.definition)
        return summarise(self.name, found.replica, brought_back=found.way, health=found.problems)

    def player(self, upto: int | None = None) -> Replica:
        """The state that a replay of the whole journal gives.

        Parameters
        ----------
        upto : number of the last event; None for all

        Returns
        -------
        Replica

        Raises
        ------
        JournalError
            If the journal is damaged.
        GoneError
            If retention has deleted its beginning.
        """
        with self.journal() as journal:
            return replayed_from(journal, self.definition, 0, upto)[0]

    def check(self) -> Check:
        """Replay the whole journal and compare it with every snapshot; nothing is changed.

        Returns
        -------
        Check
        """
        with self.journal() as journal:
            return replay_and_compare(journal, self.definition)
