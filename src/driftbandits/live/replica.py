"""The state that follows from a journal: policy, arms, open decisions, counts. The journal is the truth, this a cache.

A `Replica` makes events and applies them. Every event but a decision is applied by `apply`, in the live writer and in
a replay alike; a decision is drawn live (`decide`) and imposed in a replay (`replay`), with the same result to the bit.
Nothing here reads a clock or the database.

The base class `Roster` maps arms: an entry keeps its number for good, retired or not. A policy knows all entries, or
the active ones alone; with segments every entry that it knows is one of its arms per segment, segment after segment.
"""

from __future__ import annotations

import json
import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, takewhile
from typing import Any, NamedTuple

import numpy as np

from driftbandits._util.seeding import stream
from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.contexts import is_missing
from driftbandits.errors import HeldRewardsWarning, InputError, UnknownDecisionError
from driftbandits.live.definition import Definition, Entry, changed, check_fallback, check_patience, number_of
from driftbandits.live.journal import Event, check_event, dump
from driftbandits.policies import Policy, find_policy
from driftbandits.text import first_line, shown
from driftbandits.types import Bools, Floats

log = logging.getLogger("driftbandits.live")
NOT_OF_THE_POLICY = -1  # in the place of the policy's id: a fallback or a guest's draw, or a policy before a restart
MOST_AT_ONCE = 1000  # decisions imposed in one call
LARGEST_CONTEXT = 65_536  # bytes of a request's context, as JSON
MOST_OPEN = 1_000_000  # decisions without a reward that are remembered; the oldest is dropped for another
MOST_EXPIRED = 200_000  # closed decisions whose late rewards are still learned; the oldest is given up for another
EVENT_SECONDS = 2e-5  # of CPU for reading and checking an event in a replay, beside the policy's own


