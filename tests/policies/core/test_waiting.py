"""Settings of waiting: what they are read as, what is refused and how, what is shown and saved."""

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import InputError
from driftbandits.policies.core.scale import RewardScale
from driftbandits.policies.core.waiting import read_waiting

ARMS = db.ArmSet(np.linspace(0, 1, 4)[:, None])
UNIT = RewardScale(0.0, 1.0)


def test_patience_implies_the_order_asked():
    assert read_waiting("told", 5, "forget", UNIT).order == "asked"
    assert read_waiting("told", None, 0.5, UNIT).order == "told"


@pytest.mark.parametrize(
    ("missing", "value"), [(0, -1.0), (np.float64(0.5), 0.0), (1.0, 1.0), ("forget", None), (None, None)]
)
def test_missing_is_a_reward_in_the_users_units(missing, value):
    assert read_waiting("asked", None, missing, UNIT).value == value


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"order": "first"}, "order must be 'told' or 'asked', got 'first'"),
        ({"patience": 600}, "patience=600 needs missing"),
        ({"patience": 0, "missing": 0.0}, "patience must be at least 1, got 0"),
        ({"patience": -1, "missing": 0.0}, "patience must be at least 1, got -1"),
        ({"patience": True, "missing": 0.0}, "patience must be at least 1, got True"),
        ({"patience": 1.5, "missing": 0.0}, "patience must be a whole number, got 1.5"),
        ({"patience": "long", "missing": 0.0}, "patience must be a whole number"),
        ({"missing": 1.01}, "missing must be 'forget' or a number within reward_range=(0, 1), got 1.01"),
        ({"missing": float("nan")}, "got nan"),
        ({"missing": False}, "got False"),
        ({"missing": "drop"}, "missing must be 'forget', got 'drop'"),
        ({"missing": [0.0]}, "missing must be 'forget' or a number"),
    ],
)
def test_what_cannot_be_is_refused_with_the_value_and_the_cure(settings, said):
    with pytest.raises(InputError) as error:
        db.Uniform(ARMS, reward_range=(0, 1), **settings)
    assert said in str(error.value)


def test_patience_without_missing_says_why():
    with pytest.raises(InputError, match="forgetting the rest teaches that all succeed"):
        db.Uniform(ARMS, patience=5)


def test_settings_are_shown_where_they_are_not_usual():
    assert "order" not in repr(db.Uniform(ARMS))
    assert repr(db.Uniform(ARMS, order="asked")).endswith("seed=0, order='asked')")
    assert repr(db.Uniform(ARMS, patience=9, missing=0)).endswith("seed=0, patience=9, missing=0.0)")


def test_settings_are_restored():
    policy = db.Uniform.restore(ARMS, db.Uniform(ARMS, patience=9, missing="forget").state_dict())
    assert (policy.order, policy.patience, policy.missing) == ("asked", 9, "forget")


def test_expire_without_missing_is_refused():
    policy = db.Uniform(ARMS, reward_range=(0, 1))
    with pytest.raises(InputError, match="build it with missing=0, say"):
        policy.expire(policy.ask())
    assert policy.pending == 1
