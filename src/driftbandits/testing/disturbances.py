"""What every policy must withstand: threads, interruptions, handlers of signals, copies; as plain functions like those
in `policies`, each taking a factory."""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import numpy as np

from driftbandits.errors import InterruptedPolicyError, ReentryError, UnknownDecisionError
from driftbandits.policies import Policy
from driftbandits.showing import counted
from driftbandits.testing.helpers import (
    ROUNDS,
    PolicyFactory,
    arms_on_a_line,
    one_reward,
    play,
    raises,
    require,
    require_equal,
    reward_of,
)
from driftbandits.types import Decision

_THREAD_COUNT = 8
_INTERRUPTION_COUNT = 15


class _InterruptionError(BaseException):
    """Comes from outside, as Ctrl-C does."""


def threads_take_turns(make: PolicyFactory) -> None:
    """Eight threads ask, tell and look: no error, no id twice, nothing left pending, and a law at the end."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=0)
    each = ROUNDS // _THREAD_COUNT // 4
    ids: list[int] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(each):
                choice = policy.ask()
                batch = policy.ask(size=2)
                policy.law()
                policy.tell(choice.id, one_reward(choice.id, choice.arm))
                policy.tell(batch, reward_of(batch.ids, batch.arms))
                ids.extend((choice.id, *batch.ids.tolist()))
        except BaseException as error:  # noqa: BLE001  # whatever it is, the check names it
            failures.append(error)

    with _impatient_threads():
        workers = [threading.Thread(target=work) for _ in range(_THREAD_COUNT)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    require(not failures, f"{counted(len(failures), 'thread')} failed, the first with {failures[:1]!r}")
    require(sorted(ids) == list(range(3 * each * _THREAD_COUNT)), "an id was given out twice or not at all")
    require(policy.pending == 0 and policy.rounds == len(ids), "rewards told are still pending")
    require(abs(policy.law().sum() - 1.0) < 1e-9, "no law after the threads")
    again = type(policy).restore(arms_on_a_line(), policy.state_dict())
    require(play(policy, 10) == play(again, 10), "the state after the threads goes on differently")


@contextmanager
def _impatient_threads() -> Iterator[None]:
    """Threads change places every few microseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def interruptions_are_known(make: PolicyFactory) -> None:
    """An exception at any line of `ask` or `tell`: the policy goes on soundly, or refuses to go on and to be saved."""
    start = make(arms_on_a_line(), horizon=ROUNDS, seed=1)
    play(start, 50)
    rng = np.random.default_rng(0)
    for number in range(_INTERRUPTION_COUNT):
        policy = copy.copy(start)
        play(policy, 3 * number)  # so that blocks, windows and gathered terms end at some of them
        choice = policy.ask()
        call: Callable[[], object] = policy.ask if number % 3 == 0 else lambda p=policy, c=choice: p.tell(c, 0.25)  # type: ignore[misc]
        lines = _count_lines(copy.copy(policy), "ask" if number % 3 == 0 else "tell", choice)
        with suppress(_InterruptionError), _tracing(_Stop(int(rng.integers(1, lines + 1)))):
            call()
        _require_sound_or_marked(policy)


def _require_sound_or_marked(policy: Policy) -> None:
    try:
        state = policy.state_dict()
    except InterruptedPolicyError:
        for call in (policy.ask, policy.law, lambda: policy.tell(0, 0.0), lambda: policy.forget([])):
            with raises(InterruptedPolicyError):
                call()
        return
    again = type(policy).restore(policy.arms, state)
    require(play(policy, 15) == play(again, 15), "an interrupted policy that goes on is not what its state says")
    require(abs(policy.law().sum() - 1.0) < 1e-9, "an interrupted policy that goes on has no law")


