"""A search by synchronous successive halving, as an Optuna study, and where studies are kept.

Which points continue depends on the scores of a whole rung, and on nothing else: it does not matter who played what,
where, or in which order. Studies are kept in any database that Optuna's storages take, by URL.

One trial per point, enqueued beforehand. A trial is WAITING while nobody plays it and RUNNING while someone does. Its
user attributes keep the regret of every cell (`regret 3/0`: tuning seed 3, world 0), its intermediate values the mean
regret at each rung (the step is the number of seeds). Points that do not survive a rung end PRUNED, those that play the
last one COMPLETE. A study's name ends in a digest of everything that is played, so a changed space, world or version is
another study.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandits.configuration.models import plain_settings
from driftbandits.errors import DriftbanditsError, MissingExtraError
from driftbandits.experiments.seeds import TUNING, check_tuning_world
from driftbandits.experiments.specs import Cell, PolicySpec
from driftbandits.text import first_line
from driftbandits.tuning.spaces import Origin, Point, Space, TuningWorld, Values, trial_points

Rungs = Sequence[tuple[int, int]]  # (points kept, tuning seeds played so far)
Slot = tuple[int, int]  # (number of the tuning seed, number of the world)
Regrets = Mapping[Slot, float]  # final regrets of one point
LEAST_REGRET = 1e-6  # has a logarithm
Score = Callable[[Regrets, Sequence[Slot]], float]


@dataclass(frozen=True)
class Standing:
    """How far a search is: the points still in it, best first, and what they have yet to play in this rung."""

    alive: tuple[int, ...]
    missing: Mapping[int, tuple[Slot, ...]]

    @property
    def finished(self) -> bool:
        """Whether the last rung is played."""
        return not self.missing


def mean_regret(regrets: Regrets, over: Sequence[Slot]) -> float:
    """Mean final regret over these slots."""
    return float(np.mean([regrets[slot] for slot in over]))


def geometric_mean_regret(regrets: Regrets, over: Sequence[Slot]) -> float:
    """Geometric mean over worlds of the mean final regret in each: no world counts for more because it has more.

    >>> round(geometric_mean_regret({(0, 0): 1.0, (0, 1): 100.0}, [(0, 0), (0, 1)]), 9)
    10.0
    """
    worlds = sorted({world for _, world in over})
    means = [mean_regret(regrets, [slot for slot in over if slot[1] == world]) for world in worlds]
    return float(np.exp(np.mean(np.log(np.maximum(means, LEAST_REGRET)))))


def standing(regrets: Sequence[Regrets], rungs: Rungs, *, worlds: int, score: Score = mean_regret) -> Standing:
    """Where a search stands, given the regrets of every point; the least score is best, of equals the lower number.

    >>> halves = ((4, 1), (2, 2))
    >>> standing([{(0, 0): r} for r in (5.0, 2.0, 9.0, 3.0)], halves, worlds=1)
    Standing(alive=(1, 3), missing={1: ((1, 0),), 3: ((1, 0),)})
    """
    alive = list(range(len(regrets)))
    played = 0
    for keep, seeds in rungs:
        alive = _ranked(alive, regrets, slots(played, worlds), score)[:keep]
        missing = {p: tuple(s for s in slots(seeds, worlds) if s not in regrets[p]) for p in alive}
        if any(missing.values()):
            return Standing(tuple(alive), {p: left for p, left in missing.items() if left})
        played = seeds
    return Standing(tuple(_ranked(alive, regrets, slots(played, worlds), score)), {})


def slots(seeds: int, worlds: int) -> list[Slot]:
    """The first `seeds` tuning seeds in every world."""
    return [(seed, world) for seed in range(seeds) for world in range(worlds)]


def count_cells(points: int, rungs: Rungs, *, worlds: int) -> int:
    """The number of cells in a search over `points` points.

    >>> count_cells(32, ((32, 1), (8, 4), (2, 16)), worlds=1)
    80
    """
    total, played = 0, 0
    for keep, seeds in rungs:
        total += min(keep, points) * (seeds - played) * worlds
        played = seeds
    return total


def _ranked(alive: Sequence[int], regrets: Sequence[Regrets], over: Sequence[Slot], score: Score) -> list[int]:
    if not over:
        return list(alive)
    return sorted(alive, key=lambda point: (score(regrets[point], over), point))


@dataclass(frozen=True)
class PointScore:
    """A point that was tried: the cells it played, and its mean final regret over them."""

    number: int
    origin: Origin
    values: Values
    cells: int
    regret: float


@dataclass(frozen=True)
class BestSettings:
    """The best point of a search: its settings as plain values, its mean regret on tuning seeds, where it comes from.

    `cells` is the budget, all cells of the search; `scores` has every point, the longest alive and best first.
    """

    name: str
    policy: str
    values: Values
    settings: Mapping[str, Any]
    origin: Origin
    regret: float
    cells: int
    scores: tuple[PointScore, ...]


@dataclass(frozen=True)
class Tuned:
    """A finished command: the best settings of every search, the file they were written to, and what it cost.

    `cells` is the budget of all searches together and `played` what this process played of it: less where an earlier
    run or another machine had played the rest. `seconds` is the time this process took, `storage` the URL of the
    studies without its password.
    """

    best: tuple[BestSettings, ...]
    path: Path
    storage: str
    cells: int
    played: int
    seconds: float


if TYPE_CHECKING:
    from optuna.storages import RDBStorage
    from optuna.trial import FrozenTrial, TrialState

OPENING_ATTEMPTS = 10  # two processes that make the tables of one SQLite file at once get in each other's way
SQLITE_WAIT_SECONDS = 60.0  # for a turn to write


class StorageError(DriftbanditsError):
    """The storage of a study cannot be opened, or was lost."""


@contextlib.contextmanager
def opened(url: str) -> Iterator[RDBStorage]:
    """The storage at `url`, closed afterwards. Raises StorageError when it cannot be reached, now or later."""
    try:
        import optuna
        import sqlalchemy.exc
    except ImportError:
        raise MissingExtraError("optuna", extra="tuning", purpose="tuning") from None
    name = repr(without_password(url))
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # it announces every study and trial
    try:
        storage = _connected(url)
    except ImportError as error:
        raise StorageError(
            f"cannot open the storage {name}: {_cause(error)}; install the database's driver with pip"
        ) from error
    except (sqlalchemy.exc.SQLAlchemyError, ValueError, RuntimeError) as error:
        raise StorageError(
            f"cannot open the storage {name}: {_cause(error)}; give a URL as Optuna takes it, such as "
            "sqlite:///folder/tuning.db or postgresql://user:password@host/name, of a database that is up"
        ) from error
    try:
        yield storage
    except (sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        raise StorageError(
            f"lost the storage {name}: {_cause(error)}; what was recorded is kept, and the same command goes on"
        ) from error
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _connected(url: str) -> RDBStorage:
    import sqlalchemy.exc
    from optuna.storages import RDBStorage

    if not url.startswith("sqlite"):
        return RDBStorage(url)
    for attempt in range(OPENING_ATTEMPTS):
        try:
            storage = RDBStorage(url, engine_kwargs={"connect_args": {"timeout": SQLITE_WAIT_SECONDS}})
            break
        except (sqlalchemy.exc.OperationalError, sqlalchemy.exc.IntegrityError) as error:
            if attempt + 1 == OPENING_ATTEMPTS or "unable to open" in str(error):
                raise
            time.sleep(0.1 * (attempt + 1))
    _take_turns(storage.engine)
    return storage


def _take_turns(engine: Any) -> None:
    """Let every transaction of SQLite lock the file at its beginning, and write to a log first.

    Optuna claims a trial by reading its state under SELECT FOR UPDATE, which SQLite ignores: without the lock two
    processes could both see a trial waiting, and both would take it. With the log (WAL) a write takes a fraction of a
    millisecond instead of 20; after a power failure the last of them may be missing, but the file is whole. It does not
    work over network file systems, which SQLite is not for: many machines need the URL of a database server.
    """
    from sqlalchemy import event

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None
        with contextlib.suppress(sqlite3.OperationalError):  # another process is just about to do the same
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")

    @event.listens_for(engine, "begin")
    def _lock(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    engine.dispose()  # connections made before do not know of this


def without_password(url: str) -> str:
    """The URL without its password.

    >>> without_password("postgresql://me:secret@host/name")
    'postgresql://me:***@host/name'
    """
    import sqlalchemy.exc

    try:
        return sqlalchemy.make_url(url).render_as_string(hide_password=True)
    except sqlalchemy.exc.ArgumentError:
        return url


def _cause(error: BaseException) -> str:
    """The first line of the innermost error, which is the database's own."""
    while error.__cause__ is not None:
        error = error.__cause__
    return first_line(error)


