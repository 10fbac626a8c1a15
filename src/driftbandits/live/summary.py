"""The summary of an experiment: counts, arms, and its health in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits.live.replica import Replica
from driftbandits.policies.decisions import HELD_BEFORE_WARNING
from driftbandits.text import counted, label
from driftbandits.types import Floats

SILENT_DECISIONS = 100  # without any reward, before the summary says how to send one


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """One arm, in one segment where there are segments: its probability, plays and estimated reward.

    Parameters
    ----------
    name : of the arm
    segment : its segment, or None
    retired : whether it is not played any more
    probability : with which it is played now
    estimate : the expected reward; None where the policy does not know the arm
    low, high : the ends of its 95 % interval; None where the policy has none
    plays : decisions of the policy for it since the last restart

    >>> print(ArmSummary("9 EUR", None, False, 0.75, 0.25, 0.21, 0.3, 120))
    9 EUR: 75.0%, played 120 times, expected 0.25, 95 % interval 0.21 to 0.3
    """

    name: str
    segment: str | None
    retired: bool
    probability: float
    estimate: float | None
    low: float | None
    high: float | None
    plays: int

    def __str__(self) -> str:
        where = "" if self.segment is None else f" in {label(self.segment)}"
        text = f"{label(self.name)}{where}: {'retired' if self.retired else f'{self.probability:.1%}'}"
        if self.estimate is None:
            return text
        interval = "" if self.low is None else f", 95 % interval {self.low:.4g} to {self.high:.4g}"
        return f"{text}, played {counted(self.plays, 'time')}, expected {self.estimate:.4g}{interval}"


@dataclass(frozen=True, slots=True)
class ExperimentSummary:
    """An experiment at a glance; print it, or read its fields.

    Parameters
    ----------
    name : of the experiment
    policy : name of its policy
    mode : "running", "paused" or "fallback"
    events : rows of the journal
    decisions, rewards : how many were made and told
    open : decisions without a reward
    held : rewards that wait until earlier decisions are closed
    late : rewards that came after their decision was closed
    expired : decisions closed because their reward did not come
    forgotten : decisions closed by `forget`
    dropped : decisions dropped because too many were open
    fallbacks : decisions of the fallback
    untold : rewards that were journaled and not learned from: of fallbacks, of guests, or from before a restart
    restarts : how often it was restarted
    changes : changes found since the last restart
    brought_back : how the state was recovered at opening
    health : one sentence per problem, with its cure
    arms : one `ArmSummary` per arm, and per segment where there are segments
    guests : decisions for guests, of which the policy does not hear

    >>> import tempfile
    >>> import driftbandits as db
    >>> with tempfile.TemporaryDirectory() as folder, db.live.open(f"sqlite:///{folder}/shop.db") as database:
    ...     summary = database.create("prices", arms=["9 EUR", "12 EUR"], seed=0).summary()
    >>> summary.mode, summary.open, [arm.name for arm in summary.arms]
    ('running', 0, ['9 EUR', '12 EUR'])
    """

    name: str
    policy: str
    mode: str
    events: int
    decisions: int
    rewards: int
    open: int
    held: int
    late: int
    expired: int
    forgotten: int
    dropped: int
    fallbacks: int
    untold: int
    restarts: int
    changes: int
    brought_back: str
    health: tuple[str, ...]
    arms: tuple[ArmSummary, ...]
    guests: int = 0

    def __str__(self) -> str:
        lines = [
            f"{label(self.name)}: {self.policy}, {self.mode}; {counted(self.decisions, 'decision')}, "
            f"{counted(self.rewards, 'reward')}, {self.open:,} open, {counted(self.changes, 'change')} found"
        ]
        lines += [f"  ! {sentence}" for sentence in self.health]
        return "\n".join([*lines, *(f"  {arm}" for arm in self.arms)])


def summarise(
    name: str, replica: Replica, *, brought_back: str = "", health: tuple[str, ...] = ()
) -> ExperimentSummary:
    """The summary of a replica."""
    policy, counts = replica.policy, replica.counts
    return ExperimentSummary(
        name=name,
        policy=replica.definition.policy,
        mode=replica.mode,
        events=replica.seq,
        decisions=counts.decisions,
        rewards=counts.rewards,
        open=len(replica.open),
        held=0 if policy is None else policy.held,
        late=counts.late,
        expired=counts.expired,
        forgotten=counts.forgotten,
        dropped=counts.dropped,
        fallbacks=counts.fallbacks,
        untold=counts.untold,
        restarts=counts.restarts,
        changes=0 if policy is None else policy.changes_found,
        brought_back=brought_back,
        health=(*health, *_troubles(replica)),
        arms=tuple(_arms(replica)),
        guests=counts.guests,
    )


def _troubles(replica: Replica) -> Iterator[str]:
    """What is wrong, and what to do about it."""
    counts = replica.counts
    yield from replica.notices.values()
    if replica.policy is None:
        yield f"the fallback decides, for the policy stopped ({replica.trouble}); restart it to learn anew"
    if counts.decisions > SILENT_DECISIONS and not counts.rewards and not counts.expired:
        yield "no reward has come yet; send them with reward(id, value)"
    if counts.dropped:
        yield f"{counts.dropped:,} open decisions were dropped for newer ones; send their rewards, or set patience"
    yield from words_of_waiting(replica)


def words_of_waiting(replica: Replica) -> Iterator[str]:
    """Most rewards wait in the order asked: that is what patience costs."""
    policy, definition = replica.policy, replica.definition
    if policy is not None and policy.held > max(HELD_BEFORE_WARNING, replica.counts.rewards // 2):
        waits_for_none = f"AutoBandit with missing={definition.reward_range[0]:g} waits for none"
        yield (
            f"{policy.held:,} of {replica.counts.rewards:,} rewards wait for decisions that are open: with patience "
            f"{definition.policy} learns in the order asked{'' if definition.contexts is None else ' with contexts'}; "
            f"a shorter one learns sooner{f', and {waits_for_none}' if definition.contexts is None else ''}"
        )


def _arms(replica: Replica) -> Iterator[ArmSummary]:
    segments = replica.definition.segments
    for segment in (None,) if segments is None else tuple(item.name for item in segments):
        law = replica.law(replica.active(), segment)
        found = zip(replica.entries, law.tolist(), *beliefs(replica, segment).tolist(), strict=True)
        for entry, probability, estimate, low, high, plays in found:
            yield ArmSummary(
                name=entry.option.name,
                segment=segment,
                retired=entry.retired,
                probability=probability,
                estimate=known(estimate),
                low=known(low),
                high=known(high),
                plays=int(plays),
            )


def beliefs(replica: Replica, segment: str | None, context: Any = None) -> Floats:
    """Estimate, lower and upper end of its interval, and plays of every entry, (4, entries); NaN where not known.

    With a context, estimates are those for it.
    """
    found = np.full((4, len(replica.entries)), np.nan)
    found[3] = 0
    if replica.policy is not None:
        table = replica.policy.summary()
        size = len(table)
        nothing = np.full(size, np.nan)
        columns = np.empty((4, size))
        columns[:, table.arms] = [
            table.estimate,
            nothing if table.low is None else table.low,
            nothing if table.high is None else table.high,
            table.plays,
        ]
        if context is not None:
            columns[0] = replica.policy.estimate(context=context)
        found[:, replica.numbers] = [replica.of_segment(column, segment) for column in columns]
    return found


def known(value: float) -> float | None:
    """A number, or None for NaN."""
    return None if math.isnan(value) else float(value)
