"""What people look at, for every policy: summaries, intervals, histories; functions like those in `policies`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from driftbandits.errors import InputError
from driftbandits.policies import Policy
from driftbandits.policies.records import FIRST_STRIDE, MOST_ARMS, MOST_POINTS
from driftbandits.testing.helpers import ROUNDS, PolicyFactory, arms_on_a_line, play, require, require_equal


def _look(policy: Policy) -> None:
    """At everything there is."""
    str(policy.summary()), repr(policy.history)
    with suppress(InputError):  # it has no interval
        policy.interval()


def looking_decides_nothing(make: PolicyFactory) -> None:
    """Summaries, intervals and histories between rounds, and looks at every reward, leave decisions and state alone."""
    watched, left_alone = (make(arms_on_a_line(), horizon=ROUNDS, seed=15) for _ in range(2))
    for _ in range(40):
        watched._history.left = 0
        require(play(watched, 1) == play(left_alone, 1), "looking changed a decision")
        before = watched.state_dict()
        _look(watched)
        require_equal(watched.state_dict(), before)


def summaries_say_what_the_policy_says(make: PolicyFactory) -> None:
    """A summary has the estimate, law and interval of the policy, and counts the decisions it has made."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=16)
    played = play(policy, 60)[0]
    batch = policy.ask(size=5)
    policy.ask(allowed=[3])
    played += [*batch.arms.tolist(), 3]
    table = policy.summary()
    order = np.argsort(table.arms)
    require(np.array_equal(table.estimate[order], policy.estimate()), "the summary has another estimate")
    require(np.array_equal(table.probability[order], policy.law()), "the summary has another law")
    require(table.plays[order].tolist() == [played.count(arm) for arm in range(12)], "plays are not counted")
    last = [max((k for k, own in enumerate(played) if own == arm), default=-1) for arm in range(12)]
    require(table.last_played[order].tolist() == last, "the last plays are not those of the decisions")


def intervals_are_in_order_or_refused(make: PolicyFactory) -> None:
    """An interval is two finite arrays inside the range, low first; a policy without one raises InputError."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=17, reward_range=(-4.0, 4.0))
    for rounds in (0, 1, 80):
        play(policy, rounds)
        try:
            low, high = policy.interval()
        except InputError as error:
            require(type(policy).__name__ in str(error), "who has no interval is not named")
            require(policy.summary().low is None, "a summary has an interval that the policy refuses")
            continue
        require(low.shape == high.shape == (12,), "an interval is not one number per arm")
        require(
            bool((low >= -4.0).all() and (low <= high).all() and (high <= 4.0).all()), "an interval is out of order"
        )


def histories_end_with_the_present(make: PolicyFactory) -> None:
    """A history grows to a limited number of moments, its last is what the policy believes now."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=18)
    for _ in range(4):
        play(policy, 50)
        history = policy.history
        require(len(history) <= MOST_POINTS and len(history.arms) <= MOST_ARMS, "a history has too much in it")
        require(bool((np.diff(history.rounds) > 0).all()), "moments of a history are not in order")
        require(history.rounds[-1] == policy.rounds, "a history does not end with the present")
        now = history.estimate[-1][np.argsort(history.arms)]
        require(np.array_equal(now, policy.estimate()), "a history ends with another estimate")
    require(len(history) >= 200 // FIRST_STRIDE, "a history has too few moments")


LOOKING: tuple[Callable[[PolicyFactory], None], ...] = (
    looking_decides_nothing,
    summaries_say_what_the_policy_says,
    intervals_are_in_order_or_refused,
    histories_end_with_the_present,
)
