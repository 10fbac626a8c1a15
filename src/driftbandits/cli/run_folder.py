"""The folder of a run: experiments are played into it; tables, claims and the report are written from it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from driftbandits.cli.record import RECORD_NAME, Record, former_files, new_record, read_record, write_record
from driftbandits.cli.show import print_json, say
from driftbandits.errors import InputError
from driftbandits.escaping import csv
from driftbandits.experiments.definitions.specs import cells_of
from driftbandits.experiments.files.cell_result import CellResult
from driftbandits.experiments.files.folder_store import FolderStore
from driftbandits.experiments.files.store import Store, StoreError, damage_summary, read
from driftbandits.experiments.groups.judgements import Judgements, judge
from driftbandits.experiments.groups.passes import Pass
from driftbandits.experiments.judging.checks import Claim
from driftbandits.experiments.judging.results import Results, collect, summary_markdown
from driftbandits.experiments.playing import PassDone, play_passes
from driftbandits.experiments.running.engines import Engine
from driftbandits.experiments.running.runner import RunError
from driftbandits.files import write_whole
from driftbandits.report import write_report
from driftbandits.report.claims import VERDICT_ORDER
from driftbandits.report.claims import counted as counted_verdicts
from driftbandits.showing import counted

FACTS_IN_REPORT = ("command", "mode", "pass", "wall_seconds", "jobs", "engine", "version", "commit", "date")


MOST_ROWS_PRINTED = 8  # of a summary; longer ones are read on the page
NOT_DECIDED = ("undecided", "not run")


@dataclass(frozen=True)
class Outputs:
    """What a command has written and will print; `files` are paths by name."""

    record: Record
    results: Results
    judgements: Judgements
    files: dict[str, str]


def play_into(
    out: Path,
    passes: Sequence[Pass],
    *,
    title: str,
    mode: str,
    engine: Engine,
    resume: bool,
    minutes: float | None = None,
) -> Outputs:
    """Play what is missing of the passes into `out`; after each, write tables, claims and the report.

    The record is there from the beginning, and is always that of the report that is there. With `minutes`, no pass
    begins after so many.
    """
    store = FolderStore(out)
    _refuse_to_overwrite(store, out, resume)
    before = seconds_before(out, store)
    fresh = new_record(title, passes[0].experiments, mode=mode, engine=engine, files=former_files(out))
    record = _first_record(fresh, out, len(passes))
    _write_first(record, out)
    begun = time.perf_counter()
    written: list[Outputs] = []
    try:
        with _saying_how_to_go_on():
            for done in play_passes(passes, store=store, engine=engine, show=True):
                seconds = time.perf_counter() - begun
                record = _record_of(done, fresh, files=record.files)
                record.about["wall_seconds"] = None if before is None else round(before + seconds, 1)
                written.append(write_outputs(record, done.results, out))
                record = written[-1].record
                if done.of > 1:
                    say(pass_line(done, written[-1].judgements, seconds=seconds))
                if done.following is None:
                    break
                write_record(_under_way(record), out)
                if minutes is not None and seconds >= 60 * minutes:
                    say(f"ended here, as {minutes:g} minutes have passed; --resume goes on")
                    break
    finally:
        if before is not None:
            record.about["wall_seconds"] = round(before + time.perf_counter() - begun, 1)
        with contextlib.suppress(OSError):  # a full disk has been told of already
            write_record(record, out)
    return written[-1]


def pass_line(done: PassDone, judgements: Judgements, *, seconds: float) -> str:
    """Where a run stands after a pass, in a line."""
    decided = sum(claim.verdict not in NOT_DECIDED for claim in judgements.claims)
    parts = [f"pass {done.number} of {done.of} done, {_minutes(seconds)}"]
    if judgements.claims:
        parts.append(f"claims decided so far: {decided} of {len(judgements.claims)}")
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


@contextlib.contextmanager
def _saying_how_to_go_on() -> Iterator[None]:
    """Add the option to errors that leave finished runs behind."""
    try:
        yield
    except (RunError, StoreError) as error:
        error.args = (f"{error}, with --resume",)
        raise


def read_results(record: Record, out: Path) -> Results:
    """What `out` holds of the record's experiments."""
    return collect(record.experiments, _finished(record, out))


def write_outputs(record: Record, results: Results, out: Path) -> Outputs:
    """Write tables, claims and the report."""
    judgements = judge(results)
    about = {name: record.about[name] for name in FACTS_IN_REPORT if record.about.get(name) is not None}
    try:
        names = _write_tables(results, judgements.files, out)
        report = write_report(results, judgements, out=out, title=record.title, about=about)
        record = _replace_files(record, names, out)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"cannot write to {out}: {reason}; the finished runs are safe there: put that right, then run "
            f"driftbandits report {out}"
        ) from None
    files = {report.name: str(report), **{name: str(out / name) for name in (RECORD_NAME, *names)}}
    return Outputs(record, results, judgements, files)


