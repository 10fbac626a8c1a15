"""A log of decisions as columns, checked once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandits.arms import ArmSet
from driftbandits.errors import InputError, did_you_mean
from driftbandits.showing import counted, shown
from driftbandits.types import Bools, Floats, Ints

if TYPE_CHECKING:
    from driftbandits.logs.row import Row


@dataclass(frozen=True, repr=False, eq=False)
class Log:
    """Decisions with the probability of each, one entry per row; build it with `Log.read`.

    Parameters
    ----------
    round : (n,) whole numbers, rising
    time : (n,) seconds, not falling, if the log had a column of times instead; `round` then counts rows
    arm : (n,) positions in `names`
    reward : (n,), NaN where it is not known
    probability : (n,) of the arm chosen, under the policy that logged
    names : of all arms
    allowed : (n, N), or None if every arm was offered in every round
    law : (n, N) probabilities of all arms, or None
    segment : (n,) positions in `segment_names`, or None
    segment_names : of all segments
    told : (n,) when the reward came, in the unit of `round` or `time`; NaN where it did not, or None
    seconds : (n,) times of the rows where the log has rounds and times both: rounds count then, or None
    reward_range : declared ends of the rewards, or None
    arms : the arms with their points and kernel, if they were given

    >>> log = Log.read({"round": [0, 1], "arm": ["a", "b"], "reward": [1, 0], "probability": [0.5, 0.5]})
    >>> len(log), log.names, log.reward.tolist()
    (2, ('a', 'b'), [1.0, 0.0])
    """

    round: Ints
    arm: Ints
    reward: Floats
    probability: Floats
    names: tuple[str, ...]
    time: Floats | None = None
    allowed: Bools | None = None
    law: Floats | None = None
    segment: Ints | None = None
    segment_names: tuple[str, ...] = ()
    told: Floats | None = None
    seconds: Floats | None = None
    reward_range: tuple[float, float] | None = None
    arms: ArmSet | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @classmethod
    def read(
        cls,
        source: Any,
        arms: ArmSet | Sequence[str] | None = None,
        *,
        reward_range: tuple[float, float] | None = None,
    ) -> Log:
        """A log from a path to Parquet, CSV or NDJSON, a pandas or polars frame, a mapping of columns, or a `Trace`.

        Columns: `round` (whole numbers) or `time` (seconds or dates), `arm` (name or position), `reward` (empty: not
        known), `probability`; if there `allowed` (the arms offered: a list of names, positions or flags, or text
        "a|b|c"), `law` (a list of N probabilities; single numbers are numbers of laws and are not needed), `segment`,
        `told`. Other columns are left alone.

        Parameters
        ----------
        source : as above
        arms : the arms that could be played, as an `ArmSet` or as names; by default those that occur, played or
            allowed. Say it where some never occur
        reward_range : ends that no reward may exceed; anytime intervals need it

        Returns
        -------
        Log

        Raises
        ------
        InputError
            For whatever is wrong, with row (counted from 0) and column of the first wrong value of a kind. Nothing is
            guessed or repaired.
        MissingExtraError
            If reading such a file takes a package that is not there.

        >>> rows = {"round": [0, 1, 2], "arm": ["a", "b", "a"], "reward": [1, 0, None], "probability": [0.5, 0.5, 0.9]}
        >>> Log.read(rows)
        Log(3 rows, 2 arms, rounds 0 to 2, mean reward 0.5; 1 reward not known)
        """
        from driftbandits.logs.reading import read_log

        return read_log(source, arms, reward_range)

    def __len__(self) -> int:
        return len(self.arm)

    def __repr__(self) -> str:
        known = self.known
        mean = f"mean reward {self.reward[known].mean():.4g}" if known.any() else "no reward known"
        missing = len(self) - int(np.count_nonzero(known))
        rest = f"; {counted(missing, 'reward')} not known" if missing else ""
        rounds = f"rounds {self.round[0]} to {self.round[-1]}"
        return f"Log({counted(len(self), 'row')}, {counted(len(self.names), 'arm')}, {rounds}, {mean}{rest})"

    @property
    def known(self) -> Bools:
        """Which rows have a reward, shape (n,)."""
        return ~np.isnan(self.reward)

    @property
    def clock(self) -> Floats:
        """Time of every row, shape (n,): `time` where there is one, else `round`."""
        return self.round.astype(np.float64) if self.time is None else self.time

    def index(self, arm: str | int | np.integer[Any]) -> int:
        """Position of an arm.

        Parameters
        ----------
        arm : its name or position

        Returns
        -------
        int

        Raises
        ------
        InputError
            If the log has no such arm.
        """
        if isinstance(arm, str):
            if arm in self.names:
                return self.names.index(arm)
            near = did_you_mean(arm, self.names)
            raise InputError(f"no arm of the log is called {shown(arm)}; {near or f'its arms: {shown(self.names)}'}")
        if isinstance(arm, bool) or not isinstance(arm, (int, np.integer)) or not 0 <= arm < len(self.names):
            raise InputError(f"an arm is a name or a position from 0 to {len(self.names) - 1}, got {shown(arm)}")
        return int(arm)

    def take(self, rows: Ints | Bools | slice) -> Log:
        """The log of these rows alone.

        Parameters
        ----------
        rows : a slice, positions, or one flag per row

        Returns
        -------
        Log
        """
        columns = ("round", "arm", "reward", "probability", "time", "allowed", "law", "segment", "told", "seconds")
        own = {name: getattr(self, name) for name in columns}
        taken: dict[str, Any] = {name: None if column is None else column[rows] for name, column in own.items()}
        return dataclasses.replace(self, **taken)

    def columns(self, arms: ArmSet) -> dict[str, Any]:
        """The log as `Policy.learn` takes it, for a policy with these arms; `policy.learn(log)` calls it.

        Where the log has segments and the arms are options in segments, the log's arms are the options.

        Parameters
        ----------
        arms : those of the policy

        Returns
        -------
        dict
            Columns by name.

        Raises
        ------
        InputError
            If the log played an arm that is not among them.
        """
        crossing = None if self.segment is None else arms.crossing
        options = arms if crossing is None else crossing.options
        known = {name: place for place, name in enumerate(options.names or map(str, range(len(options))))}
        places = np.array([known.get(name, -1) for name in self.names], dtype=np.int64)
        played = places[self.arm]
        if (played < 0).any():
            row = int((played < 0).argmax())
            name = self.names[self.arm[row]]
            raise InputError(
                f"row {row} of the log played {shown(name)}, which the policy does not have among its arms"
            )
        columns: dict[str, Any] = {"arm": played, "reward": self.reward, "probability": self.probability}
        columns |= {"round": self.round} if self.time is None else {"time": self.time}
        if self.allowed is not None:
            columns["allowed"] = np.zeros((len(self), len(options)), dtype=np.bool_)
            columns["allowed"][:, places[places >= 0]] = self.allowed[:, places >= 0]
        if self.told is not None:
            columns["told"] = self.told
        if self.segment is not None:
            columns["segment"] = np.array(self.segment_names)[self.segment]
        return columns

    def row(self, place: int) -> Row:
        """One row, as functions of a row are given it.

        Parameters
        ----------
        place : its position

        Returns
        -------
        Row
        """
        from driftbandits.logs.row import row_of

        return row_of(self, place)
