"""What follows from a journal: the policy, open decisions, arms, counts. The journal is the truth, this a cache.

A `Player` makes events and takes them in. Every event but a decision is taken in by `apply`, by the live writer and by
a replay alike; a decision is drawn live (`decide`) and imposed in a replay (`replay`), with the same result to the bit.
Nothing here reads a clock or the database.
"""

from __future__ import annotations

import json
import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from driftbandits.errors import HeldRewardsWarning, InputError, UnknownDecisionError
from driftbandits.live.definition import Definition, check_fallback, check_patience
from driftbandits.live.entries import changed
from driftbandits.live.events import Event, check_event, dump
from driftbandits.live.roster import Roster
from driftbandits.policies import Policy
from driftbandits.seeding import stream
from driftbandits.showing import first_line
from driftbandits.types import Bools, Floats

log = logging.getLogger("driftbandits.live")
NOT_OF_THE_POLICY = -1  # in the place of the policy's id: a fallback decided, or a policy before a restart
MOST_AT_ONCE = 1000  # decisions imposed in one call
MOST_OPEN = 1_000_000  # decisions without a reward that are remembered; the oldest is dropped for another
EVENT_SECONDS = 2e-5  # of processor that a replay takes to read and check an event, beside what the policy does with it


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
    dropped: int = 0  # open decisions beyond `MOST_OPEN`
    restarts: int = 0


