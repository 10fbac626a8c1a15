"""What a client sends and how it reads answers, without sending: the same for threads and for asyncio."""

from __future__ import annotations

import dataclasses
import math
import random
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import numpy as np

from driftbandits import errors
from driftbandits.errors import InputError, LiveError
from driftbandits.live.looking import ArmSummary, ExperimentSummary
from driftbandits.live.looking_back import DecisionRecord
from driftbandits.live.requests import LiveDecision, Rejected, RewardAnswer
from driftbandits.policies.records import History
from driftbandits.types import Change

AWAY = "away-"  # begins the ids of decisions that a client made itself
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds between two attempts
SLOW_SECONDS = 150.0  # for what takes a replay
_URN = "urn:driftbandits:"
_KINDS: dict[str, type[Exception]] = {
    "unknown-experiment": errors.UnknownExperimentError,
    "unknown-decision": errors.UnknownDecisionError,
    "experiment-exists": errors.ExperimentExistsError,
    "key-reused": errors.KeyReusedError,
    "conflict": errors.ConflictError,
    "gone": errors.GoneError,
    "not-stored": errors.NotStoredError,
    "other-decider": errors.OtherDeciderError,
    "reward": errors.RewardError,
    "input": errors.InputError,
}


@dataclass(frozen=True, slots=True)
class Sending:
    """A request, and what to make of its answer. One that changes something carries a key, so it can be sent again."""

    method: str
    path: str
    read: Callable[[Any], Any]
    body: dict[str, Any] | None = None
    key: str | None = None
    query: dict[str, Any] = field(default_factory=dict)
    slow: bool = False  # it takes a replay: one attempt has all the time there is

    @property
    def headers(self) -> dict[str, str]:
        """Of this request alone."""
        return {} if self.key is None else {"Idempotency-Key": self.key, "Content-Type": "application/json"}


def change(path: str, body: Mapping[str, Any], read: Callable[[Any], Any], key: str | None = None) -> Sending:
    """A request that changes something."""
    return Sending("POST", path, read, dict(body), key or secrets.token_hex(16))


def look(path: str, read: Callable[[Any], Any], **query: Any) -> Sending:
    """A request that changes nothing."""
    return Sending("GET", path, read, query=query)


def path_of(name: str) -> str:
    """The path of an experiment."""
    return f"/v1/experiments/{quote(name, safe='')}"


# --- answers ----------------------------------------------------------------------------------------------------------


def error_of(status: int, content: Any) -> Exception:
    """The library's own error for a problem that a server told of."""
    found = content if isinstance(content, dict) else {}
    kind = _KINDS.get(str(found.get("type", "")).removeprefix(_URN), InputError if status == 422 else LiveError)
    return kind(str(found.get("detail") or f"the server answered with status {status}"))


def read_decisions(answer: Any) -> list[LiveDecision]:
    """Decisions."""
    return [LiveDecision(**one) for one in answer["decisions"]]


def read_rewards(answer: Any) -> RewardAnswer:
    """What became of rewards."""
    rejected = tuple(Rejected(**one) for one in answer["rejected"])
    return RewardAnswer(answer["accepted"], answer["repeated"], answer["late"], rejected)


def read_summary(answer: Any) -> ExperimentSummary:
    """A summary, as a local experiment gives it."""
    names = [one.name for one in dataclasses.fields(ArmSummary)]
    arms = tuple(ArmSummary(**{name: arm[name] for name in names}) for arm in answer["arms"])
    values = {one.name: answer[one.name] for one in dataclasses.fields(ExperimentSummary)}
    return ExperimentSummary(**{**values, "arms": arms, "health": tuple(answer["health"])})


def read_changes(answer: Any) -> tuple[Change, ...]:
    """Changes, as a local experiment gives them."""
    names = {one.name for one in dataclasses.fields(Change)}
    return tuple(Change.from_dict({name: row[name] for name in row if name in names}) for row in answer["changes"])


