import dataclasses
import re

import pytest

from driftbandits import AdaOPKB, Constants
from driftbandits.environments import Piecewise
from driftbandits.errors import InputError
from driftbandits.experiments import runner
from driftbandits.experiments.building import build_policy, build_world, check_cost, check_experiment, cost_of
from driftbandits.experiments.seeds import MOST_RUNS_PER_EXPERIMENT
from driftbandits.experiments.specs import Cell, Experiment, PolicySpec
from reproduction.groups import EXPERIMENTS

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
    with pytest.raises(InputError, match=r"gave str; it must give a driftbandits Policy"):
        build_policy(PolicySpec("x", f"{own}:not_one"), world, 0)
    with pytest.raises(InputError, match="did you mean 'rate'"):
        build_policy(PolicySpec("x", f"{own}:Mine", {"rat": 0.2}), world, 0)


ONE_SWITCH = {"horizon": 200, "switches": [100], "size": 10}
BROKEN = """
def broken(seed):
    raise ValueError("this world cannot be")
"""
UNEVEN = """
import numpy as np
import driftbandits as db

def uneven(seed):
    means = np.full((3000 if seed == 2 else 30, 2), 0.5)
    return db.environments.Tabular(db.ArmSet(np.eye(2)), means)
"""


def test_what_a_users_code_raises_is_said_with_its_place(tmp_path):
    own = tmp_path / "own.py"
    own.write_text(BROKEN)
    experiment = Experiment("x", "x", f"{own}:broken", {}, ())
    with pytest.raises(InputError, match=r"cannot be built: ValueError: this world cannot be \(own.py, line 3\)"):
        check_experiment(experiment)


def test_a_world_has_one_horizon_on_all_seeds(tmp_path):
    own = tmp_path / "own.py"
    own.write_text(UNEVEN)
    experiment = Experiment("x", "x", f"{own}:uneven", {}, (), seeds=(0, 1))
    check_experiment(experiment)
    with pytest.raises(InputError, match=r"has 30 rounds on seed 0 and 3,000 on seed 2; give it one horizon"):
        check_experiment(dataclasses.replace(experiment, seeds=(0, 1, 2, 3)))


def test_only_the_policies_asked_for_are_checked():
    policies = (PolicySpec("good", "Uniform"), PolicySpec("bad", "Nothing"))
    experiment = Experiment("x", "x", "switching/1", ONE_SWITCH, policies)
    check_experiment(experiment, labels=["good"])
    with pytest.raises(InputError, match="no policy is called 'Nothing'"):
        check_experiment(experiment)


def test_all_that_is_wrong_is_said_at_once(tmp_path):
    (tmp_path / "mine.py").write_text("def broken(*arguments, **settings):\n    return 1 / 0\n")
    policies = (
        PolicySpec("typos", "GPUCB", {"widow": 3, "rigde": 0.1}),
        PolicySpec("good", "Uniform"),
        PolicySpec("unknown", "Nothing"),
        PolicySpec("own", f"{tmp_path / 'mine.py'}:broken"),
    )
    with pytest.raises(InputError) as caught:
        check_experiment(Experiment("x", "x", "switching/1", ONE_SWITCH, policies))
    said = str(caught.value).splitlines()
    parts = ["no setting 'widow'", "no setting 'rigde'", "no policy is called 'Nothing'", "'own' cannot be built"]
    assert len(said) == len(parts)
    assert all(part in line for part, line in zip(parts, said, strict=True))


def test_a_world_that_cannot_be_built_does_not_hide_what_is_wrong_with_policies():
    with pytest.raises(InputError) as caught:
        check_experiment(
            Experiment("x", "x", "switching/1", {"horizn": 9, "sise": 3}, (PolicySpec("unknown", "Nothing"),))
        )
    said = str(caught.value).splitlines()
    parts = ["no setting 'horizn'", "no setting 'sise'", "no policy is called 'Nothing'"]
    assert all(part in line for part, line in zip(parts, said, strict=True))


SMALL = Experiment("small", "Small", "switching/1", {"horizon": 50, "switches": [25], "size": 5}, ())
OWN_WORLD = """
import driftbandits as db
from driftbandits.environments import Piecewise

def world(seed, rounds):
    return Piecewise(db.ArmSet([[0.0], [1.0]]), [[0.0, 0.1]], horizon=rounds, switches=())
"""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"horizon": 10**12}, "has 1000000000000 rounds, more than 100,000,000 in one run; play it in stretches"),
        ({"horizon": 10**400}, "has 1000000000...0000000000 (401 digits) rounds"),
        ({"size": 10**7}, "has 10000000 arms, more than 100,000; use fewer"),
    ],
)
def test_a_world_too_large_is_refused_before_it_is_built(settings, said):
    with pytest.raises(InputError, match=re.escape(f"environment 'switching/1' {said}")):
        build_world("switching/1", {**SMALL.settings, **settings}, 0)


