"""What every policy must do, and what its laws must be, as plain functions that raise AssertionError.

Each takes a factory: a policy class, or any function with the constructor's arguments `(arms, horizon=..., seed=...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from driftbandits._util.seeding import generator_state, stream
from driftbandits.arms.arm_set import ArmSet
from driftbandits.errors import HorizonError, InputError
from driftbandits.policies import Policy
from driftbandits.policies.records import FIRST_STRIDE, MOST_ARMS, MOST_POINTS
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
from driftbandits.types import Floats

_STILL_ROUNDS = 600
_LEAST_GAIN = 0.1  # of what the best arm earns over drawing at random; chance gains 0.00 +- 0.03 here


def learns(make: PolicyFactory) -> None:
    """In a stationary world it earns more than drawing at random; a policy that draws at random has right estimates."""
    means = 0.6 * np.linspace(-1.0, 1.0, 12)
    noise = np.random.default_rng(0).uniform(-0.1, 0.1, _STILL_ROUNDS)
    policy = make(arms_on_a_line(), horizon=_STILL_ROUNDS, seed=0)
    earned, uniform = np.zeros(_STILL_ROUNDS), True
    while policy.rounds < _STILL_ROUNDS:
        law = policy.law()
        uniform = uniform and float(np.ptp(law)) == 0.0
        batch = policy.ask(size=min(policy.steady_rounds(), _STILL_ROUNDS - policy.rounds))
        earned[batch.ids] = means[batch.arms]
        policy.tell(batch.ids, means[batch.arms] + noise[batch.ids])
    if uniform:
        require(np.corrcoef(policy.estimate(), means)[0, 1] > 0.9, "its estimates are not those of the rewards told")
        return
    gain = float(earned[_STILL_ROUNDS // 2 :].mean() - means.mean()) / float(means.max() - means.mean())
    require(gain > _LEAST_GAIN, f"it does not learn: {gain:.2f} of what the best arm earns over drawing at random")


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
    left, right = ({**policy.state_dict(), "history": None} for policy in (together, apart))
    require_equal(left, right)


def _look(policy: Policy) -> None:
    """At everything there is."""
    str(policy.summary()), repr(policy.history)
    with suppress(InputError):  # it has no interval
        policy.interval()


def looking_decides_nothing(make: PolicyFactory) -> None:
    """Summaries, intervals and histories between rounds change neither decisions nor state."""
    watched, left_alone = (make(arms_on_a_line(), horizon=ROUNDS, seed=15) for _ in range(2))
    for _ in range(40):
        vars(watched)["_history"].left = 0  # a snapshot at every reward
        require(play(watched, 1) == play(left_alone, 1), "reading changed a decision")
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


BEHAVIOUR: tuple[Callable[[PolicyFactory], None], ...] = (
    learns,
    late_rewards_are_taken,
    rewards_may_be_missing,
    horizon_ends,
    reward_units_do_not_matter,
    odd_arm_sets_work,
    masked_batches_equal_single_asks,
    looking_decides_nothing,
    summaries_say_what_the_policy_says,
    intervals_are_in_order_or_refused,
    histories_end_with_the_present,
)


def law_is_a_probability_vector(make: PolicyFactory) -> None:
    """At every round the law is non-negative, sums to one, and cannot be written to."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=3)
    for _ in range(60):
        law = policy.law()
        require(law.shape == (12,) and (law >= 0).all(), "law is negative or of the wrong shape")
        require(abs(law.sum() - 1.0) < 1e-9, f"law sums to {law.sum()}")
        require(not law.flags.writeable, "law can be written to")
        play(policy, 1)


def law_and_estimate_change_nothing(make: PolicyFactory) -> None:
    """Looking at law, estimate, steady rounds and repr between rounds leaves every decision as it was."""
    watched, left_alone = (make(arms_on_a_line(), horizon=ROUNDS, seed=5) for _ in range(2))
    for _ in range(80):
        require(watched.steady_rounds() >= 1, "steady_rounds is below 1")
        require(np.isfinite(watched.estimate()).all(), "estimate is not finite")
        watched.law()
        repr(watched)
        require(play(watched, 1) == play(left_alone, 1), "reading changed a decision")


def law_is_pure_while_rewards_are_pending(make: PolicyFactory) -> None:
    """Reading the law while rewards are missing does not fix what those rewards may still change."""
    looking, blind = (make(arms_on_a_line(), horizon=ROUNDS, seed=6) for _ in range(2))
    for size in (1, 7, 20, 33, 50, 29, 60):
        for policy, looks in ((looking, True), (blind, False)):
            batch = policy.ask(size=size)
            if looks:
                policy.law()
                policy.steady_rounds()
            policy.tell(batch.ids, reward_of(batch.ids, batch.arms))
        require(np.array_equal(looking.law(), blind.law()), "reading the law changed it")


def recorded_probability_is_that_of_the_law(make: PolicyFactory) -> None:
    """The probability of a decision is the law's at the arm, and the arm has some."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=1)
    for _ in range(60):
        law = policy.law()
        choice = policy.ask()
        require(choice.probability == law[choice.arm] > 0, "recorded probability differs from the law")
        policy.tell(choice.id, 0.25)


def decisions_of_one_law_share_it(make: PolicyFactory) -> None:
    """Decisions with the same law number were drawn from the same law, with rewards told between them or not."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=13)
    laws: dict[int, Floats] = {}
    for number in range(80):
        law = policy.law().copy()
        choice = policy.ask()
        same = np.array_equal(laws.setdefault(choice.law, law), law)
        require(same, f"law number {choice.law} stands for two laws; `_stamp` must number them apart")
        if number % 3:
            policy.tell(choice.id, one_reward(choice.id, choice.arm))


