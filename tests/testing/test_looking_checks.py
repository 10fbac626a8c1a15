"""Every check of looking fails for a policy with the fault it looks for, and passes for one without."""

import pytest

import driftbandits as db
from driftbandits.testing import policies as checks

LOOKING = (
    checks.looking_decides_nothing,
    checks.summaries_say_what_the_policy_says,
    checks.intervals_are_in_order_or_refused,
    checks.histories_end_with_the_present,
)


class WiderWhenLookedAt(db.Uniform):
    """Its interval changes what it believes."""

    def _interval(self):
        self._sums[0] += 0.01
        return super()._interval()


class CountsTwice(db.Uniform):
    def ask(self, size=None, allowed=None):
        self._plays.add(0, 10**6)
        return super().ask(size, allowed)


class UpsideDown(db.Uniform):
    def _interval(self):
        return super()._interval()[::-1]


class ForgetsTheLast(db.Uniform):
    @property
    def history(self):
        whole = super().history
        return type(whole)(whole.rounds[:-1], whole.arms, whole.names, whole.estimate[:-1], whole.law[:-1], None, None)


@pytest.mark.parametrize("check", LOOKING, ids=lambda check: check.__name__)
def test_a_sound_policy_passes(check):
    check(db.Uniform)


@pytest.mark.parametrize(
    ("check", "faulty", "message"),
    [
        (checks.looking_decides_nothing, WiderWhenLookedAt, "differs"),
        (checks.summaries_say_what_the_policy_says, CountsTwice, "plays are not counted"),
        (checks.intervals_are_in_order_or_refused, UpsideDown, "out of order"),
        (checks.histories_end_with_the_present, ForgetsTheLast, "does not end with the present"),
    ],
)
def test_faults_are_found(check, faulty, message):
    with pytest.raises(AssertionError, match=message):
        check(faulty)


def test_moments_that_stand_still_are_found(monkeypatch):
    monkeypatch.setattr(db.policies.records.HistoryLog, "add", lambda self, look: None)
    with pytest.raises(AssertionError, match="too few moments"):
        checks.histories_end_with_the_present(db.Uniform)
