"""Very many arms that have names alone: learned from, or refused at once."""

import numpy as np
import pytest

from driftbandits import live
from driftbandits.arms.arm_set import ArmSet
from driftbandits.errors import InputError
from driftbandits.live.definition import Definition, define

NAMES = [f"arm {number}" for number in range(2_500)]


def test_what_a_policy_would_refuse_later_is_refused_before_anything_is_built(monkeypatch):
    monkeypatch.setattr("driftbandits.policies.auto.policy.AutoBandit.law", lambda _: pytest.fail("it was built"))
    with pytest.raises(InputError, match=r"at most 2,000 arms .* got 2,500; .* policy='DiscountedUCB'"):
        define(arms=NAMES)
    with pytest.raises(InputError, match=r"at most 60 arms"):
        define(arms=NAMES[:61], settings={"rank": 30})


def test_others_learn_from_them_and_retiring_one_builds_nothing(tmp_path, monkeypatch):
    build, built = Definition.build_arms, []

    def noted(self, *given):
        if len(self.arms) == len(NAMES):  # other tests' writers may still be busy in this process
            built.append(given)
        return build(self, *given)

    with live.open(f"sqlite:///{tmp_path}/shop.db") as database:
        shop = database.create("shop", arms=NAMES, policy="DiscountedUCB", seed=0)
        assert shop.reward(shop.decide(), 0.5).accepted == 1
        monkeypatch.setattr(Definition, "build_arms", noted)
        assert "arm 7" in shop.arms(retire="arm 7")["retired"]
        assert shop.decide(allowed=["arm 7", "arm 8"]).arm == "arm 8"
        assert not built, shop.summary().health


def test_the_identity_is_factored_as_any_other_matrix():
    """By what is quick for it, and by the general way, which a matrix that is nearly the identity takes."""

    nearly = np.eye(40)
    nearly[3, 3] = 1.0 - 1e-15
    quick, general = (ArmSet(np.arange(40.0)[:, None], matrix, NAMES[:40]) for matrix in (np.eye(40), nearly))
    np.testing.assert_allclose(quick.features @ quick.features.T, general.features @ general.features.T, atol=1e-12)
    assert sorted(quick.pivots) == sorted(general.pivots)
    assert quick.residual == general.residual == 0.0
    assert quick.fingerprint() == general.fingerprint()
