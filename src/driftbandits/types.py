"""Small frozen records that travel between the rooms, and the array types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits.text import label

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

    Parameters
    ----------
    id : to pass to `tell` and `forget`; ids count from 0
    arm : number of the arm to play
    probability : with which it was drawn, under the law restricted to what was allowed in its round
    law : number of the law; two decisions with the same number were drawn from the same law
    name : that of the arm, None where arms have none; decisions are compared without it

    >>> from driftbandits import ArmSet, Uniform
    >>> choice = Uniform(ArmSet([[9.0], [12.0]], names=["low", "high"]), seed=0).ask()
    >>> choice.id, choice.name in ("low", "high"), choice.probability
    (0, True, 0.5)
    """

    id: int
    arm: int
    probability: float
    law: int
    name: str | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        name = "" if self.name is None else f", name={self.name!r}"
        return f"Decision(id={self.id!r}, arm={self.arm!r}, probability={self.probability!r}, law={self.law!r}{name})"


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """Several answers as columns, each of length `len(decisions)`.

    Iterating gives one `Decision` per row; two are equal if all their rows are.

    Parameters
    ----------
    ids : to pass to `tell` and `forget`
    arms : numbers of the arms to play
    probabilities : with which they were drawn
    laws : numbers of the laws they were drawn from
    arm_names : of all arms the policy has, where these have names

    >>> from driftbandits import ArmSet, Uniform
    >>> batch = Uniform(ArmSet([[9.0], [12.0]]), seed=0).ask(size=3)
    >>> len(batch), batch.ids.tolist(), batch.probabilities.tolist()
    (3, [0, 1, 2], [0.5, 0.5, 0.5])
    """

    ids: Ints
    arms: Ints
    probabilities: Floats
    laws: Ints
    arm_names: tuple[str, ...] | None = field(default=None, repr=False)

    @classmethod
    def joined(cls, parts: Sequence[Decisions]) -> Decisions:
        """Concatenate decisions.

        Parameters
        ----------
        parts : at least one

        Returns
        -------
        Decisions
        """
        if len(parts) == 1:
            return parts[0]
        ids, arms, probabilities, laws = (
            np.concatenate([getattr(part, column) for part in parts]) for column in _COLUMNS
        )
        return cls(ids, arms, probabilities, laws, parts[0].arm_names)

    def chosen(self, mask: Bools) -> Decisions:
        """The rows that a mask selects.

        Parameters
        ----------
        mask : one flag per row

        Returns
        -------
        Decisions
        """
        return Decisions(self.ids[mask], self.arms[mask], self.probabilities[mask], self.laws[mask], self.arm_names)

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:  # the generated one would ask arrays for one truth value
        if not isinstance(other, Decisions):
            return NotImplemented
        return all(np.array_equal(getattr(self, column), getattr(other, column)) for column in _COLUMNS)

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[Decision]:
        names = self.arm_names
        for ident, arm, probability, law in zip(*(getattr(self, name).tolist() for name in _COLUMNS), strict=True):
            yield Decision(ident, arm, probability, law, None if names is None else names[arm])


_COLUMNS = ("ids", "arms", "probabilities", "laws")


@dataclass(frozen=True, slots=True)
class Change:
    """A change that a policy found: when, by which comparison, which arms moved and from where to where.

    Where `stream` is "arms changed", nothing was found: the policy was given other arms and began anew
    (`Policy.with_arms`). `str(change)` says it in a sentence or two. Rounds count from 0.

    Parameters
    ----------
    round : the first of the new epoch
    epoch : number of the epoch that ended
    block : its block; 0 in policies without blocks
    interval : half-open range of rounds `(start, stop)` that disagreed with what the epoch had learned before
    compared_with : in the OPKB family blocks 0 to this one, in CalibratedOPKB the law of this number, elsewhere 0
    statistic, threshold : on the policy's internal scale, where the declared reward range is [-1, 1]
    arms : numbers of the arms that moved
    before, after : estimated rewards of these arms, in the user's units
    names : of these arms, where they have some
    forgot : what the policy no longer believes, where that is not simply everything before
    stream : which of many tests fired
    odds : of a change against none, of policies that know them; else 0
    part : of the requests whose rewards moved, where it is a minority of them; before and after are theirs then

    >>> change = Change(1005, 0, 0, (1000, 1005), 0, 9.3, 9.2, (3,), (0.5,), (-0.1,), names=("9 EUR",), odds=11_000.0)
    >>> print(change)
    Around round 1,000 the rewards of 9 EUR changed: 9 EUR fell from 0.5 to -0.1. Found at round 1,005;
    odds 11,000 to 1. (rounds 1000 to 1004 against epoch 0; statistic 9.3 > 9.2)
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
    odds: float = 0.0
    part: str = ""

    def __str__(self) -> str:
        """What happened in a sentence or two, and the numbers behind it in brackets."""
        if self.stream == ARMS_CHANGED:
            return f"Arms changed at round {self.round:,}; forgot {label(self.forgot)}."
        first, last = self.interval[0], self.interval[1] - 1
        odds = f"; odds {_odds(self.odds)}" if self.odds > 0 else ""
        numbers = [
            f"rounds {first} to {last} against epoch {self.epoch}",
            f"statistic {self.statistic:.3g} > {self.threshold:.3g}",
            *([label(self.stream)] if self.stream else []),
            *([f"forgot {label(self.forgot)}"] if self.forgot else []),
        ]
        return f"Around round {first:,} {self._moves()}. Found at round {self.round:,}{odds}. ({'; '.join(numbers)})"

    def _moves(self) -> str:
        """Which rewards changed, the largest moves first."""
        labels = tuple(label(name) for name in self.names) or tuple(f"arm {arm}" for arm in self.arms)
        rows = sorted(zip(labels, self.before, self.after, strict=True), key=lambda row: -abs(row[2] - row[1]))
        part = f" for {label(self.part)}" if self.part else ""
        if not rows:
            return f"rewards changed{part}, of which arms cannot be said"
        rest = len(rows) - 1
        others = f" and {rest:,} other{'s' if rest > 1 else ''}" if rest else ""
        moves = [
            f"{name} {'rose' if after > before else 'fell'} from {before:.3g} to {after:.3g}"
            for name, before, after in rows[:_MOVES_SHOWN]
        ]
        return f"the rewards of {rows[0][0]}{others} changed{part}: {', '.join(moves)}"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Change:
        """Inverse of dataclasses.asdict, also after a detour through JSON, which knows no tuples.

        Parameters
        ----------
        values : the fields by name

        Returns
        -------
        Change
        """
        fields: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in values.items()}
        return cls(**fields)


_MOVES_SHOWN = 3
_LARGEST_ODDS_SHOWN = 1e9


def _odds(odds: float) -> str:
    """Odds with two digits.

    >>> _odds(41_234.0), _odds(1e300)
    ('41,000 to 1', 'beyond 1,000,000,000 to 1')
    """
    if odds > _LARGEST_ODDS_SHOWN:
        return f"beyond {_LARGEST_ODDS_SHOWN:,.0f} to 1"
    return f"{float(f'{odds:.2g}'):,.0f} to 1"
