"""What can be looked at: the summary of an experiment, its health in sentences, its changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from driftbandits.live.player import Player


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """One arm: whether it is played, its probability now and what is expected of it."""

    name: str
    retired: bool
    probability: float
    estimate: float | None


@dataclass(frozen=True, slots=True)
class ExperimentSummary:
    """An experiment at a glance. `mode` is "running", "paused" or "fallback"; `health` has one sentence per trouble."""

    name: str
    policy: str
    mode: str
    events: int
    decisions: int
    rewards: int
    open: int
    late: int
    expired: int
    forgotten: int
    fallbacks: int
    untold: int
    restarts: int
    changes: int
    brought_back: str
    health: tuple[str, ...]
    arms: tuple[ArmSummary, ...]

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.policy}, {self.mode}; {self.decisions:,} decisions, {self.rewards:,} rewards, "
            f"{self.open:,} open, {self.changes:,} changes found"
        ]
        lines += [f"  ! {sentence}" for sentence in self.health]
        for arm in self.arms:
            estimate = "" if arm.estimate is None else f", expected {arm.estimate:.4g}"
            lines.append(f"  {arm.name}: {'retired' if arm.retired else f'{arm.probability:.1%}'}{estimate}")
        return "\n".join(lines)


def summarise(name: str, player: Player, *, brought_back: str = "", health: tuple[str, ...] = ()) -> ExperimentSummary:
    """What stands in a player."""
    policy, counts = player.policy, player.counts
    mode = "fallback" if policy is None else "paused" if player.paused else "running"
    sentences = list(health)
    if policy is None:
        sentences.append(f"the fallback decides, for the policy stopped ({player.trouble}); restart it to learn anew")
    if counts.decisions > 100 and not counts.rewards and not counts.expired:
        sentences.append("no reward has come yet; send them with reward(id, value)")
    return ExperimentSummary(
        name=name,
        policy=player.definition.policy,
        mode=mode,
        events=player.seq,
        decisions=counts.decisions,
        rewards=counts.rewards,
        open=len(player.open),
        late=counts.late,
        expired=counts.expired,
        forgotten=counts.forgotten,
        fallbacks=counts.fallbacks,
        untold=counts.untold,
        restarts=counts.restarts,
        changes=0 if policy is None else policy.changes_found,
        brought_back=brought_back,
        health=tuple(sentences),
        arms=tuple(_arms(player)),
    )


def _arms(player: Player) -> list[ArmSummary]:
    """Options; with segments, means over the segments."""
    law, estimate = by_option(player)
    return [
        ArmSummary(entry.option.name, entry.retired, law.get(number, 0.0), estimate.get(number))
        for number, entry in enumerate(player.entries)
    ]


def by_option(player: Player) -> tuple[dict[int, float], dict[int, float]]:
    """Probability and estimate of every arm that the policy knows, by its number; means over segments."""
    if player.policy is None:
        return {}, {}
    columns: list[Any] = [player.policy.law(), player.policy.estimate()]
    size = len(player._numbers)
    law, estimate = (column.reshape(-1, size) for column in columns)
    active = player.active()[player._numbers]
    shares = law.sum(axis=0) * active
    total = float(shares.sum())
    if total > 0.0:
        shares = shares / total
    numbers = player._numbers.tolist()
    return (
        dict(zip(numbers, shares.tolist(), strict=True)),
        dict(zip(numbers, estimate.mean(axis=0).tolist(), strict=True)),
    )
