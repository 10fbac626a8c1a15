"""Requests to an experiment and their answers, in plain values so that answers can be stored, and how they are served.

`Handlers` runs in the writer's thread alone: one method per kind of request checks it, makes events, and answers.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from driftbandits.errors import (
    ConflictError,
    DriftbanditsError,
    InputError,
    KeyReusedError,
    LiveError,
    RewardError,
    UnknownDecisionError,
)
from driftbandits.live.definition import check_size, check_visible
from driftbandits.live.journal import Event, Journal, check_reward, decision_id, dump, place_of
from driftbandits.live.replica import NOT_OF_THE_POLICY, Replica
from driftbandits.text import breaking, shown

LONGEST_KEY = 200  # characters of an idempotency key
MOST_AHEAD = 300 * 1_000_000  # microseconds by which the clock may be put ahead
log = logging.getLogger("driftbandits.live")
MOST_PER_CALL = 1000  # decisions, or rewards
FIRST_EXPIRY_SECONDS = 1e-4  # of closing one decision, before it is measured
REFUSABLE = ("arms", "settings")  # events that are checked when they are applied


def _steady_clock() -> Callable[[], int] | None:
    """Nanoseconds since the machine's start, those while it slept included; None where the system has no such clock."""
    if not hasattr(time, "clock_gettime_ns"):
        return None
    return partial(time.clock_gettime_ns, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class GuardedClock:
    """Microseconds since 1970, by a clock that was not put far ahead since this process began.

    The time of events never goes back. So a clock that jumps a month ahead would close everything that is open, and
    after it was put right nothing would run out of patience for a month. What counts time since the machine's start
    tells such a jump; then the time goes on from before it, until the clock is right or the process begins anew.
    """

    def __init__(self, wall: Callable[[], int], steady: Callable[[], int] | None) -> None:
        self._wall, self._steady = wall, steady
        self._offset: int | None = None  # of the clock, from the time since the machine's start
        self.ahead = 0  # microseconds by which it has jumped, while that is not followed

    def __call__(self) -> int:
        """The time."""
        now = self._wall() // 1000
        if self._steady is None:
            return now
        steady = self._steady() // 1000
        if self._offset is None or now - steady - self._offset < MOST_AHEAD:
            self._offset, self.ahead = now - steady, 0
            return now
        if not self.ahead:
            log.error("%s", ahead_in_words(now - steady - self._offset))
        self.ahead = now - steady - self._offset
        return steady + self._offset


def ahead_in_words(ahead: int) -> str:
    """What a clock that jumped means, for the log and for health."""
    return (
        f"the clock jumped {ahead / 1e6:,.0f} s ahead, which is not followed, for all that is open would run out of "
        f"patience: put the clock right; or, if the new time is right, start this process again"
    )


clock = GuardedClock(time.time_ns, _steady_clock())


class TooManyOpenError(LiveError):
    """A decision was refused because too many decisions wait for a reward."""


@dataclass(frozen=True, slots=True)
class LiveDecision:
    """What an experiment decided: play the arm.

    Parameters
    ----------
    id : to pass to `reward` and `forget`
    arm : name of the arm to play
    probability : with which it was drawn
    fallback : whether the fallback decided instead of the policy; its reward is journaled and not learned from

    >>> LiveDecision("a1-7", "9 EUR", 0.5).fallback
    False
    """

    id: str
    arm: str
    probability: float
    fallback: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    """A reward that was not taken.

    Parameters
    ----------
    id : of the decision
    reason : why it was not taken, in a sentence

    >>> Rejected("a1-7", "no decision has that id").id
    'a1-7'
    """

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class RewardAnswer:
    """The result of sending rewards.

    Parameters
    ----------
    accepted : how many were taken
    repeated : how many had been sent before with the same value
    late : how many came after their decision was closed; they change nothing, but where `AutoBandit` has patience
    rejected : those that were not taken

    >>> RewardAnswer(accepted=2).rejected
    ()
    """

    accepted: int = 0
    repeated: int = 0
    late: int = 0
    rejected: tuple[Rejected, ...] = ()


@dataclass(slots=True, eq=False)
class Request:
    """One call, waiting to be served; `future` gets the answer once its events are on disk.

    `most` limits what the experiment may have after it: open decisions, or arms with the retired ones. `owner` is whose
    key it is: two owners may use the same one.
    """

    kind: str
    values: dict[str, Any]
    key: str | None = None
    most: int | None = None
    owner: str = ""
    future: Future[Any] = field(default_factory=Future)

    @property
    def stored_key(self) -> str | None:
        """The key under which the answer is stored."""
        return owned(self.key, self.owner)

    @property
    def digest(self) -> str:
        """Recognises a repeated request."""
        text = json.dumps([self.kind, self.values], sort_keys=True, default=repr)
        return hashlib.sha256(text.encode()).hexdigest()


def check_key(key: Any) -> str | None:
    """An idempotency key."""
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY or breaking(key) is not None:
        raise InputError(
            f"a key is a text of 1 to {LONGEST_KEY} characters without line breaks or control codes, got {shown(key)}"
        )
    return key


def owned(key: str | None, owner: str) -> str | None:
    """A key with its owner; no key has a line break, so that no two are the same."""
    return f"{owner}\n{key}" if owner and key is not None else key


class Handlers:
    """Serves the requests to one experiment, on its replica and its journal."""

    def __init__(self, replica: Replica, journal: Journal, now: Callable[[], int] = clock) -> None:
        self.replica = replica
        self.journal = journal
        self.now = now
        self._expiry_seconds = FIRST_EXPIRY_SECONDS  # of one decision, as measured

    def serve(self, request: Request) -> Any:
        """Serve a request. An error by the caller changes nothing."""
        key = request.stored_key
        known = None if key is None else self.journal.answer(key)
        if known is not None:
            if known.digest != request.digest:
                raise KeyReusedError(f"the key {shown(request.key)} was used with another request; take a new key")
            return known.content
        answer = getattr(self, f"_{request.kind}")(request)
        if key is not None:
            self.journal.flush()
            self.journal.keep_answer(key, self.replica.time, request.digest, answer)
        return answer

    def expire(self, seconds: float) -> None:
        """Close what has run out of patience, the oldest first, for about so many seconds: an event for each slice."""
        now = max(self.replica.time, self.now())
        until = time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > seconds / 4:
            upto = self.replica.watermark(now, max(int(left / self._expiry_seconds), 1))
            if upto is None:
                return
            begun, waiting = time.perf_counter(), len(self.replica.open)
            self._happen("expired", decision=upto)
            took = (time.perf_counter() - begun) / max(waiting - len(self.replica.open), 1)
            self._expiry_seconds = max(took, self._expiry_seconds / 4, 1e-6)

    def _happen(self, kind: str, **values: Any) -> Event:
        """An event other than a decision, applied and journaled."""
        replica = self.replica
        event = replica.next_event(self.now(), kind, **values)
        try:
            replica.apply(event)
        except Exception as error:
            if kind in REFUSABLE and isinstance(error, InputError):
                raise  # the caller's mistake; nothing has changed
            replica.give_up(error)  # the event happened, whatever the policy makes of it
            replica.take(event)
        self.journal.add(event)
        return event

    # --- one method per kind of request --------------------------------------------------------------------------

    def _decide(self, request: Request) -> list[dict[str, Any]]:
        values = request.values
        contexts = values.get("contexts")
        size = check_size(values["size"] if contexts is None else len(contexts), MOST_PER_CALL)
        waiting = len(self.replica.open)
        if request.most is not None and waiting + size > request.most:
            raise TooManyOpenError(
                f"{waiting:,} decisions wait for a reward, and {request.most:,} may: send rewards, forget decisions, "
                f"or set patience"
            )
        more = {name: values[name] for name in ("contexts", "guest") if values.get(name)}
        events = self.replica.decide(size, values["allowed"], values["segment"], self.now(), request.key, **more)
        self.journal.add(*events)
        return [
            {
                "id": decision_id(self.journal.token, event.seq, event.time),
                "arm": self.replica.name_of(int(event.arm or 0)),
                "probability": event.probability,
                "fallback": bool(event.details.get("fallback", False)),
            }
            for event in events
        ]

    def _reward(self, request: Request) -> dict[str, Any]:
        """One reward: errors are raised."""
        outcome = self._take_reward(request, request.values["id"], request.values["reward"])
        return {"accepted": 0, "repeated": 0, "late": 0, "rejected": [], outcome: 1}

    def _rewards(self, request: Request) -> dict[str, Any]:
        """Several rewards: errors of one are reported in the answer, and the others are accepted."""
        answer: dict[str, Any] = {"accepted": 0, "repeated": 0, "late": 0, "rejected": []}
        for given, reward in request.values["rewards"]:
            try:
                answer[self._take_reward(request, given, reward)] += 1
            except DriftbanditsError as error:
                answer["rejected"].append({"id": str(given), "reason": str(error)})
        return answer

    def _take_reward(self, request: Request, given: Any, reward: Any) -> str:
        value = self._check_reward(reward)
        seq, key = self._find(request, given), None if request.kind == "rewards" else request.key
        if seq in self.replica.open:
            self._happen("rewarded", decision=seq, reward=value, key=key)
            return "accepted"
        self.journal.flush()
        closing = self.journal.closing(seq)
        if closing is not None and closing.kind == "rewarded":
            if closing.reward == value:
                return "repeated"
            raise ConflictError(f"decision {given} has the reward {closing.reward:g} already, got {value:g}")
        self._happen("rewarded", decision=seq, reward=value, key=key, payload=dump({"late": True}))
        return "late"

    def _check_reward(self, reward: Any) -> float:
        value = check_reward(reward)
        low, high = self.replica.definition.reward_range
        if value is None:
            raise RewardError(f"a reward is a finite number, got {shown(reward)}")
        clips = self.replica.definition.settings.get("out_of_range") == "clip"
        if not low <= value <= high and not clips:
            raise RewardError(
                f"reward {value:g} lies outside reward_range=({low:g}, {high:g}) of this experiment; send it in these "
                f"units, or make another experiment with a range that holds it"
            )
        return value

    def _find(self, request: Request, given: Any) -> int:
        """The seq of a decision by its id; guests find none that the policy would learn from."""
        seq = place_of(given)
        found = self.replica.open.get(seq)
        taught = seq in self.replica.expired or (found is not None and found.policy_id != NOT_OF_THE_POLICY)
        if taught and request.values.get("guest"):
            raise UnknownDecisionError(f"no decision for a guest has the id {shown(given)} in this experiment")
        if found is not None and decision_id(self.journal.token, seq, found.time) == given:
            return seq
        self.journal.flush()
        if self.journal.decision(given) is None:
            raise UnknownDecisionError(f"no decision has the id {shown(given)} in this experiment")
        return seq

    def _forget(self, request: Request) -> dict[str, Any]:
        seqs = {self._find(request, given): given for given in request.values["ids"]}
        for seq in sorted(seqs):
            if seq in self.replica.open:
                self._happen("forgotten", decision=seq)
        return {"forgotten": len(seqs)}

    def _arms(self, request: Request) -> dict[str, Any]:
        new = len(request.values.get("add", ()))
        if request.most is not None and len(self.replica.entries) + new > request.most:
            raise InputError(f"an experiment has at most {request.most:,} arms here, those that were retired included")
        for one in request.values.get("add") or ():
            name = one.get("name") if isinstance(one, dict) else one
            if isinstance(name, str):
                check_visible("names of arms", [name])
        payload = dump({name: given for name, given in request.values.items() if given})
        if payload is not None:
            self._happen("arms", payload=payload)
        entries = self.replica.entries
        return {
            "active": [entry.option.name for entry in entries if not entry.retired],
            "retired": [entry.option.name for entry in entries if entry.retired],
        }

    def _pause(self, _: Request) -> dict[str, Any]:
        if not self.replica.paused:
            self._happen("paused")
        return {"paused": True}

    def _resume(self, _: Request) -> dict[str, Any]:
        if self.replica.paused:
            self._happen("resumed")
        return {"paused": False}

    def _restart(self, _: Request) -> dict[str, Any]:
        self._happen("restarted")
        return {"restarts": self.replica.counts.restarts}

    def _clock(self, _: Request) -> dict[str, Any]:
        """Put the time of the journal back to the clock's, after that was ahead; how many seconds."""
        replica, now = self.replica, self.now()
        ahead = replica.time - now
        if ahead > 0:
            event = Event(replica.seq + 1, now, "settings", payload=dump({"clock": True})).sealed(replica.seal)
            replica.apply(event)
            self.journal.add(event)
        return {"seconds": max(ahead, 0) / 1e6}

    def _settings(self, request: Request) -> dict[str, Any]:
        if request.values:
            self._happen("settings", payload=dump(request.values))
        return {"patience": self.replica.patience, "fallback": self.replica.fallback}
