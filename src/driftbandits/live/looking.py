"""What can be looked at: the summary of an experiment, with its health in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from driftbandits.live.player import Player
from driftbandits.showing import counted, label
from driftbandits.types import Floats

SILENT_DECISIONS = 100  # without any reward: then it is said how to send one


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """One arm, in one segment where there are segments: with what probability it is played now, and what it brings.

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
    forgotten : decisions whose reward will never come, as was said
    dropped : decisions dropped because too many were open
    fallbacks : decisions of what stands in for the policy
    untold : rewards that were journaled and not learned from: of fallbacks, or of decisions before a restart
    restarts : how often it was begun anew
    changes : changes found since the last restart
    brought_back : how it was brought back when it was opened
    health : one sentence per trouble, with its cure
    arms : one `ArmSummary` per arm, and per segment where there are segments

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

    def __str__(self) -> str:
        lines = [
            f"{label(self.name)}: {self.policy}, {self.mode}; {counted(self.decisions, 'decision')}, "
            f"{counted(self.rewards, 'reward')}, {self.open:,} open, {counted(self.changes, 'change')} found"
        ]
        lines += [f"  ! {sentence}" for sentence in self.health]
        return "\n".join([*lines, *(f"  {arm}" for arm in self.arms)])


def summarise(name: str, player: Player, *, brought_back: str = "", health: tuple[str, ...] = ()) -> ExperimentSummary:
    """What stands in a player."""
    policy, counts = player.policy, player.counts
    return ExperimentSummary(
        name=name,
        policy=player.definition.policy,
        mode="fallback" if policy is None else "paused" if player.paused else "running",
        events=player.seq,
        decisions=counts.decisions,
        rewards=counts.rewards,
        open=len(player.open),
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
        health=(*health, *_troubles(player)),
        arms=tuple(_arms(player)),
    )


def _troubles(player: Player) -> Iterator[str]:
    """What is wrong, and what to do about it."""
    counts = player.counts
    yield from player.notices.values()
    if player.policy is None:
        yield f"the fallback decides, for the policy stopped ({player.trouble}); restart it to learn anew"
    if counts.decisions > SILENT_DECISIONS and not counts.rewards and not counts.expired:
        yield "no reward has come yet; send them with reward(id, value)"
    if counts.dropped:
        yield f"{counts.dropped:,} open decisions were dropped for newer ones; send their rewards, or set patience"


def _arms(player: Player) -> Iterator[ArmSummary]:
    segments = player.definition.segments
    for segment in (None,) if segments is None else tuple(item.name for item in segments):
        law = player.law(player.active(), segment)
        estimate, low, high, plays = beliefs(player, segment)
        for number, entry in enumerate(player.entries):
            yield ArmSummary(
                name=entry.option.name,
                segment=segment,
                retired=entry.retired,
                probability=float(law[number]),
                estimate=known(estimate[number]),
                low=known(low[number]),
                high=known(high[number]),
                plays=int(plays[number]),
            )


def beliefs(player: Player, segment: str | None) -> Floats:
    """Estimate, lower and upper end of its interval, and plays of every entry, (4, entries); NaN where not known."""
    found = np.full((4, len(player.entries)), np.nan)
    found[3] = 0
    if player.policy is not None:
        table = player.policy.summary()
        size = len(table)
        nothing = np.full(size, np.nan)
        columns = np.empty((4, size))
        columns[:, table.arms] = [
            table.estimate,
            nothing if table.low is None else table.low,
            nothing if table.high is None else table.high,
            table.plays,
        ]
        found[:, player.numbers] = [player.of_segment(column, segment) for column in columns]
    return found


def known(value: float) -> float | None:
    """A number, or None for NaN."""
    return None if np.isnan(value) else float(value)