def _write_tables(results: Results, texts: Mapping[str, str], out: Path) -> list[str]:
    """Write every table, and give the names of the files."""
    files = {
        "summary.md": summary_markdown(results.summary).encode(),
        "summary.csv": csv(results.summary).encode(),
        "cells.parquet": results.cells.to_parquet(),
        "curves.parquet": results.curves.to_parquet(),
        **{name: text.encode() for name, text in texts.items()},
    }
    for name, content in files.items():
        write_whole(out / name, content)
    return list(files)


def _replace_files(record: Record, names: Sequence[str], out: Path) -> Record:
    """Delete tables of other experiments that were played into this folder before, and note those there are now."""
    for name in set(record.files).difference(names):
        if (out / name).is_file():
            (out / name).unlink()
    noted = dataclasses.replace(record, files=tuple(names))
    write_record(noted, out)
    return noted


def print_outputs(outputs: Outputs, *, as_json: bool) -> None:
    """Print a few lines: the summary if it is short, what became of the claims, and where everything is."""
    if as_json:
        print_json(_as_json(outputs))
        return
    lines = [*_summary_lines(outputs), *_claim_lines(outputs.judgements.claims)]
    if verdicts := outputs.judgements.verdicts:
        statuses = [verdict.status for verdict in verdicts]
        lines.append(f"targets: {', '.join(f'{statuses.count(s)} {s}' for s in dict.fromkeys(statuses))}")
    typer.echo("\n".join(lines))
    first, *others = outputs.files.values()
    beside = ", ".join(Path(path).name for path in others)
    say(f"{counted(len(outputs.results.cells), 'run')}: {first}, and beside it {beside}")


def _summary_lines(outputs: Outputs) -> list[str]:
    summary = outputs.results.summary
    if len(summary) <= MOST_ROWS_PRINTED:
        return summary_markdown(summary).splitlines()
    worlds = counted(summary["experiment"].nunique(), "experiment")
    return [f"{counted(len(outputs.results.cells), 'run')} of {worlds}; regret of all: {outputs.files['summary.md']}"]


def _claim_lines(claims: Sequence[Claim]) -> list[str]:
    """How many claims have which verdict, and which they are."""
    if not claims:
        return []
    ids = {verdict: [claim.id for claim in claims if claim.verdict == verdict] for verdict in VERDICT_ORDER}
    return [
        f"{counted(len(claims), 'claim')}: {counted_verdicts(claims)}",
        *(f"  {verdict}: {', '.join(those)}" for verdict, those in ids.items() if those),
    ]


def _as_json(outputs: Outputs) -> dict[str, Any]:
    claims = [claim for claim in outputs.judgements.claims if claim.verdict != "not run"]
    return {
        "title": outputs.record.title,
        "runs": len(outputs.results.cells),
        "seconds": outputs.record.about.get("wall_seconds"),
        "summary": json.loads(outputs.results.summary.to_json(orient="records")),
        "claims": [_plain({"verdict": c.verdict, **dataclasses.asdict(c)}) for c in claims],
        "targets": [_plain({"status": v.status, **dataclasses.asdict(v)}) for v in outputs.judgements.verdicts],
        "files": outputs.files,
    }


def _finished(record: Record, out: Path) -> list[CellResult]:
    cells = [cell for experiment in record.experiments for cell in cells_of(experiment)]
    damages: list[str] = []
    finished = read(FolderStore(out), cells, on_damage=damages.append)
    if damages:
        say(f"{damage_summary(damages)}: left out; play again what is missing with: {_command(record)} --resume")
    if not finished:
        raise InputError(f"{out} holds none of the {len(cells)} runs of {out / RECORD_NAME}; play them with --resume")
    if len(finished) < len(cells):
        say(f"only {len(finished)} of {len(cells)} runs are finished: tables and report show those")
    return finished


def _command(record: Record) -> str:
    return str(record.about.get("command") or "the command that played it,")


def _refuse_to_overwrite(store: Store, out: Path, resume: bool) -> None:
    if resume:
        return
    finished = len(store.finished())
    if finished or (out / RECORD_NAME).exists():
        raise InputError(
            f"{out} already holds {finished} finished runs; add --resume to keep them and play only what is missing, "
            f"or name another folder with --out"
        )


def seconds_before(out: Path, store: Store) -> float | None:
    """What the runs this one goes on from took; None if that is not known, as of a run that was killed."""
    if not store.finished():
        return 0.0
    try:
        seconds = read_record(out).about.get("wall_seconds")
    except InputError:
        return None
    return float(seconds) if isinstance(seconds, int | float) else None


def _write_first(record: Record, out: Path) -> None:
    """The record before the first run: a folder that cannot be written to is known at once."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_record(record, out)
    except OSError as error:
        raise InputError(f"cannot write to {out}: {error.strerror}; name another folder with --out") from None


def _plain(value: Any) -> Any:
    """As JSON has it: nothing in place of numbers that are none."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
