import pytest

from driftbandits import AdaOPKB, Constants
from driftbandits.environments import Piecewise
from driftbandits.errors import InputError
from driftbandits.experiments.definitions.specs import PolicySpec
from driftbandits.experiments.running.build import build_policy, build_world

SETTINGS = {"horizon": 200, "switches": [100], "size": 10}
OWN = """
import driftbandits as db
from driftbandits.environments import Piecewise, create

class Mine(db.Uniform):
    def __init__(self, arms, *, rate=0.5, **settings):
        super().__init__(arms, **settings)
        self.rate = rate

def small(arms, **settings):
    return db.OPKB(arms, **settings)

def not_one(arms, **settings):
    return "a policy"

def world(seed, rounds=50):
    return Piecewise(db.ArmSet([[0.0], [1.0]]), [[0.0, 0.1 * seed]], horizon=rounds, switches=())
"""


@pytest.fixture
def own(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN)
    return file


@pytest.fixture
def world():
    return build_world("switching/1", SETTINGS, 3)


def test_a_registered_world_has_the_seed_of_its_cell(world):
    assert (world.seed, world.horizon, len(world.arms)) == (3, 200, 10)


def test_a_world_of_real_data_starts_at_its_seed(monkeypatch):
    monkeypatch.setattr("driftbandits.datasets.create", lambda name, **settings: (name, settings))
    made = build_world("real/digits", {"copy": "reversed"}, 2)
    assert made == ("digits", {"offset": 2, "seed": 2, "copy": "reversed"})


def test_a_world_of_ones_own_is_given_seed_and_settings(own):
    made = build_world(f"{own}:world", {"rounds": 20}, 5)
    assert isinstance(made, Piecewise)
    assert made.horizon == 20
    assert made.means(0).max() == 0.5


def test_a_policy_has_the_arms_the_horizon_and_the_seed(world):
    policy = build_policy(PolicySpec("x", "AdaOPKB", {"constants": "published"}), world, 4)
    assert isinstance(policy, AdaOPKB)
    assert (policy.arms, policy.horizon, policy.seed) == (world.arms, 200, 4)
    assert policy.constants == Constants.published()


def test_a_policy_can_be_told_another_kernel(world):
    told = {"name": "rbf", "length_scale": 2.0}
    policy = build_policy(PolicySpec("x", "OPKB", kernel=told), world, 0)
    assert (policy.arms.points == world.arms.points).all()
    assert (
        policy.arms.features.shape != world.arms.features.shape or (policy.arms.features != world.arms.features).any()
    )


def test_a_policy_of_ones_own(own, world):
    assert build_policy(PolicySpec("x", f"{own}:Mine", {"rate": 0.2}), world, 0).rate == 0.2
    assert type(build_policy(PolicySpec("x", f"{own}:small"), world, 0)).__name__ == "OPKB"
    with pytest.raises(InputError, match=r"gave str; it must be a class derived from driftbandits\.Policy"):
        build_policy(PolicySpec("x", f"{own}:not_one"), world, 0)
    with pytest.raises(InputError, match="did you mean 'rate'"):
        build_policy(PolicySpec("x", f"{own}:Mine", {"rat": 0.2}), world, 0)
