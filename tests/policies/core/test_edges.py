"""Edges that every policy meets: empty calls, unknown settings, numbers of laws, the last round, standing masks."""

import inspect

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import ConvergenceError, ConvergenceWarning, InputError, RewardError, StateError

ARMS = db.ArmSet(np.linspace(0, 1, 6)[:, None], kernel={"name": "rbf", "length_scale": 0.3})


@pytest.mark.parametrize("name", db.POLICIES)
def test_empty_calls_change_nothing(name):
    policy = db.create_policy(name, ARMS, horizon=50, seed=0)
    policy.tell([], [])
    policy.forget([])
    assert policy.rounds == 0
    policy.tell(policy.ask().id, 0.1)
    before = policy.state_dict()["version"]
    policy.tell(np.array([], dtype=int), np.array([]))
    assert policy.state_dict()["version"] == before


@pytest.mark.parametrize("name", db.POLICIES)
def test_unknown_settings_are_answered_with_the_nearest(name):
    with pytest.raises(InputError, match=f"{name} has no setting 'horizn'; did you mean 'horizon'"):
        db.create_policy(name, ARMS, horizn=50)
    with pytest.raises(InputError, match="no setting 'size'"):
        db.create_policy(name, ARMS, size=5)


def test_settings_of_forgetting_forms_are_known_by_their_own_names():
    with pytest.raises(InputError, match="SlidingWindowGPUCB has no setting 'windows'; did you mean 'window'"):
        db.SlidingWindowGPUCB(ARMS, windows=5)
    assert db.SlidingWindowGPUCB(ARMS, window=5).window == 5


@pytest.mark.parametrize("name", db.POLICIES)
def test_a_law_number_stands_for_one_law(name):
    """Over a doubled horizon, with rewards in time, late or lost; masks apart, which restrict the law they share."""
    small = {"width": 16, "steps": 5} if name in ("OPNN", "AdaOPNN") else {}
    policy = db.create_policy(name, ARMS, horizon=None, seed=0, **small)
    rng = np.random.default_rng(0)
    seen = {}
    waiting = []
    for _ in range(1200):
        law = policy.law().tobytes()
        choice = policy.ask()
        assert seen.setdefault(choice.law, law) == law
        waiting.append(choice)
        while len(waiting) > 3 or (waiting and rng.random() < 0.5):
            done = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < 0.9:
                policy.tell(done.id, float(0.5 * np.cos(done.arm + done.id / 100)))
            else:
                policy.forget(done.id)


@pytest.mark.parametrize("name", ["RestartGPUCB", "RestartLinUCB"])
def test_nothing_is_forgotten_after_the_last_round(name):
    policy = db.create_policy(name, ARMS, horizon=100, seed=0, period=50)
    for _ in range(100):
        policy.tell(policy.ask().id, 0.4)
    assert policy.estimate().any()


def test_masks_raise_no_alarm_in_a_still_world():
    """Forbidding all arms but a bad one now and then says nothing about the others (fixed seed)."""
    policy = db.Master(ARMS, horizon=4000, seed=0)
    means = np.array([0.6, 0.3, 0.0, -0.2, -0.4, -0.6])
    noise = np.random.default_rng(0).normal(0, 0.05, 4000)
    for now in range(4000):
        choice = policy.ask(allowed=[5] if now % 50 == 0 else None)
        policy.tell(choice.id, float(means[choice.arm] + noise[now]))
    assert policy.changes == ()


def test_bandit_over_exp3_survives_masked_rounds():
    policy = db.BanditOverBandit(ARMS, horizon=200, base="LinearExp3", seed=0)
    for _ in range(150):
        policy.tell(policy.ask(allowed=[0, 1]).id, 0.1)
    again = db.BanditOverBandit.restore(ARMS, policy.state_dict())
    assert [again.ask().arm for _ in range(40)] == [policy.ask().arm for _ in range(40)]


def test_numpy_numbers_in_base_settings_can_be_saved(tmp_path):
    policy = db.Master(ARMS, horizon=100, base="SlidingWindowGPUCB", base_settings={"window": np.int64(10)})
    policy.tell(policy.ask().id, 0.1)
    policy.save(tmp_path / "policy.state")
    assert db.Master.load(ARMS, tmp_path / "policy.state").rounds == 1


@pytest.mark.parametrize("reward", ["abc", "0.5", 1 + 2j, {"a": 1}, None, ["0.5"], float("nan")])
def test_rewards_that_are_no_numbers(reward):
    policy = db.OPKB(ARMS, horizon=10)
    choice = policy.ask()
    with pytest.raises(RewardError):
        policy.tell(choice.id, reward)
    assert policy.pending == 1


def test_ids_that_are_no_numbers():
    policy = db.OPKB(ARMS, horizon=10)
    policy.ask(), policy.ask()
    with pytest.raises(InputError):
        policy.tell(True, 0.1)


