"""Events of a journal, their seals, and the public ids of decisions.

The seal of an event is the CRC-32 of its values and of the seal before it: a value that was changed, or a row that is
gone, shows. It is no signature: it shows damage, and not who did it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from driftbandits.errors import JournalError, UnknownDecisionError
from driftbandits.showing import shown

KINDS = (
    "created",
    "decided",
    "rewarded",
    "expired",
    "forgotten",
    "arms",
    "paused",
    "resumed",
    "restarted",
    "settings",
)
log = logging.getLogger("driftbandits.live")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_ID = re.compile(r"([0-9a-z]{1,13})-([0-9a-f]{8})")


class Event(NamedTuple):
    """One row of the journal, without the experiment's number."""

    seq: int
    time: int
    kind: str
    decision: int | None = None
    arm: int | None = None
    probability: float | None = None
    reward: float | None = None
    key: str | None = None
    payload: str | None = None
    seal: int = 0

    @property
    def details(self) -> dict[str, Any]:
        """The payload, read."""
        return json.loads(self.payload) if self.payload else {}

    @property
    def damage(self) -> str:
        """Why its values cannot be used, if they cannot. That they are those that were written, the seal says."""
        if not isinstance(self.time, int):
            return f"its time is {shown(self.time)}"
        try:
            readable = isinstance(self.details, dict)
        except ValueError:
            readable = False
        return "" if readable else "its payload is not JSON"

    def sealed(self, before: int) -> Event:
        """This event with the seal that it has behind one sealed `before`."""
        return self._replace(seal=seal_of(self, before))


def seal_of(event: Event, before: int) -> int:
    """CRC-32 of all values of an event but its seal, begun with the seal before it.

    >>> first = Event(1, 1000, "paused").sealed(0)
    >>> first.seal == seal_of(first, 0), first.seal == seal_of(first._replace(time=1001), 0)
    (True, False)
    """
    return zlib.crc32(repr(event[:-1]).encode(), before)


def check_event(event: Event, after: Event | None, seal: int) -> None:
    """Refuse an event that does not follow the one before: other values than were written, or a gap."""
    if after is not None and event.seq != after.seq + 1:
        raise JournalError(f"events {after.seq + 1} to {event.seq - 1} are missing from the journal")
    if event.seal != seal_of(event, seal):
        raise JournalError(f"event {event.seq} ({shown(event.kind)}) is not what was written: its seal does not hold")
    if event.kind not in KINDS:
        raise JournalError(f"event {event.seq} is of kind {shown(event.kind)}, which this version does not know")


def undamaged(events: Iterable[Event]) -> Iterator[Event]:
    """Events whose values can be used; of the others a line is logged."""
    for event in events:
        if event.damage:
            log.error("event %s is left out: %s", event.seq, event.damage)
        else:
            yield event


def dump(details: dict[str, Any]) -> str | None:
    """A payload; none for nothing."""
    return json.dumps(details, separators=(",", ":"), allow_nan=False) if details else None


# --- ids ------------------------------------------------------------------------------------------------------------


def decision_id(token: str, seq: int, time: int) -> str:
    """The public id of a decision: its place in the journal, and a check.

    The check depends on the experiment and on the time: an id of another experiment, or of a decision that was lost
    with an older copy of the database, fits nothing.

    >>> decision_id("shop", 1296, 10)
    '100-e208df0b'
    """
    check = hashlib.sha256(f"{token}/{seq}/{time}".encode()).hexdigest()[:8]
    text, left = "", seq
    while left or not text:
        left, digit = divmod(left, 36)
        text = _DIGITS[digit] + text
    return f"{text}-{check}"


def place_of(given: Any) -> int:
    """The place in the journal that an id names; whether it is that id is to be checked there."""
    found = _ID.fullmatch(given) if isinstance(given, str) else None
    if found is None or int(found[1], 36) >= 2**63:
        raise UnknownDecisionError(f"no decision has the id {shown(given)}; pass an id as decide gave it")
    return int(found[1], 36)


def check_reward(reward: Any) -> float | None:
    """A reward as a finite float, or None if it is none."""
    if isinstance(reward, (bool, int, float)) or hasattr(reward, "__float__"):
        try:
            value = float(reward)
        except (TypeError, ValueError, OverflowError):
            return None
        return value if math.isfinite(value) else None
    return None
