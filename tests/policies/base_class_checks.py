"""What the base class does for every policy: inputs, late rewards, threads, interruptions. Three policies show it.

Each check takes a factory, as those of `driftbandits.testing` do, which every policy must pass.
"""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import numpy as np

from driftbandits.errors import (
    DriftbanditsError,
    InputError,
    InterruptedPolicyError,
    ReentryError,
    RewardError,
    UnknownDecisionError,
)
from driftbandits.policies import Policy
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
from driftbandits.text import counted
from driftbandits.types import Decision

_THREAD_COUNT = 8
_INTERRUPTION_COUNT = 15


# --- inputs -----------------------------------------------------------------------------------------------------------


def wrong_tells_change_nothing(make: PolicyFactory) -> None:
    """Unknown, repeated or odd ids, rewards that are not finite or out of range, unequal lengths: refused whole."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=0)
    play(policy, 20)
    batch = policy.ask(size=3)
    before = policy.state_dict()
    wrong: list[tuple[Any, Any, type[DriftbanditsError]]] = [
        (0, 0.1, UnknownDecisionError),
        (10_000, 0.1, UnknownDecisionError),
        (-1, 0.1, UnknownDecisionError),
        ([batch.ids[0], batch.ids[0]], [0.1, 0.1], UnknownDecisionError),
        ([batch.ids[0], 10_000], [0.1, 0.1], UnknownDecisionError),
        (batch.ids, [0.1, float("nan"), 0.1], RewardError),
        (batch.ids, [0.1, float("inf"), 0.1], RewardError),
        (batch.ids, [0.1, 0.1, 1.5], RewardError),
        (batch.ids, [0.1, 0.1], InputError),
        (float(batch.ids[0]), 0.1, InputError),
        ("first", 0.1, InputError),
    ]
    for ids, rewards, kind in wrong:
        with raises(kind):
            policy.tell(ids, rewards)
        require_equal(policy.state_dict(), before)
    with raises(UnknownDecisionError):
        policy.forget(0)
    require_equal(policy.state_dict(), before)
    policy.tell(batch.ids, [0.1, 0.1, 0.1])
    with raises(UnknownDecisionError):
        policy.tell(int(batch.ids[1]), 0.1)


def clipping_counts(make: PolicyFactory) -> None:
    """out_of_range="clip" moves rewards to the end of the range and counts them."""
    clipping = make(arms_on_a_line(), horizon=ROUNDS, seed=0, out_of_range="clip")
    strict = make(arms_on_a_line(), horizon=ROUNDS, seed=0)
    for policy, reward in ((clipping, 7.0), (strict, 1.0)):
        for _ in range(30):
            policy.tell(policy.ask().id, reward)
    require(clipping.clipped == 30 and strict.clipped == 0, "clipped rewards are not counted")
    require(np.array_equal(clipping.law(), strict.law()), "a clipped reward is not the end of the range")


def pending_limit_drops_the_oldest(make: PolicyFactory) -> None:
    """Beyond pending_limit the oldest decision is dropped and counted."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=0, pending_limit=5)
    batch = policy.ask(size=8)
    require(policy.pending == 5 and policy.dropped == 3, "pending_limit is not kept")
    with raises(UnknownDecisionError):
        policy.tell(int(batch.ids[2]), 0.1)
    policy.tell(batch.ids[3:], np.full(5, 0.1))


def wrong_settings_are_refused(make: PolicyFactory) -> None:
    """Bad seeds, ranges, limits and sizes are InputErrors."""
    arms = arms_on_a_line()
    for wrong in (
        {"seed": -1},
        {"seed": "x"},
        {"reward_range": (1, 1)},
        {"reward_range": (0, float("inf"))},
        {"reward_range": 3},
        {"out_of_range": "ignore"},
        {"pending_limit": 0},
    ):
        with raises(InputError):
            make(arms, **{"horizon": 100, "seed": 0, **wrong})
    with raises(InputError):
        make([[0.0], [1.0]], horizon=100, seed=0)
    policy = make(arms, horizon=100, seed=0)
    sizes: tuple[Any, ...] = (0, -1, 1.5, True)
    for size in sizes:
        with raises(InputError):
            policy.ask(size=size)


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