# Names of a trial's user attributes; the last is a beginning.
POINT_ATTRIBUTE, ORIGIN_ATTRIBUTE, CLAIM_ATTRIBUTE, REGRET_ATTRIBUTE = "point", "origin", "claim", "regret "


@dataclass(frozen=True)
class Search:
    """A space to be searched in some worlds; all of what is played follows from these fields.

    `complete` gives all settings of a policy that a run is to name, from those of a point; by default these alone.
    """

    name: str
    space: Space
    worlds: tuple[TuningWorld, ...]
    rungs: Rungs
    default: bool = True
    complete: Callable[[str, Mapping[str, Any]], Mapping[str, Any]] = lambda _, settings: settings
    score: Score = mean_regret

    def __post_init__(self) -> None:
        for world in self.worlds:
            check_tuning_world(world.environment)

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """The points tried."""
        return trial_points(self.space, self.rungs[0][0], default=self.default)

    @property
    def cells(self) -> int:
        """The budget: how many cells are played in all."""
        return count_cells(len(self.points), self.rungs, worlds=len(self.worlds))

    @cached_property
    def study_name(self) -> str:
        """The name and a digest of what is played."""
        keys = [self.cell(p, (0, w)).key for p in range(len(self.points)) for w in range(len(self.worlds))]
        digest = hashlib.sha256(json.dumps([keys, [list(rung) for rung in self.rungs]]).encode()).hexdigest()
        return f"{self.name} [{digest[:12]}]"

    def cell(self, point: int, slot: Slot) -> Cell:
        """The run of one point on one tuning seed in one world."""
        seed, world = slot
        settings = self.complete(self.space.policy, self.settings(point))
        spec = PolicySpec(f"{self.name}, point {point}", self.space.policy, settings)
        return Cell(self.worlds[world].environment, self.worlds[world].settings, spec, TUNING.take(seed + 1)[-1])

    def settings(self, point: int) -> dict[str, object]:
        """The settings of a point as plain values."""
        return plain_settings(self.space.settings(self.points[point].values))

    def standing(self, regrets: list[Regrets]) -> Standing:
        """How far the search is."""
        return standing(regrets, self.rungs, worlds=len(self.worlds), score=self.score)


