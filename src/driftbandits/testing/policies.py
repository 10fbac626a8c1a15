"""What every policy must do, as plain functions that raise AssertionError.

Each takes a factory: a policy class, or any function with the constructor's arguments `(arms, horizon=..., seed=...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from driftbandits.arms import ArmSet
from driftbandits.errors import DriftbanditsError, HorizonError, InputError, RewardError, UnknownDecisionError
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
from driftbandits.testing.journals import JOURNALS
from driftbandits.testing.laws import LAWS
from driftbandits.testing.looking import LOOKING
from driftbandits.testing.states import STATES


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


def late_rewards_are_taken(make: PolicyFactory) -> None:
    """Rewards told late and out of order are learned from; all of them leave nothing pending."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=0)
    open_ids: list[tuple[int, int]] = []
    order = np.random.default_rng(0)
    for _ in range(150):
        choice = policy.ask()
        open_ids.append((choice.id, choice.arm))
        if len(open_ids) > 12:
            ident, arm = open_ids.pop(int(order.integers(len(open_ids))))
            policy.tell(ident, one_reward(ident, arm))
    require(policy.pending == len(open_ids) == 12, f"{policy.pending} pending, not 12")
    for ident, _ in open_ids:
        policy.tell(ident, 0.0)
    require(policy.pending == 0, "something is still pending")
    require(np.isfinite(policy.estimate()).all() and abs(policy.law().sum() - 1) < 1e-9, "law broken by late rewards")


def rewards_may_be_missing(make: PolicyFactory) -> None:
    """Forgotten decisions, and none told at all, leave a valid law."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=0)
    for number in range(120):
        choice = policy.ask()
        if number % 3:
            policy.tell(choice.id, 0.1)
        else:
            policy.forget(choice.id)
    require(policy.forgotten == 40 and policy.pending == 0, "forgotten decisions are not counted")
    silent = make(arms_on_a_line(), horizon=ROUNDS, seed=0)
    silent.ask(size=ROUNDS)
    require(abs(silent.law().sum() - 1.0) < 1e-9 and np.isfinite(silent.estimate()).all(), "no reward, no law")


def pending_limit_drops_the_oldest(make: PolicyFactory) -> None:
    """Beyond pending_limit the oldest decision is dropped and counted."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=0, pending_limit=5)
    batch = policy.ask(size=8)
    require(policy.pending == 5 and policy.dropped == 3, "pending_limit is not kept")
    with raises(UnknownDecisionError):
        policy.tell(int(batch.ids[2]), 0.1)
    policy.tell(batch.ids[3:], np.full(5, 0.1))


def horizon_ends(make: PolicyFactory) -> None:
    """Asking past the horizon is an error that changes nothing; horizon None goes on; 0 is refused."""
    policy = make(arms_on_a_line(), horizon=20, seed=0)
    play(policy, 20)
    before = policy.state_dict()
    with raises(HorizonError):
        policy.ask()
    require_equal(policy.state_dict(), before)
    require(abs(policy.law().sum() - 1.0) < 1e-9, "no law after the last round")
    endless = make(arms_on_a_line(), horizon=None, seed=0)
    for _ in range(11):
        batch = endless.ask(size=300)
        endless.tell(batch.ids, reward_of(batch.ids % ROUNDS, batch.arms))
    require(endless.rounds == 3300, "an endless policy stopped counting")
    for wrong in (0, -5, 2.5, "many", True):
        with raises(InputError):
            make(arms_on_a_line(), horizon=wrong, seed=0)


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


def reward_units_do_not_matter(make: PolicyFactory) -> None:
    """Rewards and range four times as large give the same decisions and four times the estimates."""
    unit = make(arms_on_a_line(), horizon=ROUNDS, seed=0)
    large = make(arms_on_a_line(), horizon=ROUNDS, seed=0, reward_range=(-4.0, 4.0))
    for _ in range(120):
        a, b = unit.ask(), large.ask()
        require(a == b, "the unit of the rewards changed a decision")
        reward = one_reward(a.id, a.arm)
        unit.tell(a.id, reward)
        large.tell(b.id, 4.0 * reward)
    require(np.allclose(large.estimate(), 4.0 * unit.estimate()), "estimates are not in the user's units")


def odd_arm_sets_work(make: PolicyFactory) -> None:
    """One arm, two arms, duplicates and a linear kernel with more arms than dimensions."""
    points = np.random.default_rng(0).standard_normal((30, 2))
    for arms in (
        ArmSet([[0.0]]),
        ArmSet([[0.0], [1.0]]),
        ArmSet(np.repeat(points[:5], 3, axis=0), RBF(0.5)),
        ArmSet(points, {"name": "linear"}),
        ArmSet(points, RBF(5.0)),
    ):
        policy = make(arms, horizon=150, seed=0)
        for _ in range(5):
            batch = policy.ask(size=30)
            policy.tell(batch.ids, 0.5 * np.cos(batch.arms + 0.1 * batch.ids))
        require(abs(policy.law().sum() - 1.0) < 1e-9, f"no law on {arms!r}")


BEHAVIOUR: tuple[Callable[[PolicyFactory], None], ...] = (
    *LAWS,
    *STATES,
    *JOURNALS,
    *LOOKING,
    wrong_tells_change_nothing,
    clipping_counts,
    late_rewards_are_taken,
    rewards_may_be_missing,
    pending_limit_drops_the_oldest,
    horizon_ends,
    wrong_settings_are_refused,
    reward_units_do_not_matter,
    odd_arm_sets_work,
)
