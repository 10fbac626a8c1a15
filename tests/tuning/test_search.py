import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import optuna
import pytest
from sqlalchemy import event

from driftbandits.experiments.engines import Engine
from driftbandits.experiments.runner import CellError, RunInterruptedError, run_cell
from driftbandits.tuning import search as module
from driftbandits.tuning.spaces import Space
from driftbandits.tuning.study import Ledger, Search, opened
from tests.tuning.small import SHARED, SMALL, play

ROOT = Path(__file__).parents[2]
STATE = optuna.trial.TrialState


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process finds in the shared search."""
    outcome = play([SHARED], f"sqlite:///{tmp_path_factory.mktemp('alone') / 'tuning.db'}")
    assert outcome.played == SHARED.cells == 2 * (8 + 4 + 2)
    return outcome.best[0]


@contextlib.contextmanager
def processes(count, url, go):
    """So many processes that have loaded everything and begin together when the file `go` is there."""
    with contextlib.ExitStack() as stack:
        started = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-W", "error", "-m", "tests.tuning.small", url, str(go)],
                    cwd=ROOT,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(count)
        ]
        try:
            for process in started:
                assert process.stdout.readline() == "ready\n"
            yield started
        finally:
            for process in started:
                process.kill()


def recorded(path):
    """How many regrets the file holds, and how many trials are claimed."""
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as database:
        regrets = "SELECT COUNT(*) FROM trial_user_attributes WHERE key LIKE 'regret %'"
        claimed = "SELECT COUNT(*) FROM trials WHERE state = 'RUNNING'"
        return database.execute(regrets).fetchone()[0], database.execute(claimed).fetchone()[0]


def test_two_jobs_find_the_same(url, alone):
    assert play([SHARED], url, jobs=2).best[0] == alone


def test_two_processes_at_once_find_the_same_and_share_the_work(tmp_path, url, alone):
    go = tmp_path / "go"
    with processes(2, url, go) as pair:
        go.touch()
        answers = [json.loads(process.communicate(timeout=120)[0]) for process in pair]
    for answer in answers:
        assert answer["values"] == alone.values
        assert answer["regret"] == alone.regret
        assert answer["played"] > 0
    assert sum(answer["played"] for answer in answers) == SHARED.cells


def test_a_killed_search_is_resumed_without_playing_again_what_was_recorded(tmp_path, url, alone, monkeypatch):
    go = tmp_path / "go"
    go.touch()
    path = tmp_path / "tuning.db"
    with processes(1, url, go) as [process]:
        while not path.exists():
            time.sleep(0.01)
        while True:
            with contextlib.suppress(sqlite3.OperationalError):  # no tables yet
                kept, claimed = recorded(path)
                if kept >= 8 and claimed:
                    break
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    kept, _ = recorded(path)
    assert kept < SHARED.cells
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(module, "POLL_SECONDS", 0.05)
    outcome = play([SHARED], url)
    assert outcome.best[0] == alone
    assert outcome.played == SHARED.cells - kept
    assert play([SHARED], url).played == 0


def test_the_study_shows_what_happened(url):
    outcome = play([SMALL], url)
    found = outcome.best[0]
    study = optuna.load_study(study_name=SMALL.study_name, storage=url)
    states = [trial.state for trial in study.trials]
    assert sorted(state.name for state in states) == ["COMPLETE", "COMPLETE", "PRUNED", "PRUNED"]
    assert study.best_value == found.regret
    assert study.best_params == found.values
    for trial in study.trials:
        seeds = [1, 3] if trial.state == STATE.COMPLETE else [1]
        assert list(trial.intermediate_values) == seeds
        assert trial.value == trial.intermediate_values[seeds[-1]]
        assert sum(key.startswith("regret ") for key in trial.user_attrs) == seeds[-1]
    pruned = [trial.intermediate_values[1] for trial in study.trials if trial.state == STATE.PRUNED]
    kept = [trial.intermediate_values[1] for trial in study.trials if trial.state == STATE.COMPLETE]
    assert max(kept) <= min(pruned)
    assert [score.cells for score in found.scores] == [3, 3, 1, 1]
    assert found.scores[0].regret == found.regret <= found.scores[1].regret


def test_progress_counts_every_cell_once_also_those_of_an_earlier_run(url):
    for played in (SMALL.cells, 0):
        calls = []
        assert play([SMALL], url, progress=calls.append).played == played
        assert sum(calls) == SMALL.cells == 4 + 2 * 2


def test_a_changed_search_is_another_study():
    other = Search(SMALL.name, SMALL.space, SMALL.worlds, ((4, 1), (2, 4)))
    assert other.study_name != SMALL.study_name
    assert Search("small", SMALL.space, SMALL.worlds, SMALL.rungs).study_name == SMALL.study_name


def test_points_enqueued_twice_count_once(url):
    with opened(url) as storage:
        ledger = Ledger(SMALL, storage)
        for number in (2, 0):
            ledger._study.add_trial(ledger._waiting(number))
    assert play([SMALL], url).played == SMALL.cells
    states = [trial.state for trial in optuna.load_study(study_name=SMALL.study_name, storage=url).trials]
    assert states.count(STATE.FAIL) == 2
    assert not set(states) & {STATE.WAITING, STATE.RUNNING}


def test_only_one_of_two_can_claim(url):
    with opened(url) as first, opened(url) as second:
        one, two = Ledger(SMALL, first), Ledger(SMALL, second)
        entry = one.read()[0]
        assert one.claim(entry, "one")
        assert not two.claim(two.read()[0], "two")
        one.release([entry])
        assert two.claim(two.read()[0], "two")


def test_no_point_is_claimed_twice_by_processes_that_hurry(url):
    """SQLite has no SELECT FOR UPDATE; without a lock from the beginning of a transaction both would take a point."""
    with opened(url) as storage:
        entries = Ledger(SMALL, storage).read()
    together = threading.Barrier(2)
    claims = []

    def linger(*_):
        time.sleep(0.02)  # between reading that a point waits and taking it

    def claim_all():
        with opened(url) as storage:
            ledger = Ledger(SMALL, storage)
            event.listen(storage.engine, "after_cursor_execute", linger)
            for entry in entries:
                together.wait()
                if ledger.claim(entry, "mine"):
                    claims.append(entry.point)

    threads = [threading.Thread(target=claim_all) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claims) == [entry.point for entry in entries]


def test_claims_of_the_dead_are_taken_over(url, monkeypatch):
    with opened(url) as storage:
        ledger = Ledger(SMALL, storage)
        ledger.claim(ledger.read()[1], "a process that died")
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(module, "POLL_SECONDS", 0.05)
    assert play([SMALL], url).played == SMALL.cells


def test_a_claim_lives_as_long_as_its_mark_changes(url, monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    watcher = module._Worker(Engine(jobs=1), None)
    with opened(url) as storage:
        ledger = Ledger(SMALL, storage)
        assert ledger.claim(ledger.read()[1], "a mark")
        for mark in range(3):
            ledger.mark(ledger.read()[1], f"mark {mark}")
            assert not watcher._is_dead(ledger, ledger.read()[1])
            clock.now += module.GRACE_SECONDS - 1
            assert not watcher._is_dead(ledger, ledger.read()[1])
        clock.now += 2
        assert watcher._is_dead(ledger, ledger.read()[1])


def test_claims_are_marked_while_cells_are_played(url, monkeypatch):
    monkeypatch.setattr(module, "MARK_SECONDS", 0.01)
    marks = []
    monkeypatch.setattr(Ledger, "mark", lambda _, entry, mark: marks.append((entry.point, mark)))
    play([SMALL], url)
    assert len(marks) > 4 + 2  # one at each claim, and more in between
    assert len({mark for _, mark in marks}) == len(marks)


def test_claims_of_the_living_are_left_alone_and_another_search_is_played_meanwhile(url, monkeypatch):
    monkeypatch.setattr(module, "GRACE_SECONDS", 600.0)
    monkeypatch.setattr(module, "POLL_SECONDS", 0.05)
    other = Search("other", SMALL.space, SMALL.worlds, ((2, 1),))
    order = []
    found_other = threading.Event()
    with opened(url) as storage:
        ledger = Ledger(SMALL, storage)
        entry = ledger.read()[1]
        assert ledger.claim(entry, "alive")

        def play_slowly():
            found_other.wait()
            ledger.record(entry, (0, 0), float(run_cell(SMALL.cell(1, (0, 0))).regret[-1]))
            ledger.release([entry])

        def keep(found):
            order.append(found.name)
            found_other.set()

        thread = threading.Thread(target=play_slowly, daemon=True)
        thread.start()
        outcome = play([SMALL, other], url, keep=keep)
        thread.join()
    assert order == ["other", "small"]
    assert [found.name for found in outcome.best] == ["small", "other"]
    assert outcome.played == SMALL.cells - 1 + other.cells


def test_a_late_writer_changes_nothing(url):
    found = play([SMALL], url).best[0]
    with opened(url) as storage:
        ledger = Ledger(SMALL, storage)
        for entry in ledger.read():
            ledger.record(entry, (0, 0), -1.0)
            ledger.mark(entry, "late")
            ledger.release([entry])
            assert not ledger.claim(entry, "late")
    assert play([SMALL], url).best[0] == found


def test_a_failing_cell_stops_the_search_and_frees_its_claims(tmp_path, url):
    broken = Search("broken", Space("SlidingWindowUCB", {}, lambda _: {"window": -1}), SMALL.worlds, SMALL.rungs)
    with pytest.raises(CellError, match=r"broken, point 0 on .* window .* -1; what was recorded before is kept"):
        play([broken], url)
    assert recorded(tmp_path / "tuning.db") == (0, 0)


def test_interrupted_it_says_how_to_go_on(tmp_path, url, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("driftbandits.experiments.runner.run_cell", interrupt)
        with pytest.raises(RunInterruptedError, match="interrupted; what was recorded before is kept"):
            play([SMALL], url)
    assert recorded(tmp_path / "tuning.db") == (0, 0)
    assert play([SMALL], url).played == SMALL.cells


def test_optuna_says_nothing(url, capfd):
    play([SMALL], url)
    assert capfd.readouterr() == ("", "")
