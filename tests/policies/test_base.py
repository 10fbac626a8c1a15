"""Edges that every policy meets: empty calls, unknown settings, numbers of laws, the last round, standing masks.

Work that cannot be held in memory or cannot end is refused before it begins.

What a policy keeps is bounded, copies of any kind go on alone, and a range far too wide is noticed.
"""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits._util import checks
from driftbandits.errors import (
    ConvergenceError,
    ConvergenceWarning,
    InputError,
    RewardError,
    RewardRangeWarning,
    StateError,
    UnknownDecisionError,
)
from driftbandits.policies import records
from driftbandits.policies.inputs import check_size
from driftbandits.policies.rewards import REWARDS_LOOKED_AT, RewardMonitor, RewardScale
from driftbandits.testing.helpers import play, require_equal

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
    with pytest.raises(StateError, match="the arms of the window"):
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

    monkeypatch.setattr("driftbandits.policies.opkb.parts.solve_design", short)
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


FEW = db.ArmSet([[0.0], [0.5], [1.0]])


@pytest.fixture(scope="module")
def many():
    """Two million arms with one feature: an N x N matrix would be 30 TB."""
    return db.ArmSet.from_features(np.linspace(0.1, 1.0, 2_000_000)[:, None])


@pytest.fixture(scope="module")
def many_with_points():
    return db.ArmSet(np.linspace(0.1, 1.0, 200_000)[:, None], RBF(10.0), tolerance=1e-3)


@pytest.mark.parametrize("size", [10**12, 10**18])
def test_a_batch_that_memory_cannot_hold(size):
    with pytest.raises(InputError, match=rf"ask\(size={size}\) would need .* smaller batches"):
        check_size(size)
    assert check_size(1_000_000) == 1_000_000
    with pytest.raises(InputError, match=r"size must be at most 2\^62"):
        check_size(10**400)


@pytest.mark.parametrize("kind", [db.NeuralUCB, db.OPNN, db.AdaOPNN, db.SlidingWindowNeuralUCB])
@pytest.mark.parametrize("width", [8, "infinite"])
def test_a_tangent_kernel_that_memory_cannot_hold(many, kind, width):
    with pytest.raises(InputError, match="tangent kernel of a network on 2,000,000 arms would need"):
        kind(many, horizon=1000, width=width)


@pytest.mark.parametrize("kind", [db.NeuralUCB, db.OPNN])
def test_a_network_that_memory_cannot_hold(kind):
    with pytest.raises(InputError, match=r"width 65,536 and depth 1,000 on 3 arms would need .* smaller width"):
        kind(FEW, horizon=1000, width=65_536, depth=1000)
    with pytest.raises(InputError, match=r"depth, .* at most 10,000, got 10001"):
        kind(FEW, horizon=1000, width=2, depth=10_001)


@pytest.mark.parametrize("kind", [db.NeuralUCB, db.OPNN])
def test_a_training_that_would_not_end(kind):
    with pytest.raises(InputError, match="steps must be at most 1,000,000, got 1000000000000"):
        kind(FEW, horizon=1000, width=8, steps=10**12)


def test_a_rank_that_memory_cannot_hold(many, many_with_points):
    with pytest.raises(InputError, match=r"rank=1000000 with 2,000,000 arms would need .* smaller rank"):
        db.AutoBandit(many, rank=1_000_000)
    with pytest.raises(InputError, match=r"rank=90000 with 200,000 arms would need .* smaller rank"):
        db.AutoBandit(many_with_points, rank=90_000)
    db.AutoBandit(many_with_points)
    db.AutoBandit(many, kernel="given", rank=1_000_000)


@pytest.mark.parametrize("kind", [db.GPUCB, db.LinUCB, db.TimeVaryingGPUCB, db.WeightedGPUCB])
def test_a_posterior_that_memory_cannot_hold(kind, monkeypatch):
    arms = db.ArmSet(np.eye(300), RBF(0.1))
    monkeypatch.setattr(checks, "NEVER_REFUSED_BYTES", 0)
    monkeypatch.setattr(checks, "memory_limit", lambda: 1e6)
    with pytest.raises(InputError, match="a posterior over 300 arms and 300 features would need"):
        kind(arms, horizon=1000)
    monkeypatch.setattr(checks, "memory_limit", lambda: 2e6)
    kind(arms, horizon=1000)