class Player(Roster):
    """The state of an experiment after event `seq`; without a policy the books are kept all the same."""

    def __init__(self, definition: Definition, *, with_policy: bool = True) -> None:
        super().__init__(definition)
        self.patience = definition.patience
        self.paused = False
        self.trouble = ""  # why the policy cannot be asked, if it cannot
        self.counts = Counts()
        self.notices: dict[str, str] = {}  # what the policy warned of, by the kind of warning
        self.open: OrderedDict[int, Open] = OrderedDict()  # by the seq of the decision, oldest first
        self.seq = self.time = self.seal = 0
        self.differing = 0  # rounds of a replay in which the policy would have drawn something else
        self.cost = 0.0  # seconds of processor that a replay of what came since the last snapshot takes, about
        if with_policy:
            self.restart_policy()

    # --- the policy ---------------------------------------------------------------------------------------------

    def restart_policy(self) -> None:
        """A policy with nothing learned."""
        self.adopt(self.definition.build_policy(self.build_arms()))
        self.trouble, self.notices = "", {}

    def adopt(self, policy: Policy) -> None:
        """Let this policy decide; what it warns of is kept, for nobody would see it."""
        policy.law()  # it begins now, and not when someone first looks at it or asks
        policy._listener = self._hear
        self.policy = policy
        self.number_arms()

    def _hear(self, warning: UserWarning) -> None:
        if isinstance(warning, HeldRewardsWarning):  # that rewards wait is what patience means
            return
        self.notices[type(warning).__name__] = str(warning)
        log.warning("%s", warning)

    # --- events -------------------------------------------------------------------------------------------------

    def next_event(self, clock: int, kind: str, **values: Any) -> Event:
        """The event that would come next; `take` makes it so. Time never goes back, whatever the clock does."""
        return Event(self.seq + 1, max(self.time, clock), kind, **values).sealed(self.seal)

    def take(self, event: Event) -> None:
        """This event has happened."""
        self.seq, self.time, self.seal = event.seq, event.time, event.seal
        self.cost += EVENT_SECONDS

    def pass_over(self, event: Event) -> None:
        """This event is damaged: the next one comes behind it, and of its values none is believed."""
        time = event.time if isinstance(event.time, int) else self.time
        self.take(event._replace(time=max(self.time, time), seal=event.seal if isinstance(event.seal, int) else 0))

    # --- deciding -----------------------------------------------------------------------------------------------

    def decide(self, size: int, allowed: Any, segment: Any, clock: int, key: str | None) -> list[Event]:
        """Decide `size` times: by the policy, or by the fallback where that cannot."""
        mask, details = self.read_request(allowed, segment)
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

    def _ask(self, size: int, mask: Bools, details: dict[str, Any]) -> list[tuple[int, float, int]] | None:
        policy = self.policy
        if policy is None:
            return None
        allowed = self.policy_mask(mask, details.get("segment"))
        try:
            if size == 1:
                one = policy.ask(allowed=allowed)
                return [(self.entry_of(one.arm), one.probability, one.id)]
            several = policy.ask(size=size, allowed=allowed)
            return [(self.entry_of(one.arm), one.probability, one.id) for one in several]
        except Exception as error:  # noqa: BLE001  # whatever a policy raises, a decision is due
            self.give_up(error)
            return None

    def _fall_back(self, mask: Bools) -> tuple[int, float]:
        """The arm named for it, if it may be played, or any that may; each by its true probability."""
        choices = self.stand_ins(mask)
        uniform = stream(self.definition.seed, "fallback", self.seq + 1).random()
        return choices[min(int(uniform * len(choices)), len(choices) - 1)], 1.0 / len(choices)

    def law(self, mask: Bools, segment: str | None) -> Floats:
        """With what probability each entry would be decided for now, if these were allowed."""
        law = np.zeros(len(self.entries))
        if self.policy is None or self.paused:
            choices = self.stand_ins(mask)
            law[choices] = 1.0 / len(choices)
        else:
            law[self.numbers] = self.of_segment(self.policy.law(self.policy_mask(mask, segment)), segment)
        return law

    def _note_decision(self, event: Event, policy_id: int) -> None:
        self.open[event.seq] = Open(event.time, int(event.arm or 0), policy_id)
        self.counts.decisions += 1
        self.counts.fallbacks += policy_id == NOT_OF_THE_POLICY
        if len(self.open) > MOST_OPEN:
            self.open.popitem(last=False)
            self.counts.dropped += 1
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

    def _paused(self, _: Event) -> None:
        self.paused = True

    def _resumed(self, _: Event) -> None:
        self.paused = False

    def _restarted(self, _: Event) -> None:
        self.restart_policy()
        self.counts.restarts += 1
        self.disown()

    def disown(self) -> None:
        """The open decisions are no longer the policy's: their rewards will be journaled and not told."""
        for seq, one in self.open.items():
            self.open[seq] = one._replace(policy_id=NOT_OF_THE_POLICY)

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
        self.number_arms()

    def _give_arms(self) -> None:
        """Hand the policy the arms as they are now, if they are others than it has."""
        if self.policy is None:
            return
        arms = self.build_arms()
        if arms.names != self.policy.arms.names:
            self.adopt(self.policy.with_arms(arms))

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
                self.replay_decisions(waiting)
                waiting = []
            if event.kind == "decided":
                waiting.append(event)
            else:
                self.apply(event)
            count, before = count + 1, event
        if waiting:
            self.replay_decisions(waiting)
        return count

    def replay_decisions(self, events: Sequence[Event]) -> None:
        """Take in decisions that were journaled one after the other, all with the same payload."""
        details = events[0].details
        if details.get("fallback") or self.policy is None:
            for event in events:
                self._note_decision(event, NOT_OF_THE_POLICY)
            return
        begun = time.thread_time()
        segment = details.get("segment")
        allowed = self.policy_mask(self.mask_of(details), segment)
        arms = [self.arm_of(int(event.arm or 0), segment) for event in events]
        shares = [float(event.probability or 0.0) for event in events]
        one = len(events) == 1  # by far the most: what is not a list is quicker
        found = self.policy.impose(arms[0] if one else arms, shares[0] if one else shares, allowed)
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
            "notices": json.dumps(self.notices),
            "patience": self.patience,
            "fallback": self.fallback,
            "counts": asdict(self.counts),
            "arms": json.dumps([[e.option.name, list(e.option.features), e.retired] for e in self.entries]),
        }


def _full(waiting: Sequence[Event]) -> bool:
    return len(waiting) == MOST_AT_ONCE
