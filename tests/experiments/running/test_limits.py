import dataclasses
import re

import pytest

from driftbandits.errors import InputError
from driftbandits.experiments.definitions.seeds import MOST_RUNS_PER_EXPERIMENT
from driftbandits.experiments.definitions.specs import Experiment, PolicySpec
from driftbandits.experiments.groups import EXPERIMENTS
from driftbandits.experiments.running.build import build_world
from driftbandits.experiments.running.limits import check_cost
from driftbandits.experiments.running.preflight import check_experiment

SMALL = Experiment("small", "Small", "switching/1", {"horizon": 50, "switches": [25], "size": 5}, ())
OWN = """
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
    monkeypatch.setattr("driftbandits.memory.memory_limit", lambda: 2**30)
    with pytest.raises(
        InputError, match="what happens in the 50,000,000 rounds of environment 'switching/1' would need"
    ):
        build_world("switching/1", {**SMALL.settings, "horizon": 5 * 10**7}, 0)


def test_so_is_one_of_ones_own(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    with pytest.raises(InputError, match="has 1000000000000 rounds"):
        build_world(f"{tmp_path / 'own.py'}:world", {"rounds": 10**12}, 0)


def test_a_cost_of_years_is_refused_with_an_estimate():
    policies = tuple(PolicySpec(f"policy {n}", "GPUCB") for n in range(2))
    long = {**SMALL.settings, "horizon": 10**8}
    wide = dataclasses.replace(SMALL, policies=policies, seeds=tuple(range(MOST_RUNS_PER_EXPERIMENT)))
    with pytest.raises(InputError, match="small has 2,000,000 runs, more than 1,000,000"):
        check_experiment(wide)
    longest = dataclasses.replace(SMALL, settings=long, policies=policies, seeds=tuple(range(200_000)))
    with pytest.raises(InputError, match="small would take about 38 years on one core, more than 10; use a shorter"):
        check_cost(longest)
    few = dataclasses.replace(policies[0], seeds=1)
    check_cost(dataclasses.replace(longest, policies=(few,)))


def test_nothing_of_the_catalogue_is_too_large():
    for experiment in EXPERIMENTS.values():
        check_cost(experiment)
