"""What all searches have in common from beginning to end: the folder, the storage, progress, the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from driftbandits.errors import InputError
from driftbandits.experiments.running.engines import Engine
from driftbandits.progress import progress_bar
from driftbandits.tuning.records import BestSettings, Tuned
from driftbandits.tuning.search import run_searches
from driftbandits.tuning.storage import without_password
from driftbandits.tuning.study import Search


def launch(
    searches: Sequence[Search],
    *,
    path: Path,
    storage: str | None,
    engine: Engine,
    show: bool,
    keep: Callable[[BestSettings], None] | None = None,
) -> Tuned:
    """Run searches whose results go to `path`, with studies beside it unless `storage` says where."""
    begun = time.monotonic()
    make_folder(path.parent)
    url = storage or f"sqlite:///{path.parent / 'tuning.db'}"
    cells = sum(search.cells for search in searches)
    with progress_bar(cells, "cells", show=show) as advance:
        outcome = run_searches(searches, storage=url, engine=engine, progress=advance, keep=keep)
    return Tuned(outcome.best, path, without_password(url), cells, outcome.played, time.monotonic() - begun)


def make_folder(folder: Path) -> None:
    """Make the folder of the results, if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}") from error
