"""Plays cells in parallel, keeps each as soon as it is finished, and continues where an earlier run stopped.

RunError                a run stopped; the message says why, how many cells are safe, and how to continue
|-- CellError           a cell failed: which one, and the error
`-- RunInterruptedError Ctrl-C (also a KeyboardInterrupt)

All are DriftbanditsErrors, so a command line needs one handler.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from driftbandits._util.guard import one_blas_thread
from driftbandits.datasets import turnover
from driftbandits.detection import detections
from driftbandits.environments import Environment
from driftbandits.errors import ClippedRewardsWarning, DriftbanditsError, InputError
from driftbandits.experiments.building import build_policy, build_world, cost_of
from driftbandits.experiments.engines import Engine, end_with
from driftbandits.experiments.specs import Cell
from driftbandits.experiments.stores import CellResult, DamagedPartWarning, Store, damage_summary, distinct
from driftbandits.policies import Policy
from driftbandits.simulation import simulate

CURVE_POINTS = 200


def _note_changes(policy: Policy, alarms: list[int]) -> None:
    """Add the changes found since the last look: a policy remembers only the latest, and here all are counted."""
    if new := policy.changes_found - len(alarms):
        alarms.extend(change.round for change in policy.changes[-new:])


@one_blas_thread
def run_cell(cell: Cell) -> CellResult:
    """Play one cell in one thread: the parallelism is over cells."""
    with threadpool_limits(limits=1, user_api="openmp"):  # that is torch
        world = build_world(cell.environment, cell.settings, cell.seed)
        return play_in(world, build_policy(cell.policy, world, cell.seed), cell)


def play_in(world: Environment, policy: Policy, cell: Cell) -> CellResult:
    """Play the world and the policy that were built for a cell."""
    alarms: list[int] = []
    trace = simulate(policy, world, seed=cell.seed, progress=lambda _: _note_changes(policy, alarms))
    rounds = np.unique(np.linspace(1, len(trace), CURVE_POINTS).astype(np.int64))
    return CellResult(
        cell=cell,
        rounds=rounds,
        regret=trace.cumulative_regret[rounds - 1],
        changes=tuple(alarms),
        detection=detections([int(t) for t in world.change_rounds], alarms),
        turnover=turnover(trace.arm),
        seconds=trace.seconds,
    )


MOST_CELLS_IN_MESSAGE = 4
# joblib's, Ray's and Dask's names for a worker that is gone; by name, for none of the three need be installed
LOST_WORKER_ERRORS = (
    "TerminatedWorkerError",
    "BrokenProcessPool",
    "WorkerCrashedError",
    "OutOfMemoryError",
    "NodeDiedError",
    "KilledWorker",
)


class RunError(DriftbanditsError):
    """A run stopped before all its cells were played; `reason` is its message without what is kept of it."""

    reason: str = ""


class CellError(RunError):
    """A cell failed; `details` is the traceback of the worker that played it."""

    details: str = ""


class RunInterruptedError(RunError, KeyboardInterrupt):
    """The user stopped the run."""

    reason = "interrupted"


def run_cells(
    cells: Sequence[Cell],
    *,
    store: Store | None = None,
    engine: Engine = Engine(),  # noqa: B008  # frozen
    progress: Callable[[list[Cell]], None] | None = None,
    play: Callable[[Cell], CellResult] | None = None,
) -> list[CellResult]:
    """Play the cells that `store` does not hold, and give the results of all in their order.

    Each result is stored before the next is handled; cells with equal keys are played once. `progress` is
    called with the cells finished since its last call, the first time with those the store held. Results are
    the same on every engine and any number of jobs. Warnings of the cells are issued here, once for each place. A part
    of the store that is damaged, or of another schema version, gives a DamagedPartWarning; its cell is played
    again, and the part is overwritten. `play` is what a worker does with a cell, by
    default `run_cell`.

    Raises RunError if a cell fails, a worker is killed or the user interrupts, and StoreError if a part cannot be
    written; finished cells stay in the store, and the same call goes on from them.

    >>> from driftbandits.experiments.specs import PolicySpec
    >>> settings = {"horizon": 50, "switches": [25], "size": 5}
    >>> cells = [Cell("switching/1", settings, PolicySpec("chance", "Uniform"), seed) for seed in range(2)]
    >>> [result.cell.seed for result in run_cells(cells, engine=Engine(jobs=1))]
    [0, 1]
    """
    keys = [cell.key for cell in cells]
    first = distinct(cells)
    advance = _reporter(keys, cells, progress)
    results: dict[str, CellResult] = {}
    try:
        results = _held(first, store)
        advance(results)
        for key, result in _play(
            {key: cell for key, cell in first.items() if key not in results}, engine, play or run_cell
        ):
            if store is not None:
                store.write(key, result)
            results[key] = result
            advance([key])
    except KeyboardInterrupt:
        raise RunInterruptedError(f"{RunInterruptedError.reason}; {_safe(results, first, store)}") from None
    except RunError as error:
        error.reason = str(error)
        error.args = (f"{error}; {_safe(results, first, store)}",)
        raise
    return [dataclasses.replace(results[key], cell=cell) for key, cell in zip(keys, cells, strict=True)]


def _held(cells: Mapping[str, Cell], store: Store | None) -> dict[str, CellResult]:
    """What the store holds; read before anything is played, so that damaged parts are known of at once."""
    if store is None:
        return {}
    damages: list[str] = []
    held = store.load(cells, on_damage=damages.append)
    if damages:
        again = "its cell is" if len(damages) == 1 else "their cells are"
        warnings.warn(f"{damage_summary(damages)}: {again} played again", DamagedPartWarning, stacklevel=3)
    return held


def _reporter(
    keys: Sequence[str], cells: Sequence[Cell], progress: Callable[[list[Cell]], None] | None
) -> Callable[[Iterable[str]], None]:
    """Calls `progress` with the cells of finished keys, each as often as it was asked for."""
    asked: dict[str, list[Cell]] = {}
    for key, cell in zip(keys, cells, strict=True):
        asked.setdefault(key, []).append(cell)

    def advance(finished: Iterable[str]) -> None:
        done = [cell for key in finished for cell in asked[key]]
        if progress is not None and done:
            progress(done)

    return advance


def _safe(results: Mapping[str, CellResult], cells: Mapping[str, Cell], store: Store | None) -> str:
    number = f"{len(results)} of {len(cells)} cells are finished"
    if store is None:
        return f"{number} but not kept: give a store to go on from"
    return f"{number} and safe in {store}: play the same again to go on from them"


def _play(
    cells: Mapping[str, Cell], engine: Engine, play: Callable[[Cell], CellResult]
) -> Iterator[tuple[str, CellResult]]:
    """Results by key, as they come."""
    if not cells:
        return
    warn = _Warner()
    sent: dict[str, Cell] = {}
    runner = engine.started(cells=len(cells))
    with runner, _closing(engine.parallel(_noting(_tasks(cells, play), sent))) as outcomes:
        for outcome in _reported(outcomes, engine, sent):
            del sent[outcome.key]
            if outcome.result is None:
                raise _cell_error(cells[outcome.key], outcome)
            yield outcome.key, outcome.result
            warn(cells[outcome.key], outcome.warned)


def _tasks(cells: Mapping[str, Cell], play: Callable[[Cell], CellResult] = run_cell) -> list[Any]:
    """The longest first: a run of a minute that begins last would keep one worker busy and all others idle."""
    ordered = sorted(cells.items(), key=lambda item: cost_of(item[1]), reverse=True)
    return [joblib.delayed(_attempt)(key, cell, play, os.getpid()) for key, cell in ordered]


def _noting(tasks: Iterable[Any], sent: dict[str, Cell]) -> Iterator[Any]:
    """The tasks; each is noted in `sent` when the engine takes it."""
    for task in tasks:
        _, (key, cell, *_), _ = task
        sent[key] = cell
        yield task


@contextlib.contextmanager
def _closing(outcomes: Iterator[_Outcome]) -> Iterator[Iterator[_Outcome]]:
    """Stops the workers if the results are not waited for to the end."""
    try:
        yield outcomes
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib warns of results nobody takes; our error says how many are safe
            outcomes.close()  # type: ignore[attr-defined]  # joblib gives a generator


def _reported(outcomes: Iterator[_Outcome], engine: Engine, sent: Mapping[str, Cell]) -> Iterator[_Outcome]:
    """The outcomes; an error here is not a cell's, which come as outcomes, but the engine's."""
    while True:
        try:
            outcome = next(outcomes)
        except StopIteration:
            return
        except Exception as error:
            raise RunError(_engine_message(error, engine, sent)) from error
        yield outcome


def _engine_message(error: Exception, engine: Engine, sent: Mapping[str, Cell]) -> str:
    kind = type(error).__name__
    if kind in LOST_WORKER_ERRORS:
        # Those sent first are played first, so among them is the one whose worker is gone.
        first = list(sent.values())[: min(engine.local_jobs, MOST_CELLS_IN_MESSAGE)]
        suspects = ", ".join(map(_name, first))
        return (
            f"a worker of {engine.name} was killed ({kind}), often for want of memory, which fewer jobs need less of, "
            f"or by os._exit in a class of one's own; probably under way: {suspects}"
        )
    return f"{engine.name} failed: {kind}: {_first_line(error)}"


# What happens in the worker.


@dataclass(frozen=True)
class _Warned:
    """A warning on its way from a worker."""

    message: str
    category: type[Warning]
    filename: str
    line: int


@dataclass(frozen=True)
class _Outcome:
    """What became of a cell. Errors travel as text: their classes may be the user's, which only the worker knows."""

    key: str
    result: CellResult | None
    warned: tuple[_Warned, ...]
    error: str = ""
    details: str = ""


