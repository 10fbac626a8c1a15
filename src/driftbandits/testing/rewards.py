"""When rewards come, and what every policy must make of it, as plain functions like those in `policies`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from driftbandits.errors import InputError, UnknownDecisionError
from driftbandits.policies.base import Policy
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


def masked_batches_equal_single_asks(make: PolicyFactory) -> None:
    """ask(size=n, allowed=...) gives what n such asks give."""
    together, apart = (make(arms_on_a_line(), horizon=ROUNDS, seed=5) for _ in range(2))
    for policy in (together, apart):
        play(policy, 35)
    mask = np.arange(12) % 3 != 1
    batch = together.ask(size=30, allowed=mask)
    singles = [apart.ask(allowed=mask) for _ in range(30)]
    require([c.arm for c in singles] == batch.arms.tolist(), "masked batch and single asks choose differently")
    require([c.law for c in singles] == batch.laws.tolist(), "masked batch and single asks number laws differently")
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


REWARDS: tuple[Callable[[PolicyFactory], None], ...] = (
    the_order_told_does_not_matter_if_asked,
    quick_rewards_wait_if_asked,
    told_at_once_both_orders_are_one,
    patience_closes_as_missing,
    batches_end_where_patience_runs_out,
    masked_batches_equal_single_asks,
    late_rewards_are_counted,
    held_rewards_are_state,
    dropped_decisions_are_not_waited_for,
    wrong_waiting_is_refused,
)
