"""Plays experiments into a folder, and writes tables, claims and the report from what the folder holds."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from driftbandits.cli.record import NAME, Record, new_record, read_record, write_record
from driftbandits.cli.show import print_json, say
from driftbandits.errors import InputError
from driftbandits.escaping import csv
from driftbandits.experiments.definitions.catalogue import GROWTH
from driftbandits.experiments.definitions.growth import SWEEPS, Sweep
from driftbandits.experiments.definitions.real_series import is_real, reference_table
from driftbandits.experiments.definitions.specs import Cell, Experiment, cells_of
from driftbandits.experiments.files.store import Store, told_together
from driftbandits.experiments.judging.autobandit import Judgement, judge, judgement_markdown
from driftbandits.experiments.judging.calibrated_opkb import (
    CalibrationJudgement,
    calibration_markdown,
    judge_calibration,
)
from driftbandits.experiments.judging.claims import Claim, check_claims, claims_markdown
from driftbandits.experiments.judging.results import Results, as_markdown, collect
from driftbandits.experiments.judging.targets import Verdict
from driftbandits.experiments.running.cells import CellResult
from driftbandits.experiments.running.cost import work_of
from driftbandits.experiments.running.engines import Engine
from driftbandits.experiments.running.runner import run_cells
from driftbandits.files import write_whole
from driftbandits.progress import progress_bar
from driftbandits.report import write_report

SHOWN = ("command", "mode", "wall_seconds", "jobs", "engine", "version", "commit", "date")  # in the report


@dataclass(frozen=True)
class Written:
    """What a command has written and will print; `claims` are those that something was played for.

    `judgement` is that of AutoBandit, None where it has played no world of its yardstick; `calibration` is that of
    CalibratedOPKB, None where nothing of its group was played.
    """

    results: Results
    claims: tuple[Claim, ...]
    judgement: Judgement | None
    calibration: CalibrationJudgement | None
    files: dict[str, str]


def play(
    experiments: Sequence[Experiment], *, title: str, mode: str, out: Path, engine: Engine, resume: bool
) -> Record:
    """Play what is missing of the experiments into `out`; the record is there from the beginning."""
    store = Store(out)
    _refuse_to_overwrite(store, out, resume)
    before = _seconds_before(out, store)
    record = new_record(title, experiments, mode=mode, engine=engine)
    _write_first(record, out)
    cells = [cell for experiment in experiments for cell in cells_of(experiment)]
    begun = time.perf_counter()
    try:
        with progress_bar(len(cells), "runs", work=sum(map(work_of, cells))) as advance:

            def tell(finished: list[Cell]) -> None:
                advance(len(finished), sum(map(work_of, finished)))

            run_cells(cells, store=store, engine=engine, progress=tell)
    finally:
        if before is not None:
            record.about["wall_seconds"] = round(before + time.perf_counter() - begun, 1)
        with contextlib.suppress(OSError):  # a full disk has been told of already
            write_record(record, out)
    return record


def write_outputs(record: Record, out: Path) -> Written:
    """Write tables, claims and the report of what `out` holds of the record's experiments."""
    results = collect(record.experiments, _finished(record, out))
    sweeps = sweeps_of(record.experiments)
    claims = tuple(c for c in check_claims(results, sweeps=_without_guests(sweeps)) if c.verdict != "not run")
    real = [experiment for experiment in record.experiments if is_real(experiment)]
    references = reference_table(real) if real else None
    judged = judge(results.cells, references=references)
    judgement = judged if len(judged.worlds) else None
    calibrated = judge_calibration(results.cells)
    texts = {
        "claims.md": claims_markdown(claims) if claims else "",
        "references.csv": "" if references is None else csv(references),
        **_yardstick_texts(judgement),
        **_calibrated_texts(calibrated),
    }
    about = {name: record.about[name] for name in SHOWN if record.about.get(name) is not None}
    try:
        names = _write_tables(results, texts, out)
        report = write_report(results, out=out, title=record.title, sweeps=sweeps, about=about, references=references)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"cannot write to {out}: {reason}; the finished runs are safe there: put that right, then run "
            f"driftbandits report {out}"
        ) from None
    files = {report.name: str(report), **{name: str(out / name) for name in names}}
    return Written(results, claims, judgement, None if calibrated.empty else calibrated, files)


def _yardstick_texts(judgement: Judgement | None) -> dict[str, str]:
    return {
        "yardstick.md": "" if judgement is None else judgement_markdown(judgement),
        "yardstick.csv": "" if judgement is None else csv(judgement.worlds),
    }


