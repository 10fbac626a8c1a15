"""The folder of a run: its record `run.json`, the runs played into it, and the tables and page written from it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import typer

from driftbandits import __version__
from driftbandits._util import machine
from driftbandits._util.files import write_whole
from driftbandits._util.machine import installed_versions
from driftbandits._util.markdown import csv
from driftbandits.cli.options import print_json, say
from driftbandits.errors import InputError
from driftbandits.experiments.engines import Engine
from driftbandits.experiments.folder_store import FolderStore
from driftbandits.experiments.playing import missing, played
from driftbandits.experiments.results import Results, collect, summary_markdown
from driftbandits.experiments.run_files import plain_experiment, plain_to_experiment
from driftbandits.experiments.runner import RunError
from driftbandits.experiments.specs import Experiment, cells_of
from driftbandits.experiments.stores import CellResult, Store, StoreError, damage_summary, read
from driftbandits.report import write_report
from driftbandits.text import counted

RECORD_NAME = "run.json"
RUN_MODE = "run"  # in the record of an experiment of one's own; the study of the paper has other modes
TABLE_NAME = re.compile(r"\.(md|csv|parquet)$")
PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "joblib", "torch", "ray", "distributed")


@dataclass(frozen=True)
class Record:
    """A run: its title, its experiments, what else `run.json` says, and the tables that were written beside it."""

    title: str
    experiments: tuple[Experiment, ...]
    about: dict[str, Any]
    files: tuple[str, ...] = ()


def new_record(
    title: str, experiments: Sequence[Experiment], *, mode: str, engine: Engine, files: Sequence[str] = ()
) -> Record:
    """The record of a run that begins now, in a folder that has `files` of an earlier one."""
    about = {
        "command": shlex.join(["driftbandits", *(word for word in sys.argv[1:] if word != "--resume")]),
        "mode": mode,
        "wall_seconds": None,
        "jobs": engine.jobs,
        "engine": engine.name,
        "version": __version__,
        "commit": _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": installed_versions(PACKAGES),
        "arithmetic": machine.fingerprint(),
    }
    return Record(title, tuple(experiments), about, tuple(files))


def write_record(record: Record, out: Path) -> Path:
    """Write the record into the folder `out`."""
    values = {
        "title": record.title,
        **record.about,
        "files": record.files,
        "experiments": [plain_experiment(experiment) for experiment in record.experiments],
    }
    path = out / RECORD_NAME
    write_whole(path, (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode())
    return path


def read_record(folder: Path) -> Record:
    """The record in `folder`. Raises InputError if there is none, or none that can be read."""
    path = folder / RECORD_NAME
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        plain = [dict(entry) for entry in values.pop("experiments")]
        title = str(values.pop("title"))
        files = _names(values.pop("files", []))
    except FileNotFoundError:
        raise InputError(f"there is no {path}; name the folder that a reproduce or run has written") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:  # JSON, but of something else
        raise InputError(f"{path} is not the record of a run: {error}") from None
    return Record(title, tuple(plain_to_experiment(entry) for entry in plain), values, files)


def former_files(folder: Path) -> tuple[str, ...]:
    """The tables that an earlier run has written into `folder`; none if there is no record of it."""
    try:
        return read_record(folder).files
    except InputError:
        return ()


def _names(given: Any) -> tuple[str, ...]:
    """Names of tables in the folder itself: they are deleted when they are out of date, and nothing else may be."""
    names = [str(name) for name in given]
    return tuple(name for name in names if name.isprintable() and Path(name).name == name and TABLE_NAME.search(name))


def _commit() -> str | None:
    """Commit of the source this runs from, with a + if files differ from it; None outside a git repository."""
    folder = Path(__file__).parent.parent

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=True, timeout=10)
        return done.stdout.strip()

    with contextlib.suppress(OSError, subprocess.SubprocessError):
        # an installed copy may lie inside another repository
        if git("ls-files", "__init__.py"):
            return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    return None


FACTS_IN_REPORT = ("command", "mode", "pass", "wall_seconds", "jobs", "engine", "version", "commit", "date")
MOST_ROWS_PRINTED = 8  # of a summary; longer ones are read on the page


class Findings:
    """What is made of results beside their tables; the study of the paper adds claims and targets to it."""

    def __init__(self, results: Results) -> None:
        self.results = results

    @property
    def files(self) -> Mapping[str, str]:
        """Texts to write, by the name of the file."""
        return {}

    def lines(self) -> list[str]:
        """What to print below the summary."""
        return []

    def values(self) -> dict[str, Any]:
        """The same for programs."""
        return {"claims": [], "targets": []}

    def write_page(self, out: Path, *, title: str, about: Mapping[str, object]) -> Path:
        """Write the page, and give its path."""
        return write_report(self.results, out=out, title=title, about=about)


@dataclass(frozen=True)
class Outputs:
    """What a command has written and will print; `files` are paths by name."""

    record: Record
    findings: Findings
    files: dict[str, str]

    @property
    def results(self) -> Results:
        """What was played."""
        return self.findings.results


class Recording:
    """A run that is played into a folder: its record is there from the beginning, and is always that of its report.

    Where the run ends in an error that leaves finished runs behind, the error says how to go on.
    """

    def __init__(self, out: Path, record: Record, *, resume: bool) -> None:
        self.out, self.store = out, FolderStore(out)
        _refuse_to_overwrite(self.store, out, resume)
        self.record = record
        self._before = seconds_before(out, self.store)

    def __enter__(self) -> Self:
        self._begun = time.perf_counter()
        _write_first(self.record, self.out)
        return self

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.perf_counter() - self._begun

    def write(self, record: Record, findings: Findings) -> Outputs:
        """Write tables and report, and the record of them."""
        self.record = record
        self._note_seconds()
        outputs = write_outputs(record, findings, self.out)
        self.record = outputs.record
        return outputs

    def _note_seconds(self) -> None:
        if self._before is not None:
            self.record.about["wall_seconds"] = round(self._before + self.seconds, 1)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._note_seconds()
        with contextlib.suppress(OSError):  # a full disk has been told of already
            write_record(self.record, self.out)
        if isinstance(error, RunError | StoreError):
            error.args = (f"{error}, with --resume",)


def play_into(
    out: Path, experiments: Sequence[Experiment], *, title: str, mode: str, engine: Engine, resume: bool
) -> Outputs:
    """Play what is missing of the experiments into `out`, and write tables and the report."""
    record = new_record(title, experiments, mode=mode, engine=engine, files=former_files(out))
    with Recording(out, record, resume=resume or _is_there(record, out)) as run:
        new = missing(experiments, run.store)
        return run.write(record, Findings(played(experiments, new, store=run.store, engine=engine, show=True)))


def _is_there(record: Record, out: Path) -> bool:
    """Whether the folder is that of the very same experiments, which then go on where they stopped."""
    with contextlib.suppress(InputError):
        return [*map(plain_experiment, read_record(out).experiments)] == [*map(plain_experiment, record.experiments)]
    return False


def read_results(record: Record, out: Path) -> Results:
    """What `out` holds of the record's experiments."""
    return collect(record.experiments, _finished(record, out))


