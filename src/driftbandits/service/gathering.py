"""What stands in an experiment, as plain values: taken in the writer's thread, between two transactions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from driftbandits.live.recovery import Recovery
from driftbandits.live.replica import Replica
from driftbandits.live.summary import ArmSummary, ExperimentSummary, summarise
from driftbandits.live.writer import Writer
from driftbandits.types import Change, Floats

NORMAL_QUANTILE = 1.959963984540054  # 95 % of a normal distribution lie so many standard deviations around its mean
_STEPS = 400  # of the integral
_REACH = 8.0  # standard deviations


@dataclass(frozen=True, slots=True)
class Leader:
    """The arm with the highest estimate, the probability that it is the best, and since which round it leads.

    One per segment, where there are segments. `probability` is None in policies that do not know how far off they may
    be, `since_round` where the history does not tell.
    """

    arm: str
    segment: str | None
    probability: float | None
    since_round: int | None


@dataclass(frozen=True, slots=True)
class Reached:
    """Where an experiment stands: rounds of the policy since its last restart, decisions of all policies there were,
    decisions with those of the fallback, and when the last event was (microseconds since 1970).
    """

    rounds: int
    own: int
    decisions: int
    time: int

    @classmethod
    def by(cls, replica: Replica) -> Reached:
        """By this replica, in its thread."""
        counts = replica.counts
        rounds = 0 if replica.policy is None else replica.policy.rounds
        return cls(rounds, counts.decisions - counts.fallbacks, counts.decisions, replica.time)


@dataclass(frozen=True, slots=True)
class Gathered:
    """Everything that a summary needs of a replica and its policy."""

    summary: ExperimentSummary
    time: int
    patience: float | None
    fallback: str | None
    trouble: str
    notices: tuple[str, ...]
    leaders: tuple[Leader, ...]
    beliefs: tuple[str, ...]
    pace: dict[str, Any] | None
    reached: Reached
    oldest_open: int | None
    problems: tuple[str, ...]
    clock_behind: float


def gather(writer: Writer, replica: Replica) -> Gathered:
    """Take it all."""
    recovery = writer.recovery
    first = next(iter(replica.open.values()), None)
    found = summarise(writer.name, replica, brought_back="" if recovery is None else _way(recovery))
    explanation = _explanation(replica)
    return Gathered(
        summary=found,
        time=replica.time,
        patience=replica.patience,
        fallback=replica.fallback,
        trouble=replica.trouble,
        notices=tuple(replica.notices.values()),
        leaders=tuple(_leaders(replica, found.arms)),
        beliefs=() if explanation is None else tuple(str(explanation).splitlines()),
        pace=_pace(explanation),
        reached=Reached.by(replica),
        oldest_open=None if first is None else first.time,
        problems=() if recovery is None else recovery.problems,
        clock_behind=writer.clock_behind,
    )


def _way(recovery: Recovery) -> str:
    return f"{recovery.way}: {recovery.replayed:,} events in {recovery.seconds:.2f} s"


def _leaders(replica: Replica, arms: Sequence[ArmSummary]) -> Iterator[Leader]:
    """The leader of every segment, or of all."""
    if replica.policy is None:
        return
    for segment in dict.fromkeys(arm.segment for arm in arms):
        known = [a for a in arms if a.segment == segment and not a.retired and a.estimate is not None]
        if known:
            best = max(known, key=lambda arm: arm.estimate or 0.0)
            since = None if segment is not None else _leads_since(replica, best.name)
            yield Leader(best.name, segment, probability_best(known, best), since)


def probability_best(arms: Sequence[ArmSummary], best: ArmSummary) -> float | None:
    """Probability that `best` has the highest mean, arms being normal and independent; `best` is one of them.

    >>> def arm(name, estimate):
    ...     return ArmSummary(name, None, False, 0.5, estimate, estimate - 0.1, estimate + 0.1, 10)
    >>> red, blue = arm("red", 0.5), arm("blue", 0.5)
    >>> round(probability_best([red, blue], red), 3)
    0.5
    """
    mean, deviation = [], []
    for arm in arms:
        if arm.low is None or arm.high is None or arm.estimate is None:
            return None
        mean.append(arm.estimate)  # an end that was cut by the range is no measure: the other one is
        deviation.append(max(arm.high - arm.estimate, arm.estimate - arm.low, 1e-12) / NORMAL_QUANTILE)
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


def _leads_since(replica: Replica, name: str) -> int | None:
    """The first round since which the history has had this arm ahead of all that are active."""
    policy = replica.policy
    if policy is None:
        return None
    history, active = policy.history, replica.active()
    numbers = replica.numbers[history.arms]
    places = np.flatnonzero(active[numbers])
    names = [replica.name_of(int(number)) for number in numbers[places]]
    if name not in names:
        return None
    ahead = np.nan_to_num(history.estimate[:, places], nan=-np.inf).argmax(axis=1)
    others = np.flatnonzero(ahead != names.index(name))
    first = min(int(others[-1]) + 1, len(ahead) - 1) if len(others) else 0
    return int(history.rounds[first])


def _explanation(replica: Replica) -> Any:
    """What the policy says of itself; None where it says nothing."""
    explain = getattr(replica.policy, "explain", None)
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


def gather_changes(_: Writer, replica: Replica) -> tuple[list[Change], dict[str, Any] | None, Reached]:
    """Changes found since the last restart, and beliefs over time if some change does not name its arms."""
    found = [] if replica.policy is None else list(replica.policy.changes)
    beliefs = None if all(change.arms for change in found) else _history(replica)
    return found, beliefs, Reached.by(replica)


def gather_history(_: Writer, replica: Replica) -> tuple[dict[str, Any] | None, Reached]:
    """Estimates, intervals and probabilities over time, as the policy keeps them."""
    return _history(replica), Reached.by(replica)


def _history(replica: Replica) -> dict[str, Any] | None:
    policy = replica.policy
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
    }


def change_values(change: Change) -> dict[str, Any]:
    """A change as JSON values, its sentence with it."""
    return {**asdict(change), "sentence": str(change)}
