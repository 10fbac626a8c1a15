"""Several kinds of requests in one experiment."""

import numpy as np
import pytest

from driftbandits import live
from driftbandits.errors import InputError
from tests.live.replicas import replica_of, require_same


@pytest.fixture
def shop(url, clock):
    with live.open(url, clock=clock) as database:
        yield database.create("prices", arms=["low", "mid", "high"], segments=["mobile", "desktop"], seed=4)


def test_a_decision_is_for_its_segment(shop):
    best = {"mobile": "low", "desktop": "high"}
    for number in range(120):
        segment = ["mobile", "desktop"][number % 2]
        choice = shop.decide(segment=segment)
        shop.reward(choice.id, 0.9 if choice.arm == best[segment] else 0.1)
    replica = replica_of(shop)
    estimate = replica.policy.estimate().reshape(2, 3)
    np.testing.assert_array_equal(estimate.argmax(axis=1), [0, 2])
    shop.arms(retire=["low"])
    assert all(choice.arm != "low" for choice in shop.decide(10, segment="mobile", allowed=["low", "mid"]))
    require_same(shop.view.player(), replica)


@pytest.mark.parametrize("wrong", [None, "tablet", 3])
def test_an_unknown_segment_is_refused(shop, wrong):
    with pytest.raises(InputError, match="segment must be one of 'mobile', 'desktop'"):
        shop.decide(segment=wrong)
    assert shop.summary().decisions == 0


def test_without_segments_there_is_none(url, clock):
    with live.open(url, clock=clock) as database:
        shop = database.create("plain", arms=["a", "b"], seed=1)
        with pytest.raises(InputError, match="no segments"):
            shop.decide(segment="mobile")
