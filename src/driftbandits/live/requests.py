"""What callers may ask of an experiment, and what they are answered: plain values, so that answers can be kept."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from driftbandits.errors import InputError
from driftbandits.showing import breaking, shown

LONGEST_KEY = 200  # characters


@dataclass(frozen=True, slots=True)
class LiveDecision:
    """What an experiment decided: play the arm.

    Parameters
    ----------
    id : what `reward` and `forget` want back
    arm : name of the arm to play
    probability : with which it was drawn
    fallback : whether not the policy decided but what stands in for it; its reward is journaled and not learned from

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
    """What became of rewards.

    Parameters
    ----------
    accepted : how many were taken
    repeated : how many had been told before with the same value
    late : how many came after their decision was closed; they change nothing
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
    """One call, waiting to be served; `future` gets the answer once its events are on disk."""

    kind: str
    values: dict[str, Any]
    key: str | None = None
    future: Future[Any] = field(default_factory=Future)

    @property
    def digest(self) -> str:
        """By which the same request is known again."""
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
