"""What `restore` promises of a state, whatever happened to it on the way.

A damaged state is refused by a StateError, or gives a policy that goes on: it plays single rounds, batches, masks, late
and lost rewards with valid laws, and its own state can be restored. No other error, warning or hang is allowed. What is
tried here is a fixed sample; `tests.state.mutations` tries everything. A state as the library gave it is never refused,
however odd the run, and restores bit for bit.
"""

import functools

import numpy as np
import pytest

from driftbandits import ArmSet
from driftbandits.errors import StateError
from driftbandits.policies import POLICIES
from tests.policies.opkb.small_networks import assert_same
from tests.state.mutations import ALL, FINE, SUBJECTS, changed_at, moments, outcome, sample

# rewards are told late on purpose, to policies with a patience of few rounds
pytestmark = pytest.mark.filterwarnings("ignore::driftbandits.errors.LateRewardsWarning")

DAMAGES, ROUNDS = 60, 24  # a policy
FEW = 12  # of a policy with other settings


@pytest.mark.parametrize("name", ALL)
def test_a_damaged_state_is_refused_or_plays_on(name):
    tried = DAMAGES if name in SUBJECTS else FEW
    found = {damage: outcome(ALL[name], wrong, ROUNDS) for damage, wrong in sample(ALL[name], tried, seed=1)}
    assert {damage: result for damage, result in found.items() if result not in FINE} == {}


@functools.cache
def _moments(name):
    return moments(ALL[name])


def _times(factor):
    return lambda value: value * factor


def _plus(step):
    return lambda value: value + step


def _last_entry(number):
    def change(values):
        values = values.copy()
        values.flat[-1] = number
        return values

    return change


