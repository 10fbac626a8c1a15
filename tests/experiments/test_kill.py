"""Runs that are killed, and go on."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from driftbandits.experiments.engines import Engine
from driftbandits.experiments.folder_store import FolderStore
from driftbandits.experiments.runner import RunError, RunInterruptedError, run_cells
from driftbandits.experiments.stores import read
from tests.experiments.odd_policy import odd_cells, plays, same, tell

PATIENCE = 200.0  # seconds; workers take a few to start, and many on a busy machine; idle ones of loky wait for 300
ONE = Engine(jobs=1)
SCRIPT = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests themselves run in the background
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.experiments.odd_policy import odd_cells
from driftbandits.errors import DriftbanditsError
from driftbandits.experiments.engines import Engine
from driftbandits.experiments.runner import run_cells
from driftbandits.experiments.folder_store import FolderStore

if __name__ == "__main__":
    folder = sys.argv[1]
    try:
        run_cells(odd_cells(folder, 40), store=FolderStore(folder), engine=Engine(jobs=2))
    except DriftbanditsError as error:
        print(type(error).__name__, error)
"""


def wait_until(true):
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def runs(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# Ray and Dask leave sockets and files to the garbage collector, which says so.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
# joblib's process pool on killed workers
@pytest.mark.filterwarnings("ignore:A worker stopped while some jobs:UserWarning")
@pytest.mark.parametrize("engine", [Engine(jobs=2), Engine("ray", jobs=2), Engine("dask", jobs=2)], ids=str)
def test_a_killed_worker_costs_its_cell_alone(engine, tmp_path):
    cells, store = odd_cells(tmp_path), FolderStore(tmp_path)
    tell(tmp_path, "kill", 6)
    with pytest.raises(RunError, match=rf"a worker of {engine.name} was killed .* of 8 cells are finished and safe"):
        run_cells(cells, store=store, engine=engine)
    kept = read(store, cells)
    assert len(kept) >= 3
    assert 6 not in [result.cell.seed for result in kept]
    tell(tmp_path, "kill")
    results = run_cells(cells, store=store, engine=ONE)
    assert all(plays(tmp_path)[result.cell.seed] == 1 for result in kept)
    assert same(results, run_cells(cells, engine=ONE))


@pytest.fixture
def run(tmp_path):
    """A run of forty slow cells in a session of its own, four of them finished."""
    store = FolderStore(tmp_path)
    odd_cells(tmp_path)
    tell(tmp_path, "slow", *range(40))
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with (
        (tmp_path / "stderr").open("w") as stderr,
        subprocess.Popen(
            [sys.executable, script, tmp_path],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            wait_until(lambda: len(store.finished()) >= 4)
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def goes_on(folder):
    """Whether a resumed run plays what is missing and gives what an uninterrupted one does."""
    cells, store = odd_cells(folder, 40), FolderStore(folder)
    kept = store.finished()
    assert 4 <= len(kept) < 40
    tell(folder, "slow")
    results = run_cells(cells, store=store, engine=ONE)
    assert all(plays(folder)[cell.seed] == 1 for cell in cells if cell.key in kept)
    return same(results, run_cells(cells, engine=ONE))


def test_a_killed_run_leaves_no_workers_and_goes_on(run, tmp_path):
    workers = [path.name for path in (tmp_path / "workers").iterdir()]
    assert len(workers) == 2
    run.kill()
    run.wait()
    wait_until(lambda: not any(runs(worker) for worker in workers))
    assert goes_on(tmp_path)


def group_of(process):
    """Processes of the session that `process` leads or led, itself included."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and os.getpgid(int(folder.name)) == process.pid and runs(folder.name):
                found.append(folder.name)
    return found


def command(process):
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


def test_a_run_killed_while_its_workers_start_leaves_none(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    started = []
    try:
        for number in range(2):
            folder = tmp_path / str(number)
            folder.mkdir()
            call = [sys.executable, script, folder]
            started.append(subprocess.Popen(call, stderr=subprocess.DEVNULL, start_new_session=True))
        for process, moment in zip(started, (0.0, 0.2), strict=True):
            wait_until(lambda one=process: any("loky" in command(p) for p in group_of(one) if p != str(one.pid)))
            time.sleep(moment)
            process.kill()
            process.wait()
        wait_until(lambda: not any(group_of(process) for process in started))
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_ctrl_c_stops_the_workers_and_says_how_to_go_on(run, tmp_path):
    workers = [path.name for path in (tmp_path / "workers").iterdir()]
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    output, _ = run.communicate(timeout=PATIENCE)
    assert output.startswith("RunInterruptedError interrupted; ")
    safe = f"of 40 cells are finished and safe in {tmp_path}: play the same again to go on from them"
    assert output.strip().endswith(safe)
    assert "Traceback" not in (tmp_path / "stderr").read_text()
    wait_until(lambda: not any(runs(worker) for worker in workers))
    assert goes_on(tmp_path)


def test_ctrl_c_is_a_keyboard_interrupt_too(tmp_path):
    def interrupt(finished):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        run_cells(odd_cells(tmp_path), store=FolderStore(tmp_path), engine=ONE, progress=interrupt)
    assert isinstance(caught.value, RunInterruptedError)
    assert len(FolderStore(tmp_path).finished()) == 1
