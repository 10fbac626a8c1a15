"""A log of decisions as columns, checked once; its cells (an arm, in a segment of requests); misspelt names."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.contexts import Contexts
from driftbandits.errors import InputError, did_you_mean
from driftbandits.policies.log_columns import CONTEXT, requests_of
from driftbandits.text import counted, shown
from driftbandits.types import Bools, Floats, Ints

MOST_CELLS = 160  # that beliefs and twins tell apart where there are segments
FEW_ROWS = 3  # of an arm, up to which its name is doubted whatever it is like
_RARER = 20  # times as many rows must the arm have whose name another looks like
_ALIKE = 0.8  # of two names, by difflib
_MOST_SAID = 5
_BY_ROW = ("round", "arm", "reward", "probability", "time", "allowed", "law", "segment", "told", "seconds")
_MOST_COMPARED = 200  # rare arms, and letters of a name: the time grows with their product and square


@dataclass(frozen=True, slots=True)
class Row:
    """A row before its decision: neither the arm nor the reward is in it.

    `allowed` is None where every arm was offered, `time` where the log has rounds, `segment` and `context` where it has
    none.
    """

    place: int
    round: int
    time: float | None
    segment: str | None
    allowed: Bools | None
    names: tuple[str, ...]
    context: Any = None

    @property
    def offered(self) -> tuple[str, ...]:
        """Names of the arms that could be chosen."""
        if self.allowed is None:
            return self.names
        return tuple(self.names[arm] for arm in np.flatnonzero(self.allowed))


@dataclass(frozen=True, repr=False, eq=False)
class Log:
    """Decisions with the probability of each, one entry per row; build it with `Log.read`.

    Parameters
    ----------
    round : (n,) whole numbers, rising
    time : (n,) seconds, not falling, if the log had a column of times instead; `round` then counts rows
    arm : (n,) positions in `names`
    reward : (n,), NaN where it is not known
    probability : (n,) propensity of the arm chosen, under the logging policy
    names : of all arms
    allowed : (n, N), or None if every arm was offered in every round
    law : (n, N) probabilities of all arms, or None
    segment : (n,) positions in `segment_names`, or None
    segment_names : of all segments
    told : (n,) when the reward came, in the unit of `round` or `time`; NaN where it did not, or None
    seconds : (n,) times of the rows where the log has rounds and times both: rounds count then, or None
    reward_range : declared ends of the rewards, or None
    arms : the arms with their points and kernel, if they were given
    notes : what was changed while the log was read: rows dropped, names merged
    context : the columns `context.*` as they were read, by name without that prefix
    contexts : what these columns are, as declared, else inferred; None where there are none

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
    notes: tuple[str, ...] = ()
    context: Mapping[str, npt.NDArray[Any]] = dataclasses.field(default_factory=dict)
    contexts: Contexts | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        for column in self.context.values():
            column.flags.writeable = False

    @classmethod
    def read(
        cls,
        source: Any,
        arms: ArmSet | Sequence[str] | None = None,
        *,
        reward_range: tuple[float, float] | None = None,
        columns: Mapping[str, str] | None = None,
        layout: Literal["open-bandit", "vw"] | None = None,
        sort: bool = False,
        drop_missing: bool = False,
        merge_names: bool = False,
        rewards: Any = None,
        zone: str | None = None,
        database: Any = None,
        contexts: Any = None,
    ) -> Log:
        """A log from a path to Parquet, CSV or NDJSON, a pandas or polars frame, a mapping of columns, or a `Trace`.

        Columns: `round` (whole numbers) or `time` (seconds or dates), `arm` (name or position), `reward` (empty: not
        known), `probability`; if there `allowed` (the arms offered: a list of names, positions or flags, or text
        "a|b|c"), `law` (a list of N probabilities; single numbers are numbers of laws and are not needed), `segment`,
        `told`, and `context.*` (numbers, flags, words or vectors). Other columns are left alone.

        Parameters
        ----------
        source : as above
        arms : the arms that could be played, as an `ArmSet` or as names; by default those that occur, played or
            allowed. Pass it if some of them never occur
        reward_range : ends that no reward may exceed; anytime intervals need it
        columns : what columns are called in the source, as {"arm": "variant", "reward": "clicked"}
        layout : "open-bandit" for the columns of the Open Bandit data, "vw" for a file of Vowpal Wabbit: lines
            `arm:cost:probability | ...`, events of several lines, or dsjson; the reward is the cost with the opposite
            sign
        sort : whether to put rows into the order of their rounds or times
        drop_missing : whether to leave out rows that lack a round or time, arm, probability, segment or `allowed`
        merge_names : whether to take names that differ by case, blanks or accents for one, the most frequent
        rewards : a second source with columns `id`, `reward` and, if known, `told`; the log needs a column `id` too
        zone : time zone of dates that say none, such as "Europe/Berlin"; without it they are UTC
        database : an engine of SQLAlchemy, or its URL; `source` is a query then
        contexts : what the columns `context.*` are: a `Contexts`, or what `Contexts.from_dict` takes. By default
            numbers without a range, categories of the 50 most frequent words and "other", flags and vectors

        Returns
        -------
        Log

        Raises
        ------
        InputError
            For invalid values: all that is wrong, with rows (counted from 0) and columns. Nothing is guessed, and
            nothing repaired but what was asked for, which `notes` count.
        MissingExtraError
            If the package for reading such a file is not installed.

        >>> rows = {"round": [0, 1, 2], "arm": ["a", "b", "a"], "reward": [1, 0, None], "probability": [0.5, 0.5, 0.9]}
        >>> Log.read(rows)
        Log(3 rows, 2 arms, rounds 0 to 2, mean reward 0.5; 1 reward not known)
        """
        from driftbandits.logs.reading import read_log
        from driftbandits.logs.sources import Preparation

        asked = Preparation(columns, layout, sort, drop_missing, merge_names, rewards, zone, database)
        return read_log(source, arms, reward_range, asked, contexts)

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

    @functools.cached_property
    def requests(self) -> Sequence[Any]:
        """The context of every row, as policies with these `contexts` take it; empty where there are none."""
        return [] if self.contexts is None else requests_of(self.contexts, self._context_columns())

    @functools.cached_property
    def codes(self) -> Floats:
        """The codes of every row's context, shape (n, width); there are none without `contexts`."""
        if self.contexts is None:
            return np.empty((len(self), 0))
        return self.contexts.read_many(requests_of(self.contexts, self._context_columns()))

    def _context_columns(self) -> dict[str, npt.NDArray[Any]]:
        return {f"{CONTEXT}{name}": column for name, column in self.context.items()}

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
        own = {name: getattr(self, name) for name in _BY_ROW}
        taken: dict[str, Any] = {name: None if column is None else column[rows] for name, column in own.items()}
        context = {name: column[rows] for name, column in self.context.items()}
        return dataclasses.replace(self, **taken, context=context)

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
        columns |= self._context_columns()
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
        """One row, as it is passed to a target function.

        Parameters
        ----------
        place : its position

        Returns
        -------
        Row
        """
        return Row(
            place=place,
            round=int(self.round[place]),
            time=None if self.time is None else float(self.time[place]),
            segment=None if self.segment is None else self.segment_names[self.segment[place]],
            allowed=None if self.allowed is None else self.allowed[place],
            names=self.names,
            context=self.requests[place] if self.contexts is not None else None,
        )


