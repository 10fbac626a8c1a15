"""Inspection of a policy: estimates with intervals, a summary of all arms, and their history.

Inspection changes nothing: neither decisions nor the state.
"""

from __future__ import annotations

import html
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from driftbandits._util.guard import guarded
from driftbandits._util.machine import data_frame
from driftbandits.errors import DriftbanditsError, InputError
from driftbandits.policies.algorithm import Algorithm
from driftbandits.policies.records import History, HistoryLog, Plays, Snapshot
from driftbandits.text import aligned, label
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
        lines = aligned([heads, *rows], left=[head in ("arm", "95 % interval") for head in heads])
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


NORMAL_QUANTILE = 1.959963984540054  # 95 % of a normal distribution lie so many standard deviations around its mean


class Inspection(Algorithm):
    """The part of `Policy` that shows what it believes; nothing here changes decisions or state."""

    _plays: Plays
    _history: HistoryLog

    @abstractmethod
    def _ahead(self) -> Self:
        """This policy as the next ask will find it."""

    @guarded
    def interval(self, *, context: Any = None) -> tuple[Floats, Floats]:
        """Lower and upper ends of 95 % intervals of every arm's mean reward.

        What they rest on is what the policy believes: a Gaussian process, a declared noise, a number of rewards. Each
        holds for its arm at the present moment, not for all arms or for ever; ends beyond the reward range are cut.

        Parameters
        ----------
        context : of the request, where the policy has `contexts`; without one, the mean over the latest

        Returns
        -------
        two arrays, each of shape (N,)
            In the user's units.

        Raises
        ------
        InputError
            If the policy has no intervals.

        >>> from driftbandits import ArmSet, GPUCB
        >>> policy = GPUCB(ArmSet([[0.0], [1.0]]), reward_range=(0, 1), noise=0.05, seed=0)
        >>> for _ in range(20):
        ...     policy.tell(policy.ask(), 0.5)
        >>> low, high = policy.interval()
        >>> bool((low < 0.5).all() and (high > 0.5).all() and (high - low).min() < 0.1)
        True
        """
        codes, ahead = self._codes_of(context), self._ahead()
        with ahead._entered(codes):
            found = ahead._interval_inside()
        if found is None:
            raise InputError(
                f"{type(self).__name__} does not know how far off its estimates may be, so there is no interval; "
                f"AutoBandit, CalibratedOPKB in its practical mode, the GP-UCB, LinUCB and UCB families and Uniform "
                f"have one"
            )
        return self._scale.outward(found[0]), self._scale.outward(found[1])

    @guarded
    def summary(self) -> Summary:
        """All arms in a table, the best estimate first: print it, show it in a notebook, or take `.to_pandas()`.

        Returns
        -------
        Summary

        >>> from driftbandits import ArmSet, GPUCB
        >>> policy = GPUCB(ArmSet([[0.0], [1.0]], names=["left", "right"]), noise=0.2, seed=0)
        >>> for reward in (0.5, 0.1, 0.5):
        ...     policy.tell(policy.ask(), reward)
        >>> print(policy.summary())
        arm    estimate  95 % interval      probability  plays  last played
        right     0.357  [0.0259, 0.688]              1      1            2
        left       0.25  [-0.00301, 0.503]            0      2            1
        """
        ahead, outward = self._ahead(), self._scale.outward
        law, found = ahead._shown_law(), ahead._interval_inside()
        interval = None if found is None else (outward(found[0]), outward(found[1]))
        estimate = ahead._checked_estimate()
        counts, last = self._plays.counts, self._plays.last
        return Summary.of(self.arms.names, outward(estimate), interval, law, counts, last)

    @property
    @guarded
    def history(self) -> History:
        """Estimates, intervals and probabilities over time, of the 50 arms played most, at 500 moments at most.

        `plots.beliefs` draws it, `.to_pandas()` gives it as a table.
        """
        ahead, outward = self._ahead(), self._scale.outward
        arms = self._history.shown(self._plays.counts)
        estimate, *kept = ahead._glimpse(arms)
        now = np.array([estimate, ahead._shown_law()[arms], *kept])
        rounds, values = self._history.snapshots(arms, self.rounds, now)
        names = None if self.arms.names is None else tuple(self.arms.names[arm] for arm in arms)
        found = self._intervals_of(values) if len(values) > 2 else None
        low, high = (None, None) if found is None else (outward(found[0]), outward(found[1]))
        return History(rounds, arms, names, outward(values[0]), values[1], low, high)

    @abstractmethod
    def _codes_of(self, context: Any) -> Floats | None:
        """Codes of the context of a request, None where none is given."""

    @abstractmethod
    def _entered(self, codes: Floats | None) -> AbstractContextManager[None]:
        """Let laws and estimates be for one request meanwhile."""

    # --- on the internal scale ----------------------------------------------------------------------------------

    def _intervals_of(self, values: Floats) -> Floats:
        """Both ends of the intervals of snapshots, shape (2, P, A), from their rows, NaN where these are."""
        known = ~np.isnan(values[0])
        ends = np.full((2, *known.shape), np.nan)
        ends[:, known] = np.clip(self._interval_from(values[0][known], values[2:][:, known]), -1.0, 1.0)
        return ends

    def _shown_law(self) -> Floats:
        """The law that is shown: where arms are options in segments, that of a round of each segment."""
        crossing = self.arms.crossing
        if crossing is None:
            return self._fit(self._law())
        masks = [crossing.mask(segment) for segment in range(len(crossing.names))]
        return np.concatenate([self._law_within(mask)[0][mask] for mask in masks])

    def _take_snapshot(self) -> Snapshot | None:
        """What is believed before the next reward, to be kept; None where a hook fails, which `ask` will say."""
        try:
            followed = self._history.follow(self._plays.counts)
            law = self._shown_law()
            estimate, *kept = self._glimpse(followed.arms)
        except DriftbanditsError:
            return None
        return Snapshot.of(self.rounds, followed, [estimate, law[followed.arms], *kept])

    def _interval_inside(self) -> Floats | None:
        """The interval, cut to the range of rewards, which holds every mean."""
        found = self._checked_interval()
        return None if found is None else cut(found)


def cut(interval: tuple[Floats, Floats] | Floats) -> Floats:
    """An interval on the internal scale without what lies beyond the range of rewards, shape (2, N)."""
    return np.clip(interval, -1.0, 1.0)


def around(mean: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """The 95 % interval of normal variables with these means and standard deviations.

    >>> [ends.round(2).tolist() for ends in around(np.zeros(1), np.ones(1))]
    [[-1.96], [1.96]]
    """
    half = NORMAL_QUANTILE * deviation
    return mean - half, mean + half
