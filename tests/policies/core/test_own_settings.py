"""Settings of a policy of one's own: kept under their names, they are saved, restored and shown."""

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import InputError

ARMS = db.ArmSet(np.linspace(0, 1, 6)[:, None])


class Rated(db.Uniform):
    """A policy of one's own with a setting, kept under its name."""

    def __init__(self, arms, *, rate=0.1, **common):
        super().__init__(arms, **common)
        self.rate = rate


class Forgetful(db.Uniform):
    """One that does not keep its setting."""

    def __init__(self, arms, *, rate=0.1, **common):
        super().__init__(arms, **common)


def test_settings_kept_under_their_names_are_saved_without_a_hook():
    policy = Rated(ARMS, rate=0.5, seed=3)
    assert policy.state_dict()["settings"] == {"rate": 0.5}
    assert Rated.restore(ARMS, policy.state_dict()).rate == 0.5
    assert "rate=0.5" in repr(policy)


def test_settings_that_cannot_be_saved_are_refused_by_name():
    with pytest.raises(InputError, match="Forgetful has a setting 'rate' but no attribute of that name"):
        Forgetful(ARMS).state_dict()
