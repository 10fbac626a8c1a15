"""Answers about an experiment: what was gathered and counted, as JSON values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from driftbandits.live import View
from driftbandits.live.journal import Event, decision_id
from driftbandits.service import health
from driftbandits.service.gathering import Gathered, Leader, Reached, change_values
from driftbandits.service.moves import moves
from driftbandits.service.observing import Observed
from driftbandits.types import Change, Floats


def summary(view: View, found: Gathered, seen: Observed, *, of_keys: Sequence[str] = ()) -> dict[str, Any]:
    """The experiment at a glance."""
    definition = view.definition
    return {
        **asdict(found.summary),
        "time": found.time / 1e6,
        "last_decision": _last_decision(found.reached, seen),
        "oldest_open": None if found.oldest_open is None else found.oldest_open / 1e6,
        "health": [*_health(view, found, seen), *of_keys],
        "leaders": [_leader(leader, found.reached, seen) for leader in found.leaders],
        "beliefs": list(found.beliefs),
        "pace": _pace(found, seen),
        "reward_range": list(definition.reward_range),
        "patience": found.patience,
        "missing": definition.missing,
        "fallback": found.fallback,
        "segments": None if definition.segments is None else [segment.name for segment in definition.segments],
    }


def _health(view: View, found: Gathered, seen: Observed) -> list[str]:
    sentences = [*health.of_mode(found.summary.mode, found.trouble), *found.notices]
    if found.problems:
        sentences.append(
            f"{found.summary.brought_back}, since {len(found.problems)} better ways failed, the first "
            f"{found.problems[0]}; what the journal has is not lost, and driftbandits db check URL says what is damaged"
        )
    if found.clock_behind:
        sentences.append(f"the clock was {found.clock_behind:.0f} s behind the newest event: was it set back?")
    if found.summary.dropped:
        count = f"{found.summary.dropped:,} open decisions"
        sentences.append(f"{count} were dropped for newer ones; send their rewards, or set patience")
    return sentences + health.sentences(view.definition, seen.series, seen.recent, patience=found.patience)


def _last_decision(reached: Reached, seen: Observed) -> float | None:
    """When the last decision was made, at the latest."""
    if reached.decisions > seen.progress.decisions or not seen.series.points:
        return reached.time / 1e6 if reached.decisions else None
    return seen.series.points[-1].end / 1e6


def times(seen: Observed, rounds: Sequence[float] | Floats, reached: Reached) -> list[float]:
    """When these rounds of the policy were, also of those asked since the journal was counted."""
    trimmed = seen.progress.own - seen.series.own_decisions  # decisions that are no longer in the journal
    made = reached.own - trimmed
    first = made - reached.rounds  # decisions of policies before the last restart
    numbers = np.asarray(rounds, dtype=np.float64) + first
    return [round(value, 3) for value in seen.series.times_of(numbers, made=made, now=reached.time).tolist()]


def _leader(leader: Leader, reached: Reached, seen: Observed) -> dict[str, Any]:
    since = None if leader.since_round is None else times(seen, [leader.since_round], reached)[0]
    return {**asdict(leader), "since": since}


def _pace(found: Gathered, seen: Observed) -> dict[str, Any] | None:
    if found.pace is None:
        return None
    since, suspected = times(seen, [found.pace["since_round"], found.pace["suspected_since_round"]], found.reached)
    return {**found.pace, "since": since, "suspected_since": suspected}


def changes(
    found: Sequence[Change], history: dict[str, Any] | None, reached: Reached, seen: Observed
) -> dict[str, Any]:
    """Changes with the time at which each was found, oldest first, and what was expected before and after."""
    at = times(seen, [change.round for change in found], reached)
    begun = times(seen, [change.interval[0] for change in found], reached)
    rows = [
        {**change_values(change), "time": when, "began": start, "seen": moved}
        for change, when, start, moved in zip(found, at, begun, moves(found, history), strict=True)
    ]
    return {"changes": rows}


def history(found: dict[str, Any] | None, reached: Reached, seen: Observed, *, points: int) -> dict[str, Any]:
    """Estimates and probabilities over time, thinned to so many moments; rewards as they came, counted `age` s ago."""
    answer: dict[str, Any] = {"rewards": [asdict(point) for point in seen.curve], "age": round(seen.age, 1)}
    if found is None:
        return {
            "rounds": [],
            "times": [],
            "arms": [],
            "estimate": [],
            "probability": [],
            "low": None,
            "high": None,
        } | answer
    kept = np.unique(np.linspace(0, len(found["rounds"]) - 1, min(points, len(found["rounds"]))).round().astype(int))
    rounds = found["rounds"][kept]
    columns = {name: _nested(found[name], kept) for name in ("estimate", "low", "high")}
    return {
        "rounds": rounds.tolist(),
        "times": times(seen, rounds, reached),
        "arms": found["names"],
        **columns,
        "probability": _nested(found["law"], kept),
        **answer,
    }


def _nested(values: Floats | None, kept: Any) -> list[list[float | None]] | None:
    if values is None:
        return None
    return [[None if math.isnan(value) else round(value, 6) for value in row] for row in values[kept].tolist()]


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
