import dataclasses

import pytest

from driftbandits.errors import InputError
from driftbandits.experiments.definitions.specs import Experiment, PolicySpec
from driftbandits.experiments.running.preflight import check_experiment

SETTINGS = {"horizon": 200, "switches": [100], "size": 10}
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
    experiment = Experiment("x", "x", "switching/1", SETTINGS, policies)
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
        check_experiment(Experiment("x", "x", "switching/1", SETTINGS, policies))
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