# Policy, moment, place in `engine` and what becomes of the value there: each went on and failed later, or was wrong.
CANNOT_BE = [
    ("OPKB", "start", "constants.regulariser", _times(-1)),
    ("OPKB", "start", "constants.c1", lambda _: -1.0),
    ("OPKB", "middle", "constants.c2", _times(0)),
    ("OPKB", "middle", "constants.gamma", _times(0)),
    ("OPKB", "middle", "constants.alpha", _times(-1)),
    ("OPKB", "middle", "constants.block_size", _times(2)),
    ("OPKB", "pending", "epoch.law_base", _plus(1000)),
    ("OPKB", "middle", "epoch.tags", lambda tags: np.array([-1, *tags[1:]])),
    ("AdaOPKB", "late", "tag", _plus(1)),
    ("AdaOPKB", "changed", "finished", lambda _: True),
    ("AdaOPKB", "middle", "epoch.blocks.0.counts", _plus(2**62)),
    ("AdaOPKB", "middle", "epoch.blocks.0.sums", _times(1e150)),
    ("OPNN", "early", "features.present", _times(1e6)),
    ("AdaOPNN", "start", "features.first", _times(0)),
    ("OPNN", "middle", "features.sums", _times(1e150)),
    ("OPNN", "middle", "features.counts", _times(0.5)),
    ("GPUCB", "late", "posterior.covariance", _times(-1)),
    ("GPUCB", "late", "posterior.covariance", _last_entry(-1.0)),
    ("GPUCB", "late", "posterior.weights", _plus(1.0)),
    ("GPUCB", "late", "posterior.sums", _times(1e6)),
    ("GPUCB", "late", "posterior.mean", _plus(0.1)),
    ("GPUCB", "late", "posterior.information_gain", _times(-1)),
    ("GPUCB, many arms", "late", "posterior.covariance", _times(-1)),
    ("RestartGPUCB", "late", "block_start", lambda _: 240),
    ("SlidingWindowGPUCB", "late", "window.arms", _times(0)),
    ("SlidingWindowGPUCB", "late", "window.rounds", _plus(-1)),
    ("SlidingWindowGPUCB", "late", "window.cleared", lambda _: 240),
    ("WeightedGPUCB", "late", "clock", lambda _: 0),
    ("WeightedGPUCB", "late", "eta", _times(-1)),
    ("WeightedGPUCB", "late", "weights", _times(-1)),
    ("DiscountedLinUCB", "late", "weights", _times(1e150)),
    ("TimeVaryingGPUCB", "late", "posterior.fade", lambda _: 0.0),
    ("TimeVaryingGPUCB", "late", "posterior.learned", _times(-1e6)),
    ("TimeVaryingGPUCB", "late", "posterior.explained", _times(2.0)),
    ("TimeVaryingGPUCB", "late", "posterior.shift", _plus(1e300)),
    ("EventTriggeredGPUCB", "late", "told", _plus(1)),
    ("LinUCB", "late", "posterior.variance", _times(2.0)),
    ("LinearExp3", "late", "leverage", _times(-1)),
    ("LinearExp3", "late", "losses", _plus(1e300)),
    ("LinearExp3", "middle", "open.counts", _plus(5)),
    ("NeuralUCB", "late", "posterior.features", _times(10.0)),
    ("NeuralUCB", "late", "posterior.prior_mean", _times(-1e12)),
    ("SlidingWindowUCB", "late", "means.weights", _plus(1.0)),
    ("DiscountedUCB", "late", "clock", lambda _: 0),
    ("DiscountedUCB", "late", "fade", _times(0)),
    ("DiscountedUCB", "late", "total", _times(-1)),
    ("GLRklUCB", "middle", "pulls", _plus(1)),
    ("GLRklUCB", "middle", "spacings", _times(2)),
    ("GLRklUCB", "middle", "arms", _plus(100)),
    ("Exp3S", "late", "log_weights", _plus(1e3)),
    ("Exp3S", "late", "gamma", _times(-1)),
    ("Master", "late", "position", lambda value: value - 1 if value else 1),
    ("Master", "late", "lowest", lambda _: 1e300),
    ("Master", "late", "open.0.told", _plus(10**6)),
    ("Master", "late", "told", _plus(10**6)),
    ("Master", "late", "instances.0.policy.engine.posterior.covariance", _times(-1)),
    ("Master, windows", "late", "instances.0.policy.engine.means.weights", _plus(1.0)),
    ("BanditOverBandit", "late", "log_weights", _plus(1e12)),
    ("BanditOverBandit", "late", "base.rounds", _plus(1)),
    ("BanditOverBandit", "late", "base.engine.posterior.covariance", _times(-1)),
    ("BanditOverBandit, discounts", "late", "base.engine.fade", _times(0)),
    ("CalibratedOPKB", "late", "features.noise_variance", lambda _: 1e-300),
    ("CalibratedOPKB", "late", "features.rewards", _plus(1e300)),
    ("CalibratedOPKB", "late", "epoch.baselines.0.given", lambda _: False),
    ("CalibratedOPKB", "late", "constants.width", _times(1e-150)),
    ("CalibratedOPKB", "late", "detector.arms.0.orders.wealth", _last_entry(1e300)),
    ("CalibratedOPKB", "late", "detector.streams.0.pairs.0.0.powers.wealth", _plus(1e300)),
    ("CalibratedOPKB", "late", "detector.arms.0.cuts.starts", _plus(10**9)),
    ("CalibratedOPKB", "late", "detector.arms.0.numbers.count", _plus(1)),
    ("CalibratedOPKB", "late", "features.border", _plus(1)),
    ("CalibratedOPKB", "late", "features.highs", lambda _: 0),
    ("CalibratedOPKB, theory", "late", "detector.gaps.firsts", _plus(10**6)),
    ("CalibratedOPKB, theory", "late", "detector.gaps.present.rewards", lambda rows: rows[1:]),
    ("AutoBandit", "late", "vigilance.told", _times(-1)),
    ("AutoBandit", "late", "beliefs.mean", _plus(1e300)),
    ("AutoBandit", "late", "beliefs.learned", _times(1e6)),
    ("AutoBandit", "late", "beliefs.breadth", _times(1e150)),
    ("AutoBandit", "late", "mixture.log_weight", _plus(-1e6)),
    ("AutoBandit", "late", "samples.values", _times(1e300)),
    ("Uniform", "late", "sums", _times(-1)),
]


