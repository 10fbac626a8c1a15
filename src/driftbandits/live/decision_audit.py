"""Audit of a decision: what the policy knew and believed when it was made, found by a replay up to it.

A replay takes CPU time that deciding needs, so it runs in a process of its own, one at a time. The database's URL is
passed to it through a pipe: in its arguments every user of the machine could read the password.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from typing import Any

from driftbandits.errors import GoneError, JournalError, LiveError, UnknownDecisionError
from driftbandits.live.journal import Event, Journal
from driftbandits.live.recovery import replayed_from
from driftbandits.live.summary import beliefs
from driftbandits.live.views import View
from driftbandits.text import shown
from driftbandits.types import Floats

_ONE_AT_A_TIME = threading.Lock()
LONGEST_SECONDS = 120


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A decision, its reward if it has one, and the beliefs of the policy just before it was made.

    Parameters
    ----------
    id : of the decision
    seq : number of its event in the journal
    time : when it was made, in seconds since 1970
    arm : name of the arm
    probability : with which it was drawn
    fallback : whether the fallback decided instead of the policy
    segment : its segment, or None
    reward : as it was told, or None
    closed : "rewarded", "late", "forgotten" or "expired"; empty while it is open
    law : probabilities it was drawn with, by names of arms; with segments, those of its segment
    estimates : expected rewards, by names of arms
    beliefs : what the policy said of itself, where it can
    context : of the request, or None; law, estimates and beliefs are those for it

    >>> law, estimates = {"9 EUR": 0.5, "12 EUR": 0.5}, {"9 EUR": 0.2, "12 EUR": 0.2}
    >>> record = DecisionRecord("a1-7", 8, 1.8e9, "9 EUR", 0.5, False, None, 1.0, "rewarded", law, estimates, "")
    >>> record.law[record.arm] == record.probability
    True
    """

    id: str
    seq: int
    time: float
    arm: str
    probability: float
    fallback: bool
    segment: str | None
    reward: float | None
    closed: str
    law: dict[str, float]
    estimates: dict[str, float]
    beliefs: str
    context: Any = None


def audit(view: View, given: str) -> DecisionRecord:
    """Audit a decision in this process."""
    with view.journal() as journal:
        event, place = _find(journal, given)
        replica, _ = replayed_from(journal, view.definition, place, event.seq - 1)
        closing = journal.closing(event.seq)
        expired = any((e.decision or 0) >= event.seq for e in journal.events(event.seq, kinds=("expired",)))
    details = event.details
    segment, fallback = details.get("segment"), bool(details.get("fallback", False))
    context = details.get("context")
    replica.tell_time(event.time)
    replica.paused = fallback  # the law of what decided, whether the policy was paused or had stopped
    law = replica.law(replica.mask_of(details), segment, context)
    estimates = beliefs(replica, segment, context)[0]
    explain = getattr(replica.policy, "explain", None)
    return DecisionRecord(
        id=given,
        seq=event.seq,
        time=event.time / 1e6,
        arm=replica.name_of(int(event.arm or 0)),
        probability=float(event.probability or 0.0),
        fallback=fallback,
        segment=segment,
        reward=None if closing is None else closing.reward,
        closed=_closed(closing, expired=expired),
        law={replica.name_of(number): value for number, value in enumerate(_with_recorded(law, event))},
        estimates={replica.name_of(number): float(value) for number, value in enumerate(estimates) if value == value},
        beliefs="" if explain is None else str(explain() if context is None else explain(context=context)),
        context=context,
    )


def _with_recorded(law: Floats, event: Event) -> list[float]:
    """The law with the recorded probability in it; on another kind of machine the replay's differs in its last digits.

    The others are scaled so that all sum to 1 as before.
    """
    arm, probability = int(event.arm or 0), float(event.probability or 0.0)
    rest = float(law.sum() - law[arm])
    scaled = law * (max(0.0, 1.0 - probability) / rest) if rest > 0.0 else law.copy()
    scaled[arm] = probability
    return [float(value) for value in scaled]


def _find(journal: Journal, given: str) -> tuple[Event, int]:
    """The decision, and the newest snapshot before it; 0 where it can be reached from the beginning alone."""
    event, oldest = journal.decision(given), journal.oldest()
    trimmed = oldest is not None and oldest.seq > 1
    if event is None and oldest is not None and trimmed:
        raise GoneError(f"no decision {shown(given)} is left in the journal, which begins at event {oldest.seq}")
    if event is None:
        raise UnknownDecisionError(f"no decision has the id {shown(given)} in this experiment")
    places = [place for place in journal.snapshot_places() if place < event.seq]
    if not places and trimmed:
        raise GoneError(f"decision {given} is older than the oldest snapshot that is left")
    return event, max(places, default=0)


def _closed(closing: Event | None, *, expired: bool) -> str:
    if closing is not None:
        return "late" if closing.details.get("late") else closing.kind
    return "expired" if expired else ""


def audit_in_subprocess(view: View, given: str) -> DecisionRecord:
    """Audit a decision in a process of its own; a LiveError while another audit is under way."""
    with view.journal() as journal:
        _find(journal, given)  # what is not there needs no process
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise LiveError("another audit is under way; try again in a few seconds")
    try:
        asked = json.dumps({"url": view.url, "name": view.name, "id": given})
        done = subprocess.run(
            [sys.executable, "-m", "driftbandits.live.decision_audit"],
            input=asked,
            capture_output=True,
            text=True,
            timeout=LONGEST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LiveError(f"the audit took more than {LONGEST_SECONDS} s and was ended") from None
    finally:
        _ONE_AT_A_TIME.release()
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise LiveError(f"the audit failed: {done.stderr.strip().splitlines()[-1:]}") from None
    if "error" in answer:
        raise _ERRORS.get(answer["error"], LiveError)(answer["message"])
    return DecisionRecord(**answer)


_ERRORS: dict[str, type[LiveError] | type[UnknownDecisionError]] = {
    kind.__name__: kind for kind in (GoneError, JournalError, UnknownDecisionError)
}


def _main() -> None:
    from driftbandits.errors import DriftbanditsError
    from driftbandits.live.database import open_database

    asked: dict[str, Any] = json.load(sys.stdin)
    try:
        with open_database(asked["url"]) as database:
            answer = asdict(audit(database.view(asked["name"]), asked["id"]))
    except DriftbanditsError as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    _main()