class Roster:
    """Entries, and which of them the arms of `policy` are."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.contexts = definition.build_contexts()
        self.entries = [Entry(option) for option in definition.arms]
        self.fallback = definition.fallback
        self.policy: Policy | None = None
        self.numbers = np.zeros(0, dtype=np.int64)  # of the entries that the policy knows, in the order of its arms
        self.places: dict[int, int] = {}  # of these in that order, by number
        self.number_arms()

    # --- entries ------------------------------------------------------------------------------------------------

    def number_arms(self) -> None:
        """Map entries and the policy's arms again, after either has changed."""
        self._known = {entry.option.name: number for number, entry in enumerate(self.entries)}
        self._active = np.array([not entry.retired for entry in self.entries])
        if self.policy is not None:
            arms = self.policy.arms
            inner = arms if arms.crossing is None else arms.crossing.options
            self.numbers = np.array([self._known[name] for name in inner.names or ()])
            self.places = {number: place for place, number in enumerate(self.numbers.tolist())}

    def active(self) -> Bools:
        """Which entries may be decided for."""
        return self._active.copy()

    def name_of(self, number: int) -> str:
        """Name of an entry."""
        return self.entries[number].option.name

    def segment_number(self, segment: str | None) -> int:
        """Number of a segment; 0 where there are none."""
        return 0 if segment is None else [item.name for item in self.definition.segments or ()].index(segment)

    # --- what a request may be decided for ----------------------------------------------------------------------

    def read_request(self, allowed: Any, segment: Any) -> tuple[Bools, dict[str, Any]]:
        """Which entries may be decided for, and what of the request is journaled."""
        details: dict[str, Any] = {}
        if allowed is not None:
            if isinstance(allowed, (str, bytes)) or not isinstance(allowed, Iterable):
                raise InputError(f"allowed must be a list of names of arms, got {shown(allowed)}")
            details["allowed"] = sorted({number_of(self._known, name) for name in allowed})
        mask = self.mask_of(details)
        if not mask.any():
            empty = allowed is not None and not details["allowed"]
            why = "allowed is empty; leave it out to allow all" if empty else "all that are allowed are retired"
            raise InputError(f"no arm is left to decide for: {why}")
        known = None if self.definition.segments is None else [item.name for item in self.definition.segments]
        if known is None and segment is not None:
            raise InputError(f"this experiment has no segments, got segment={shown(segment)}")
        if known is not None and segment not in known:
            raise InputError(f"segment must be one of {', '.join(map(shown, known[:20]))}, got {shown(segment)}")
        if segment is not None:
            details["segment"] = segment
        return mask, details

    def read_contexts(self, contexts: Any) -> list[Any] | None:
        """Contexts as they are journaled, in plain values without missing ones; None where requests have none."""
        known = self.contexts
        if known is None and contexts is not None:
            raise InputError("this experiment has no contexts; leave context out, or make another with contexts")
        if known is None:
            return None
        if contexts is None:
            raise InputError(
                f"each decision needs its context: pass context for one, or contexts for several in the place of a "
                f"size; {known!r}"
            )
        if len(contexts) == 1:
            return [self._read_context(contexts[0])]
        found = []
        for place, one in enumerate(contexts):
            try:
                found.append(self._read_context(one))
            except InputError as error:
                raise InputError(f"row {place}: {error}") from None
        return found

    def _read_context(self, given: Any) -> Any:
        if self.contexts is not None:
            self.contexts.read(given)
        columns = given if isinstance(given, Mapping) else {"": given}
        plain = {name: value for name, value in columns.items() if not is_missing(value)}
        try:
            sizes = {name: len(json.dumps(value, ensure_ascii=False).encode()) for name, value in plain.items()}
        except (TypeError, ValueError) as error:
            raise InputError(f"a context must hold numbers, texts, booleans and lists: {error}") from None
        if sum(sizes.values()) > LARGEST_CONTEXT:
            name = max(sizes, key=lambda name: sizes[name])
            what = f"the context column {name!r}" if name else "the context"
            raise InputError(
                f"{what} has {sizes[name]:,} bytes as JSON; a context may have {LARGEST_CONTEXT:,}: send less of it"
            )
        return plain if isinstance(given, Mapping) else given

    def mask_of(self, details: Mapping[str, Any]) -> Bools:
        """Which entries a decision with this payload can be for."""
        if "allowed" not in details:
            return self._active
        mask = np.zeros(len(self._active), dtype=np.bool_)
        mask[details["allowed"]] = True
        mask &= self._active
        return mask

    def stand_ins(self, mask: Bools) -> list[int]:
        """What the fallback chooses from: the arm named for it, if it may be played, or all that may."""
        named = None if self.fallback is None else self._known.get(self.fallback)
        return [named] if named is not None and mask[named] else np.flatnonzero(mask).tolist()

    # --- arms of the policy -------------------------------------------------------------------------------------

    def build_arms(self) -> ArmSet:
        """The arms for the policy: all entries, or the active ones where masked rounds teach it nothing."""
        numbers = self._of_policy()
        return self.definition.build_arms([self.entries[number].option for number in numbers], numbers)

    def _of_policy(self) -> list[int]:
        drops = not (self.policy or find_policy(self.definition.policy)).counts_masked
        return [number for number, entry in enumerate(self.entries) if not (drops and entry.retired)]

    def policy_mask(self, mask: Bools, segment: str | None) -> Bools | None:
        """`mask` over the entries as one over the policy's arms; None if nothing is forbidden."""
        here = mask[self.numbers]
        if segment is not None and self.policy is not None:
            here = np.tile(here, len(self.definition.segments or ())) & self.policy.arms.of(segment)
        return None if here.all() else here

    def entry_of(self, arm: int) -> int:
        """Number of the entry that an arm of the policy represents."""
        return int(self.numbers[arm % len(self.numbers)])

    def arm_of(self, number: int, segment: str | None) -> int:
        """The policy's arm for an entry."""
        return self.places[number] + self.segment_number(segment) * len(self.numbers)

    def of_segment(self, column: Floats, segment: str | None) -> Floats:
        """A column of the policy's arms, those of a segment alone where there are segments."""
        size, place = len(self.numbers), self.segment_number(segment)
        return column[place * size : (place + 1) * size]


class Open(NamedTuple):
    """A decision whose reward has not come."""

    time: int
    arm: int
    policy_id: int


@dataclass(slots=True)
class Counts:
    """Counts of events so far."""

    decisions: int = 0
    fallbacks: int = 0
    rewards: int = 0
    untold: int = 0  # rewards journaled and not learned from: of fallbacks, or from before a restart
    late: int = 0
    expired: int = 0
    forgotten: int = 0
    dropped: int = 0  # open decisions beyond `MOST_OPEN`
    restarts: int = 0
    guests: int = 0  # decisions for guests, drawn from the policy's law and never told to it


