"""All arms of a policy in a small table, for terminals, notebooks and pandas."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits.frames import data_frame
from driftbandits.showing import label
from driftbandits.types import Floats, Ints

ROWS_SHOWN = 20
_LONGEST_NAME = 40


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """One entry per arm, the best estimate first; rewards in the user's units.

    Parameters
    ----------
    arms : their numbers
    names : theirs, or the numbers as text
    estimate : estimated rewards
    low, high : the ends of the 95 % intervals; None in policies that have none
    probability : in the next round; with segments, in the next round of its segment
    plays : rounds in which an arm was drawn
    last_played : the last of them, -1 for none

    >>> from driftbandits import ArmSet, Uniform
    >>> summary = Uniform(ArmSet([[0.0], [1.0]], names=["left", "right"])).summary()
    >>> summary.names, summary.probability.tolist(), summary.last_played.tolist()
    (('left', 'right'), [0.5, 0.5], [-1, -1])
    """

    arms: Ints
    names: tuple[str, ...]
    estimate: Floats
    low: Floats | None
    high: Floats | None
    probability: Floats
    plays: Ints
    last_played: Ints

    @classmethod
    def of(
        cls,
        names: Sequence[str] | None,
        estimate: Floats,
        interval: tuple[Floats, Floats] | None,
        law: Floats,
        plays: Ints,
        last: Ints,
    ) -> Summary:
        """The table of columns given in the order of the arms.

        Parameters
        ----------
        names : of the arms, or None
        estimate : (N,) estimated rewards
        interval : both ends of the intervals, each (N,), or None
        law : (N,) probabilities
        plays : (N,) rounds in which an arm was drawn
        last : (N,) the last of them, -1 for none

        Returns
        -------
        Summary
        """
        order = np.argsort(-estimate, kind="stable")
        return cls(
            arms=order,
            names=tuple(str(arm) if names is None else names[arm] for arm in order.tolist()),
            estimate=estimate[order],
            low=None if interval is None else interval[0][order],
            high=None if interval is None else interval[1][order],
            probability=law[order],
            plays=plays[order],
            last_played=last[order],
        )

    def __len__(self) -> int:
        return len(self.arms)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Heads, and the first rows as text."""
        heads = ["arm", "estimate", "95 % interval", "probability", "plays", "last played"]
        rows = []
        for k in range(min(len(self), ROWS_SHOWN)):
            name = label(self.names[k])
            row = [name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}...", f"{self.estimate[k]:.3g}"]
            if self.low is not None and self.high is not None:
                row.append(f"[{self.low[k]:.3g}, {self.high[k]:.3g}]")
            last = int(self.last_played[k])
            rows.append(
                [*row, f"{self.probability[k]:.2g}", f"{self.plays[k]:,}", f"{last:,}" if last >= 0 else "never"]
            )
        return (heads if self.low is not None else [head for head in heads if head != "95 % interval"]), rows

    def _rest(self) -> str:
        left = len(self) - ROWS_SHOWN
        return f"... and {left:,} more, with lower estimates" if left > 0 else ""

    def __str__(self) -> str:
        heads, rows = self._table()
        widths = [max(len(row[k]) for row in (heads, *rows)) for k in range(len(heads))]
        texts = ("arm", "95 % interval")  # to the left, numbers to the right
        lines = [
            "  ".join(
                cell.ljust(width) if head in texts else cell.rjust(width)
                for cell, width, head in zip(row, widths, heads, strict=True)
            ).rstrip()
            for row in (heads, *rows)
        ]
        return "\n".join((*lines, self._rest()) if self._rest() else lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The same table in a notebook."""
        heads, rows = self._table()
        top = "".join(f"<th>{html.escape(head)}</th>" for head in heads)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        rest = f"<p>{self._rest()}</p>" if self._rest() else ""
        return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>{rest}"

    def to_pandas(self) -> Any:
        """All arms as a DataFrame.

        Returns
        -------
        pandas.DataFrame
            One row per arm: arm, name, estimate, low, high, probability, plays, last_played.

        Raises
        ------
        MissingExtraError
            Without pandas.
        """
        columns: dict[str, Any] = {"arm": self.arms, "name": list(self.names), "estimate": self.estimate}
        if self.low is not None and self.high is not None:
            columns["low"], columns["high"] = self.low, self.high
        rest = {"probability": self.probability, "plays": self.plays, "last_played": self.last_played}
        return data_frame({**columns, **rest}, purpose="a summary as a table")
