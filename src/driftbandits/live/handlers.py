"""What each kind of request does: checks, events, an answer in plain values. Runs in the writer's thread alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from driftbandits.errors import (
    ConflictError,
    DriftbanditsError,
    InputError,
    KeyReusedError,
    RewardError,
    UnknownDecisionError,
)
from driftbandits.live.definition import check_size
from driftbandits.live.events import Event, check_reward, decision_id, dump, place_of
from driftbandits.live.journal import Journal
from driftbandits.live.player import Player
from driftbandits.live.requests import Request
from driftbandits.showing import shown

MOST_PER_CALL = 1000  # decisions, or rewards
REFUSABLE = ("arms", "settings")  # events that are checked when they are taken in


def clock() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


class Handlers:
    """Requests of one experiment, served on a player and a journal."""

    def __init__(self, player: Player, journal: Journal, now: Callable[[], int] = clock) -> None:
        self.player = player
        self.journal = journal
        self.now = now

    def serve(self, request: Request) -> Any:
        """The answer; an error of the caller's changes nothing."""
        known = None if request.key is None else self.journal.answer(request.key)
        if known is not None:
            if known.digest != request.digest:
                raise KeyReusedError(f"the key {shown(request.key)} was used with another request; take a new key")
            return known.content
        answer = getattr(self, f"_{request.kind}")(request)
        if request.key is not None:
            self.journal.flush()
            self.journal.keep_answer(request.key, self.player.time, request.digest, answer)
        return answer

    def expire(self) -> None:
        """Close what has run out of patience: one event for all of it."""
        now = max(self.player.time, self.now())
        upto = self.player.watermark(now)
        if upto is not None:
            self._happen("expired", decision=upto)

    def _happen(self, kind: str, **values: Any) -> Event:
        """An event that is no decision, taken in and journaled."""
        player = self.player
        event = player.next_event(self.now(), kind, **values)
        try:
            player.apply(event)
        except Exception as error:
            if kind in REFUSABLE and isinstance(error, InputError):
                raise  # the caller's mistake; nothing has changed
            player.give_up(error)  # the event is true whatever the policy makes of it
            player.take(event)
        self.journal.add(event)
        return event

    # --- one method per kind of request --------------------------------------------------------------------------

    def _decide(self, request: Request) -> list[dict[str, Any]]:
        values = request.values
        size = check_size(values["size"], MOST_PER_CALL)
        events = self.player.decide(size, values["allowed"], values["segment"], self.now(), request.key)
        self.journal.add(*events)
        return [
            {
                "id": decision_id(self.journal.token, event.seq, event.time),
                "arm": self.player.name_of(int(event.arm or 0)),
                "probability": event.probability,
                "fallback": bool(event.details.get("fallback", False)),
            }
            for event in events
        ]

    def _reward(self, request: Request) -> dict[str, Any]:
        """One reward: what is wrong with it is raised."""
        outcome = self._take_reward(request.values["id"], request.values["reward"], request.key)
        return {"accepted": 0, "repeated": 0, "late": 0, "rejected": [], outcome: 1}

    def _rewards(self, request: Request) -> dict[str, Any]:
        """Several: what is wrong with one is answered, and the others are taken."""
        answer: dict[str, Any] = {"accepted": 0, "repeated": 0, "late": 0, "rejected": []}
        for given, reward in request.values["rewards"]:
            try:
                answer[self._take_reward(given, reward, None)] += 1
            except DriftbanditsError as error:
                answer["rejected"].append({"id": str(given), "reason": str(error)})
        return answer

    def _take_reward(self, given: Any, reward: Any, key: str | None) -> str:
        value = self._check_reward(reward)
        seq = self._find(given)
        if seq in self.player.open:
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
        low, high = self.player.definition.reward_range
        if value is None:
            raise RewardError(f"a reward is a finite number, got {shown(reward)}")
        clips = self.player.definition.settings.get("out_of_range") == "clip"
        if not low <= value <= high and not clips:
            raise RewardError(
                f"reward {value:g} lies outside reward_range=({low:g}, {high:g}) of this experiment; send it in these "
                f"units, or make another experiment with a range that holds it"
            )
        return value

    def _find(self, given: Any) -> int:
        """The seq of a decision by its id."""
        seq = place_of(given)
        found = self.player.open.get(seq)
        if found is not None and decision_id(self.journal.token, seq, found.time) == given:
            return seq
        self.journal.flush()
        if self.journal.decision(given) is None:
            raise UnknownDecisionError(f"no decision has the id {shown(given)} in this experiment")
        return seq

    def _forget(self, request: Request) -> dict[str, Any]:
        seqs = {self._find(given): given for given in request.values["ids"]}
        for seq in sorted(seqs):
            if seq in self.player.open:
                self._happen("forgotten", decision=seq)
        return {"forgotten": len(seqs)}

    def _arms(self, request: Request) -> dict[str, Any]:
        payload = dump({name: given for name, given in request.values.items() if given})
        if payload is not None:
            self._happen("arms", payload=payload)
        entries = self.player.entries
        return {
            "active": [entry.option.name for entry in entries if not entry.retired],
            "retired": [entry.option.name for entry in entries if entry.retired],
        }

    def _pause(self, _: Request) -> dict[str, Any]:
        if not self.player.paused:
            self._happen("paused")
        return {"paused": True}

    def _resume(self, _: Request) -> dict[str, Any]:
        if self.player.paused:
            self._happen("resumed")
        return {"paused": False}

    def _restart(self, _: Request) -> dict[str, Any]:
        self._happen("restarted")
        return {"restarts": self.player.counts.restarts}

    def _settings(self, request: Request) -> dict[str, Any]:
        if request.values:
            self._happen("settings", payload=dump(request.values))
        return {"patience": self.player.patience, "fallback": self.player.fallback}
