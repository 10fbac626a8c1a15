"""What stands in an experiment, as plain values: taken in the writer's thread, between two transactions."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from driftbandits.errors import DriftbanditsError
from driftbandits.live.looking import by_option
from driftbandits.live.player import Player
from driftbandits.live.recovery import Recovery
from driftbandits.live.writer import Writer
from driftbandits.types import Change, Floats

NORMAL_QUANTILE = 1.959963984540054  # 95 % of a normal distribution lie so many standard deviations around its mean
_STEPS = 400  # of the integral
_REACH = 8.0  # standard deviations


@dataclass(frozen=True, slots=True)
class Leader:
    """The arm with the highest estimate, the probability that it is the best, and since which round it leads.

    `probability` is None in policies that do not know how far off they may be.
    """

    arm: str
    probability: float | None
    since_round: int


@dataclass(frozen=True, slots=True)
class Gathered:
    """Everything that a summary needs of a player and its policy."""

    books: dict[str, Any]
    mode: str
    trouble: str
    arms: list[dict[str, Any]]
    leader: Leader | None
    beliefs: list[str]
    pace: dict[str, Any] | None
    changes_found: int
    rounds: int
    open: int
    oldest_open: int | None
    brought_back: str
    problems: tuple[str, ...]
    clock_behind: float


def gather(writer: Writer, player: Player) -> Gathered:
    """Take it all."""
    policy, recovery = player.policy, writer.recovery
    mode = "fallback" if policy is None else "paused" if player.paused else "running"
    first = next(iter(player.open.values()), None)
    arms, explanation = _arms(player), _explanation(player)
    return Gathered(
        books=player.books(),
        mode=mode,
        trouble=player.trouble,
        arms=arms,
        leader=_leader(player, arms),
        beliefs=[] if explanation is None else str(explanation).splitlines(),
        pace=_pace(explanation),
        changes_found=0 if policy is None else policy.changes_found,
        rounds=0 if policy is None else policy.rounds,
        open=len(player.open),
        oldest_open=None if first is None else first.time,
        brought_back="" if recovery is None else _way(recovery),
        problems=() if recovery is None else recovery.problems,
        clock_behind=writer.clock_behind,
    )


def _way(recovery: Recovery) -> str:
    return f"{recovery.way}: {recovery.replayed:,} events in {recovery.seconds:.2f} s"


def _arms(player: Player) -> list[dict[str, Any]]:
    """One row per arm that there ever was; with segments, means over them."""
    law, estimate = by_option(player)
    low, high, plays = _ranges(player)
    return [
        {
            "name": entry.option.name,
            "retired": entry.retired,
            "probability": law.get(number, 0.0),
            "estimate": estimate.get(number),
            "low": low.get(number),
            "high": high.get(number),
            "plays": plays.get(number, 0),
        }
        for number, entry in enumerate(player.entries)
    ]


def _ranges(player: Player) -> tuple[dict[int, float], dict[int, float], dict[int, int]]:
    """Ends of the 95 % intervals, and how often arms were drawn, by number."""
    policy = player.policy
    if policy is None:
        return {}, {}, {}
    numbers = player._numbers.tolist()
    plays = policy._plays.counts.reshape(-1, len(numbers)).sum(axis=0).tolist()
    found = dict(zip(numbers, plays, strict=True))
    try:
        low, high = (ends.reshape(-1, len(numbers)).mean(axis=0).tolist() for ends in policy.interval())
    except DriftbanditsError:  # it has none
        return {}, {}, found
    return dict(zip(numbers, low, strict=True)), dict(zip(numbers, high, strict=True)), found


def _leader(player: Player, arms: list[dict[str, Any]]) -> Leader | None:
    policy = player.policy
    known = [arm for arm in arms if not arm["retired"] and arm["estimate"] is not None]
    if policy is None or not known:
        return None
    best = max(known, key=lambda arm: arm["estimate"])
    return Leader(best["name"], probability_best(known, best), _leads_since(player, best["name"]))


def probability_best(arms: list[dict[str, Any]], best: dict[str, Any]) -> float | None:
    """Probability that `best` has the highest mean, the arms' means being normal and independent.

    >>> even = {"estimate": 0.5, "low": 0.4, "high": 0.6}
    >>> round(probability_best([even, dict(even)], even), 3)
    0.5
    """
    if any(arm["low"] is None for arm in arms):
        return None
    mean = np.array([arm["estimate"] for arm in arms])
    wide = np.array([max(arm["high"] - arm["estimate"], arm["estimate"] - arm["low"]) for arm in arms])
    deviation = np.maximum(wide / NORMAL_QUANTILE, 1e-12)
    place = next(k for k, arm in enumerate(arms) if arm is best)
    grid = np.linspace(-_REACH, _REACH, _STEPS + 1)
    values = mean[place] + deviation[place] * grid
    weight = np.exp(-0.5 * grid * grid)
    below = np.ones_like(grid)
    for k in range(len(arms)):
        if k != place:
            below *= _normal_below((values - mean[k]) / deviation[k])
    return float((weight * below).sum() / weight.sum())


def _normal_below(values: Floats) -> Floats:
    from scipy.special import ndtr  # a tenth of a second to import

    return np.asarray(ndtr(values))


def _leads_since(player: Player, name: str) -> int:
    """The first round since which the history has had this arm ahead."""
    policy = player.policy
    if policy is None or player.definition.segments is not None:
        return 0
    history = policy.history
    names = history.names or ()
    active = [k for k, each in enumerate(names) if not player.entries[player.number_of(each)].retired]
    if name not in names or not active:
        return int(policy.rounds)
    ahead = np.array(names)[active][np.nanargmax(np.nan_to_num(history.estimate[:, active], nan=-np.inf), axis=1)]
    others = np.flatnonzero(ahead != name)
    first = 0 if not len(others) else min(int(others[-1]) + 1, len(ahead) - 1)
    return int(history.rounds[first])


def _explanation(player: Player) -> Any:
    """What the policy says of itself; None where it says nothing."""
    explain = getattr(player.policy, "explain", None)
    return None if explain is None else explain()


def _pace(found: Any) -> dict[str, Any] | None:
    """How fast the world moves, as the policy believes: weights of time scales, for those that have them."""
    memory = getattr(found, "memory", None)
    if not memory:
        return None
    rows = [
        {"rounds": None if math.isinf(rounds) else rounds, "weight": weight}
        for rounds, weight in sorted(memory.items())
    ]
    return {
        "memory": rows,
        "since_round": getattr(found, "since", 0),
        "suspected": getattr(found, "suspected", 0.0),
        "suspected_since_round": getattr(found, "suspected_since", 0),
    }


def gather_changes(_: Writer, player: Player) -> tuple[list[Change], int]:
    """Changes found since the last restart, and how many rounds the policy was asked."""
    policy = player.policy
    return ([], 0) if policy is None else (list(policy.changes), policy.rounds)


def gather_history(_: Writer, player: Player) -> dict[str, Any] | None:
    """Estimates, intervals and probabilities over time, as the policy keeps them."""
    policy = player.policy
    if policy is None:
        return None
    history = policy.history
    return {
        "rounds": history.rounds,
        "names": list(history.names or map(str, history.arms)),
        "estimate": history.estimate,
        "law": history.law,
        "low": history.low,
        "high": history.high,
        "now": policy.rounds,
    }


def change_values(change: Change) -> dict[str, Any]:
    """A change as JSON values, its sentence with it."""
    return {**asdict(change), "sentence": str(change)}
