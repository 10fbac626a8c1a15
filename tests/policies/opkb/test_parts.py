"""A detector of one's own: one class, and one hook that gives it to the engine.

The log of another policy as a first evaluation: a ridge regression by a second way, and a policy that goes on.
"""

import json

import numpy as np
import pytest

from driftbandits import OPKB, AdaOPKB, ArmSet, CalibratedOPKB
from driftbandits.detection import Finding, Verdict
from driftbandits.errors import StateError
from driftbandits.testing.helpers import require_equal
from tests.policies.opkb.worlds import as_text

ARMS = ArmSet(np.linspace(0, 1, 6)[:, None])
LOW = -0.5


class LowRewards:
    """Fires when three rewards of the epoch in a row are below LOW, and stays so: a toy, but a whole detector."""

    prompt = True

    def __init__(self):
        self.begin()

    @property
    def fired(self):
        return len(self.low) >= 3

    def begin(self):
        self.low = []

    def open(self, epoch, first_round):
        pass

    def see(self, law, arm, reward, value, round_):
        if not self.fired:
            self.low = [*self.low, [round_, arm]] if reward < LOW else []

    def see_apart(self, arm, reward, round_):
        pass

    def verdict(self, epoch, ended):
        if not self.fired:
            return None
        (first, arm), *_ = self.low
        verdict = Verdict(statistic=3.0, threshold=2.0, arms=(arm,))
        return Finding(first, len(epoch.laws) - 1, verdict, np.zeros(1), np.full(1, LOW), stream="low rewards")

    def export(self):
        return {"low": self.low}

    def load(self, state, epoch, under_way, *, rounds):
        self.low = state.raw("low")
        if not isinstance(self.low, list):
            raise StateError("low rewards must be a list")


class Watchful(AdaOPKB):
    """The paper's features, constants and estimator, with that detector."""

    def _new_detector(self):
        return LowRewards()


def play(policy, rounds, worth):
    for _ in range(rounds):
        choice = policy.ask()
        policy.tell(choice.id, worth(choice))


def test_a_detector_of_ones_own_restarts_the_engine():
    policy = Watchful(ARMS, horizon=400, seed=0)
    play(policy, 100, lambda choice: 0.3)
    assert policy.changes == ()
    play(policy, 50, lambda choice: -0.9 if choice.id < 103 else 0.3)
    (change,) = policy.changes
    assert (change.interval, change.stream, change.epoch) == ((100, 103), "low rewards", 0)
    assert change.after == (LOW,)


def test_what_has_fired_stays_so_whatever_else_the_batch_holds():
    one, batch = Watchful(ARMS, horizon=400, seed=0), Watchful(ARMS, horizon=400, seed=0)
    for policy in (one, batch):
        play(policy, 100, lambda choice: 0.3)
    asked = [policy.ask(size=10) for policy in (one, batch)]
    rewards = [-0.9] * 3 + [0.3] * 7
    batch.tell(asked[1].ids, rewards)
    for number, reward in zip(asked[0].ids.tolist(), rewards, strict=True):
        one.tell(number, reward)
    assert [change.interval[0] for change in batch.changes] == [100]
    told_apart = ("version", "delays", "history")
    assert as_text(one, *told_apart) == as_text(batch, *told_apart)


def test_its_state_is_saved_with_the_policy():
    policy = Watchful(ARMS, horizon=400, seed=0)
    play(policy, 102, lambda choice: 0.3 if choice.id < 100 else -0.9)  # two of three
    again = Watchful.restore(ARMS, policy.state_dict())
    for one in (policy, again):
        play(one, 60, lambda choice: -0.9 if choice.id == 102 else 0.3)
    assert as_text(again) == as_text(policy)
    assert [change.round for change in again.changes] == [103]
    broken = policy.state_dict()
    broken["engine"]["detector"] = {"low": None}
    with pytest.raises(StateError, match="must be a list"):
        Watchful.restore(ARMS, broken)


def test_parts_that_are_not_there_have_no_state():
    policy = AdaOPKB(ARMS, horizon=100, seed=0)
    policy.ask()
    engine = policy.state_dict()["engine"]
    assert json.dumps(engine["looks"]) == json.dumps(engine["detector"]) == "{}"
    engine["epoch"]["baselines"][0] = {"given": True, "values": np.zeros(len(ARMS))}  # IPS has none
    state = {**policy.state_dict(), "engine": engine}
    with pytest.raises(StateError, match="baselines"):
        AdaOPKB.restore(ARMS, state)


NINE_ARMS = ArmSet(np.linspace(0.0, 1.0, 9)[:, None])


def a_log(rows, seed=0):
    draw = np.random.default_rng(seed)
    arms = draw.integers(0, 9, rows)
    rewards = np.round(0.5 * np.cos(arms - 3.0) + 0.1 * draw.standard_normal(rows), 3).clip(-1, 1)
    return {"arm": arms, "reward": rewards, "probability": np.full(rows, 1 / 9)}


def play_a_log(policy, rounds):
    """In the world of the log."""
    played = []
    for _ in range(rounds):
        choice = policy.ask()
        policy.tell(choice, float(0.5 * np.cos(choice.arm - 3.0)))
        played.append(choice)
    return played


@pytest.mark.parametrize("make", [OPKB, AdaOPKB, CalibratedOPKB])
def test_it_begins_with_what_the_log_says_and_goes_on(make):
    policy = make(NINE_ARMS, horizon=2000, seed=1)
    policy.learn(a_log(400))
    assert policy.rounds == 400
    assert policy._epoch.number == 0
    assert int(policy.estimate().argmax()) == 3
    again = make.restore(NINE_ARMS, policy.state_dict())
    assert play_a_log(again, 60) == play_a_log(policy, 60)
    require_equal(again.state_dict(), policy.state_dict())
    assert policy.changes_found == 0


def test_the_estimate_is_the_ridge_regression_on_the_log():
    policy = OPKB(NINE_ARMS, horizon=2000, seed=1)
    log = a_log(300)
    policy.learn(log)
    features, regulariser = NINE_ARMS.features, policy._epoch.regulariser
    played = features[log["arm"]]
    gram = played.T @ played / 300 + regulariser * np.eye(features.shape[1])
    expected = features @ np.linalg.solve(gram, played.T @ log["reward"] / 300)
    np.testing.assert_allclose(policy.estimate(), expected, atol=1e-9)


def test_where_the_horizon_doubles_only_what_came_since_the_last_start_counts():
    policy = OPKB(NINE_ARMS, horizon=None, seed=1)
    log = a_log(1500)
    policy.learn(log)
    assert (policy.rounds, policy._phase_start) == (1500, 1024)
    assert policy._epoch.blocks[0].told == 476
    play_a_log(OPKB.restore(NINE_ARMS, policy.state_dict()), 20)


def test_a_log_without_rewards_is_a_beginning():
    policy = OPKB(NINE_ARMS, horizon=2000, seed=1)
    policy.learn({**a_log(50), "reward": np.full(50, np.nan)})
    assert policy.rounds == 50
    play_a_log(policy, 20)