@pytest.mark.parametrize("allowed", [3, np.array(2), "a", 1.5])
def test_allowed_must_be_a_list(allowed):
    with pytest.raises(InputError, match="allowed must"):
        db.OPKB(ARMS, horizon=10).ask(allowed=allowed)


def test_wrong_kinds_of_arguments():
    with pytest.raises(InputError, match="constants must be a Constants"):
        db.AdaOPKB(ARMS, constants={"c0": 1.0})
    with pytest.raises(InputError, match="variant must be a Variant"):
        db.AdaOPKB(ARMS, variant="paper")
    with pytest.raises(InputError, match="horizon=10000"):
        db.OPKB(ARMS, horizon=1e4)
    with pytest.raises(InputError, match="reward_range"):
        db.OPKB(ARMS, reward_range="01")
    with pytest.raises(InputError, match="by its name"):
        db.create_policy(db.OPKB, ARMS)
    with pytest.raises(InputError, match="ArmSet first"):
        db.OPKB.restore(np.eye(3), db.OPKB(ARMS).state_dict())
    with pytest.raises(InputError, match="path"):
        db.OPKB.load(ARMS, ARMS)
    world = db.environments.create("switching/1", seed=0)
    with pytest.raises(InputError, match="a policy and a world"):
        db.simulate(world, db.OPKB(world.arms))
    with pytest.raises(InputError, match="rounds"):
        db.simulate(db.OPKB(world.arms), world, rounds=0)


def test_states_with_unknown_arms_or_broken_records_are_refused():
    policy = db.SlidingWindowGPUCB(ARMS, horizon=100, window=10)
    for _ in range(20):
        policy.tell(policy.ask().id, 0.1)
    state = policy.state_dict()
    window = state["engine"]["window"]
    wrong = {**state, "engine": {**state["engine"], "window": {**window, "arms": window["arms"] + 90}}}
    with pytest.raises(StateError, match="unknown arms"):
        db.SlidingWindowGPUCB.restore(ARMS, wrong)
    change = db.Change(5, 0, 1, (0, 5), 0, 1.0, 0.5, (1,), (0.0,), (1.0,))
    records = [{f: getattr(change, f) for f in change.__slots__}]
    good = {**db.OPKB(ARMS).state_dict(), "changes": records, "changes_found": 1}
    assert db.OPKB.restore(ARMS, good).changes == (change,)
    for name, value in (("interval", 5), ("arms", 3), ("before", ["x"]), ("after", [])):
        with pytest.raises(StateError):
            db.OPKB.restore(ARMS, {**good, "changes": [{**good["changes"][0], name: value}]})


def test_a_solver_that_stops_short_is_said_and_played_on(monkeypatch):
    """The best law it had is a law still; the policy warns and goes on."""
    from driftbandits.design import solve_design

    def short(*arguments, **settings):
        found = solve_design(*arguments, **settings)
        raise ConvergenceError("stalled on purpose", best=found)

    monkeypatch.setattr("driftbandits.policies.blocks.design.solve_design", short)
    policy = db.OPKB(ARMS, horizon=100)
    with pytest.warns(ConvergenceWarning, match="stalled on purpose"):
        batch = policy.ask(size=50)
    assert (batch.probabilities > 0).all()


@pytest.mark.parametrize("name", db.POLICIES)
def test_help_shows_every_setting_in_one_place(name):
    """Of the class, and those it hands on to its bases; nothing that bases tell each other."""
    parameters = inspect.signature(db.POLICIES[name]).parameters
    first, *others = parameters.values()
    assert first.name == "arms"
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in others)
    common = ["horizon", "seed", "reward_range", "out_of_range", "pending_limit", "order", "patience", "missing"]
    assert list(parameters)[-8:] == common
    policy = db.POLICIES[name](ARMS, horizon=100)
    assert set(policy.state_dict()["settings"]) <= set(parameters)


@pytest.mark.parametrize("name", db.POLICIES)
def test_settings_go_by_name(name):
    with pytest.raises(InputError, match=f"{name} takes arms by position and all settings by name, got 1000"):
        db.POLICIES[name](ARMS, 1000)


def test_a_setting_of_ones_own_may_be_called_size():
    class Sized(db.Uniform):
        def __init__(self, arms, *, size, **common):
            super().__init__(arms, **common)
            self.size = size

    assert Sized(ARMS, size=3, seed=1).size == 3


def test_a_policy_of_ones_own_may_take_more_by_position():
    class Mine(db.Uniform):
        def __init__(self, arms, extra=1, **settings):
            super().__init__(arms, **settings)
            self.extra = extra

    assert (Mine(ARMS, 3).extra, Mine(ARMS, extra=4, seed=2).extra, Mine(ARMS).extra) == (3, 4, 1)
    with pytest.raises(InputError, match="Mine takes arms and extra by position and all settings by name, got 5"):
        Mine(ARMS, 3, 5)
    with pytest.raises(InputError, match=r"Mine has no setting 'extr'; did you mean 'extra'\?"):
        Mine(ARMS, extr=4)