def write_outputs(record: Record, findings: Findings, out: Path) -> Outputs:
    """Write tables, findings and the report."""
    about = {name: record.about[name] for name in FACTS_IN_REPORT if record.about.get(name) is not None}
    try:
        names = _write_tables(findings.results, findings.files, out)
        report = findings.write_page(out, title=record.title, about=about)
        record = _replace_files(record, names, out)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"cannot write to {out}: {reason}; the finished runs are safe there: put that right, then run "
            f"driftbandits report {out}"
        ) from None
    files = {report.name: str(report), **{name: str(out / name) for name in (RECORD_NAME, *names)}}
    return Outputs(record, findings, files)


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
    """Print a few lines: the summary if it is short, what was found, and where everything is."""
    if as_json:
        print_json(_as_json(outputs))
        return
    typer.echo("\n".join([*_summary_lines(outputs), *outputs.findings.lines()]))
    first, *others = outputs.files.values()
    beside = ", ".join(Path(path).name for path in others)
    say(f"{counted(len(outputs.results.cells), 'run')}: {first}, and beside it {beside}")


def _summary_lines(outputs: Outputs) -> list[str]:
    summary = outputs.results.summary
    if len(summary) <= MOST_ROWS_PRINTED:
        return summary_markdown(summary).splitlines()
    worlds = counted(summary["experiment"].nunique(), "experiment")
    return [f"{counted(len(outputs.results.cells), 'run')} of {worlds}; regret of all: {outputs.files['summary.md']}"]


def _as_json(outputs: Outputs) -> dict[str, Any]:
    return {
        "title": outputs.record.title,
        "runs": len(outputs.results.cells),
        "seconds": outputs.record.about.get("wall_seconds"),
        "summary": json.loads(outputs.results.summary.to_json(orient="records")),
        **outputs.findings.values(),
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
