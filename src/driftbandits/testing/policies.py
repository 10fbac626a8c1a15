"""What every policy must do, as plain functions that raise AssertionError.

Each takes a factory: a policy class, or any function with the constructor's arguments `(arms, horizon=..., seed=...)`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from driftbandits.arms import ArmSet
from driftbandits.errors import (
    DriftbanditsError,
    HorizonError,
    InputError,
    RewardError,
    StateError,
    UnknownDecisionError,
)
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
        require(play(watched, 1) == play(left_alone, 1), "looking changed a decision")


def law_is_pure_while_rewards_are_pending(make: PolicyFactory) -> None:
    """The law looked at with rewards still missing does not decide what those rewards may still change."""
    looking, blind = (make(arms_on_a_line(), horizon=ROUNDS, seed=6) for _ in range(2))
    for size in (1, 7, 20, 33, 50, 29, 60):
        for policy, looks in ((looking, True), (blind, False)):
            batch = policy.ask(size=size)
            if looks:
                policy.law()
                policy.steady_rounds()
            policy.tell(batch.ids, reward_of(batch.ids, batch.arms))
        require(np.array_equal(looking.law(), blind.law()), "looking at the law changed it")


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
    left.pop("version"), right.pop("version")  # counts calls of tell
    require_equal(left, right)


def restored_at_any_round_goes_on(make: PolicyFactory) -> None:
    """Restored at any round of a run and played one round on, a policy is bit for bit where the run was."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=7)
    snapshots = [policy.state_dict()]
    whole = []
    for _ in range(ROUNDS):
        whole.append(play(policy, 1)[0][0])
        snapshots.append(policy.state_dict())
    for number in range(ROUNDS):
        again = type(policy).restore(arms_on_a_line(), snapshots[number])
        require(play(again, 1)[0] == whole[number : number + 1], f"restored at round {number} decides differently")
        require_equal(again.state_dict(), snapshots[number + 1])
    again = type(policy).restore(arms_on_a_line(), snapshots[0])
    require(play(again, ROUNDS)[0] == whole, "restored before the first round goes on differently")


def restored_with_pending_goes_on(make: PolicyFactory) -> None:
    """A snapshot between ask and tell keeps the pending decisions."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=8)
    batch = policy.ask(size=90)
    policy.tell(batch.ids[::2], reward_of(batch.ids[::2], batch.arms[::2]))
    again = type(policy).restore(arms_on_a_line(), policy.state_dict())
    for each in (policy, again):
        each.tell(batch.ids[1::2], reward_of(batch.ids[1::2], batch.arms[1::2]))
    require(play(policy, 60) == play(again, 60), "restored with pending rewards goes on differently")


def state_survives_a_file(make: PolicyFactory) -> None:
    """save and load continue bit for bit; everything but arrays is JSON."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=9)
    play(policy, 100)
    policy.ask(size=3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.state"
        policy.save(path)
        require([p.name for p in Path(folder).iterdir()] == ["policy.state"], "save left files behind")
        again = type(policy).load(arms_on_a_line(), path)
        require_equal(json.loads(json.dumps(_without_arrays(policy.state_dict()))), _without_arrays(again.state_dict()))
        require(play(policy, 50) == play(again, 50), "loaded policy goes on differently")
        path.write_bytes(path.read_bytes()[:-20])
        with raises(StateError):
            type(policy).load(arms_on_a_line(), path)


def _without_arrays(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return f"array {value.shape}"
    if isinstance(value, dict):
        return {key: _without_arrays(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_arrays(item) for item in value]
    return value


def unfit_states_are_refused(make: PolicyFactory) -> None:
    """Other arms, another policy, another format, and any value gone or of another kind are StateErrors."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=0)
    play(policy, 40)
    restore = type(policy).restore
    good = policy.state_dict()
    with raises(StateError):
        restore(arms_on_a_line(5), good)
    unfit: list[dict[str, Any]] = [{"policy": "Other"}, {"format": 999}, {"rounds": -1}, {"draws": {}}, {"pending": []}]
    for wrong in unfit:
        with raises(StateError):
            restore(arms_on_a_line(), {**good, **wrong})
    for key in good:
        with raises(StateError):
            restore(arms_on_a_line(), {k: v for k, v in good.items() if k != key})
    for key, value in good["engine"].items():
        with raises(StateError):
            restore(arms_on_a_line(), {**good, "engine": {k: v for k, v in good["engine"].items() if k != key}})
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            with raises(StateError):
                restore(arms_on_a_line(), {**good, "engine": {**good["engine"], key: value * np.nan}})
    require_equal(restore(arms_on_a_line(), good).state_dict(), good)


def seeds_decide(make: PolicyFactory) -> None:
    """The same seed gives the same run; a policy built with seed None can be repeated with the seed it shows."""
    first, second = (make(arms_on_a_line(), horizon=ROUNDS, seed=11) for _ in range(2))
    require(play(first, 60) == play(second, 60), "the same seed gave two runs")
    free = make(arms_on_a_line(), horizon=ROUNDS, seed=None)
    require(play(free, 40) == play(make(arms_on_a_line(), horizon=ROUNDS, seed=free.seed), 40), "seed is not recorded")


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


def frequencies_match_the_law(make: PolicyFactory) -> None:
    """20,000 draws from the first law fit it; chi-square beyond 5 sigma has a chance below 1e-5, the seed is fixed."""
    policy = make(arms_on_a_line(), horizon=100_000, seed=12)
    counts, law = np.zeros(12), policy.law()
    state = policy.state_dict()
    number = 0
    while counts.sum() < 20_000:  # the same state with another generator each time: the first law, many draws
        fresh = type(policy).restore(arms_on_a_line(), {**state, "draws": _draws(number)})
        counts += np.bincount(fresh.ask(size=min(fresh.steady_rounds(), 2000)).arms, minlength=12)
        number += 1
        if fresh.steady_rounds() == 1 and number == 400:
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
    from driftbandits.seeding import generator_state, stream

    return generator_state(stream(number, "draws"))


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
    law_is_a_probability_vector,
    law_and_estimate_change_nothing,
    law_is_pure_while_rewards_are_pending,
    recorded_probability_is_that_of_the_law,
    decisions_of_one_law_share_it,
    batch_equals_single_asks,
    steady_stretches_equal_single_rounds,
    restored_at_any_round_goes_on,
    restored_with_pending_goes_on,
    state_survives_a_file,
    unfit_states_are_refused,
    seeds_decide,
    wrong_tells_change_nothing,
    clipping_counts,
    late_rewards_are_taken,
    rewards_may_be_missing,
    pending_limit_drops_the_oldest,
    masks_are_kept,
    horizon_ends,
    wrong_settings_are_refused,
    reward_units_do_not_matter,
    frequencies_match_the_law,
    odd_arm_sets_work,
)