def test_rounds_must_fit_into_memory(monkeypatch):
    monkeypatch.setattr("driftbandits._util.checks.memory_limit", lambda: 2**30)
    with pytest.raises(
        InputError, match="what happens in the 50,000,000 rounds of environment 'switching/1' would need"
    ):
        build_world("switching/1", {**SMALL.settings, "horizon": 5 * 10**7}, 0)


def test_so_is_one_of_ones_own(tmp_path):
    (tmp_path / "own.py").write_text(OWN_WORLD)
    with pytest.raises(InputError, match="has 1000000000000 rounds"):
        build_world(f"{tmp_path / 'own.py'}:world", {"rounds": 10**12}, 0)


def test_a_cost_of_years_is_refused_with_an_estimate():
    policies = tuple(PolicySpec(f"policy {n}", "GPUCB") for n in range(2))
    long = {**SMALL.settings, "horizon": 10**10}
    wide = dataclasses.replace(SMALL, policies=policies, seeds=tuple(range(MOST_RUNS_PER_EXPERIMENT)))
    with pytest.raises(InputError, match="small has 2,000,000 runs, more than 1,000,000"):
        check_experiment(wide)
    longest = dataclasses.replace(SMALL, settings=long, policies=policies, seeds=tuple(range(2_000)))
    with pytest.raises(InputError, match="small would take about 38 years on one core, more than 10; use a shorter"):
        check_cost(longest)
    few = dataclasses.replace(policies[0], seeds=1)
    check_cost(dataclasses.replace(longest, policies=(few,)))


def test_nothing_of_the_catalogue_is_too_large():
    for experiment in EXPERIMENTS.values():
        check_cost(experiment)


def cell(name, settings=None, **world):
    return Cell("switching/1", {"horizon": 10_000, **world}, PolicySpec(name, name, settings or {}), 0)


def cost(name, settings=None, **world):
    return cost_of(cell(name, settings, **world))


def test_the_cost_is_most_for_networks_that_train():
    assert cost("AdaOPNN") > cost("OPNN") > cost("NeuralUCB") > cost("AdaOPKB")
    assert cost("AdaOPNN", {"width": "infinite", "train": False}) == cost("AdaOPNN", {"train": False})
    assert 2.5 < cost("AdaOPNN", {"depth": 5}) / cost("AdaOPNN") < 3.5
    assert cost("AdaOPNN", {"width": 256}) < cost("AdaOPNN") / 10


def test_policies_without_networks_differ_by_what_was_measured():
    assert cost("Uniform") < cost("OPKB") < cost("AdaOPKB") < cost("GPUCB") < cost("WeightedGPUCB") < cost("AutoBandit")
    assert 5 < cost("AutoBandit") / cost("GPUCB") < 20
    assert cost("GPUCB", horizon=20_000) == 2 * cost("GPUCB")
    assert cost("OPKB", horizon=20_000) < 2 * cost("OPKB")  # a design per block, and blocks double


def test_a_wrapper_costs_what_its_base_does_and_more():
    for wrapper in ("BanditOverBandit", "Master"):
        assert cost(wrapper, {"base": "WeightedGPUCB"}) > cost("WeightedGPUCB")
        assert cost("LinUCB") < cost(wrapper, {"base": "LinUCB"}) < cost(wrapper, {"base": "WeightedGPUCB"})
        assert cost(wrapper, {"base": "nobody", "base_settings": 3}) == cost(wrapper)


def test_more_arms_cost_more_whether_counted_or_on_a_box():
    assert cost("LinUCB", size=10) == cost("LinUCB", size=100) == cost("LinUCB")
    assert cost("LinUCB", size=841) == cost("LinUCB", box_error=0.1, dimension=2) > cost("LinUCB")
    assert cost("AdaOPKB", size=400) / cost("AdaOPKB") > cost("GPUCB", size=400) / cost("GPUCB")


def test_settings_of_somebody_elses_world_do_no_harm():
    assert cost("GPUCB", horizon="long", size=None, box_error="small") == cost("GPUCB")
    assert cost("GPUCB", horizon=10**400, size=10**400, box_error=1e-300, dimension=10**6) > cost("GPUCB")


def test_the_longest_are_played_first_and_equals_in_their_order():
    cells = {str(k): cell(name) for k, name in enumerate(("GPUCB", "OPNN", "AutoBandit", "GPUCB", "Uniform"))}
    assert [task[1][0] for task in runner._tasks(cells)] == ["1", "2", "0", "3", "4"]