@pytest.mark.parametrize(("name", "moment", "place", "change"), CANNOT_BE, ids=[f"{r[0]} {r[2]}" for r in CANNOT_BE])
def test_what_cannot_be_is_refused(name, moment, place, change):
    make, state = ALL[name], _moments(name)[moment]
    policy = type(make())
    policy.restore(make.args[0], state)
    with pytest.raises(StateError):
        policy.restore(make.args[0], changed_at(state, f"engine.{place}", change))


@pytest.mark.parametrize("name", ["OPKB", "AdaOPNN"])
@pytest.mark.parametrize("constants", [None, 3, {"sigma": 10**400}, {"sigma": -1.0}, {"unknown": 1.0}])
def test_unusable_constants_are_refused(name, constants):
    make = SUBJECTS[name]
    state = make().state_dict()
    with pytest.raises(StateError):
        POLICIES[name].restore(make.args[0], {**state, "settings": {**state["settings"], "constants": constants}})


POINTS = np.random.default_rng(0).standard_normal((12, 2))
ODD = {
    "one arm": (ArmSet([[0.0]]), {}),
    "duplicates": (ArmSet(np.repeat(POINTS[:3], 4, axis=0)), {"reward_range": (0.1, 0.7)}),
    "few kept": (ArmSet(50.0 * POINTS, {"name": "linear"}), {"pending_limit": 7, "reward_range": (-3.0, 1e3)}),
}
EXTREME = {  # settings at the ends of their ranges
    "GPUCB": {"ridge": 1e-8},
    "RestartGPUCB": {"period": 1},
    "SlidingWindowGPUCB": {"window": 1, "ridge": 1e-4},
    "SlidingWindowUCB": {"window": 1},
    "WeightedGPUCB": {"discount": 1e-3},
    "DiscountedUCB": {"discount": 1e-9},
    "TimeVaryingGPUCB": {"rate": 0.999, "ridge": 1e-8},
    "LinearExp3": {"restart": 1},
    "Master": {"length": 1},
    "BanditOverBandit": {"block": 1},
    "Exp3S": {"share": 0.0, "exploration": 1e-3},
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_genuine_state_is_never_refused(name, odd):
    """Batches, masks, late and lost rewards, all at an end of the range."""
    arms, common = ODD[odd]
    settings = {**SUBJECTS[name].keywords, **common, **EXTREME.get(name, {})}
    policy = POLICIES[name](arms, **{**settings, "horizon": 100})
    ends, generator = policy.reward_range, np.random.default_rng(2)
    while policy.rounds < 90:
        allowed = generator.random(len(arms)) < 0.7
        allowed[0] = True
        policy.ask(size=int(generator.integers(1, 9)), allowed=allowed if generator.random() < 0.3 else None)
        open_ids = generator.permutation(policy.state_dict()["pending"]["id"])
        policy.forget(open_ids[:1])
        told = open_ids[1 : len(open_ids) // 2 + 2]
        policy.tell(told, [ends[int(generator.random() < 0.3)] for _ in told])
        state = policy.state_dict()
        again = POLICIES[name].restore(arms, state)
        assert_same(again.state_dict(), state)
        policy = again if generator.random() < 0.2 else policy


@pytest.mark.parametrize("settings", ["text", np.zeros(3), [], None, 7], ids=repr)
def test_settings_that_are_no_mapping_are_refused(settings):
    arms = ArmSet([[0.0], [1.0]])
    for name in ("RestartGPUCB", "AdaOPKB", "Uniform"):
        state = POLICIES[name](arms, horizon=10).state_dict()
        with pytest.raises(StateError, match="settings must be a mapping"):
            POLICIES[name].restore(arms, {**state, "settings": settings})