class Replica(Roster):
    """The state of an experiment after event `seq`; counts and open decisions need no policy."""

    def __init__(self, definition: Definition, *, with_policy: bool = True) -> None:
        super().__init__(definition)
        self.patience = definition.patience
        self.paused = False
        self.trouble = ""  # why the policy cannot be asked, if it cannot
        self.counts = Counts()
        self.notices: dict[str, str] = {}  # what the policy warned of, by the kind of warning
        self.open: OrderedDict[int, Open] = OrderedDict()  # by the seq of the decision, oldest first
        self.expired: OrderedDict[int, int] = OrderedDict()  # seq and policy id, where late rewards are learned
        self.seq = self.time = self.seal = 0
        self.shift = 0  # microseconds by which the policy's time is ahead, where the clock was and was put right
        self.differing = 0  # rounds of a replay in which the policy would have drawn something else
        self.cost = 0.0  # about how many CPU seconds a replay of the events since the last snapshot takes
        if with_policy:
            self.restart_policy()

    @property
    def mode(self) -> str:
        """What decides: "running" for the policy, "paused" or "fallback" where the fallback does."""
        return "fallback" if self.policy is None else "paused" if self.paused else "running"

    # --- the policy ---------------------------------------------------------------------------------------------

    def restart_policy(self) -> None:
        """A policy with nothing learned."""
        self.adopt(self.definition.build_policy(self.build_arms()))
        self.trouble, self.notices = "", {}

    def adopt(self, policy: Policy) -> None:
        """Let this policy decide; its warnings are kept, because nobody would see them."""
        policy.law()  # it begins now, not when it is first asked
        policy.listener = self._hear
        self.policy = policy
        self.number_arms()

    def tell_time(self, clock: int) -> None:
        """What time it is, before the policy is asked or told anything, if it learns from open decisions."""
        if self.policy is not None and self._depends_on_time:
            self.policy.at((max(self.time, clock) + self.shift) / 1e6, patience=self.patience)

    def _hear(self, warning: UserWarning) -> None:
        if isinstance(warning, HeldRewardsWarning):  # with patience they do for a while: the summary says it then
            return
        self.notices[type(warning).__name__] = str(warning)
        log.warning("%s", warning)

    # --- events -------------------------------------------------------------------------------------------------

    def next_event(self, clock: int, kind: str, **values: Any) -> Event:
        """The event that would come next; `take` makes it so. Time never goes back, whatever the clock does."""
        return Event(self.seq + 1, max(self.time, clock), kind, **values).sealed(self.seal)

    def take(self, event: Event) -> None:
        """Record that this event has happened."""
        self.seq, self.time, self.seal = event.seq, event.time, event.seal
        self.cost += EVENT_SECONDS

    def pass_over(self, event: Event) -> None:
        """Skip a damaged event: the next one follows it, and none of its values is used."""
        time = event.time if isinstance(event.time, int) else self.time
        self.take(event._replace(time=max(self.time, time), seal=event.seal if isinstance(event.seal, int) else 0))

    # --- deciding -----------------------------------------------------------------------------------------------

    def decide(
        self,
        size: int,
        allowed: Any,
        segment: Any,
        clock: int,
        key: str | None,
        *,
        contexts: Sequence[Any] | None = None,
        guest: bool = False,
    ) -> list[Event]:
        """Decide `size` times, or once for each context: by the policy, or by the fallback where that cannot.

        A guest gets draws from the policy's law that the policy does not hear of: it stays as if there were no guest.
        """
        mask, details = self.read_request(allowed, segment)
        requests = self.read_contexts(contexts)
        begun = time.thread_time()
        if self.paused:
            drawn = None
        elif guest:
            drawn = self._draw_apart(size, mask, segment, requests)
            details = {**details, "guest": True}
        else:
            drawn = self._ask(size, mask, details, requests, clock)
        self.cost += time.thread_time() - begun
        if drawn is None:
            details = {**details, "fallback": True}
        made = []
        for place in range(size):
            if drawn is None:
                arm, probability = self._fall_back(mask)
                policy_id = NOT_OF_THE_POLICY
            else:
                arm, probability, policy_id = drawn[place]
            payload = dump(details if requests is None else {**details, "context": requests[place]})
            event = self.next_event(
                clock, "decided", arm=arm, probability=probability, key=key if place == 0 else None, payload=payload
            )
            self._note_decision(event, policy_id, guest=guest and drawn is not None)
            made.append(event)
        return made

    def _ask(
        self, size: int, mask: Bools, details: dict[str, Any], contexts: list[Any] | None, clock: int
    ) -> list[tuple[int, float, int]] | None:
        policy = self.policy
        if policy is None:
            return None
        allowed = self.policy_mask(mask, details.get("segment"))
        try:
            self.tell_time(clock)
            if size == 1 and contexts is None:
                one = policy.ask(allowed=allowed)
                return [(self.entry_of(one.arm), one.probability, one.id)]
            if contexts is None:
                several = policy.ask(size=size, allowed=allowed)
            else:
                several = policy.ask(allowed=allowed, contexts=contexts)
            return [(self.entry_of(one.arm), one.probability, one.id) for one in several]
        except Exception as error:  # noqa: BLE001  # whatever a policy raises, a decision is due
            self.give_up(error)
            return None

    def _draw_apart(
        self, size: int, mask: Bools, segment: str | None, contexts: list[Any] | None
    ) -> list[tuple[int, float, int]] | None:
        """Draws from the present laws, by randomness of their own."""
        try:
            laws = [self.law(mask, segment, context) for context in contexts or [None]]
        except Exception as error:  # noqa: BLE001  # whatever a policy raises, a decision is due
            self.give_up(error)
            return None
        uniforms = stream(self.definition.seed, "guest", self.seq + 1).random(size)
        drawn: list[tuple[int, float, int]] = []
        for law, some in zip(laws, np.split(uniforms, len(laws)), strict=True):
            arms, steps = np.flatnonzero(law), np.cumsum(law[law > 0.0])
            found = arms[np.searchsorted(steps[:-1], some * steps[-1], side="right")]
            drawn += [(arm, float(law[arm]), NOT_OF_THE_POLICY) for arm in found.tolist()]
        return drawn

    def _fall_back(self, mask: Bools) -> tuple[int, float]:
        """The arm named for it, if it may be played, or any that may; each by its true probability."""
        choices = self.stand_ins(mask)
        uniform = stream(self.definition.seed, "fallback", self.seq + 1).random()
        return choices[min(int(uniform * len(choices)), len(choices) - 1)], 1.0 / len(choices)

    def law(self, mask: Bools, segment: str | None, context: Any = None) -> Floats:
        """With what probability each entry would be decided for now, if these were allowed; for a request's context."""
        law = np.zeros(len(self.entries))
        if self.policy is None or self.paused:
            choices = self.stand_ins(mask)
            law[choices] = 1.0 / len(choices)
        else:
            law[self.numbers] = self.of_segment(
                self.policy.law(self.policy_mask(mask, segment), context=context), segment
            )
        return law

    def _note_decision(self, event: Event, policy_id: int, *, guest: bool = False) -> None:
        self.open[event.seq] = Open(event.time, int(event.arm or 0), policy_id)
        self.counts.decisions += 1
        self.counts.guests += guest
        self.counts.fallbacks += policy_id == NOT_OF_THE_POLICY and not guest
        if len(self.open) > MOST_OPEN:
            self.open.popitem(last=False)
            self.counts.dropped += 1
        self.take(event)

    # --- everything else ----------------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Apply an event other than a decision. What is refused, by an InputError, changes nothing."""
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
            late = self.expired.pop(event.decision or 0, None)
            if late is not None and self.policy is not None:
                self.tell_time(event.time)
                self._teach(self.policy.tell, late, event.reward)
            return
        self.counts.rewards += 1
        if self.policy is None or found.policy_id == NOT_OF_THE_POLICY:
            self.counts.untold += 1
        else:
            self.tell_time(event.time)
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
            self.tell_time(event.time)
            self._teach(self.policy.expire, ids)
            if self.policy.learns_open_decisions:
                self.expired.update(
                    (seq, one.policy_id)
                    for seq, one in zip(gone, closed, strict=True)
                    if one.policy_id != NOT_OF_THE_POLICY
                )
                while len(self.expired) > MOST_EXPIRED:
                    self.expired.popitem(last=False)

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
        self.expired.clear()
        for seq, one in self.open.items():
            self.open[seq] = one._replace(policy_id=NOT_OF_THE_POLICY)

    def _settings(self, event: Event) -> None:
        details = event.details
        if details.get("clock"):
            self._put_back(event.time)
            return
        patience = check_patience(details["patience"]) if "patience" in details else self.patience
        if patience is not None and self.definition.missing is None:
            raise InputError("patience needs missing, and this experiment was made without; make another")
        if (patience is None) != (self.definition.patience is None):
            raise InputError("whether there is patience decides how the policy learns; make another experiment")
        if "fallback" in details:
            check_fallback(details["fallback"], [entry.option for entry in self.entries])
            self.fallback = details["fallback"]
        self.patience = patience

    def _put_back(self, now: int) -> None:
        """The clock was ahead, and so is the journal: its time goes on from now, where the patience of later begins."""
        self.shift += max(self.time - now, 0)  # the policy's time never goes back
        for seq, one in self.open.items():
            if one.time > now:
                self.open[seq] = one._replace(time=now)

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
        """Pass the current arms to the policy, if they differ from its own."""
        if self.policy is not None and self._of_policy() != self.numbers.tolist():
            self.adopt(self.policy.with_arms(self.build_arms()))

    def give_up(self, error: BaseException) -> None:
        """The policy has failed: the fallback answers from now on."""
        self.trouble = f"{type(error).__name__}: {first_line(error)}"
        log.error("the policy %s stopped after event %d: %s", self.definition.policy, self.seq, self.trouble)
        self.policy = None

    def first_due(self) -> int | None:
        """When the oldest open decision runs out of patience."""
        if self.patience is None or not self.open:
            return None
        return next(iter(self.open.values())).time + round(1e6 * self.patience)

    def watermark(self, now: int, most: int) -> int | None:
        """The newest of the `most` oldest decisions that have run out of patience; None if none has."""
        due = self.first_due()
        if due is None or due > now:
            return None
        limit = now - round(1e6 * (self.patience or 0.0))
        return list(takewhile(lambda seq: self.open[seq].time <= limit, islice(self.open, most)))[-1]

    # --- replay -------------------------------------------------------------------------------------------------

    def replay(self, events: Iterable[Event]) -> int:
        """Apply journaled events; how many. Errors of the policy and damaged events are raised."""
        count, before = 0, None
        waiting: list[Event] = []
        for event in events:
            check_event(event, before, self.seal if before is None else before.seal)
            if waiting and (
                event.kind != "decided"
                or event.payload != waiting[0].payload
                or len(waiting) == MOST_AT_ONCE
                or (event.time != waiting[0].time and self._depends_on_time)
            ):
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

    @property
    def _depends_on_time(self) -> bool:
        return self.patience is not None and self.policy is not None and self.policy.learns_open_decisions

    def replay_decisions(self, events: Sequence[Event]) -> None:
        """Apply decisions that were journaled one after the other, all with the same payload."""
        details = events[0].details
        guest = bool(details.get("guest"))
        if guest or details.get("fallback") or self.policy is None:
            for event in events:
                self._note_decision(event, NOT_OF_THE_POLICY, guest=guest)
            return
        begun = time.thread_time()
        segment = details.get("segment")
        allowed = self.policy_mask(self.mask_of(details), segment)
        arms = [self.arm_of(int(event.arm or 0), segment) for event in events]
        shares = [float(event.probability or 0.0) for event in events]
        self.tell_time(events[0].time)
        one = len(events) == 1  # by far the most: what is not a list is quicker
        given = arms[0] if one else arms, shares[0] if one else shares, allowed
        contexts = None if self.contexts is None else [details["context"]] * len(events)
        found = self.policy.impose(*given, contexts=contexts)
        self.differing += found.differing
        self.cost += time.thread_time() - begun
        for event, policy_id in zip(events, found.decisions.ids.tolist(), strict=True):
            self._note_decision(event, policy_id)

    def plain_values(self) -> dict[str, Any]:
        """Everything but the policy and the open decisions, as JSON values."""
        return {
            "seq": self.seq,
            "time": self.time,
            "seal": self.seal,
            "paused": self.paused,
            "trouble": self.trouble,
            "notices": json.dumps(self.notices),
            "patience": self.patience,
            "shift": self.shift,
            "fallback": self.fallback,
            "counts": asdict(self.counts),
            "arms": json.dumps([[e.option.name, list(e.option.features), e.retired] for e in self.entries]),
        }
