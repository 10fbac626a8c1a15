"""The changes a policy has found: the latest records, and how many there were."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

from driftbandits import state as states
from driftbandits.errors import StateError
from driftbandits.state.plausible import FARTHEST
from driftbandits.types import ARMS_CHANGED, Change

CHANGES_KEPT = 10_000  # a policy that finds one in every sixty rounds would fill the memory


class ChangeLog:
    """The latest records, oldest first, and the number of all changes found; new arms are none that was found."""

    def __init__(self) -> None:
        self.found = 0
        self._latest: collections.deque[Change] = collections.deque(maxlen=CHANGES_KEPT)

    def latest(self) -> tuple[Change, ...]:
        """The records kept."""
        return tuple(self._latest)

    def add(self, change: Change) -> None:
        """Keep a record, in the place of the oldest if there are too many."""
        self._latest.append(change)
        self.found += change.stream != ARMS_CHANGED

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values."""
        return {"changes": [dataclasses.asdict(change) for change in self._latest], "changes_found": self.found}

    def load(self, state: states.Reader) -> None:
        """Inverse of `export`."""
        self._latest.extend(_read_change(item) for item in state.readers("changes"))
        found = sum(change.stream != ARMS_CHANGED for change in self._latest)
        self.found = state.integer("changes_found", low=found, high=FARTHEST)


def _read_change(reader: states.Reader) -> Change:
    """A change record from a saved state."""
    for name in ("round", "epoch", "block", "compared_with"):
        reader.integer(name)
    for name in ("statistic", "threshold", "odds"):
        reader.number(name)
    reader.text("forgot")
    reader.text("stream")
    change = Change.from_dict({field.name: reader.raw(field.name) for field in dataclasses.fields(Change)})
    numbers = {"interval": int, "arms": int, "before": float, "after": float, "names": str}
    for name, kind in numbers.items():
        values = getattr(change, name)
        if not isinstance(values, tuple) or not all(isinstance(value, kind) for value in values):
            raise StateError(f"the {name} of a change in the state are not a list of {kind.__name__} values")
    if len(change.interval) != 2 or not len(change.arms) == len(change.before) == len(change.after):
        raise StateError("a change in the state has an interval or lists of arms of the wrong length")
    return change
