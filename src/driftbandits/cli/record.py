"""The record of a run, `run.json`: what was played, by which command, with which versions."""

from __future__ import annotations

import contextlib
import json
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from driftbandits import __version__, machine
from driftbandits.errors import InputError
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.experiments.files.config import plain_experiment, plain_to_experiment
from driftbandits.experiments.running.engines import Engine
from driftbandits.files import write_whole
from driftbandits.packages import installed_versions

RECORD_NAME = "run.json"
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
        # an installed copy may lie inside somebody else's repository
        if git("ls-files", "__init__.py"):
            return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    return None