def read_history(answer: Any) -> History | None:
    """Beliefs over time, as a local experiment gives them."""
    if not answer["rounds"]:
        return None
    names = tuple(answer["arms"])
    estimate, law = (_floats(answer[name]) for name in ("estimate", "probability"))
    low, high = (None if answer[name] is None else _floats(answer[name]) for name in ("low", "high"))
    return History(np.array(answer["rounds"]), np.arange(len(names)), names, estimate, law, low, high)


def _floats(rows: Any) -> Any:
    return np.array([[math.nan if value is None else value for value in row] for row in rows])


def read_record(answer: Any) -> DecisionRecord:
    """A decision that was looked back at."""
    return DecisionRecord(**answer)


# --- sending again ----------------------------------------------------------------------------------------------------


class Attempts:
    """When to send again, and when to give up: after `seconds` in all.

    An answer that leaves open what happened, or none at all, is followed by the same request with the same key. A
    conflict right after that says that the first is still under way.
    """

    def __init__(self, seconds: float, *, slow: bool = False, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        whole = max(seconds, SLOW_SECONDS) if slow else seconds
        self._end, self._each = now() + whole, whole if slow else 0.4 * whole
        self._pause = FIRST_PAUSE
        self._unsettled = False

    @property
    def left(self) -> float:
        """Seconds for the next attempt: two fit usually, so that a lost answer can still be asked for."""
        return max(min(self._end - self._now(), self._each), 0.001)

    def is_open(self, status: int) -> bool:
        """Whether an answer with this status is to be followed by another attempt."""
        return status in (502, 503, 504) or (status == 409 and self._unsettled)

    def pause(self, wanted: str | None = None) -> float | None:
        """How long to wait before the next attempt; None: give up."""
        self._unsettled = True
        least = float(wanted) if wanted is not None and wanted.isdigit() and self._pause > 0.3 else 0.0
        pause = max(self._pause * random.uniform(0.5, 1.0), min(least, LONGEST_PAUSE))
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return None if self._now() + pause >= self._end else pause


# --- when the service is away -----------------------------------------------------------------------------------------


class StandIn:
    """Decides while the service is away: the experiment's fallback, over the arms last seen active.

    After a failure the service is tried again once a second; in between, callers are not kept waiting.
    """

    TRY_AGAIN, LOOK_AGAIN = 1.0, 60.0  # seconds

    def __init__(self, name: str, now: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._now = now
        self._active: list[str] = []
        self._fallback: str | None = None
        self._seen_at = self._failed_at = -math.inf

    @property
    def is_due(self) -> bool:
        """Whether the arms should be looked at again."""
        return self._now() - self._seen_at > self.LOOK_AGAIN

    @property
    def is_away(self) -> bool:
        """Whether the service did not answer a moment ago."""
        return bool(self._active) and self._now() - self._failed_at < self.TRY_AGAIN

    def see(self, summary: Any) -> None:
        """A summary came: these arms are active."""
        self._active = [arm["name"] for arm in summary["arms"] if not arm["retired"]]
        self._fallback, self._seen_at = summary["fallback"], self._now()

    def put_off(self) -> None:
        """The arms could not be seen; not so soon again."""
        self._seen_at = self._now() - self.LOOK_AGAIN + self.TRY_AGAIN

    def see_arms(self, active: Iterable[str]) -> None:
        """These arms are active now."""
        self._active = list(active)

    def fail(self) -> None:
        """The service did not answer."""
        self._failed_at = self._now()

    def decide(self, size: int, allowed: Iterable[str] | None, error: Exception | None = None) -> list[LiveDecision]:
        """Decide here; raises `error` where no arm was ever seen."""
        names = None if allowed is None else set(allowed)
        choices = [name for name in self._active if names is None or name in names]
        if not choices:
            raise error or LiveError(f"the service is away, and nothing is known of experiment {self._name!r}")
        if self._fallback in choices:
            choices = [self._fallback]
        return [
            LiveDecision(f"{AWAY}{secrets.token_hex(8)}", random.choice(choices), 1.0 / len(choices), fallback=True)
            for _ in range(size)
        ]


def is_own(given: Any) -> bool:
    """Whether a decision was made by a client while the service was away."""
    return isinstance(given, str) and given.startswith(AWAY)