def cells_of(log: Log) -> Ints:
    """Arm and segment of every row as one number: those of a segment stand together."""
    return log.arm if log.segment is None else log.segment * len(log.names) + log.arm


def cell_count(log: Log) -> int:
    """How many there are."""
    return len(log.names) * max(len(log.segment_names), 1)


def cell_name(log: Log, cell: int) -> str:
    """What texts call a cell."""
    name = log.names[cell % len(log.names)]
    return name if log.segment is None else f"{name} ({log.segment_names[cell // len(log.names)]})"


def merged(log: Log) -> Log:
    """The log as beliefs and twins see it: without segments where these make too many cells to tell apart."""
    if log.segment is None or cell_count(log) <= MOST_CELLS:
        return log
    return dataclasses.replace(log, segment=None, segment_names=())


def arms_of(log: Log) -> ArmSet:
    """The log's arms; without points, arms that have nothing in common."""
    return log.arms if log.arms is not None else ArmSet.from_features(np.eye(len(log.names)), names=log.names)


def cell_arms(log: Log) -> ArmSet:
    """The cells as arms to be played."""
    return arms_of(log) if log.segment is None else ArmSet.crossed(arms_of(log), list(log.segment_names))


def is_masked(log: Log) -> bool:
    """Whether some rows do not offer every cell."""
    return log.segment is not None or log.allowed is not None


