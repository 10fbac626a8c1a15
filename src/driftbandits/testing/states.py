"""How every policy must be saved, restored and repeated, and what it must do when arms come and go.

Plain functions like those in `policies`.
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from driftbandits.arms.arm_set import ArmSet
from driftbandits.errors import InputError, StateError
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
from driftbandits.types import ARMS_CHANGED, Decision, Decisions


def restored_at_any_round_goes_on(make: PolicyFactory) -> None:
    """Restored at every third round of a run and played one round on, a policy is bit for bit where the run was."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=7)
    snapshots = [policy.state_dict()]
    whole = []
    for _ in range(ROUNDS):
        whole.append(play(policy, 1)[0][0])
        snapshots.append(policy.state_dict())
    for number in range(0, ROUNDS, 3):
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
        if key != "provenance":  # nothing is refused for want of a machine's name
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


STATES: tuple[Callable[[PolicyFactory], None], ...] = (
    restored_at_any_round_goes_on,
    restored_with_pending_goes_on,
    state_survives_a_file,
    unfit_states_are_refused,
    seeds_decide,
    copies_go_on_alone,
    state_is_a_snapshot,
    imposed_rounds_equal_asked,
    its_own_log_teaches_all,
)


_GONE, _COME = (2, 7), (0.4, 1.3)  # arms of the line that go, and points that come
_ROUNDING = 1e-4  # of estimates: AutoBandit's follow slow drift only now and then, and other arms are such an occasion


def _other_arms() -> tuple[ArmSet, list[int]]:
    """The line without two arms, in another order and with two more; and the old number of each, -1 for new ones."""
    points = arms_on_a_line().points
    kept = [arm for arm in reversed(range(len(points))) if arm not in _GONE]
    return ArmSet(np.vstack([points[kept], np.reshape(_COME, (-1, 1))]), kernel=RBF(0.2)), [*kept, -1, -1]


def _played(make: PolicyFactory, seed: int, rounds: int = 80) -> Policy:
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=seed)
    play(policy, rounds)
    return policy


def the_same_arms_change_nothing(make: PolicyFactory) -> None:
    """with_arms with the arms there are gives the same state, bit for bit, before the first round and after."""
    for rounds in (0, 80):
        policy = _played(make, 12, rounds)
        policy.ask(size=3)
        for arms in (policy.arms, arms_on_a_line()):
            require_equal(policy.with_arms(arms).state_dict(), policy.state_dict())
    require(play(policy.with_arms(policy.arms), 30) == play(policy, 30), "with the same arms it goes on differently")


def a_policy_stays_as_it_was(make: PolicyFactory) -> None:
    """with_arms leaves the policy itself alone, and what one of the two is told does not reach the other."""
    policy, left_alone = _played(make, 13), _played(make, 13)
    require_equal(policy.state_dict(), left_alone.state_dict())
    policy.ask(size=2), left_alone.ask(size=2)
    other = policy.with_arms(_other_arms()[0])
    play(other, 40)
    require_equal(policy.state_dict(), left_alone.state_dict())
    require(play(policy, 40) == play(left_alone, 40), "with_arms changed the policy it was called on")


def ids_and_counters_go_on(make: PolicyFactory) -> None:
    """Rounds, ids, counters and numbers of laws go on after arms have changed."""
    policy = _played(make, 14)
    before = policy.ask(size=4)
    policy.forget(before.ids[:1])
    other = policy.with_arms(_other_arms()[0])
    for name in ("rounds", "forgotten", "clipped", "pending", "seed", "horizon"):
        require(getattr(other, name) == getattr(policy, name), f"{name} is {getattr(other, name)} with other arms")
    require(other.changes[: len(policy.changes)] == policy.changes, "records of changes are lost")
    require(other.changes_found == policy.changes_found, "other arms count as a change that was found")
    after = other.ask(size=4)
    require(after.ids.tolist() == list(range(policy.rounds, policy.rounds + 4)), "ids do not go on")
    shared = set(before.laws[before.laws >= 0].tolist()) & set(after.laws[after.laws >= 0].tolist())
    require(not shared, f"law number {sorted(shared)} stands for a law of the old arms and for one of the new")


