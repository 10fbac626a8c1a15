"""What pays for which requests: expected rewards over each column of the contexts that matters, for the page.

Such a slice is the mean over some of the latest requests, with the column replaced by one value after the other. One
is made at a time between two transactions, so that readers leave time for deciding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits.arms.contexts import LONGEST_VECTOR_KEPT
from driftbandits.live.replica import Replica
from driftbandits.live.views import View
from driftbandits.live.writer import Writer

MOST_COLUMNS = 4  # shown
LEAST_WEIGHT = 0.5  # of a column that is shown
LATEST = 64  # requests, from which the ends of a number without a range are taken
REPLACED = 6  # of these, over which a slice is averaged
POINTS = 9  # of a curve
MOST_VALUES = 12  # of a category
MOST_ARMS = 4


@dataclass(frozen=True, slots=True)
class Part:
    """A column, or a number of a vector: where its value stands in a context, and which values are shown."""

    name: str
    kind: str  # "number" or "category"
    values: tuple[Any, ...]
    column: str | None  # None where contexts are vectors
    place: int | None = None

    def replaced(self, context: Any, value: Any) -> Any:
        """A context with this value in it."""
        if self.place is not None:
            numbers = list(context if self.column is None else context.get(self.column) or ())
            if not numbers:  # it is missing there
                return context
            numbers[self.place] = value
            value = numbers
        return value if self.column is None else {**context, self.column: value}


def latest_contexts(view: View) -> list[Any]:
    """The contexts of the latest decisions, the newest first."""
    with view.journal() as journal:
        events = journal.latest_decisions(LATEST)
    return [event.details["context"] for event in events if not event.damage and "context" in event.details]


def parts_of(contexts: Any, latest: Sequence[Any]) -> dict[str, Part]:
    """What can be shown of columns given as `Contexts.to_dict` does, by the names that policies give them.

    >>> [part.values for part in parts_of({"device": ["mobile", "desktop"], "basket": [0, 8]}, []).values()]
    [('mobile', 'desktop'), (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)]
    """
    return {part.name: part for part in _parts(contexts, latest)}


def _parts(contexts: Any, latest: Sequence[Any]) -> Iterator[Part]:
    if isinstance(contexts, int):
        yield from _of_vectors(None, contexts, latest)
        return
    for name, given in contexts.items():
        is_optional = isinstance(given, dict) and "optional" in given
        spec = given["optional"] if is_optional else given
        missing = (None,) if is_optional else ()
        if spec == "boolean":
            yield Part(name, "category", (True, False, *missing), name)
        elif isinstance(spec, list) and isinstance(spec[0], str):
            yield Part(name, "category", (*spec[:MOST_VALUES], *missing), name)
        elif not isinstance(spec, dict):
            seen = [one[name] for one in latest if one.get(name) is not None]
            yield from _curve(name, spec if isinstance(spec, list) else seen, name)
        elif "cyclic" in spec:
            yield from _curve(name, [0.0, spec["cyclic"]], name)
        else:
            yield from _of_vectors(name, spec["vector"], [one[name] for one in latest if one.get(name) is not None])


def _of_vectors(name: str | None, size: int, seen: Sequence[Any]) -> Iterator[Part]:
    if size <= LONGEST_VECTOR_KEPT:  # of longer ones no single number is known
        for place in range(size):
            part = f"column {place}" if name is None else f"{name}[{place}]"
            yield from _curve(part, [one[place] for one in seen], name, place)


def _curve(name: str, ends: Sequence[float], column: str | None, place: int | None = None) -> Iterator[Part]:
    if ends and min(ends) < max(ends):
        yield Part(name, "number", tuple(np.linspace(min(ends), max(ends), POINTS).tolist()), column, place)


def inspect_columns(_: Writer, replica: Replica) -> dict[str, float] | None:
    """How likely every column matters; empty for policies that do not say, None where the fallback decides."""
    if replica.policy is None:
        return None
    explain = getattr(replica.policy, "explain", None)
    return {} if explain is None else explain().columns


def shown(parts: dict[str, Part], weights: dict[str, float]) -> list[Part]:
    """The parts to show: those that matter most, or the first ones where the policy does not say."""
    if not weights:
        return list(parts.values())[:MOST_COLUMNS]
    matter = sorted((name for name in parts if weights.get(name, 0.0) >= LEAST_WEIGHT), key=lambda name: -weights[name])
    return [parts[name] for name in matter[:MOST_COLUMNS]]


def inspect_slice(_: Writer, replica: Replica, *, part: Part, latest: Sequence[Any]) -> dict[str, Any] | None:
    """Expected rewards of the leading arms for every value of a part; None where the fallback decides."""
    policy = replica.policy
    if policy is None:
        return None
    some = latest[:: max(len(latest) // REPLACED, 1)][:REPLACED]
    means = [
        np.mean([policy.estimate(context=part.replaced(one, value)) for one in some], axis=0) for value in part.values
    ]
    active = np.flatnonzero(replica.active()[replica.numbers])
    estimate = np.array(means)[:, active]
    best = estimate.argmax(axis=1)
    order = sorted(range(len(active)), key=lambda arm: (-np.count_nonzero(best == arm), -estimate[:, arm].mean()))
    names = [replica.name_of(int(replica.numbers[arm])) for arm in active]
    kept = order[:MOST_ARMS]
    return {
        "column": part.name,
        "kind": part.kind,
        "values": list(part.values),
        "best": [names[arm] for arm in best],
        "highest": estimate.max(axis=1).round(6).tolist(),
        "arms": [names[arm] for arm in kept],
        "estimate": estimate[:, kept].T.round(6).tolist(),
    }