def batch_equals_single_asks(make: PolicyFactory) -> None:
    """ask(size=n) gives what n asks without rewards between give."""
    together, apart = (make(arms_on_a_line(), horizon=ROUNDS, seed=2) for _ in range(2))
    for policy in (together, apart):
        play(policy, 30)
    batch = together.ask(size=70)
    singles = [apart.ask() for _ in range(70)]
    require([c.arm for c in singles] == batch.arms.tolist(), "batch and single asks choose differently")
    require([c.law for c in singles] == batch.laws.tolist(), "batch and single asks number laws differently")
    for policy in (together, apart):
        policy.tell(batch.ids, reward_of(batch.ids, batch.arms))
    require_equal(together.state_dict(), apart.state_dict())


def steady_stretches_equal_single_rounds(make: PolicyFactory) -> None:
    """Asking for steady_rounds at a time gives the decisions, and the state, of asking round by round."""
    fast, slow = (make(arms_on_a_line(), horizon=ROUNDS, seed=4) for _ in range(2))
    arms: list[int] = []
    while fast.rounds < ROUNDS:
        batch = fast.ask(size=min(fast.steady_rounds(), ROUNDS - fast.rounds))
        fast.tell(batch.ids, reward_of(batch.ids, batch.arms))
        arms.extend(batch.arms.tolist())
    require(arms == play(slow, ROUNDS)[0], "stretches and single rounds decide differently")
    left, right = fast.state_dict(), slow.state_dict()
    for name in ("version", "history"):  # one counts calls of tell, the other is looked at between them
        left.pop(name), right.pop(name)
    require_equal(left, right)


def frequencies_match_the_law(make: PolicyFactory) -> None:
    """20,000 draws from the first law fit it, or 150 where each takes a policy of its own; chi-square beyond 5 sigma
    has a chance below 1e-5, the seed is fixed.
    """
    policy = make(arms_on_a_line(), horizon=100_000, seed=12)
    counts, law = np.zeros(12), policy.law()
    state = policy.state_dict()
    number = 0
    while counts.sum() < 20_000:  # the same state with another generator each time: the first law, many draws
        fresh = type(policy).restore(arms_on_a_line(), {**state, "draws": _draws(number)})
        counts += np.bincount(fresh.ask(size=min(fresh.steady_rounds(), 2000)).arms, minlength=12)
        number += 1
        if fresh.steady_rounds() == 1 and number == 150:
            break
    expected = counts.sum() * law
    used = expected > 0
    require(counts[~used].sum() == 0, "an arm of probability 0 was drawn")
    freedom = max(used.sum() - 1, 1)
    chi = float((((counts - expected) ** 2)[used] / expected[used]).sum())
    require(
        chi < freedom + 5.0 * np.sqrt(2.0 * freedom) + 5.0, f"chi-square {chi:.1f} with {freedom} degrees of freedom"
    )


def _draws(number: int) -> dict[str, Any]:
    return generator_state(stream(number, "draws"))


def masks_are_kept(make: PolicyFactory) -> None:
    """Only allowed arms are chosen, with the probability of the restricted law; wrong masks are refused."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=0)
    rng = np.random.default_rng(1)
    for number in range(60):
        mask = rng.random(12) < 0.4
        mask[number % 12] = True
        choice = policy.ask(allowed=mask if number % 2 else np.flatnonzero(mask))
        require(mask[choice.arm] and 0 < choice.probability <= 1 + 1e-12, "an arm was chosen that is not allowed")
        policy.tell(choice.id, 0.1)
    single = policy.ask(size=4, allowed=[3])
    require((single.arms == 3).all() and np.allclose(single.probabilities, 1.0), "one allowed arm has probability 1")
    before = policy.state_dict()
    for wrong in (np.zeros(12, dtype=bool), [], [12], [-1], np.ones(5, dtype=bool), ["a name"], "a name", [0.5]):
        with raises(InputError):
            policy.ask(allowed=wrong)
    require_equal(policy.state_dict(), before)


def law_within_what_is_allowed(make: PolicyFactory) -> None:
    """`law(allowed)` is what `ask(allowed=...)` draws from, and reading it changes nothing."""
    watched, left_alone = (make(arms_on_a_line(), horizon=ROUNDS, seed=12) for _ in range(2))
    mask = np.arange(12) % 4 == 1
    for number in range(30):
        law = watched.law(mask)
        require(abs(law.sum() - 1.0) < 1e-9 and not law[~mask].any(), "the law has mass on arms that are not allowed")
        for policy in (watched, left_alone):
            choice = policy.ask(allowed=mask)
            require(choice.probability == law[choice.arm], "the probability is not that of the law read before")
            policy.tell(choice, one_reward(number, choice.arm))
        play(watched, 2)
        play(left_alone, 2)
    require_equal(watched.state_dict(), left_alone.state_dict())


LAWS: tuple[Callable[[PolicyFactory], None], ...] = (
    law_is_a_probability_vector,
    law_and_estimate_change_nothing,
    law_is_pure_while_rewards_are_pending,
    recorded_probability_is_that_of_the_law,
    decisions_of_one_law_share_it,
    batch_equals_single_asks,
    steady_stretches_equal_single_rounds,
    frequencies_match_the_law,
    masks_are_kept,
    law_within_what_is_allowed,
)