def what_is_imposed_counts(make: PolicyFactory) -> None:
    """Where the draw would have been another the imposed arm is played, the difference counted, the draw consumed."""
    policy, other = make(arms_on_a_line(), horizon=ROUNDS, seed=5), make(arms_on_a_line(), horizon=ROUNDS, seed=5)
    drawn = other.ask()
    arm = (drawn.arm + 1) % 12
    found = policy.impose(arm, 0.25)
    taken = next(iter(found.decisions))
    require((taken.id, taken.arm, taken.probability) == (0, arm, 0.25), "another arm or probability was taken")
    require(found.differing == 1, "a difference was not counted")
    require_equal(policy.state_dict()["draws"], other.state_dict()["draws"])
    policy.tell(taken, 0.25)
    play(policy, 30)
    before = policy.state_dict()
    wrong: tuple[tuple[Any, Any, Any], ...] = (
        (12, 0.5, None),
        (-1, 0.5, None),
        (0.5, 0.5, None),
        ([], [], None),
        ([0, 1], [0.5], None),
        (0, 0.0, None),
        (0, 1.5, None),
        (0, float("nan"), None),
        (0, "often", None),
        (0, 0.5, [1, 2]),
    )
    for arms, probabilities, allowed in wrong:
        with raises(InputError):
            policy.impose(arms, probabilities, allowed)
        require_equal(policy.state_dict(), before)


INPUTS = (
    wrong_tells_change_nothing,
    clipping_counts,
    pending_limit_drops_the_oldest,
    wrong_settings_are_refused,
    decisions_may_be_told,
    what_is_imposed_counts,
)


# --- rewards that come late, in another order, or never ---------------------------------------------------------------


def _learned(policy: Policy) -> dict[str, Any]:
    """The state but for its history: what was believed at which moment depends on when rewards were told."""
    return {key: value for key, value in policy.state_dict().items() if key != "history"}


def the_order_told_does_not_matter_if_asked(make: PolicyFactory) -> None:
    """order="asked": rewards told one by one in any order teach, bit for bit, what they teach told together."""
    together, shuffled = (make(arms_on_a_line(), horizon=ROUNDS, seed=0, order="asked") for _ in range(2))
    for policy in (together, shuffled):
        play(policy, 20)
    batch = together.ask(size=24)
    require(batch == shuffled.ask(size=24), "two policies of one seed decide differently")
    rewards = reward_of(batch.ids, batch.arms)
    together.tell(batch.ids, rewards)
    for place in (*np.random.default_rng(0).permutation(23) + 1, 0):  # the first is what all others wait for
        shuffled.tell(int(batch.ids[place]), float(rewards[place]))
    require_equal(_learned(shuffled), _learned(together))
    require(play(together, 40) == play(shuffled, 40), "the order told changed a decision")


def quick_rewards_wait_if_asked(make: PolicyFactory) -> None:
    """order="asked": nothing is learned behind an open decision; once that is forgotten, all that waited is."""
    held, prompt = (make(arms_on_a_line(), horizon=ROUNDS, seed=1, order="asked") for _ in range(2))
    for policy in (held, prompt):
        play(policy, 25)
    batch = held.ask(size=6)
    rewards = reward_of(batch.ids, batch.arms)
    before = held.estimate().copy()
    for place in (3, 1, 5, 2, 4):
        held.tell(int(batch.ids[place]), float(rewards[place]))
    require(held.held == 5 and held.pending == 1, f"{held.held} rewards wait, not 5")
    require(np.array_equal(held.estimate(), before), "a reward was learned before an earlier one")
    held.forget(int(batch.ids[0]))
    require(held.held == 0, "rewards wait for a decision that was forgotten")
    prompt.ask(size=6)
    prompt.forget(int(batch.ids[0]))
    prompt.tell(batch.ids[1:], rewards[1:])
    require_equal(_learned(held), _learned(prompt))


def told_at_once_both_orders_are_one(make: PolicyFactory) -> None:
    """Where every reward comes at once, order="asked" decides as order="told"."""
    told, asked = (make(arms_on_a_line(), horizon=ROUNDS, seed=2, order=order) for order in ("told", "asked"))
    require(play(told, 150) == play(asked, 150), "the order matters where every reward comes at once")


def patience_closes_as_missing(make: PolicyFactory) -> None:
    """patience=n does what `expire` does to decisions that are n rounds old, for a number and for "forget"."""
    for missing in (0.25, "forget"):
        patient = make(arms_on_a_line(), horizon=ROUNDS, seed=3, patience=4, missing=missing)
        by_hand = make(arms_on_a_line(), horizon=ROUNDS, seed=3, order="asked", missing=missing)
        for number in range(40):
            require(patient.ask() == by_hand.ask(), "patience and expire decide differently")
            if number >= 4:
                by_hand.expire(number - 4)
            if number % 3 == 0:
                for policy in (patient, by_hand):
                    policy.tell(number, one_reward(number, 0))
        require(patient.pending == by_hand.pending <= 4, f"{patient.pending} decisions are older than patience")
        require(patient.expired == by_hand.expired > 0, "decisions closed as missing are not counted")
        require(patient.forgotten == (patient.expired if missing == "forget" else 0), "forgotten is not what it says")
        require(np.array_equal(patient.law(), by_hand.law()), "patience and expire end with two laws")