def offered(log: Log, rows: Ints) -> Bools | None:
    """Cells that could be played in some rows, (rows, cells): those of the row's segment, of the arms allowed.

    None where every cell always could.
    """
    if log.segment is None:
        return None if log.allowed is None else log.allowed[rows]
    own = np.arange(len(log.segment_names)) == log.segment[rows, None]
    arms = np.ones((len(rows), len(log.names)), dtype=bool) if log.allowed is None else log.allowed[rows]
    return np.asarray(own[:, :, None] & arms[:, None, :]).reshape(len(rows), -1)


def clock_words(log: Log, when: float) -> str:
    """A time of the log in words."""
    if log.time is None:
        return f"round {when:,.0f}"
    if when > 1e8:  # seconds since 1970: a date
        return str(np.datetime64(int(when), "s")).replace("T", " ")
    return f"time {when:,.6g}"


def suspicious_arms(log: Log) -> tuple[str, ...]:
    """A sentence for every arm that looks like a misspelling of another, or has next to no rows.

    Arms that were given as an `ArmSet` are meant, and so are names that differ in their numbers alone.

    >>> rows = {"round": range(100), "arm": ["storm"] * 60 + ["derby"] * 39 + ["strom"], "reward": [0.0] * 100}
    >>> suspicious_arms(Log.read({**rows, "probability": [0.5] * 100}))
    ("arm 'strom' occurs in 1 row; did you mean 'storm' (60 rows)?",)
    """
    if log.arms is not None:
        return ()
    rows = np.bincount(log.arm, minlength=len(log.names))
    alike = _spelt_alike(log, rows.tolist())
    rare = [int(arm) for arm in np.argsort(rows, kind="stable") if 0 < rows[arm] * _RARER <= rows.max()]
    alone = [arm for arm in rare if log.names[arm] not in " ".join(alike)]
    said = [*alike, *(words for arm in alone[:_MOST_COMPARED] if (words := _suspicion(log, rows.tolist(), arm)))]
    more = len(said) - _MOST_SAID
    return (*said[:_MOST_SAID], *([f"{counted(more, 'more arm')} like that"] if more > 0 else []))


def _spelt_alike(log: Log, rows: list[int]) -> list[str]:
    """A sentence for all arms whose names differ by case, blanks or accents alone, however often they occur."""
    groups: dict[str, list[int]] = {}
    for arm in np.argsort(-np.array(rows), kind="stable").tolist():
        groups.setdefault(plain_name(log.names[arm]), []).append(arm)
    alike = (
        " and ".join(f"{shown(log.names[arm])} ({counted(rows[arm], 'row')})" for arm in group)
        for group in groups.values()
        if len(group) > 1
    )
    return [f"arms {names} differ by case, blanks or accents alone; merge_names makes them one" for names in alike]


def _suspicion(log: Log, rows: list[int], arm: int) -> str:
    name = log.names[arm]
    often = [own for own, count in zip(log.names, rows, strict=True) if count >= _RARER * rows[arm]]
    near = [own for own in _near(name, often) if not _only_numbers_differ(name, own)]
    occurs = f"arm {shown(name)} occurs in {counted(rows[arm], 'row')}"
    if near:
        return f"{occurs}; did you mean {shown(near[0])} ({counted(rows[log.names.index(near[0])], 'row')})?"
    return f"{occurs} only: a slip in its name, or an arm of which nothing can be said" if rows[arm] <= FEW_ROWS else ""


def _near(name: str, others: list[str]) -> list[str]:
    """Names much like this one, the likest first; case and blanks do not count."""
    plain = {_plain(other): other for other in reversed(others)}
    return [plain[near] for near in difflib.get_close_matches(_plain(name), list(plain), n=3, cutoff=_ALIKE)]


def _plain(name: str) -> str:
    return plain_name(name)[:_MOST_COMPARED]


def plain_name(name: str) -> str:
    """A name without what is easily written in two ways: case, blanks, accents.

    >>> plain_name(" Café  Crème"), plain_name("CAFE creme")
    ('cafe creme', 'cafe creme')
    """
    bare = "".join(letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter))
    return " ".join(bare.split()).casefold()


def _only_numbers_differ(one: str, other: str) -> bool:
    """Whether two names are "12 EUR" and "13 EUR".

    >>> _only_numbers_differ("12 EUR", "13 EUR"), _only_numbers_differ("storm 1", "strom 1")
    (True, False)
    """
    words = [re.split(r"\d+", name) for name in (one, other)]
    return words[0] == words[1] and len(words[0]) > 1
