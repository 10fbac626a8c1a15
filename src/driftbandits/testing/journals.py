"""How every policy must take over rounds that were drawn elsewhere, as plain functions like those in `policies`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from driftbandits.errors import InputError
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
from driftbandits.types import Decision, Decisions


def imposed_rounds_equal_asked(make: PolicyFactory) -> None:
    """A policy on which another's draws are imposed stands where that one stands, bit for bit, masked or not."""
    asked, imposed = (make(arms_on_a_line(), horizon=ROUNDS, seed=5) for _ in range(2))
    mask = np.arange(12) % 3 > 0
    for number in range(40):
        allowed = mask if number % 4 == 3 else None
        batch = asked.ask(size=3, allowed=allowed)
        _impose(imposed, batch, allowed)
        single = asked.ask(allowed=allowed)
        _impose(imposed, single, allowed)
        for each in (asked, imposed):
            each.tell(batch.ids, reward_of(batch.ids, batch.arms))
            if number % 5:
                each.tell(single, one_reward(single.id, single.arm))
            else:
                each.forget(single.id)
        require_equal(imposed.state_dict(), asked.state_dict())
    require(play(imposed, 40) == play(asked, 40), "after imposed rounds it goes on differently")


def _impose(policy: Policy, given: Decision | Decisions, allowed: Any) -> None:
    if isinstance(given, Decision):
        found = policy.impose(given.arm, given.probability, allowed)
        require(next(iter(found.decisions)) == given, "an imposed decision is not the one that was asked")
    else:
        found = policy.impose(given.arms, given.probabilities, allowed)
        require(found.decisions == given, "imposed decisions are not those that were asked")
    require(found.differing == 0, "a difference was counted where there is none")


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


def its_own_log_teaches_all(make: PolicyFactory) -> None:
    """A new policy that learns from the log of another of the same settings stands where that one stands."""
    original = make(arms_on_a_line(), horizon=ROUNDS, seed=6)
    arms, probabilities = play(original, 120)
    rewards = [one_reward(number, arm) for number, arm in enumerate(arms)]
    pupil = make(arms_on_a_line(), horizon=ROUNDS, seed=6)
    before = pupil.state_dict()
    columns = {"arm": arms, "reward": rewards, "probability": probabilities}
    for wrong in ({"arm": [99] * 120}, {"reward": [7.0] * 120}, {"probability": [0.0] * 120}, {"arm": arms[1:]}):
        with raises(InputError):
            pupil.learn({**columns, **wrong})
        require_equal(pupil.state_dict(), before)
    pupil.learn(columns)
    require_equal(pupil.state_dict(), original.state_dict())
    require(play(pupil, 60) == play(original, 60), "after its own log it goes on differently")
    with raises(InputError):
        pupil.learn(columns)


JOURNALS: tuple[Callable[[PolicyFactory], None], ...] = (
    imposed_rounds_equal_asked,
    what_is_imposed_counts,
    its_own_log_teaches_all,
)