def _calibrated_texts(judgement: CalibrationJudgement) -> dict[str, str]:
    tables = {
        "calibrated.csv": judgement.worlds,
        "calibrated-alarms.csv": judgement.alarms,
        "calibrated-delays.csv": judgement.delays,
    }
    return {
        "calibrated.md": "" if judgement.empty else calibration_markdown(judgement),
        **{name: "" if table.empty else csv(table) for name, table in tables.items()},
    }


def _write_tables(results: Results, texts: Mapping[str, str], out: Path) -> list[str]:
    """Write every table, those that are empty texts excepted, and give the names of the files."""
    files = {
        "summary.md": as_markdown(results.summary).encode(),
        "summary.csv": csv(results.summary).encode(),
        "cells.parquet": results.cells.to_parquet(),
        "curves.parquet": results.curves.to_parquet(),
        **{name: text.encode() for name, text in texts.items()},
    }
    for name, content in files.items():
        if content:
            write_whole(out / name, content)
        else:
            (out / name).unlink(missing_ok=True)  # of other experiments, played into this folder before
    return [NAME, *(name for name, content in files.items() if content)]


def print_outputs(written: Written, record: Record, *, as_json: bool) -> None:
    """Print the summary and the claims, and where everything is."""
    if as_json:
        print_json(
            {
                "title": record.title,
                "runs": len(written.results.cells),
                "seconds": record.about.get("wall_seconds"),
                "summary": json.loads(written.results.summary.to_json(orient="records")),
                "claims": [_plain({"verdict": c.verdict, **dataclasses.asdict(c)}) for c in written.claims],
                "targets": [_plain({"status": v.status, **dataclasses.asdict(v)}) for v in _verdicts(written)],
                "files": written.files,
            }
        )
        return
    typer.echo(as_markdown(written.results.summary))
    if written.claims:
        typer.echo(claims_markdown(written.claims))
    if written.judgement is not None:
        typer.echo(judgement_markdown(written.judgement))
    if written.calibration is not None:
        typer.echo(calibration_markdown(written.calibration))
    say(f"{len(written.results.cells)} runs: {', '.join(written.files.values())}")


def _verdicts(written: Written) -> tuple[Verdict, ...]:
    judged = (written.judgement, written.calibration)
    return tuple(verdict for one in judged if one is not None for verdict in one.verdicts)


def sweeps_of(experiments: Sequence[Experiment]) -> tuple[Sweep, ...]:
    """The sweeps of Table 1 as far as these experiments hold at least two of their points."""
    by_id = {experiment.id: experiment for experiment in experiments}
    kept = []
    for sweep in SWEEPS:
        points = [(v, by_id[e.id]) for v, e in zip(sweep.values, sweep.experiments, strict=True) if e.id in by_id]
        if len(points) > 1:
            values, members = zip(*points, strict=True)
            kept.append(dataclasses.replace(sweep, values=values, experiments=members))
    return tuple(kept)


def _without_guests(sweeps: Sequence[Sweep]) -> tuple[Sweep, ...]:
    """The sweeps with the catalogue's policies alone: the paper claims nothing about those that joined."""
    own = tuple(tuple(GROWTH[experiment.id] for experiment in sweep.experiments) for sweep in sweeps)
    return tuple(dataclasses.replace(sweep, experiments=e) for sweep, e in zip(sweeps, own, strict=True))


def _finished(record: Record, out: Path) -> list[CellResult]:
    cells = [cell for experiment in record.experiments for cell in cells_of(experiment)]
    damages: list[str] = []
    finished = Store(out).read(cells, on_damage=damages.append)
    if damages:
        say(f"{told_together(damages)}: left out; play again what is missing with: {_command(record)} --resume")
    if not finished:
        raise InputError(f"{out} holds none of the {len(cells)} runs of {out / NAME}; play them with --resume")
    if len(finished) < len(cells):
        say(f"only {len(finished)} of {len(cells)} runs are finished: tables and report show those")
    return finished


def _command(record: Record) -> str:
    return str(record.about.get("command") or "the command that played it,")


def _refuse_to_overwrite(store: Store, out: Path, resume: bool) -> None:
    if resume:
        return
    finished = len(store.finished())
    if finished or (out / NAME).exists():
        raise InputError(
            f"{out} already holds {finished} finished runs; add --resume to keep them and play only what is missing, "
            f"or name another folder with --out"
        )


def _seconds_before(out: Path, store: Store) -> float | None:
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
