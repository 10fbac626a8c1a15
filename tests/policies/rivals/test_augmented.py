"""DAL around any policy: the same as around GP-UCB, which is written by itself."""

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import InputError

ARMS = db.ArmSet(np.linspace(0.0, 1.0, 12)[:, None], kernel={"name": "rbf", "length_scale": 0.3})


def test_around_gp_ucb_it_plays_as_the_policy_that_is_written_for_it():
    settings = {"cover": 4, "exploration": 0.4, "noise": 0.1, "horizon": 600, "seed": 4}
    own = db.DetectionAugmentedGPUCB(ARMS, **settings)
    around = db.DetectionAugmented(ARMS, base="GPUCB", base_settings={"noise": 0.1}, **settings)
    rng = np.random.default_rng(0)
    for now in range(600):
        choice, other = own.ask(), around.ask()
        assert (choice.arm, choice.probability) == (other.arm, other.probability), now
        best = 0.2 if now < 300 else 0.8
        reward = float(np.clip(0.8 - abs(ARMS.points[choice.arm, 0] - best) + 0.1 * rng.standard_normal(), -1, 1))
        own.tell(choice, reward)
        around.tell(other, reward)
    assert [change.interval for change in around.changes] == [change.interval for change in own.changes]
    assert len(own.changes) >= 1


def test_thompson_sampling_finds_a_change_by_it():
    policy = db.DetectionAugmented(ARMS, base=db.GPThompson, cover=4, horizon=2_000, seed=1)
    rng, regret = np.random.default_rng(1), 0.0
    for now in range(2_000):
        choice = policy.ask()
        means = 0.8 - np.abs(ARMS.points[:, 0] - (0.2 if now < 1_000 else 0.9))
        policy.tell(choice, float(np.clip(means[choice.arm] + 0.1 * rng.standard_normal(), -1, 1)))
        regret += float(means.max() - means[choice.arm]) if now >= 1_500 else 0.0
    assert any(1_000 <= change.round < 1_200 for change in policy.changes)
    assert regret / 500 < 0.1


@pytest.mark.parametrize("base", ["LinearExp3", "AdaOPKB", "Master"])
def test_a_base_that_cannot_learn_forced_rounds_is_refused(base):
    with pytest.raises(InputError, match=f"base must learn rewards one by one, whatever law drew them, and {base}"):
        db.DetectionAugmented(ARMS, base=base)
