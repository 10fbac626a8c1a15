"""One call at a time; a signal handler is refused inside one; what an exception leaves half changed is known."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import InterruptedPolicyError, ReentryError
from driftbandits.testing.helpers import play, require_equal

ARMS = db.ArmSet(np.linspace(0.0, 1.0, 6)[:, None])


def raising(error):
    def hook(*_):
        raise error

    return hook


def everything(policy, path):
    """All calls that a half changed policy must refuse."""
    return {
        "ask": policy.ask,
        "ask several": lambda: policy.ask(size=2),
        "tell": lambda: policy.tell(0, 0.1),
        "forget": lambda: policy.forget(0),
        "law": policy.law,
        "estimate": policy.estimate,
        "steady_rounds": policy.steady_rounds,
        "state_dict": policy.state_dict,
        "save": lambda: policy.save(path),
        "explain": policy.explain,
    }


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), TimeoutError("too slow")], ids=repr)
def test_interrupted_inside_a_change_it_refuses_everything(error, tmp_path, monkeypatch):
    policy = db.AutoBandit(ARMS, seed=0)
    play(policy, 40)
    path = tmp_path / "policy.state"
    policy.save(path)
    saved = path.read_bytes()
    monkeypatch.setattr(policy._mixture, "update", raising(error))
    with pytest.raises(type(error)):
        policy.tell(policy.ask(), 0.3)
    monkeypatch.undo()
    for call in everything(policy, path).values():
        with pytest.raises(
            InterruptedPolicyError, match=f"interrupted at round 41, inside tell by {type(error).__name__}"
        ):
            call()
    assert path.read_bytes() == saved
    again = db.AutoBandit.load(ARMS, path)
    assert again.ask().id == 40


@pytest.mark.parametrize("name", ["_law", "_steady", "_stamp", "_due"])
def test_interrupted_while_it_only_computes_it_goes_on_as_if_nothing_had_been(name, monkeypatch):
    disturbed, left_alone = (db.AdaOPKB(ARMS, horizon=500, seed=0) for _ in range(2))
    for policy in (disturbed, left_alone):
        play(policy, 30)
    with monkeypatch.context() as patch:
        patch.setattr(disturbed, name, raising(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            disturbed.ask(size=2)
    require_equal(disturbed.state_dict(), left_alone.state_dict())
    assert play(disturbed, 100) == play(left_alone, 100)


def test_an_error_of_the_policys_own_is_named(monkeypatch):
    policy = db.GPUCB(ARMS, seed=0)
    choice = policy.ask()
    monkeypatch.setattr(policy, "_learn_one", raising(TypeError("can't multiply sequence")))
    with pytest.raises(TypeError):
        policy.tell(choice, 0.3)
    with pytest.raises(InterruptedPolicyError, match="by TypeError: can't multiply sequence"):
        policy.ask()


def test_wrong_input_is_no_interruption():
    policy = db.GPUCB(ARMS, seed=0)
    choice = policy.ask()
    for wrong in (np.nan, "0.5", 7.0, [0.1, 0.2]):
        with pytest.raises(db.errors.InputError):
            policy.tell(choice, wrong)
    policy.tell(choice, 0.5)
    play(policy, 5)


def test_a_handler_that_saves_is_refused_inside_a_call_and_the_file_stays_good(tmp_path, monkeypatch):
    """A real signal, inside every call and after it: refused inside, saved after, and no decision is another for it."""
    disturbed, left_alone = (db.AutoBandit(ARMS, seed=3) for _ in range(2))
    path = tmp_path / "policy.state"
    disturbed.save(path)
    saved, refused = [], []

    def handler(*_):
        try:
            disturbed.save(path)
            saved.append(disturbed.rounds)
        except ReentryError as error:
            refused.append(str(error).partition(":")[0])

    def rung(hook):
        def ringing(*arguments):
            signal.raise_signal(signal.SIGALRM)
            return hook(*arguments)

        return ringing

    before = signal.signal(signal.SIGALRM, handler)
    decisions = []
    try:
        for hook in ("_law", "_learn"):
            monkeypatch.setattr(disturbed, hook, rung(getattr(disturbed, hook)))
        for _ in range(20):
            decisions.extend(play(disturbed, 1)[0])
            signal.raise_signal(signal.SIGALRM)
            assert db.AutoBandit.load(ARMS, path).rounds == disturbed.rounds
    finally:
        signal.signal(signal.SIGALRM, before)
    assert set(refused) == {f"inside {call}; save after it returns" for call in ("ask", "tell")}
    assert saved == list(range(1, 21))
    assert decisions == play(left_alone, len(decisions))[0]


# A signal that comes while Python itself frees an object can only be reported, by whatever was freed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", [db.AutoBandit, db.AdaOPKB, db.GPUCB, db.Master], ids=lambda kind: kind.__name__)
def test_time_outs_by_a_real_signal_never_leave_a_lock_or_a_silent_wreck(kind, tmp_path):
    def handler(*_):
        raise TimeoutError("too slow")

    before = signal.signal(signal.SIGALRM, handler)
    rng = np.random.default_rng(0)
    marked = 0
    policy = kind(ARMS, horizon=100_000, seed=0)
    good = policy.state_dict()
    try:
        for number in range(5_000):  # a busy machine may need many until a signal comes where it matters
            if number >= 60 and marked:
                break
            try:
                signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(1e-5, 3e-3)))
                play(policy, 400)
            except TimeoutError:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            try:
                good = policy.state_dict()
            except InterruptedPolicyError:
                marked += 1
                policy = kind.restore(ARMS, good)
            play(policy, 3)
            assert abs(policy.law().sum() - 1.0) < 1e-9
    finally:
        signal.signal(signal.SIGALRM, before)
    assert marked > 0, "no signal came inside a change: the test shows nothing"


def test_a_forked_child_goes_on_where_another_thread_held_the_lock():
    policy = db.GPUCB(ARMS, seed=0)
    play(policy, 5)
    held, done = threading.Event(), threading.Event()

    def hold():
        with policy._guard.lock:
            held.set()
            done.wait(60.0)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10.0)
    child = os.fork()
    if child == 0:
        os._exit(0 if policy.ask().id == 5 else 1)
    deadline = time.monotonic() + 50.0
    status = None
    while status is None and time.monotonic() < deadline:
        pid, code = os.waitpid(child, os.WNOHANG)
        status = code if pid else None
        time.sleep(0.01)
    done.set()
    thread.join()
    if status is None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert status == 0
    assert policy.ask().id == 5


def test_a_policy_forked_in_the_middle_of_a_change_says_so():
    policy = db.GPUCB(ARMS, seed=0)
    play(policy, 5)
    policy._guard.changing = True  # as another thread would have left it
    child = os.fork()
    if child == 0:
        try:
            policy.ask()
        except InterruptedPolicyError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_waiting_thread_gets_its_turn():
    """A second thread that asks while the first is inside is not refused: it waits."""
    policy = db.GPUCB(ARMS, seed=0)
    inside, go_on = threading.Event(), threading.Event()
    hook = policy._law

    def slow():
        inside.set()
        go_on.wait(60.0)
        return hook()

    policy._law = slow
    answers = []
    first = threading.Thread(target=lambda: answers.append(policy.ask(size=1).ids[0]))
    first.start()
    inside.wait(60.0)
    second = threading.Thread(target=lambda: answers.append(policy.ask().id))
    second.start()
    time.sleep(0.05)
    assert answers == []
    go_on.set()
    first.join(60.0)
    second.join(60.0)
    assert answers == [0, 1]


def test_a_hook_that_calls_a_public_method_is_told_what_to_call():
    class Curious(db.Uniform):
        def _learn_one(self, row, reward):
            self.law()

    policy = Curious(ARMS, seed=0)
    choice = policy.ask()
    with pytest.raises(
        ReentryError, match=r"inside tell; law after it returns: .* a hook of a policy calls other hooks"
    ):
        policy.tell(choice, 0.5)
    with pytest.raises(InterruptedPolicyError, match="inside tell by ReentryError"):
        policy.ask()