def test_priors_that_memory_cannot_hold(monkeypatch):
    policy = db.AutoBandit(db.ArmSet(np.eye(100), RBF(0.1)), kernel="given")
    monkeypatch.setattr(checks, "NEVER_REFUSED_BYTES", 0)
    monkeypatch.setattr(checks, "memory_limit", lambda: 1e5)
    with pytest.raises(InputError, match=r"2 priors of 100 arms would need .* smaller rank"):
        policy.ask()


def test_more_candidates_than_can_be_tried():
    with pytest.raises(InputError, match="at most 10,000 values, got 100,000"):
        db.BanditOverBandit(FEW, candidates=list(range(1, 100_001)))


SIX_ARMS = db.ArmSet(np.linspace(0.0, 1.0, 6)[:, None])
COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda policy: pickle.loads(pickle.dumps(policy)),  # noqa: S301
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize(
    "policy",
    [
        db.WeightedGPUCB(SIX_ARMS, discount=0.9, seed=0),
        db.WeightedGPUCB(db.ArmSet(np.eye(40)), discount=0.9, seed=0),  # so many dimensions that it has an anchor
        db.NeuralUCB(SIX_ARMS, width=16, steps=3, every=5, seed=0),
        db.AutoBandit(SIX_ARMS, seed=0),
    ],
    ids=["WeightedGPUCB", "WeightedGPUCB anchored", "NeuralUCB", "AutoBandit"],
)
def test_copies_learn_as_the_original_does_and_apart_from_it(policy, copied):
    policy = copy.copy(policy)
    play(policy, 12)
    twin = copied(policy)
    for each in (policy, twin):
        for _ in range(60):
            choice = each.ask()
            each.tell(choice, 0.15 * (choice.arm % 6))
    assert twin._guard is not policy._guard
    assert np.ptp(twin.estimate()) > 0.2
    require_equal(twin.state_dict(), policy.state_dict())


class FindsOften(db.Uniform):
    """Records a change at every reward."""

    def _learn(self, feedback):
        for row, reward in feedback.rows():
            self._learn_one(row, reward)

    def _learn_one(self, row, reward):
        self._report_change(epoch=0, interval=(row.id, row.id + 1), statistic=1.0, threshold=0.5)


def test_the_latest_changes_are_kept_and_all_are_counted(monkeypatch):
    monkeypatch.setattr(records, "CHANGES_KEPT", 50)
    policy = FindsOften(SIX_ARMS, seed=0)
    play(policy, 130)
    assert [change.interval[0] for change in policy.changes] == list(range(80, 130))
    assert policy.changes_found == 130
    again = FindsOften.restore(SIX_ARMS, policy.state_dict())
    assert (again.changes, again.changes_found) == (policy.changes, 130)
    play(again, 1)
    assert (len(again.changes), again.changes_found) == (50, 131)
    with pytest.raises(StateError, match="changes_found"):
        FindsOften.restore(SIX_ARMS, {**policy.state_dict(), "changes_found": 49})


def test_ten_thousand_changes_are_kept():
    assert records.CHANGES_KEPT == 10_000


def test_a_trace_has_the_changes_of_its_own_rounds():
    world = db.environments.Tabular(SIX_ARMS, np.zeros((40, 6)), noise=db.environments.UniformNoise(0.1))
    policy = FindsOften(SIX_ARMS, seed=0, reward_range=world.reward_range)
    first = db.simulate(policy, world, rounds=25)
    second = db.simulate(policy, world)
    assert [change.interval[0] for change in first.changes] == list(range(25))
    assert [change.interval[0] for change in second.changes] == list(range(25, 40))


def rewards(width, count):
    return np.random.default_rng(0).uniform(0.2, 0.2 + width, count)


@pytest.mark.parametrize("together", [1, 7, 300])
def test_rewards_that_fill_less_than_a_hundredth_of_the_range_are_noticed_once(together):
    policy = db.Uniform(SIX_ARMS, reward_range=(0.0, 100.0), seed=0)
    told = rewards(0.9, 3 * REWARDS_LOOKED_AT)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for start in range(0, len(told), together):
            batch = policy.ask(size=len(told[start : start + together]))
            policy.tell(batch, told[start : start + together])
            if start + together < REWARDS_LOOKED_AT:
                assert caught == []
    assert [item.category for item in caught] == [RewardRangeWarning]
    assert "reward_range=(0, 100)" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_the_warning_points_at_who_told():
    policy = db.Uniform(SIX_ARMS, reward_range=(0.0, 100.0), seed=0)
    *first, last = rewards(0.9, REWARDS_LOOKED_AT).tolist()
    for reward in first:
        policy.tell(policy.ask(), reward)
    choice = policy.ask()
    with pytest.warns(RewardRangeWarning) as caught:
        policy.tell(choice, last)
    assert [item.filename for item in caught] == [__file__]


