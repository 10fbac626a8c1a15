"""Small frozen records that travel between the rooms, and the array types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits.showing import label

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
ARMS_CHANGED = "arms changed"  # `stream` of a record that no test has found: the policy was given other arms


def read_only(array: npt.NDArray[Any]) -> Any:
    """Give a view of `array` that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer of a policy: play `arm`; it was drawn with `probability` from law number `law`.

    `id` is what `tell` and `forget` want back. Two decisions with the same `law` were drawn from the same law, each
    restricted to what was allowed in its round.
    """

    id: int
    arm: int
    probability: float
    law: int


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """Several answers as columns: `ids`, `arms`, `probabilities`, `laws`, each of length `len(decisions)`.

    Iterating gives one `Decision` per row; two are equal if all their rows are.
    """

    ids: Ints
    arms: Ints
    probabilities: Floats
    laws: Ints

    @classmethod
    def joined(cls, parts: Sequence[Decisions]) -> Decisions:
        """Decisions one part after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(part, column) for part in parts]) for column in cls.__slots__))

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:  # the generated one would ask arrays for one truth value
        if not isinstance(other, Decisions):
            return NotImplemented
        return all(np.array_equal(getattr(self, column), getattr(other, column)) for column in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[Decision]:
        for row in zip(self.ids, self.arms, self.probabilities, self.laws, strict=True):
            yield Decision(id=int(row[0]), arm=int(row[1]), probability=float(row[2]), law=int(row[3]))


@dataclass(frozen=True, slots=True)
class Change:
    """A change that a policy found: when, by which comparison, which arms moved and from where to where.

    Rounds count from 0. `interval` is the half-open range of rounds `(start, stop)` that disagreed with what the epoch
    had learned before (in the OPKB family with blocks 0 to `compared_with`, in CalibratedOPKB with the law of that
    number; policies without blocks leave `block` and `compared_with` at 0). `round` is the first of the new epoch.
    `statistic` and `threshold` are on the policy's internal scale, where the declared reward range is [-1, 1];
    `before` and `after` are estimated rewards of `arms`, in the user's units. `forgot` says what the policy no longer
    believes, where that is not simply everything before; `stream` which of many tests fired. Where it is "arms
    changed", nothing was found: the policy was given other arms and began anew (`Policy.with_arms`).
    """

    round: int
    epoch: int
    block: int
    interval: tuple[int, int]
    compared_with: int
    statistic: float
    threshold: float
    arms: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    names: tuple[str, ...] = ()
    forgot: str = ""
    stream: str = ""

    def __str__(self) -> str:
        if self.stream == ARMS_CHANGED:
            return f"arms changed at round {self.round}; forgot {label(self.forgot)}"
        labels = tuple(label(name) for name in self.names) or tuple(str(arm) for arm in self.arms)
        rows = sorted(zip(labels, self.before, self.after, strict=True), key=lambda row: -abs(row[2] - row[1]))
        moved = ", ".join(f"{label} {before:+.3g} -> {after:+.3g}" for label, before, after in rows[:3])
        rest = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
        arms = f"; arms that moved: {moved}{rest}" if rows else ""
        return (
            f"change found at round {self.round}: rounds {self.interval[0]} to {self.interval[1] - 1} disagree with "
            f"what epoch {self.epoch} had learned before (statistic {self.statistic:.3g} > {self.threshold:.3g}"
            + (f", {label(self.stream)}" if self.stream else "")
            + f"){arms}"
            + (f"; forgot {label(self.forgot)}" if self.forgot else "")
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Change:
        """Inverse of dataclasses.asdict, also after a detour through JSON, which knows no tuples."""
        fields: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in values.items()}
        return cls(**fields)
