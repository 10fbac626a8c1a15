"""The folder of a run: experiments are played into it; tables, claims and the report are written from it."""

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

from driftbandits.cli.record import RECORD_NAME, Record, new_record, read_record, write_record
from driftbandits.cli.show import print_json, say
from driftbandits.errors import InputError
from driftbandits.escaping import csv
from driftbandits.experiments.definitions.growth import SWEEPS, Sweep
from driftbandits.experiments.definitions.real_series import is_real
from driftbandits.experiments.definitions.specs import Cell, Experiment, cells_of
from driftbandits.experiments.files.cell_result import CellResult
from driftbandits.experiments.files.store import Store, damage_summary
from driftbandits.experiments.judging.calibrated_opkb import (
    CalibratedOPKBJudgement,
    calibrated_opkb_markdown,
    judge_calibrated_opkb,
)
from driftbandits.experiments.judging.claims import Claim, check_claims
from driftbandits.experiments.judging.claims_markdown import claims_markdown
from driftbandits.experiments.judging.reference_table import reference_table
from driftbandits.experiments.judging.results import Results, collect, summary_markdown
from driftbandits.experiments.judging.verdicts import TargetVerdict
from driftbandits.experiments.judging.yardstick import AutoBanditJudgement, autobandit_markdown, judge_autobandit
from driftbandits.experiments.running.cost import cost_of
from driftbandits.experiments.running.engines import Engine
from driftbandits.experiments.running.runner import run_cells
from driftbandits.files import write_whole
from driftbandits.progress import progress_bar
from driftbandits.report import write_report
from driftbandits.report.sweeps import without_guests

FACTS_IN_REPORT = ("command", "mode", "wall_seconds", "jobs", "engine", "version", "commit", "date")


@dataclass(frozen=True)
class Outputs:
    """What a command has written and will print; `claims` are those that something was played for.

    `judgement` is that of AutoBandit, None where it has played no world of its yardstick; `calibration` is that of
    CalibratedOPKB, None where nothing of its group was played.
    """

    results: Results
    claims: tuple[Claim, ...]
    judgement: AutoBanditJudgement | None
    calibration: CalibratedOPKBJudgement | None
    files: dict[str, str]


def play(
    experiments: Sequence[Experiment], *, title: str, mode: str, out: Path, engine: Engine, resume: bool
) -> Record:
    """Play what is missing of the experiments into `out`; the record is there from the beginning."""
    store = Store(out)
    _refuse_to_overwrite(store, out, resume)
    before = seconds_before(out, store)
    record = new_record(title, experiments, mode=mode, engine=engine)
    _write_first(record, out)
    cells = [cell for experiment in experiments for cell in cells_of(experiment)]
    begun = time.perf_counter()
    try:
        with progress_bar(len(cells), "runs", cost=sum(map(cost_of, cells))) as advance:

            def tell(finished: list[Cell]) -> None:
                advance(len(finished), sum(map(cost_of, finished)))

            run_cells(cells, store=store, engine=engine, progress=tell)
    finally:
        if before is not None:
            record.about["wall_seconds"] = round(before + time.perf_counter() - begun, 1)
        with contextlib.suppress(OSError):  # a full disk has been told of already
            write_record(record, out)
    return record


def write_outputs(record: Record, out: Path) -> Outputs:
    """Write tables, claims and the report of what `out` holds of the record's experiments."""
    results = collect(record.experiments, _finished(record, out))
    sweeps = sweeps_of(record.experiments)
    claims = tuple(c for c in check_claims(results, sweeps=without_guests(sweeps)) if c.verdict != "not run")
    real = [experiment for experiment in record.experiments if is_real(experiment)]
    references = reference_table(real) if real else None
    judged = judge_autobandit(results.cells, references=references)
    judgement = judged if len(judged.worlds) else None
    calibrated = judge_calibrated_opkb(results.cells)
    texts = {
        "claims.md": claims_markdown(claims) if claims else "",
        "references.csv": "" if references is None else csv(references),
        **_yardstick_texts(judgement),
        **_calibrated_texts(calibrated),
    }
    about = {name: record.about[name] for name in FACTS_IN_REPORT if record.about.get(name) is not None}
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
    return Outputs(results, claims, judgement, None if calibrated.empty else calibrated, files)


def _yardstick_texts(judgement: AutoBanditJudgement | None) -> dict[str, str]:
    return {
        "yardstick.md": "" if judgement is None else autobandit_markdown(judgement),
        "yardstick.csv": "" if judgement is None else csv(judgement.worlds),
    }


def _calibrated_texts(judgement: CalibratedOPKBJudgement) -> dict[str, str]:
    tables = {
        "calibrated.csv": judgement.worlds,
        "calibrated-alarms.csv": judgement.alarms,
        "calibrated-delays.csv": judgement.delays,
    }
    return {
        "calibrated.md": "" if judgement.empty else calibrated_opkb_markdown(judgement),
        **{name: "" if table.empty else csv(table) for name, table in tables.items()},
    }


def _write_tables(results: Results, texts: Mapping[str, str], out: Path) -> list[str]:
    """Write every table, those that are empty texts excepted, and give the names of the files."""
    files = {
        "summary.md": summary_markdown(results.summary).encode(),
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
    return [RECORD_NAME, *(name for name, content in files.items() if content)]


def print_outputs(outputs: Outputs, record: Record, *, as_json: bool) -> None:
    """Print the summary and the claims, and where everything is."""
    if as_json:
        print_json(
            {
                "title": record.title,
                "runs": len(outputs.results.cells),
                "seconds": record.about.get("wall_seconds"),
                "summary": json.loads(outputs.results.summary.to_json(orient="records")),
                "claims": [_plain({"verdict": c.verdict, **dataclasses.asdict(c)}) for c in outputs.claims],
                "targets": [_plain({"status": v.status, **dataclasses.asdict(v)}) for v in _verdicts(outputs)],
                "files": outputs.files,
            }
        )
        return
    typer.echo(summary_markdown(outputs.results.summary))
    if outputs.claims:
        typer.echo(claims_markdown(outputs.claims))
    if outputs.judgement is not None:
        typer.echo(autobandit_markdown(outputs.judgement))
    if outputs.calibration is not None:
        typer.echo(calibrated_opkb_markdown(outputs.calibration))
    say(f"{len(outputs.results.cells)} runs: {', '.join(outputs.files.values())}")


def _verdicts(outputs: Outputs) -> tuple[TargetVerdict, ...]:
    judged = (outputs.judgement, outputs.calibration)
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


def _finished(record: Record, out: Path) -> list[CellResult]:
    cells = [cell for experiment in record.experiments for cell in cells_of(experiment)]
    damages: list[str] = []
    finished = Store(out).read(cells, on_damage=damages.append)
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