class _Stop:
    """Counts lines of policies as they are run, and raises before the one with the given number."""

    def __init__(self, line: int | None) -> None:
        self.line = line
        self.seen = 0

    def __call__(self, _frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self.seen += 1
            if self.seen == self.line:
                raise _InterruptionError
        return self


def _count_lines(policy: Policy, name: str, choice: Decision) -> int:
    counting = _Stop(None)
    with _tracing(counting):
        if name == "ask":
            policy.ask()
        else:
            policy.tell(choice, 0.25)
    return counting.seen


@contextmanager
def _tracing(trace: _Stop) -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def calls_from_inside_are_refused(make: PolicyFactory) -> None:
    """What a signal handler calls in the middle of `tell` or `ask` is refused and changes nothing."""
    disturbed, left_alone = (make(arms_on_a_line(), horizon=ROUNDS, seed=2) for _ in range(2))
    refused = 0

    def handler(policy: Policy) -> None:
        nonlocal refused
        for call in (policy.ask, policy.law, policy.state_dict, lambda: policy.tell(0, 0.0)):
            with raises(ReentryError):
                call()
            refused += 1

    hook = disturbed._law

    def with_signal() -> Any:
        handler(disturbed)
        return hook()

    disturbed._law = with_signal  # type: ignore[method-assign]
    for _ in range(20):
        first, second = disturbed.ask(size=1), left_alone.ask(size=1)
        require(first == second, "a refused call changed a decision")
        for policy in (disturbed, left_alone):
            policy.tell(first, reward_of(first.ids, first.arms))
    require(refused >= 80, "the handler was not called")


def copies_go_on_alone(make: PolicyFactory) -> None:
    """copy and deepcopy decide like the original, and what is told to one does not reach the other."""
    for copied in (copy.copy, copy.deepcopy):
        policy = make(arms_on_a_line(), horizon=ROUNDS, seed=3)
        play(policy, 60)
        policy.ask(size=3)
        twin = copied(policy)
        before = policy.state_dict()
        ahead = play(twin, 40)
        require_equal(policy.state_dict(), before)
        require(play(policy, 40) == ahead, f"{copied.__name__} decides differently")


def state_is_a_snapshot(make: PolicyFactory) -> None:
    """A state taken stays what it was while the policy plays on."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=4)
    play(policy, 50)
    policy.ask(size=2)
    state = policy.state_dict()
    kept = copy.deepcopy(state)
    play(policy, 60)
    require_equal(state, kept)


def decisions_may_be_told(make: PolicyFactory) -> None:
    """A Decision, Decisions or a list of them may be told and forgotten as their ids may; others' are refused."""
    by_decision, by_id = (make(arms_on_a_line(), horizon=ROUNDS, seed=5) for _ in range(2))
    for policy, plain in ((by_decision, False), (by_id, True)):
        for _ in range(10):
            choice = policy.ask()
            policy.tell(choice.id if plain else choice, 0.25)
            batch = policy.ask(size=4)
            policy.tell(batch.ids if plain else batch, reward_of(batch.ids, batch.arms))
            several = [policy.ask() for _ in range(3)]
            policy.tell([c.id for c in several] if plain else several, [0.5, -0.5, 0.25])
            policy.forget(policy.ask().id if plain else policy.ask())
    require_equal(by_decision.state_dict(), by_id.state_dict())
    choice = by_decision.ask()
    before = by_decision.state_dict()
    other = Decision(id=choice.id, arm=(choice.arm + 1) % 12, probability=choice.probability, law=choice.law)
    wrong: tuple[Callable[[], None], ...] = (lambda: by_decision.tell(other, 0.5), lambda: by_decision.forget([other]))
    for call in wrong:
        with raises(UnknownDecisionError):
            call()
        require_equal(by_decision.state_dict(), before)


DISTURBANCES: tuple[Callable[[PolicyFactory], None], ...] = (
    threads_take_turns,
    interruptions_are_known,
    calls_from_inside_are_refused,
    copies_go_on_alone,
    state_is_a_snapshot,
    decisions_may_be_told,
)
