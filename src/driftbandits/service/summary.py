"""Answers about an experiment: summary, changes, history and events, as JSON values.

The `inspect_` functions run in the writer's thread, between two transactions, and copy what is needed of the replica
and its policy. The others combine that with what the journal says (`series`), in any thread.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from driftbandits.live.definition import Definition
from driftbandits.live.journal import Event, decision_id
from driftbandits.live.replica import Replica
from driftbandits.live.requests import ahead_in_words
from driftbandits.live.summary import ArmSummary, summarise, words_of_waiting
from driftbandits.live.writer import Writer
from driftbandits.service import health
from driftbandits.service.series import Observed, Progress
from driftbandits.types import ARMS_CHANGED, Bools, Change, Floats

NORMAL_QUANTILE = 1.959963984540054  # 95 % of a normal distribution lie so many standard deviations around its mean
MOVES_SHOWN = 3
_STEPS = 400  # of the integral
_REACH = 8.0  # standard deviations
_AT_ONCE = 64  # arms
_OF_AN_ARM = [field.name for field in fields(ArmSummary)]


# --- summary --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leader:
    """The arm with the highest estimate, and since which round it leads.

    One per segment, where there are segments. `since_round` is None where the history does not tell.
    """

    arm: str
    segment: str | None
    since_round: int | None


@dataclass(frozen=True, slots=True)
class Inspected:
    """What a summary needs of a replica and its policy; `values` are fields of the answer as they are."""

    values: dict[str, Any]
    health: tuple[str, ...]
    leaders: tuple[Leader, ...]
    pace: dict[str, Any] | None
    progress: Progress


def inspect_summary(writer: Writer, replica: Replica) -> Inspected:
    """Everything that a summary needs, as quickly as can be: the writer waits for it."""
    recovery = writer.recovery
    way = "" if recovery is None else f"{recovery.way}: {recovery.replayed:,} events in {recovery.seconds:.2f} s"
    found = summarise(writer.name, replica, brought_back=way)
    oldest = next(iter(replica.open.values()), None)
    explain = getattr(replica.policy, "explain", None)
    explanation = None if explain is None else explain()
    values = {
        **{field.name: getattr(found, field.name) for field in fields(found)},
        "time": replica.time / 1e6,
        "oldest_open": None if oldest is None else oldest.time / 1e6,
        "beliefs": [] if explanation is None else str(explanation).splitlines(),
        "patience": replica.patience,
        "fallback": replica.fallback,
    }
    sentences = [*health.of_mode(replica.mode, replica.trouble), *replica.notices.values()]
    if recovery is not None and recovery.problems:
        sentences.append(
            f"{way}, since {len(recovery.problems)} better ways failed, the first {recovery.problems[0]}; what the "
            f"journal has is not lost, and driftbandits db check URL says what is damaged"
        )
    if writer.clock_ahead:
        sentences.append(ahead_in_words(writer.clock_ahead))
    if writer.clock_behind:
        sentences.append(f"the clock was {writer.clock_behind:.0f} s behind the newest event: was it set back?")
    if found.dropped:
        count = f"{found.dropped:,} open decisions"
        sentences.append(f"{count} were dropped for newer ones; send their rewards, or set patience")
    sentences.extend(words_of_waiting(replica))
    leaders = tuple(_leaders(replica, found.arms))
    return Inspected(values, tuple(sentences), leaders, _pace(explanation), _progress(replica))


def summary(definition: Definition, found: Inspected, seen: Observed, *, more: Sequence[str] = ()) -> dict[str, Any]:
    """The experiment at a glance."""
    of_journal = health.sentences(definition, seen.series, seen.recent, patience=found.values["patience"])
    return {
        **found.values,
        "arms": [{name: getattr(arm, name) for name in _OF_AN_ARM} for arm in found.values["arms"]],
        "last_decision": _last_decision(found.progress, seen),
        "health": [*found.health, *of_journal, *more],
        "leaders": [_leader(leader, found, seen) for leader in found.leaders],
        "pace": _timed_pace(found, seen),
        "reward_range": list(definition.reward_range),
        "missing": definition.missing,
        "contexts": definition.contexts,
        "segments": None if definition.segments is None else [segment.name for segment in definition.segments],
    }


def _progress(replica: Replica) -> Progress:
    rounds = 0 if replica.policy is None else replica.policy.rounds
    return Progress.of(replica.counts, rounds=rounds, time=replica.time)


def _leaders(replica: Replica, arms: Sequence[ArmSummary]) -> Iterator[Leader]:
    """The leader of every segment, or of all."""
    if replica.policy is None:
        return
    for segment in dict.fromkeys(arm.segment for arm in arms):
        known = _known(arms, segment)
        if known:
            best = max(known, key=lambda arm: arm.estimate or 0.0)
            since = None if segment is not None else _leads_since(replica, best.name)
            yield Leader(best.name, segment, since)


def _known(arms: Iterable[ArmSummary], segment: str | None) -> list[ArmSummary]:
    return [arm for arm in arms if arm.segment == segment and not arm.retired and arm.estimate is not None]


def probability_best(arms: Sequence[ArmSummary], best: ArmSummary) -> float | None:
    """Probability that `best` has the highest mean, arms being normal and independent; `best` is one of them.

    >>> def arm(name, estimate):
    ...     return ArmSummary(name, None, False, 0.5, estimate, estimate - 0.1, estimate + 0.1, 10)
    >>> red, blue = arm("red", 0.5), arm("blue", 0.5)
    >>> round(probability_best([red, blue], red), 3)
    0.5
    """
    from scipy.special import ndtr  # a tenth of a second to import

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
    others = np.delete(np.arange(len(arms)), place)
    for some in np.array_split(others, len(others) // _AT_ONCE + 1):  # no array of all arms at once
        below *= ndtr((values[:, None] - np.take(mean, some)) / np.take(deviation, some)).prod(axis=1)
    return float((weight * below).sum() / weight.sum())


def _leads_since(replica: Replica, name: str) -> int | None:
    """The first round since which this arm has led all active arms in the history."""
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


def _pace(explanation: Any) -> dict[str, Any] | None:
    """How fast rewards change, as the policy believes: weights of time scales, for policies that have them."""
    memory = getattr(explanation, "memory", None)
    if not memory:
        return None
    rows = [
        {"rounds": None if math.isinf(rounds) else rounds, "weight": weight}
        for rounds, weight in sorted(memory.items())
    ]
    return {
        "memory": rows,
        "since_round": getattr(explanation, "since", 0),
        "suspected": getattr(explanation, "suspected", 0.0),
        "suspected_since_round": getattr(explanation, "suspected_since", 0),
    }


def _timed_pace(found: Inspected, seen: Observed) -> dict[str, Any] | None:
    if found.pace is None:
        return None
    since, suspected = times(seen, [found.pace["since_round"], found.pace["suspected_since_round"]], found.progress)
    return {**found.pace, "since": since, "suspected_since": suspected}


def _leader(leader: Leader, found: Inspected, seen: Observed) -> dict[str, Any]:
    since = None if leader.since_round is None else times(seen, [leader.since_round], found.progress)[0]
    known = _known(found.values["arms"], leader.segment)
    probability = probability_best(known, next(arm for arm in known if arm.name == leader.arm))
    return {**asdict(leader), "probability": probability, "since": since}


def _last_decision(progress: Progress, seen: Observed) -> float | None:
    """When the last decision was made, at the latest."""
    if progress.decisions > seen.progress.decisions or not seen.series.points:
        return progress.time / 1e6 if progress.decisions else None
    return seen.series.points[-1].end / 1e6


def times(seen: Observed, rounds: Sequence[float] | Floats, progress: Progress) -> list[float]:
    """When these rounds of the policy were, also of those asked since the journal was counted."""
    trimmed = seen.progress.own - seen.series.own_decisions  # decisions that are no longer in the journal
    made = progress.own - trimmed
    first = made - progress.rounds  # decisions of policies before the last restart
    numbers = np.asarray(rounds, dtype=np.float64) + first
    return [round(value, 3) for value in seen.series.times_of(numbers, made=made, now=progress.time).tolist()]


# --- history and changes --------------------------------------------------------------------------------------------


def inspect_history(_: Writer, replica: Replica) -> tuple[dict[str, Any] | None, Progress]:
    """Estimates, intervals and probabilities over time, as the policy keeps them."""
    if replica.policy is None:
        return None, _progress(replica)
    history = replica.policy.history
    values = {name: getattr(history, name) for name in ("rounds", "estimate", "law", "low", "high")}
    return {**values, "names": list(history.names or map(str, history.arms))}, _progress(replica)


def inspect_changes(writer: Writer, replica: Replica) -> tuple[list[Change], dict[str, Any] | None, Progress]:
    """Changes found since the last restart, and beliefs over time if some change does not name its arms."""
    found = [] if replica.policy is None else list(replica.policy.changes)
    if all(change.arms for change in found):
        return found, None, _progress(replica)
    return found, *inspect_history(writer, replica)


def history(found: dict[str, Any] | None, progress: Progress, seen: Observed, *, points: int) -> dict[str, Any]:
    """Estimates and probabilities over time, thinned to `points` moments; rewards as of `age` seconds ago."""
    answer: dict[str, Any] = {"rewards": [asdict(point) for point in seen.curve], "age": round(seen.age, 1)}
    if found is None:
        empty: dict[str, Any] = {name: [] for name in ("rounds", "times", "arms", "estimate", "probability")}
        return {**empty, "low": None, "high": None, **answer}
    kept = np.unique(np.linspace(0, len(found["rounds"]) - 1, min(points, len(found["rounds"]))).round().astype(int))
    rounds = found["rounds"][kept]
    return {
        "rounds": rounds.tolist(),
        "times": times(seen, rounds, progress),
        "arms": found["names"],
        **{name: _nested(found[name], kept) for name in ("estimate", "low", "high")},
        "probability": _nested(found["law"], kept),
        **answer,
    }


def _nested(values: Floats | None, kept: Any) -> list[list[float | None]] | None:
    if values is None:
        return None
    return [[None if math.isnan(value) else round(value, 6) for value in row] for row in values[kept].tolist()]


def changes(
    found: Sequence[Change], beliefs: dict[str, Any] | None, progress: Progress, seen: Observed
) -> dict[str, Any]:
    """Changes with the time at which each was found, oldest first, and the estimates before and after."""
    at = times(seen, [change.round for change in found], progress)
    begun = times(seen, [change.interval[0] for change in found], progress)
    rows = [
        {**asdict(change), "sentence": str(change), "time": when, "began": start, "seen": moved}
        for change, when, start, moved in zip(found, at, begun, moves(found, beliefs), strict=True)
    ]
    return {"changes": rows}


def moves(found: Sequence[Change], beliefs: dict[str, Any] | None) -> list[list[dict[str, Any]]]:
    """Estimates before and after each change, largest moves first; empty where the change names its arms itself."""
    if beliefs is None:
        return [[] for _ in found]
    nexts = (change.interval[0] for change in found[1:])
    return [
        [] if change.arms or change.stream == ARMS_CHANGED else _moves(change, end, beliefs)
        for change, end in zip(found, itertools.chain(nexts, [None]), strict=False)
    ]


def _moves(change: Change, end: int | None, beliefs: dict[str, Any]) -> list[dict[str, Any]]:
    """The last estimates before the change began, against the last before the next one did.

    Arms whose intervals are disjoint, or if there are none the one that moved most: the policy says that one changed.
    """
    rounds, estimate = beliefs["rounds"], beliefs["estimate"]
    before = int(np.searchsorted(rounds, change.interval[0], side="right")) - 1
    after = (len(rounds) if end is None else int(np.searchsorted(rounds, end, side="right"))) - 1
    if before < 0 or after <= before:
        return []
    distance = np.nan_to_num(np.abs(estimate[after] - estimate[before]))
    order = [int(arm) for arm in np.argsort(-distance, kind="stable") if distance[arm] > 0.0]
    apart = _apart(beliefs["low"], beliefs["high"], before, after)
    shown = order if apart is None else [arm for arm in order if apart[arm]] or order[:1]
    return [
        {"name": beliefs["names"][arm], "before": float(estimate[before, arm]), "after": float(estimate[after, arm])}
        for arm in shown[:MOVES_SHOWN]
    ]


def _apart(low: Floats | None, high: Floats | None, before: int, after: int) -> Bools | None:
    """Which arms' intervals at two times are disjoint; None in policies without intervals."""
    if low is None or high is None:
        return None
    return np.asarray((low[after] > high[before]) | (high[after] < low[before]))


# --- events ---------------------------------------------------------------------------------------------------------


def event_values(event: Event, token: str, names: Sequence[str]) -> dict[str, Any]:
    """A row of the journal: arms by name, a decision with its id; `decision` is the row of the decision it is about."""
    if event.damage:
        return {"seq": event.seq, "kind": str(event.kind), "damaged": event.damage}
    values: dict[str, Any] = {"seq": event.seq, "time": event.time / 1e6, "kind": event.kind}
    if event.kind == "decided":
        values["id"] = decision_id(token, event.seq, event.time)
    if event.decision is not None:
        values["decision"] = event.decision
    if event.arm is not None:
        values["arm"] = names[event.arm] if 0 <= event.arm < len(names) else None
    for name in ("probability", "reward", "key"):
        if getattr(event, name) is not None:
            values[name] = getattr(event, name)
    if event.payload:
        values["details"] = event.details
    return values
