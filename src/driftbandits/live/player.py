"""What follows from a journal: the policy, open decisions, arms, counts. The journal is the truth, this a cache.

A `Player` makes events and takes them in. Every event but a decision is taken in by `apply`, by the live writer and by
a replay alike; a decision is drawn live (`decide`) and imposed in a replay (`replay`), with the same result to the bit.
Nothing here reads a clock or the database.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from driftbandits.errors import InputError, UnknownDecisionError
from driftbandits.live.definition import Definition, check_fallback, check_patience
from driftbandits.live.entries import Entry, changed, number_of
from driftbandits.live.events import Event, check_event, dump
from driftbandits.policies import Policy, find_policy
from driftbandits.seeding import stream
from driftbandits.showing import first_line, shown
from driftbandits.types import Bools

log = logging.getLogger("driftbandits.live")
NOT_OF_THE_POLICY = -1  # in the place of the policy's id: a fallback decided, or a policy before a restart
MOST_AT_ONCE = 1000  # decisions imposed in one call


class Open(NamedTuple):
    """A decision whose reward has not come."""

    time: int
    arm: int
    policy_id: int


@dataclass(slots=True)
class Counts:
    """How much of everything there was."""

    decisions: int = 0
    fallbacks: int = 0
    rewards: int = 0
    untold: int = 0  # rewards journaled and not told: of fallbacks, or from before a restart
    late: int = 0
    expired: int = 0
    forgotten: int = 0
    restarts: int = 0


class Player:
    """The state of an experiment after event `seq`."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.entries = [Entry(option) for option in definition.arms]
        self.patience, self.fallback = definition.patience, definition.fallback
        self.paused = False
        self.trouble = ""  # why the policy cannot be asked, if it cannot
        self.counts = Counts()
        self.open: dict[int, Open] = {}  # by the seq of the decision, oldest first
        self.seq = self.time = self.seal = 0
        self.differing = 0  # rounds of a replay in which the policy would have drawn something else
        self.cost = 0.0  # seconds of processor that a replay of what came since the last snapshot takes, about
        self.policy: Policy | None = None
        self.restart_policy()

    # --- arms ---------------------------------------------------------------------------------------------------

    def restart_policy(self) -> None:
        """A policy with nothing learned."""
        numbers = self._offered()
        self.policy = self.definition.build_policy(self._build_arms(numbers))
        self.policy.law()  # it begins now, and not when someone first looks at it or asks
        self.trouble = ""
        self._number_arms()

    def _offered(self) -> list[int]:
        """Numbers of the entries that the policy knows: all, or the active ones where masked rounds teach nothing."""
        drops = not (self.policy or find_policy(self.definition.policy))._counts_masked
        return [number for number, entry in enumerate(self.entries) if not (drops and entry.retired)]

    def _build_arms(self, numbers: Sequence[int]) -> Any:
        return self.definition.build_arms([self.entries[number].option for number in numbers], numbers)

    def _number_arms(self) -> None:
        """Which entry each arm of the policy is; arms of later segments repeat the options."""
        self._known = {entry.option.name: number for number, entry in enumerate(self.entries)}
        if self.policy is not None:
            arms = self.policy.arms
            inner = arms if self.definition.segments is None else arms.crossing.options  # type: ignore[union-attr]
            self._numbers = np.array([self._known[name] for name in inner.names or ()])

    def active(self) -> Bools:
        """Which entries may be decided for."""
        return np.array([not entry.retired for entry in self.entries])

    def number_of(self, name: Any) -> int:
        """Number of the arm called `name`."""
        return number_of(self._known, name)

    def name_of(self, number: int) -> str:
        """Name of an arm."""
        return self.entries[number].option.name

    # --- events -------------------------------------------------------------------------------------------------

    def next_event(self, clock: int, kind: str, **values: Any) -> Event:
        """The event that would come next; `take` makes it so. Time never goes back, whatever the clock does."""
        return Event(self.seq + 1, max(self.time, clock), kind, **values).sealed(self.seal)

    def take(self, event: Event) -> None:
        """This event has happened."""
        self.seq, self.time, self.seal = event.seq, event.time, event.seal

    # --- deciding -----------------------------------------------------------------------------------------------

    def decide(self, size: int, allowed: Any, segment: Any, clock: int, key: str | None) -> list[Event]:
        """Decide `size` times: by the policy, or by the fallback where that cannot."""
        mask, details = self._read_request(allowed, segment)
        begun = time.thread_time()
        drawn = None if self.paused else self._ask(size, mask, details)
        self.cost += time.thread_time() - begun
        made = []
        for place in range(size):
            if drawn is None:
                arm, probability = self._fall_back(mask)
                policy_id = NOT_OF_THE_POLICY
                payload = dump({**details, "fallback": True})
            else:
                arm, probability, policy_id = drawn[place]
                payload = dump(details)
            event = self.next_event(
                clock, "decided", arm=arm, probability=probability, key=key if place == 0 else None, payload=payload
            )
            self._note_decision(event, policy_id)
            made.append(event)
        return made

    def _read_request(self, allowed: Any, segment: Any) -> tuple[Bools, dict[str, Any]]:
        mask, details = self.active(), {}
        if allowed is not None:
            if isinstance(allowed, (str, bytes)) or not isinstance(allowed, Iterable):
                raise InputError(f"allowed must be a list of names of arms, got {shown(allowed)}")
            numbers = sorted({self.number_of(name) for name in allowed})
            chosen = np.zeros(len(mask), dtype=np.bool_)
            chosen[numbers] = True
            mask &= chosen
            details["allowed"] = numbers
        if not mask.any():
            raise InputError("no arm is left to decide for: all that are allowed are retired; bring one back")
        known = None if self.definition.segments is None else [item.name for item in self.definition.segments]
        if known is None and segment is not None:
            raise InputError(f"this experiment has no segments, got segment={shown(segment)}")
        if known is not None and segment not in known:
            raise InputError(f"segment must be one of {', '.join(map(shown, known[:20]))}, got {shown(segment)}")
        if segment is not None:
            details["segment"] = segment
        return mask, details

    def _policy_mask(self, mask: Bools, segment: str | None) -> Bools | None:
        """`mask` over the entries as one over the policy's arms; None if nothing is forbidden."""
        policy = self.policy
        if policy is None:
            return None
        here = mask[self._numbers]
        if segment is not None:
            here = np.tile(here, len(self.definition.segments or ())) & policy.arms.of(segment)
        return None if here.all() else here

    def _ask(self, size: int, mask: Bools, details: dict[str, Any]) -> list[tuple[int, float, int]] | None:
        policy = self.policy
        if policy is None:
            return None
        allowed = self._policy_mask(mask, details.get("segment"))
        try:
            if size == 1:
                one = policy.ask(allowed=allowed)
                return [(self._entry(one.arm), one.probability, one.id)]
            several = policy.ask(size=size, allowed=allowed)
            return [(self._entry(one.arm), one.probability, one.id) for one in several]
        except Exception as error:  # noqa: BLE001  # whatever a policy raises, a decision is due
            self.give_up(error)
            return None

    def _entry(self, arm: int) -> int:
        return int(self._numbers[arm % len(self._numbers)])

    def _fall_back(self, mask: Bools) -> tuple[int, float]:
        """The arm named for it, if it may be played, or any that may; each by its true probability."""
        named = None if self.fallback is None else self._known.get(self.fallback)
        if named is not None and mask[named]:
            return named, 1.0
        choices = np.flatnonzero(mask)
        uniform = stream(self.definition.seed, "fallback", self.seq + 1).random()
        return int(choices[min(int(uniform * len(choices)), len(choices) - 1)]), 1.0 / len(choices)

    def _note_decision(self, event: Event, policy_id: int) -> None:
        self.open[event.seq] = Open(event.time, int(event.arm or 0), policy_id)
        self.counts.decisions += 1
        self.counts.fallbacks += policy_id == NOT_OF_THE_POLICY
        self.take(event)

    # --- everything else ----------------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Take in an event that is no decision. What is refused, by an InputError, changes nothing."""
        begun = time.thread_time()
        getattr(self, f"_{event.kind}")(event)
        self.cost += time.thread_time() - begun
        self.take(event)

    def _created(self, _: Event) -> None:
        pass

    def _rewarded(self, event: Event) -> None:
        found = self.open.pop(event.decision or 0, None)
        if found is None:
            self.counts.late += 1
            return
        self.counts.rewards += 1
        if self.policy is None or found.policy_id == NOT_OF_THE_POLICY:
            self.counts.untold += 1
        else:
            self._teach(self.policy.tell, found.policy_id, event.reward)

    def _forgotten(self, event: Event) -> None:
        found = self.open.pop(event.decision or 0, None)
        self.counts.forgotten += 1
        if self.policy is not None and found is not None and found.policy_id != NOT_OF_THE_POLICY:
            self._teach(self.policy.forget, found.policy_id)

    def _expired(self, event: Event) -> None:
        """All decisions up to the watermark, in one call."""
        upto = event.decision or 0
        gone = list(takewhile(lambda seq: seq <= upto, self.open))
        closed = [self.open.pop(seq) for seq in gone]
        self.counts.expired += len(closed)
        ids = [one.policy_id for one in closed if one.policy_id != NOT_OF_THE_POLICY]
        if self.policy is not None and ids:
            self._teach(self.policy.expire, ids)

    def _teach(self, method: Any, *values: Any) -> None:
        try:
            method(*values)
        except UnknownDecisionError:  # dropped by pending_limit: nothing is known of it any more
            self.counts.late += 1
        except Warning as warning:  # raised where warnings are errors, after the policy has learned
            log.warning("%s", warning)

    def _paused(self, _: Event) -> None:
        self.paused = True

    def _resumed(self, _: Event) -> None:
        self.paused = False

    def _restarted(self, _: Event) -> None:
        self.restart_policy()
        self.counts.restarts += 1
        self.open = {seq: one._replace(policy_id=NOT_OF_THE_POLICY) for seq, one in self.open.items()}

    def _settings(self, event: Event) -> None:
        details = event.details
        patience = check_patience(details["patience"]) if "patience" in details else self.patience
        if patience is not None and self.definition.missing is None:
            raise InputError("patience needs missing, and this experiment was made without; make another")
        if (patience is None) != (self.definition.patience is None):
            raise InputError("whether there is patience decides how the policy learns; make another experiment")
        if "fallback" in details:
            check_fallback(details["fallback"], [entry.option for entry in self.entries])
            self.fallback = details["fallback"]
        self.patience = patience

    def _arms(self, event: Event) -> None:
        entries = changed(self.entries, event.details)
        before, self.entries = self.entries, entries
        try:
            self._give_arms()
        except BaseException:
            self.entries = before
            raise
        self._number_arms()

    def _give_arms(self) -> None:
        """Hand the policy the arms as they are now, if they are others than it has."""
        if self.policy is None:
            return
        arms = self._build_arms(self._offered())
        if arms.names != self.policy.arms.names:
            self.policy = self.policy.with_arms(arms)

    def give_up(self, error: BaseException) -> None:
        """The policy cannot go on: the fallback answers from now on."""
        self.trouble = f"{type(error).__name__}: {first_line(error)}"
        log.error("the policy %s stopped after event %d: %s", self.definition.policy, self.seq, self.trouble)
        self.policy = None

    def first_due(self) -> int | None:
        """When the oldest open decision runs out of patience."""
        if self.patience is None or not self.open:
            return None
        return next(iter(self.open.values())).time + round(1e6 * self.patience)

    def watermark(self, now: int) -> int | None:
        """The newest decision that has run out of patience; None if none has."""
        due = self.first_due()
        if due is None or due > now:
            return None
        limit = now - round(1e6 * (self.patience or 0.0))
        return list(takewhile(lambda seq: self.open[seq].time <= limit, self.open))[-1]

    # --- replay -------------------------------------------------------------------------------------------------

    def replay(self, events: Iterable[Event]) -> int:
        """Take in events that were journaled; how many. Errors of the policy and damaged events are raised."""
        count, before = 0, None
        waiting: list[Event] = []
        for event in events:
            check_event(event, before, self.seal if before is None else before.seal)
            if waiting and (event.kind != "decided" or event.payload != waiting[0].payload or _full(waiting)):
                self._impose(waiting)
                waiting = []
            if event.kind == "decided":
                waiting.append(event)
            else:
                self.apply(event)
            count, before = count + 1, event
        if waiting:
            self._impose(waiting)
        return count

    def _impose(self, events: Sequence[Event]) -> None:
        """Decisions of one kind, one after the other in the journal."""
        details = events[0].details
        if details.get("fallback") or self.policy is None:
            for event in events:
                self._note_decision(event, NOT_OF_THE_POLICY)
            return
        begun = time.thread_time()
        mask = self.active()
        if "allowed" in details:
            chosen = np.zeros(len(mask), dtype=np.bool_)
            chosen[details["allowed"]] = True
            mask &= chosen
        allowed = self._policy_mask(mask, details.get("segment"))
        places = {int(number): place for place, number in enumerate(self._numbers)}
        arms = np.array([places[int(event.arm or 0)] for event in events])
        if "segment" in details:
            segments = [item.name for item in self.definition.segments or ()]
            arms += segments.index(details["segment"]) * len(self._numbers)
        found = self.policy.impose(arms, [float(event.probability or 0.0) for event in events], allowed)
        self.differing += found.differing
        self.cost += time.thread_time() - begun
        for event, policy_id in zip(events, found.decisions.ids.tolist(), strict=True):
            self._note_decision(event, policy_id)

    def books(self) -> dict[str, Any]:
        """Everything but the policy and the open decisions, as JSON values."""
        return {
            "seq": self.seq,
            "time": self.time,
            "seal": self.seal,
            "paused": self.paused,
            "trouble": self.trouble,
            "patience": self.patience,
            "fallback": self.fallback,
            "counts": asdict(self.counts),
            "arms": json.dumps([[e.option.name, list(e.option.features), e.retired] for e in self.entries]),
        }


def _full(waiting: Sequence[Event]) -> bool:
    return len(waiting) == MOST_AT_ONCE
