"""What is played in passes: the report is written again after each, with more seeds.

What a pass has in common with earlier ones is not played again: a run has one key, whichever pass asks for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from driftbandits._util.progress import Pace
from driftbandits.cli.options import say
from driftbandits.cli.run_folder import (
    Findings,
    Outputs,
    Record,
    Recording,
    former_files,
    new_record,
    read_record,
    write_record,
)
from driftbandits.errors import InputError
from driftbandits.experiments.building import cost_of
from driftbandits.experiments.engines import Engine
from driftbandits.experiments.playing import played
from driftbandits.experiments.results import Results
from driftbandits.experiments.specs import Cell, Experiment, cells_of
from driftbandits.experiments.stores import Store, distinct
from driftbandits.text import counted


@dataclass(frozen=True)
class Pass:
    """What is played before the report is written again: `title` says what is new in it, `experiments` are all of it.

    >>> Pass("runs", ()).cells
    []
    """

    title: str
    experiments: tuple[Experiment, ...]

    @property
    def cells(self) -> list[Cell]:
        """All its cells, those with equal keys too."""
        return [cell for experiment in self.experiments for cell in cells_of(experiment)]

    @property
    def distinct_cells(self) -> dict[str, Cell]:
        """Its cells by key."""
        return distinct(self.cells)


def left_to_play(passes: Sequence[Pass], held: set[str]) -> list[dict[str, Cell]]:
    """What each pass adds to those before it, by key; of `held` nothing is left."""
    known, added = set(held), []
    for one in passes:
        new = {key: cell for key, cell in one.distinct_cells.items() if key not in known}
        known.update(new)
        added.append(new)
    return added


def first_to_play(added: Sequence[dict[str, Cell]]) -> int:
    """Where to begin: with the last of the passes that lack nothing, whose report can be written at once.

    >>> cell = Cell("switching/1", {}, None, 0)
    >>> first_to_play([{}, {}, {"key": cell}, {}]), first_to_play([{"key": cell}, {}])
    (1, 0)
    """
    lacking = next((number for number, cells in enumerate(added) if cells), len(added))
    return max(lacking - 1, 0)


@dataclass(frozen=True, eq=False)  # results have no single truth value to compare by
class PassDone:
    """A pass that has been played: its number among `of`, what is there now, and what the next will take in seconds."""

    number: int
    of: int
    experiments: tuple[Experiment, ...]
    results: Results
    following: Pass | None
    seconds_to_come: float


class PassFindings(Findings):
    """What is made of the results of a pass."""

    @property
    def progress(self) -> str:
        """How far questions are answered."""
        return ""


def play_passes(passes: Sequence[Pass], *, store: Store, engine: Engine, show: bool = False) -> Iterator[PassDone]:
    """Play the passes one after the other, and give each as soon as it is done.

    Passes that lack nothing are left out, but for the last of them.
    """
    added = left_to_play(passes, store.finished())
    costs = [sum(map(cost_of, cells.values())) for cells in added]
    pace = Pace()
    for at in range(first_to_play(added), len(passes)):
        one, after = passes[at], sum(costs[at + 1 :])
        label = "runs" if len(passes) == 1 else f"pass {at + 1} of {len(passes)}"
        results = played(
            one.experiments, added[at], store=store, engine=engine, show=show, label=label, pace=pace, after=after
        )
        following = passes[at + 1] if at + 1 < len(passes) else None
        cost = costs[at + 1] if following else 0.0
        seconds = pace.seconds_for(cost)
        if seconds is None:  # nothing has been played yet
            seconds = cost / engine.local_jobs
        yield PassDone(at + 1, len(passes), one.experiments, results, following, seconds)


def play_passes_into(
    out: Path,
    passes: Sequence[Pass],
    *,
    title: str,
    mode: str,
    engine: Engine,
    resume: bool,
    minutes: float | None = None,
    make_findings: Callable[[Results], PassFindings] = PassFindings,
) -> Outputs:
    """Play what is missing of the passes into `out`; after each, write tables, claims and the report.

    With `minutes`, no pass begins after so many.
    """
    fresh = new_record(title, passes[0].experiments, mode=mode, engine=engine, files=former_files(out))
    written: list[Outputs] = []
    with Recording(out, _first_record(fresh, out, len(passes)), resume=resume) as run:
        for done in play_passes(passes, store=run.store, engine=engine, show=True):
            record = _record_of(done, fresh, files=run.record.files)
            findings = make_findings(done.results)
            written.append(run.write(record, findings))
            if done.of > 1:
                say(pass_line(done, findings, seconds=run.seconds))
            if done.following is None:
                break
            write_record(_under_way(run.record), out)
            if minutes is not None and run.seconds >= 60 * minutes:
                say(f"ended here, as {minutes:g} minutes have passed; --resume goes on")
                break
    return written[-1]


def pass_line(done: PassDone, findings: PassFindings, *, seconds: float) -> str:
    """Where a run stands after a pass, in a line."""
    parts = [f"pass {done.number} of {done.of} done, {_minutes(seconds)}"]
    if findings.progress:
        parts.append(findings.progress)
    if done.following is not None:
        parts.append(f"next: {done.following.title}, about {_minutes(done.seconds_to_come)}")
    return "; ".join(parts)


def _minutes(seconds: float) -> str:
    return counted(max(round(seconds / 60), 1), "minute")


def _record_of(done: PassDone, fresh: Record, *, files: tuple[str, ...]) -> Record:
    """The record of the report that is written after this pass."""
    which = {"pass": f"{done.number} of {done.of}"} if done.of > 1 else {}
    return dataclasses.replace(fresh, experiments=done.experiments, about={**fresh.about, **which}, files=files)


def _first_record(fresh: Record, out: Path, passes: int) -> Record:
    """The record until the first report is written: where passes go on, that of the report that is there."""
    with contextlib.suppress(InputError):
        former = read_record(out)
        if passes > 1 and "pass" in former.about:
            return _under_way(former)
    return fresh


def _under_way(record: Record) -> Record:
    """The record while something is played: should that be killed, nobody knows how long it took."""
    return dataclasses.replace(record, about={**record.about, "wall_seconds": None})