def _attempt(key: str, cell: Cell, play: Callable[[Cell], CellResult], parent: int) -> _Outcome:
    end_with(parent)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ClippedRewardsWarning)  # experiments cut rewards on purpose
        try:
            result = play(cell)
            if cell.key != key:
                raise InputError("the file of a class, or the version of driftbandits, is not what the run began with")
        except BaseException as error:  # whatever it is, also sys.exit: the run's message will name it and the cell
            if isinstance(error, KeyboardInterrupt) and os.getpid() == parent:
                raise  # played in the run's own process, where it is Ctrl-C; workers do not hear that
            return _Outcome(key, None, (), error=_describe(error), details=traceback.format_exc())
    return _Outcome(key, result, _portable(caught))


def _describe(error: BaseException) -> str:
    if isinstance(error, DriftbanditsError):
        return str(error)  # says what is wrong by itself
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {_first_line(error)} ({Path(place.filename).name}, line {place.lineno})"


def _portable(caught: Sequence[warnings.WarningMessage]) -> tuple[_Warned, ...]:
    """One warning of each place, under a category that this process knows too."""
    places = {(w.category, w.filename, w.lineno): str(w.message) for w in reversed(caught)}
    return tuple(_Warned(text, _known(kind), file, line) for (kind, file, line), text in reversed(places.items()))


def _known(category: type[Warning]) -> type[Warning]:
    """The category, or for a user's own the nearest of Python's."""
    return next(kind for kind in category.__mro__ if kind.__module__.partition(".")[0] in ("builtins", "driftbandits"))


# What happens with it here.


class _Warner:
    """Issues warnings of workers as if they had been raised here, the first of each place."""

    def __init__(self) -> None:
        self._said: set[tuple[str, int]] = set()

    def __call__(self, cell: Cell, warned: Iterable[_Warned]) -> None:
        for warning in warned:
            if (warning.filename, warning.line) not in self._said:
                self._said.add((warning.filename, warning.line))
                text = f"{warning.message} ({_name(cell)}; more of this kind are not shown)"
                warnings.warn_explicit(text, warning.category, warning.filename, warning.line)


def _cell_error(cell: Cell, outcome: _Outcome) -> CellError:
    error = CellError(f"{_name(cell)} failed: {outcome.error}")
    error.details = outcome.details
    return error


def _name(cell: Cell) -> str:
    return f"{cell.policy.label} on {cell.environment}, seed {cell.seed}"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]
