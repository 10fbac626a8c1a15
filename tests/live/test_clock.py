"""A clock that is put far ahead closes nothing: the time goes on from before, and health says so."""

import time

import pytest
from typer.testing import CliRunner

from driftbandits import live
from driftbandits.cli.app import app
from driftbandits.live.requests import GuardedClock
from tests.live.conftest import Clock
from tests.live.replicas import replica_of, require_same, snapshot_now

SECOND = 1_000_000_000  # nanoseconds
MONTH = 30 * 86_400 * SECOND


class Clocks:
    """The time of day, and the time since the machine's start."""

    def __init__(self):
        self.wall, self.steady = 1_700_000_000 * SECOND, 5 * SECOND

    def pass_seconds(self, seconds):
        self.wall += seconds * SECOND
        self.steady += seconds * SECOND

    def guarded(self):
        return GuardedClock(lambda: self.wall, lambda: self.steady)


def test_a_jump_ahead_is_not_followed_until_the_clock_is_right():
    clocks = Clocks()
    clock = clocks.guarded()
    begun = clock()
    clocks.wall += MONTH
    clocks.pass_seconds(10)
    assert (clock() - begun, clock.ahead) == (10_000_000, MONTH // 1000)
    clocks.wall -= MONTH
    clocks.pass_seconds(10)
    assert (clock() - begun, clock.ahead) == (20_000_000, 0)


def test_small_steps_and_steps_back_are_followed():
    clocks = Clocks()
    clock = clocks.guarded()
    begun = clock()
    for seconds in (250, 250, -3_600):
        clocks.wall += seconds * SECOND
        assert clock() * 1000 == clocks.wall
    assert clock() - begun == -3_100_000_000
    assert abs(live.requests.clock() - time.time_ns() // 1000) < 60_000_000


def test_without_a_steady_clock_the_time_is_the_wall_clock():
    clocks = Clocks()
    clock = GuardedClock(lambda: clocks.wall, None)
    clock()
    clocks.wall += MONTH
    assert clock() * 1000 == clocks.wall


def test_nothing_runs_out_of_patience_by_a_jump(tmp_path):
    clocks = Clocks()
    with live.open(f"sqlite:///{tmp_path}/shop.db", clock=clocks.guarded()) as database:
        shop = database.create("a", arms=["x", "y"], policy="DiscountedUCB", patience=60, missing=0.0, seed=0)
        first = shop.decide()
        clocks.wall += MONTH
        clocks.pass_seconds(30)
        shop.decide()
        assert any("jumped 2,592,000 s ahead" in sentence for sentence in shop.summary().health)
        assert shop.reward(first.id, 1.0).accepted == 1
        clocks.wall -= MONTH
        clocks.pass_seconds(61)
        shop.decide()
        assert (shop.summary().expired, shop.summary().open) == (1, 1)
        assert not any("ahead" in sentence for sentence in shop.summary().health)


@pytest.mark.parametrize("policy", ["DiscountedUCB", "AutoBandit"])
def test_a_journal_that_is_ahead_is_put_back(tmp_path, policy):
    """The clock was ahead when the process began; when it is right nothing would run out of patience for a month."""
    url, clock = f"sqlite:///{tmp_path}/shop.db", Clock()
    clock.now = time.time_ns() // 1000 + 30 * 86_400 * 10**6
    with live.open(url, clock=clock) as database:
        shop = database.create("a", arms=["x", "y"], policy=policy, patience=60, missing=0.0, seed=0)
        ahead = shop.decide(2)
    assert "put back by 2,5" in CliRunner().invoke(app, ["db", "repair-clock", url]).output
    assert "not ahead" in CliRunner().invoke(app, ["db", "repair-clock", url]).output
    clock.now = time.time_ns() // 1000 + 30_000_000
    with live.open(url, clock=clock) as database:
        shop = database.experiment("a")
        assert shop.reward(ahead[0], 1.0).accepted == 1  # its id holds
        later = shop.decide()
        clock.pass_seconds(45)
        shop.decide()
        assert (shop.summary().expired, shop.summary().open) == (1, 2)  # the other one from before
        clock.pass_seconds(20)
        assert (shop.reward(later, 1.0).accepted, shop.summary().expired) == (0, 2)
        snapshot_now(shop)
        require_same(shop.view.player(), replica_of(shop))
        assert shop.view.check().verdict == "identical"
