"""The runner of experiments: what it adds to the cells it plays, how it scales, and the store.

Overhead is of `run_cells` with one job and a store over the same cells played bare, the two in turns; processor time
beside wall time, because the first does not mind what else the machine does. Scaling needs two cores to itself.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from collections.abc import Callable

import joblib
import numpy as np

from driftbandits.experiments.engines import Engine
from driftbandits.experiments.folder_store import FolderStore
from driftbandits.experiments.runner import run_cell, run_cells
from driftbandits.experiments.specs import Cell, PolicySpec
from driftbandits.experiments.stores import CellResult, Store, read
from reproduction.tuning import missing

PARTS_STORED = 2_000


@dataclasses.dataclass(frozen=True)
class Spent:
    """Seconds of wall and of this process's processor time."""

    wall: float
    processor: float


def _spent(call: Callable[[], object]) -> Spent:
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return Spent(time.perf_counter() - wall, time.process_time() - processor)


def _cells(horizon: int, number: int) -> list[Cell]:
    settings = {"horizon": horizon, "switches": [horizon // 2]}
    return [Cell("switching/1", settings, PolicySpec("ADA-OPKB", "AdaOPKB"), seed) for seed in range(number)]


def _bare(cells: list[Cell]) -> list[CellResult]:
    return [run_cell(cell) for cell in cells]


def _stored(cells: list[Cell], engine: Engine) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_cells(cells, store=FolderStore(folder), engine=engine)


def _batched(cells: list[Cell]) -> None:
    joblib.Parallel(n_jobs=2)(joblib.delayed(run_cell)(cell) for cell in cells)


def run(*, quick: bool = False) -> None:
    print("\n## The runner\n")
    print(f"Load of the machine before: {os.getloadavg()[0]:.1f} on {joblib.cpu_count()} cores.\n")
    print("| cells | per cell | overhead, wall | overhead, processor | 2 jobs over 1 | 2 jobs, joblib's batches |")
    print("|---|---:|---:|---:|---:|---:|")
    rounds = 3 if quick else 7
    for horizon, number in ((1_000, 100), (10_000, 20)):
        _compare(horizon, _cells(horizon, number), rounds)
    _store()


def _compare(horizon: int, cells: list[Cell], repeats: int) -> None:
    plays: tuple[Callable[[], object], ...] = (
        lambda: _bare(cells),
        lambda: _stored(cells, Engine(jobs=1)),
        lambda: _stored(cells, Engine(jobs=2)),
        lambda: _batched(cells),
    )
    for play in plays:
        play()  # processes started, modules imported
    # The four in turns; of each the least disturbed round.
    table = [[_spent(play) for play in plays] for _ in range(repeats)]
    bare, one, two, batched = (
        Spent(min(s.wall for s in kind), min(s.processor for s in kind)) for kind in zip(*table, strict=True)
    )
    print(
        f"| {len(cells)} of ADA-OPKB, T = {horizon:,} | {1e3 * bare.wall / len(cells):.0f} ms "
        f"| {one.wall / bare.wall - 1:+.1%} | {one.processor / bare.processor - 1:+.1%} "
        f"| {one.wall / two.wall:.2f} times | {one.wall / batched.wall:.2f} times |"
    )


def _write(store: Store, results: list[CellResult]) -> None:
    for result in results:
        store.write(result.cell.key, result)


def _store() -> None:
    result = run_cell(_cells(1_000, 1)[0])
    results = [dataclasses.replace(result, cell=cell) for cell in _cells(1_000, PARTS_STORED)]
    cells = [result.cell for result in results]
    with tempfile.TemporaryDirectory() as folder:
        store = FolderStore(folder)
        write = _spent(lambda: _write(store, results))
        reading = _spent(lambda: read(store, cells))
        looking = _spent(lambda: missing(store, cells))
        size = np.mean([path.stat().st_size for path in store.parts.iterdir()])
    print(f"\n| store of {PARTS_STORED:,} parts of {size / 1024:.1f} KiB | wall per part | processor per part |")
    print("|---|---:|---:|")
    for label, spent in (("write, to the disk", write), ("read", reading), ("missing", looking)):
        print(f"| {label} | {1e3 * spent.wall / PARTS_STORED:.3f} ms | {1e3 * spent.processor / PARTS_STORED:.3f} ms |")
