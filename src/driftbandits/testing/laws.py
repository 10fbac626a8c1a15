"""What the laws and decisions of every policy must be, as plain functions like those in `policies`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from driftbandits._util.seeding import generator_state, stream
from driftbandits.errors import InputError
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
