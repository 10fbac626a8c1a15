import pytest

from driftbandits.errors import InputError
from driftbandits.experiments.definitions.specs import Experiment, PolicySpec
from driftbandits.experiments.running.preflight import check_experiment

SETTINGS = {"horizon": 200, "switches": [100], "size": 10}
BROKEN = """
def broken(seed):
    raise ValueError("this world cannot be")
"""


def test_what_a_users_code_raises_is_said_with_its_place(tmp_path):
    own = tmp_path / "own.py"
    own.write_text(BROKEN)
    experiment = Experiment("x", "x", f"{own}:broken", {}, ())
    with pytest.raises(InputError, match=r"cannot be built: ValueError: this world cannot be \(own.py, line 3\)"):
        check_experiment(experiment)


def test_only_the_policies_asked_for_are_checked():
    policies = (PolicySpec("good", "Uniform"), PolicySpec("bad", "Nothing"))
    experiment = Experiment("x", "x", "switching/1", SETTINGS, policies)
    check_experiment(experiment, labels=["good"])
    with pytest.raises(InputError, match="no policy is called 'Nothing'"):
        check_experiment(experiment)