@dataclass(frozen=True)
class StudyEntry:
    """A point's trial as last read: its id, state, who claimed it, the regrets and the rungs it has."""

    point: int
    trial: int
    state: TrialState
    claim: str
    regrets: Regrets
    steps: frozenset[int]


class Ledger:
    """The study of a search in a storage. Every method may be called by many processes at once."""

    def __init__(self, search: Search, storage: RDBStorage) -> None:
        import optuna

        self.search = search
        self._storage = storage
        self._study = optuna.create_study(
            storage=storage, study_name=search.study_name, direction="minimize", load_if_exists=True
        )
        self._study_id = storage.get_study_id_from_name(search.study_name)
        self._ids: dict[int, int] = {}
        self._enqueue()

    def read(self) -> list[StudyEntry]:
        """Every point as it is now, in order."""
        return [self._entry(trials[0]) for _, trials in sorted(self._trials().items())]

    def claim(self, entry: StudyEntry, mark: str) -> bool:
        """Take a waiting point, unless another process was quicker; the storage makes this atomic."""
        from optuna.trial import TrialState

        with _already_finished():
            if self._storage.set_trial_state_values(entry.trial, state=TrialState.RUNNING):
                self.mark(entry, mark)
                return True
        return False

    def mark(self, entry: StudyEntry, mark: str) -> None:
        """Show that the claim's holder is alive."""
        with _already_finished():
            self._storage.set_trial_user_attr(entry.trial, CLAIM_ATTRIBUTE, mark)

    def release(self, entries: Iterable[StudyEntry]) -> None:
        """Let points wait again."""
        from optuna.trial import TrialState

        for entry in entries:
            with _already_finished():
                self._storage.set_trial_state_values(entry.trial, state=TrialState.WAITING)

    def record(self, entry: StudyEntry, slot: Slot, regret: float) -> None:
        """Keep the regret of a cell. A second process that played it too writes the same number."""
        with _already_finished():
            self._storage.set_trial_user_attr(entry.trial, f"{REGRET_ATTRIBUTE}{slot[0]}/{slot[1]}", regret)

    def settle(self, entries: list[StudyEntry], now: Standing) -> None:
        """Report the rungs that are played, and end the trials of points that are out or through.

        What there is to write follows from the regrets alone, so it does not matter who does it, or how often.
        """
        for entry in entries:
            if entry.state.is_finished():
                continue
            with _already_finished():
                self._report(entry)
                self._end(entry, now)

    def best_settings(self, entries: list[StudyEntry], now: Standing) -> BestSettings:
        """The result of a finished search."""
        best = now.alive[0]
        scores = [self._score(entry) for entry in entries]
        return BestSettings(
            name=self.search.name,
            policy=self.search.space.policy,
            values=self.search.points[best].values,
            settings=self.search.settings(best),
            origin=self.search.points[best].origin,
            regret=scores[best].regret,
            cells=self.search.cells,
            scores=tuple(sorted(scores, key=lambda score: (-score.cells, score.regret, score.number))),
        )

    def _report(self, entry: StudyEntry) -> None:
        for _, seeds in self.search.rungs:
            over = slots(seeds, len(self.search.worlds))
            if seeds not in entry.steps and all(slot in entry.regrets for slot in over):
                self._storage.set_trial_intermediate_value(entry.trial, seeds, mean_regret(entry.regrets, over))

    def _end(self, entry: StudyEntry, now: Standing) -> None:
        from optuna.trial import TrialState

        if entry.point in now.alive and not now.finished:
            return
        state = TrialState.COMPLETE if entry.point in now.alive else TrialState.PRUNED
        value = mean_regret(entry.regrets, sorted(entry.regrets))
        self._storage.set_trial_state_values(entry.trial, state=state, values=[value])

    def _score(self, entry: StudyEntry) -> PointScore:
        point = self.search.points[entry.point]
        regret = mean_regret(entry.regrets, sorted(entry.regrets))
        return PointScore(entry.point, point.origin, point.values, len(entry.regrets), regret)

    def _enqueue(self) -> None:
        """Enqueue the points that are not there.

        Two processes that begin together may both enqueue a point. The trial with the lowest number is the one that
        counts for everybody, and the others are ended here.
        """
        from optuna.trial import TrialState

        present = self._trials()
        for number in range(len(self.search.points)):
            if number not in present:
                self._study.add_trial(self._waiting(number))
        for trials in self._trials().values():
            for copy in trials[1:]:
                with _already_finished():
                    self._storage.set_trial_state_values(self._id(copy), state=TrialState.FAIL)

    def _waiting(self, number: int) -> FrozenTrial:
        from optuna.distributions import FloatDistribution
        from optuna.trial import TrialState, create_trial

        point = self.search.points[number]
        ranges = {name: FloatDistribution(*ends, log=True) for name, ends in self.search.space.ranges.items()}
        return create_trial(
            state=TrialState.WAITING,
            params=dict(point.values),
            distributions={name: ranges[name] for name in point.values},
            user_attrs={POINT_ATTRIBUTE: number, ORIGIN_ATTRIBUTE: point.origin},
        )

    def _trials(self) -> dict[int, list[FrozenTrial]]:
        """Trials of every point, in the order in which they were enqueued."""
        trials: dict[int, list[FrozenTrial]] = {}
        for trial in sorted(self._storage.get_all_trials(self._study_id, deepcopy=False), key=lambda t: t.number):
            trials.setdefault(trial.user_attrs[POINT_ATTRIBUTE], []).append(trial)
        return trials

    def _id(self, trial: FrozenTrial) -> int:
        if trial.number not in self._ids:
            find = self._storage.get_trial_id_from_study_id_trial_number
            self._ids[trial.number] = find(self._study_id, trial.number)
        return self._ids[trial.number]

    def _entry(self, trial: FrozenTrial) -> StudyEntry:
        attributes = trial.user_attrs
        return StudyEntry(
            point=attributes[POINT_ATTRIBUTE],
            trial=self._id(trial),
            state=trial.state,
            claim=attributes.get(CLAIM_ATTRIBUTE, ""),
            regrets={_slot(key): attributes[key] for key in attributes if key.startswith(REGRET_ATTRIBUTE)},
            steps=frozenset(trial.intermediate_values),
        )


def _slot(key: str) -> Slot:
    seed, world = key.removeprefix(REGRET_ATTRIBUTE).split("/")
    return int(seed), int(world)


@contextlib.contextmanager
def _already_finished() -> Iterator[None]:
    """Another process ended the trial in the meantime: then all there was to write is written."""
    from optuna.exceptions import UpdateFinishedTrialError

    with contextlib.suppress(UpdateFinishedTrialError):
        yield