def batches_end_where_patience_runs_out(make: PolicyFactory) -> None:
    """ask(size=n) gives what n asks give also where decisions close meanwhile, by patience or by pending_limit."""
    limits: tuple[dict[str, Any], ...] = ({"patience": 7, "missing": -0.5}, {"order": "asked", "pending_limit": 9})
    for settings in limits:
        together, apart = (make(arms_on_a_line(), horizon=ROUNDS, seed=4, **settings) for _ in range(2))
        for policy in (together, apart):
            play(policy, 30)
            early = policy.ask(size=5)
            policy.tell(early.ids[2:], reward_of(early.ids[2:], early.arms[2:]))
        batch = together.ask(size=40)
        singles = [apart.ask() for _ in range(40)]
        require([c.arm for c in singles] == batch.arms.tolist(), "batch and single asks choose differently")
        require([c.law for c in singles] == batch.laws.tolist(), "batch and single asks number laws differently")
        require_equal(_learned(together), _learned(apart))


def late_rewards_are_counted(make: PolicyFactory) -> None:
    """Where `missing` is set, a reward of a closed decision is counted in `late` and changes nothing else."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=6, missing="forget")
    play(policy, 20)
    batch = policy.ask(size=3)
    policy.expire(batch)
    policy.expire(batch.ids[:1])  # closed already: left as it is
    before = policy.state_dict()
    policy.tell(int(batch.ids[0]), 0.5)
    policy.tell(batch.ids[1:], [0.5, 0.5])
    require_equal(policy.state_dict(), {**before, "late": before["late"] + 3})
    wrong: tuple[Callable[[], None], ...] = (
        lambda: policy.tell(10_000, 0.5),
        lambda: policy.expire([-1]),
        lambda: policy.tell([20, 20], [0.0, 0.0]),
    )
    for call in wrong:
        with raises(UnknownDecisionError):
            call()
    mixed = policy.ask(size=2)
    policy.tell([int(batch.ids[0]), int(mixed.ids[0])], [0.5, 0.25])
    require(policy.late >= before["late"] + 4 and policy.pending == 1, "a late reward took another along")


def held_rewards_are_state(make: PolicyFactory) -> None:
    """Restored with rewards held and patience running, a policy goes on bit for bit."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=7, patience=12, missing=0.0)
    for number in range(90):
        choice = policy.ask()
        if number % 4:
            policy.tell(choice.id, one_reward(choice.id, choice.arm))
        if number % 11 == 5:
            again = type(policy).restore(arms_on_a_line(), policy.state_dict())
            require(again.held == policy.held > 0, "held rewards are lost")
            require_equal(again.state_dict(), policy.state_dict())
            policy = again
    straight = make(arms_on_a_line(), horizon=ROUNDS, seed=7, patience=12, missing=0.0)
    for number in range(90):
        choice = straight.ask()
        if number % 4:
            straight.tell(choice.id, one_reward(choice.id, choice.arm))
    require_equal(_learned(policy), _learned(straight))


def dropped_decisions_are_not_waited_for(make: PolicyFactory) -> None:
    """order="asked": a decision that pending_limit drops closes as forgotten, and what waited for it is learned."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=8, order="asked", pending_limit=3)
    batch = policy.ask(size=3)
    policy.tell(batch.ids[1:], reward_of(batch.ids[1:], batch.arms[1:]))
    require(policy.held == 2, "rewards did not wait")
    policy.ask(size=3)
    require(policy.dropped == 1 and policy.held == 0, "rewards wait for a decision that was dropped")


def wrong_waiting_is_refused(make: PolicyFactory) -> None:
    """Unusable settings of order, patience and missing, and `expire` without `missing`, are InputErrors."""
    arms = arms_on_a_line()
    wrong: tuple[dict[str, Any], ...] = (
        {"order": "any"},
        {"patience": 5},
        {"patience": 0, "missing": 0.0},
        {"patience": -3, "missing": 0.0},
        {"patience": True, "missing": 0.0},
        {"patience": 2.5, "missing": 0.0},
        {"missing": 1.5},
        {"missing": float("nan")},
        {"missing": True},
        {"missing": "ignore"},
    )
    for settings in wrong:
        with raises(InputError):
            make(arms, horizon=100, seed=0, **settings)
    policy = make(arms, horizon=100, seed=0)
    choice = policy.ask()
    before = policy.state_dict()
    with raises(InputError):
        policy.expire(choice.id)
    require_equal(policy.state_dict(), before)


WAITING = (
    the_order_told_does_not_matter_if_asked,
    quick_rewards_wait_if_asked,
    told_at_once_both_orders_are_one,
    patience_closes_as_missing,
    batches_end_where_patience_runs_out,
    late_rewards_are_counted,
    held_rewards_are_state,
    dropped_decisions_are_not_waited_for,
    wrong_waiting_is_refused,
)


# --- threads, interruptions, signal handlers --------------------------------------------------------------------------


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


DISTURBANCES = (threads_take_turns, interruptions_are_known, calls_from_inside_are_refused)
