"""A clock that is put far ahead closes nothing: the time goes on from before, and health says so."""

import time

from driftbandits import live
from driftbandits.live.requests import GuardedClock

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
