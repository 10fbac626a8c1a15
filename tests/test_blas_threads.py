"""One thread of BLAS inside, the user's own number outside, whoever calls, and whatever comes in between."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import driftbandits as db
from driftbandits._util import guard
from driftbandits._util.guard import hold, one_blas_thread, release

POLICIES = ("GPUCB", "CalibratedOPKB", "AutoBandit", "AdaOPKB", "WeightedGPUCB", "LinUCB", "LinearExp3", "Master")
OTHER_THREADS = 3  # what the user has set in these tests: neither one nor the number of cores


libraries = guard.blas_libraries  # those of NumPy and SciPy: other tests of this process may load more


def threads():
    return [library.get_num_threads() for library in libraries()]


def set_threads(number):
    for library in libraries():
        library._get_symbol("openblas_set_num_threads")(number)


@pytest.fixture(autouse=True)
def users_setting():
    if not libraries() or any(library.internal_api != "openblas" for library in libraries()):
        pytest.skip("these tests set the threads of OpenBLAS")
    before = threads()
    set_threads(OTHER_THREADS)
    yield
    assert not guard._SETTING.holders
    for library, number in zip(libraries(), before, strict=True):
        library._get_symbol("openblas_set_num_threads")(number)


def all_are(number):
    return set(threads()) == {number}


@one_blas_thread
def inside(work=threads):
    return work()


class Looking(db.GPUCB):
    """Notes the threads that its hooks find."""

    def __init__(self, arms, **settings):
        self.seen = [threads()]
        super().__init__(arms, **settings)

    def _start(self, horizon):
        self.seen.append(threads())
        super()._start(horizon)

    def _law(self):
        self.seen.append(threads())
        return super()._law()


# --- one call ---------------------------------------------------------------------------------------------------------


def test_both_libraries_are_found():
    inside()
    assert len(guard._SETTING.libraries) == len(libraries()) >= 1


def test_one_inside_and_as_before_outside():
    assert set(inside()) == {1}
    assert all_are(OTHER_THREADS)


def test_as_before_after_an_exception():
    def failing():
        raise KeyError("no")

    with pytest.raises(KeyError):
        inside(failing)
    assert all_are(OTHER_THREADS)


def test_nested_calls_give_back_once():
    assert inside(lambda: (inside(), threads())) == ([1] * len(libraries()),) * 2
    assert all_are(OTHER_THREADS)


def test_what_the_user_sets_inside_stays():
    inside(lambda: set_threads(2))
    assert all_are(2)
    set_threads(1)
    inside()
    assert all_are(1)


def test_hooks_constructors_arms_and_worlds_find_one_thread():
    seen = []

    def kernel(left, right):
        seen.append(threads())
        return np.exp(-np.square(left[:, None, 0] - right[None, :, 0]))

    arms = db.ArmSet(np.linspace(0, 1, 5)[:, None], kernel)
    policy = Looking(arms, seed=0)
    policy.tell(policy.ask(), 0.5)
    twin = Looking.restore(arms, policy.state_dict())
    assert len(policy.seen) >= 3
    assert {number for found in (*seen, *policy.seen, *twin.seen) for number in found} == {1}
    assert all_are(OTHER_THREADS)


def test_a_simulation_has_one_thread_throughout():
    world = db.environments.create("switching/1", seed=0, horizon=100, switches=(50,))
    seen = []
    db.simulate(db.GPUCB(world.arms, seed=0), world, progress=lambda _: seen.append(threads()))
    assert {number for found in seen for number in found} == {1}
    assert all_are(OTHER_THREADS)


# --- many threads, processes and signals ------------------------------------------------------------------------------


def test_eight_threads_at_once():
    """Each finds one thread in each of its calls, though others come and go all the time."""
    wrong = []
    numbers = _found()

    def work():
        for _ in range(2_000):
            holder = object()
            hold(holder)
            wrong.extend(number.value for number in numbers if number.value != 1)
            release(holder)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        workers = [threading.Thread(target=work) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong
    assert all_are(OTHER_THREADS)


def _found():
    inside()
    return guard._SETTING.libraries


def test_eight_threads_with_policies():
    arms = db.ArmSet(np.random.default_rng(0).random((60, 2)))
    laws = []

    def work():
        policy = db.GPUCB(arms, seed=0)
        for _ in range(40):
            policy.tell(policy.ask(), 0.3)
        laws.append(policy.estimate().tobytes())

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(laws) == 8
    assert len(set(laws)) == 1
    assert all_are(OTHER_THREADS)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_begins_with_the_users_setting():
    """Though another thread of the parent computes, and held the lock, when it was forked."""
    stop, begun = threading.Event(), threading.Event()

    def busy():
        with guard._SETTING.lock:
            inside(lambda: (begun.set(), stop.wait()))

    worker = threading.Thread(target=busy)
    worker.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that waits for the lock
        good = all_are(OTHER_THREADS) and set(inside()) == {1} and all_are(OTHER_THREADS)
        os._exit(0 if good else 1)
    stop.set()
    worker.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert all_are(OTHER_THREADS)


def test_an_interruption_at_any_line_gives_back():
    for line in range(1, 100):
        left = line

        def trace(frame, event, _):
            nonlocal left
            if event == "line" and frame.f_code.co_filename == guard.__file__:
                left -= 1
                if left == 0:
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            inside(list)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert all_are(OTHER_THREADS), line
        assert not guard._SETTING.holders
        if left > 0:
            break
    assert 10 < line < 99  # more lines than a call that does nothing, and all of them


# A signal that comes while Python itself frees an object can only be reported, by whatever was freed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_signals_at_any_moment():
    """A handler that computes as well finds one thread, one that raises leaves nothing behind."""
    wrong, raised, calls = [], 0, 0

    def handler(*_):
        nonlocal calls
        calls += 1
        wrong.extend(number for number in inside(lambda: [one.value for one in _found()]) if number != 1)
        if calls % 2:
            raise TimeoutError

    before = signal.signal(signal.SIGALRM, handler)
    rng = np.random.default_rng(0)
    try:
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            try:
                signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(1e-5, 2e-4)))
                for _ in range(100):
                    inside(list)
                signal.setitimer(signal.ITIMER_REAL, 0)  # whose signal may have come, and is handled here at the latest
            except TimeoutError:
                raised += 1
            assert [one.value for one in _found()] == [OTHER_THREADS] * len(libraries())
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not wrong
    assert raised


# --- what it is for ---------------------------------------------------------------------------------------------------


def digests():
    """One per policy, of what it decides, expects and keeps: 120 arms in 10 dimensions."""
    rng = np.random.default_rng(0)
    arms = db.ArmSet(rng.random((120, 10)))
    rewards = np.clip(0.8 * np.sin(3 * arms.points[:, 0])[None, :] + 0.1 * rng.standard_normal((80, 1)), -1, 1)
    found = {"features": hashlib.sha256(arms.features.tobytes()).hexdigest()}
    for name in POLICIES:
        policy, parts = getattr(db, name)(arms, horizon=80, seed=0), []
        for row in rewards:
            choice = policy.ask()
            policy.tell(choice, float(row[choice.arm]))
            parts.append(policy.law().tobytes() if policy.rounds < 80 else b"")
        found[name] = hashlib.sha256(b"".join([*parts, policy.estimate().tobytes()])).hexdigest()
    return found


def test_laws_are_the_same_bit_for_bit_with_one_thread_and_with_two():
    code = "import json; from tests.test_blas_threads import digests; print(json.dumps(digests()))"
    found = []
    for number in ("1", "2"):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": number}
        told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        found.append(json.loads(told.stdout))
    assert found[0] == found[1]
