"""How every policy must be saved, restored and repeated, as plain functions like those in `policies`."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

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
from driftbandits.types import Decision, Decisions


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