def test_the_warning_comes_after_the_reward_is_learned():
    policy = db.Uniform(SIX_ARMS, reward_range=(0.0, 100.0), seed=0)
    *first, last = rewards(0.9, REWARDS_LOOKED_AT).tolist()
    for reward in first:
        policy.tell(policy.ask(), reward)
    choice = policy.ask()
    with pytest.raises(RewardRangeWarning):
        policy.tell(choice, last)
    assert policy.pending == 0
    policy.tell(policy.ask(), 0.5)


@pytest.mark.parametrize(
    ("told", "range_"),
    [
        (rewards(0.9, 3 * REWARDS_LOOKED_AT), (0.0, 80.0)),  # a little more than a hundredth
        (np.zeros(3 * REWARDS_LOOKED_AT), (0.0, 1.0)),  # no success yet
        (np.r_[np.zeros(2 * REWARDS_LOOKED_AT), 1.0, np.zeros(REWARDS_LOOKED_AT)], (0.0, 1.0)),  # a rare one
    ],
    ids=["fills it", "all equal", "rare successes"],
)
def test_other_rewards_are_no_reason_to_warn(told, range_):
    policy = db.Uniform(SIX_ARMS, reward_range=range_, seed=0)
    policy.tell(policy.ask(size=len(told)), told)
    for reward in told.tolist():
        policy.tell(policy.ask(), reward)


def test_what_was_seen_of_the_range_is_part_of_the_state():
    policy = db.Uniform(SIX_ARMS, reward_range=(0.0, 100.0), seed=0)
    told = rewards(0.9, REWARDS_LOOKED_AT)
    policy.tell(policy.ask(size=REWARDS_LOOKED_AT - 1), told[:-1])
    again = db.Uniform.restore(SIX_ARMS, policy.state_dict())
    with pytest.warns(RewardRangeWarning):
        again.tell(again.ask(), float(told[-1]))
    monitor = RewardMonitor(RewardScale(-1.0, 1.0), watches_delays=True)
    assert monitor.export()["spread"] == {"seen": 0, "least": None, "most": None}


def test_rewards_of_a_lost_future_are_refused():
    """An hour-old state is restored: decisions of the hour that is lost are refused, a bare id is believed."""
    policy = db.Uniform(SIX_ARMS, seed=0)
    play(policy, 20)
    snapshot = policy.state_dict()
    lost = [policy.ask() for _ in range(100)]
    restored = db.Uniform.restore(SIX_ARMS, {**snapshot, "draws": db.Uniform(SIX_ARMS, seed=1).state_dict()["draws"]})
    for choice in lost:
        with pytest.raises(UnknownDecisionError, match="ids given out so far run from 0 to 19"):
            restored.tell(choice, 0.5)
    found = [restored.ask() for _ in range(100)]
    wrong = 0
    for choice, own in zip(lost, found, strict=True):
        if choice.arm == own.arm:
            continue
        wrong += 1
        with pytest.raises(UnknownDecisionError, match="was the policy restored from an older state"):
            restored.tell(choice, 0.5)
    assert wrong > 50
    assert restored.pending == 100
    restored.tell(lost[0].id, 0.5)
    assert restored.pending == 99


@pytest.mark.parametrize("path", [None, 3, b"x", "", "a\0b"], ids=repr)
def test_what_is_no_path_is_refused(path):
    policy = db.Uniform(SIX_ARMS)
    with pytest.raises(InputError, match="save wants a path, got"):
        policy.save(path)
    with pytest.raises(InputError, match="load wants the arms and then a path, got"):
        db.Uniform.load(SIX_ARMS, path)


@pytest.mark.parametrize("limit", ["x", float("nan"), 0, -1, 2.5], ids=repr)
def test_a_limit_is_a_number_of_bytes(limit, tmp_path):
    policy = db.Uniform(SIX_ARMS)
    policy.save(tmp_path / "state")
    with pytest.raises(InputError, match="limit must be"):
        db.Uniform.load(SIX_ARMS, tmp_path / "state", limit=limit)
    assert db.Uniform.load(SIX_ARMS, tmp_path / "state", limit=None).rounds == 0


def test_a_seed_of_thousands_of_digits_is_refused():
    with pytest.raises(InputError, match="from 0 to 2"):
        db.Uniform(SIX_ARMS, seed=10**5000)