def decisions_of_before_may_be_told(make: PolicyFactory) -> None:
    """Decisions asked before arms changed are told and forgotten after, by id and as they were given out."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=15)
    batch = policy.ask(size=120)
    policy.tell(batch.ids[:60], reward_of(batch.ids[:60], batch.arms[:60]))
    single = policy.ask()
    gone = set(_GONE) & set(batch.arms[60:].tolist())
    other = policy.with_arms(_other_arms()[0])
    late = other.late
    decisions = [*list(batch)[60:], single]
    other.tell(decisions[:30], reward_of(batch.ids[60:90], batch.arms[60:90]))
    other.tell([decision.id for decision in decisions[30:50]], reward_of(batch.ids[90:110], batch.arms[90:110]))
    for decision in decisions[50:-3]:
        other.tell(decision, one_reward(decision.id, decision.arm))
    other.forget(decisions[-3:])
    require(other.pending == 0, f"{other.pending} decisions of before are still pending")
    if gone:
        require(other.late > late, "a reward of an arm that is gone was not counted in late")
    require(abs(other.law().sum() - 1.0) < 1e-9 and np.isfinite(other.estimate()).all(), "no law after late rewards")
    require(policy.pending == 61, "decisions told to the one are told to the other")


def rewards_of_gone_arms_teach_nothing(make: PolicyFactory) -> None:
    """The reward of an arm that is gone changes no estimate and no law."""
    policy = make(arms_on_a_line(), horizon=ROUNDS, seed=16)
    batch = policy.ask(size=100, allowed=list(_GONE))
    told = policy.with_arms(_other_arms()[0])
    before = told.estimate()
    told.tell(batch, reward_of(batch.ids, batch.arms))
    require(told.late == 100 and told.pending == 0, "rewards of arms that are gone are not counted in late")
    require(np.array_equal(told.estimate(), before), "the reward of an arm that is gone was learned")


def kept_arms_keep_what_is_known(make: PolicyFactory) -> None:
    """Estimates of kept arms stay as they were, under their new numbers; or the policy records that it began anew."""
    policy = _played(make, 17, 120)
    arms, source = _other_arms()
    other = policy.with_arms(arms)
    begun = [change for change in other.changes if change.stream == ARMS_CHANGED]
    kept = [number for number, old in enumerate(source) if old >= 0]
    known = policy.estimate()[[source[number] for number in kept]]
    if not begun:
        off = float(np.abs(other.estimate()[kept] - known).max())
        require(off <= _ROUNDING, f"the estimate of an arm that stays moved by {off:.3g}, and no record says why")
    for change in begun:
        require(change.round == policy.rounds and "Arms changed" in str(change), "the record of new arms is wrong")


def with_other_arms_it_can_be_saved(make: PolicyFactory) -> None:
    """The state after arms have changed, twice, round-trips bit for bit, with the arms as built at first too."""
    policy = _played(make, 18)
    policy.ask(size=5)
    plain, _ = _other_arms()
    other = policy.with_arms(plain)
    last = ArmSet(plain.points[3:], kernel=RBF(0.2))
    for arms, now in ((plain, other), (last, other.with_arms(last))):
        for _ in range(2):
            state = now.state_dict()
            copies = [type(now).restore(known, state) for known in (now.arms, arms)]
            ahead = play(now, 25)
            for again in copies:
                require(play(again, 25) == ahead, "a policy with other arms goes on differently when it is restored")
                require_equal(again.state_dict(), now.state_dict())


def new_arms_are_played(make: PolicyFactory) -> None:
    """An arm that comes and is the best by far is played; nothing else than the arms there are is."""
    policy = make(arms_on_a_line(), horizon=4 * ROUNDS, seed=19)
    for _ in range(80):
        choice = policy.ask()
        policy.tell(choice, 0.1 * float(policy.arms.points[choice.arm, 0]))
    arms, _ = _other_arms()
    other = policy.with_arms(arms)
    counts = np.zeros(len(arms), dtype=np.int64)
    for _ in range(3 * ROUNDS):
        choice = other.ask()
        counts[choice.arm] += 1
        other.tell(choice, 0.75 if choice.arm >= len(arms) - 2 else 0.1 * float(arms.points[choice.arm, 0]))
    require(other.law().shape == (len(arms),), "the law is not one over the new arms")
    require(counts[-2:].sum() >= 3, f"the arms that came were played {counts[-2:].sum()} times in {3 * ROUNDS} rounds")


def wrong_arms_are_refused(make: PolicyFactory) -> None:
    """Other dimensions, another kernel, no arm in common, no arms at all: one error each, and nothing changes."""
    policy = _played(make, 20, 40)
    before = policy.state_dict()
    points = arms_on_a_line().points
    wrong: tuple[Any, ...] = (
        ArmSet(np.hstack([points, points]), kernel=RBF(0.2)),
        ArmSet(points, kernel=RBF(0.3)),
        ArmSet(points + 5.0, kernel=RBF(0.2)),
        points,
        None,
    )
    for arms in wrong:
        with raises(InputError):
            policy.with_arms(arms)
        require_equal(policy.state_dict(), before)


ARMS: tuple[Callable[[PolicyFactory], None], ...] = (
    the_same_arms_change_nothing,
    a_policy_stays_as_it_was,
    ids_and_counters_go_on,
    decisions_of_before_may_be_told,
    rewards_of_gone_arms_teach_nothing,
    kept_arms_keep_what_is_known,
    with_other_arms_it_can_be_saved,
    new_arms_are_played,
    wrong_arms_are_refused,
)
