"""What a log cannot tell, and learning policies replayed on it."""

import re

import numpy as np
import pytest

import driftbandits as db
from driftbandits import datasets
from driftbandits.logs import Log, estimators, evaluate
from driftbandits.logs.evaluating import certain, doubt, unsupported
from driftbandits.logs.targets import shares_of


@pytest.fixture(scope="module")
def greedy():
    """The log of a policy that never draws lots."""
    world = db.environments.create("switching/1", seed=5, horizon=900, switches=(400,), size=6, dimension=2)
    return Log.read(db.simulate(db.GPUCB(world.arms, seed=0), world, seed=0), arms=world.arms)


@pytest.mark.parametrize("estimator", ["ips", "snips", "clipped", "dr"])
def test_the_log_of_a_policy_without_choice_cannot_tell(greedy, estimator):
    arm = int(np.bincount(greedy.arm).argmax())
    found = evaluate(greedy, arm, estimator=estimator, by=2)
    assert "could not have done what the target does" in found.verdict
    assert np.isnan(found.value)
    assert all(part.verdict for part in found.parts)


def test_what_it_did_itself_and_what_a_model_says_are_told(greedy):
    assert evaluate(greedy, "log").value == pytest.approx(greedy.reward.mean())
    found = evaluate(greedy, 0, estimator="direct")
    assert not found.verdict
    assert any("nothing but the model" in note for note in found.notes)


def test_a_learner_is_not_replayed_where_there_was_no_choice(greedy):
    still = greedy.take(slice(0, 400))
    assert "had no choice" in evaluate(still, db.Uniform(greedy.arms)).verdict


def test_with_laws_every_zero_counts():
    law = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.25, 0.25, 0.5]])
    log = Log.read(
        {"round": [0, 1, 2], "arm": [0, 0, 2], "reward": [1, 1, 1], "probability": [0.5, 1, 0.5], "law": law.tolist()}
    )
    shares = shares_of(log, [0.2, 0.3, 0.5])[0]
    np.testing.assert_allclose(unsupported(log, shares), [0.5, 0.8, 0.0])
    np.testing.assert_allclose(unsupported(log, shares_of(log, "log")[0]), 0.0)


def test_a_single_arm_on_offer_is_no_lack_of_choice():
    allowed = ["a|b", "b", "a"]
    log = Log.read(
        {"round": [0, 1, 2], "arm": ["a", "b", "a"], "reward": [1, 1, 1], "probability": [1, 1, 1], "allowed": allowed}
    )
    np.testing.assert_array_equal(certain(log), [True, False, False])
    np.testing.assert_allclose(unsupported(log, shares_of(log, "uniform")[0]), [0.5, 0.0, 0.0])


def test_weights_that_are_not_1_on_average_are_noted():
    rng = np.random.default_rng(0)
    arm = rng.integers(0, 2, 600)
    rows = {"round": range(600), "arm": arm, "reward": rng.random(600)}
    wrong = evaluate(Log.read({**rows, "probability": np.full(600, 0.8)}), 0, estimator="ips")
    assert any(re.search(r"weights are 0\.(5|6).* should be 1", note) for note in wrong.notes)
    assert not evaluate(Log.read({**rows, "probability": np.full(600, 0.5)}), 0, estimator="ips").notes
    assert doubt(np.ones(0)) == ""


def test_what_is_too_rare_to_be_in_the_log_is_not_guessed_from_the_rest():
    """Arm 0 is drawn once in 20,000 rounds and has a third of the target: what is left looks even, and says nothing."""
    rng, share = np.random.default_rng(3), 1 / 20_000
    law = np.array([share, *np.full(5, (1.0 - share) / 5)])
    arm = rng.choice(6, size=1_000, p=law)
    assert not (arm == 0).any()
    columns = {"round": np.arange(1_000), "arm": arm, "probability": law[arm], "reward": rng.random(1_000)}
    log = Log.read(columns, arms=db.ArmSet(np.arange(6.0)[:, None]))
    target = [1 / 3, *np.full(5, 2 / 15)]
    found = evaluate(log, target, estimator="ips")
    assert found.effective_sample_size > 500
    assert "its rows stand for 67 % of what the target does" in found.verdict
    assert not evaluate(log, target, estimator="direct").verdict


@pytest.mark.statistical
def test_values_of_laws_on_digits_are_covered(monkeypatch):
    """12 intervals of 95 %: fewer than 9 cover with probability 0.0002 if each does."""
    monkeypatch.setattr(estimators, "MOST_BINS", 300)
    world = datasets.create("digits", offset=0)
    trace = db.simulate(db.Uniform(world.arms, seed=0, reward_range=world.reward_range), world, seed=0)
    log = Log.read(trace, arms=world.arms, reward_range=world.reward_range)
    means = world.means(0, world.horizon)
    rng = np.random.default_rng(0)
    found = {"ips": [], "dr": []}
    for _ in range(12):
        law = rng.dirichlet(np.full(len(world.arms), 0.5))
        truth = float((means @ law).mean())
        for name, rows in found.items():
            value = evaluate(log, law, estimator=name)
            rows.append((value.value - truth, value.low <= truth <= value.high))
    for rows in found.values():
        assert sum(covered for _, covered in rows) >= 9
    squares = {name: np.mean([error**2 for error, _ in rows]) for name, rows in found.items()}
    assert squares["dr"] < squares["ips"]
