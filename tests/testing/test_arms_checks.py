"""Every check of arms that come and go fails for a policy with the fault it looks for, and passes for one without."""

import numpy as np
import pytest

import driftbandits as db
from driftbandits.policies.decisions import ROW
from driftbandits.testing import states as checks
from driftbandits.testing.states import ARMS


class Means(db.Policy):
    """Plays the arms in proportion to their mean rewards; without faults."""

    def _start(self, horizon):
        self._sums = np.zeros((2, len(self.arms)))

    def _law(self):
        weights = 2.0 + self._estimate()
        return weights / weights.sum()

    def _estimate(self):
        return self._sums[0] / np.maximum(self._sums[1], 1.0)

    def _learn(self, feedback):
        np.add.at(self._sums[0], feedback.arms, feedback.rewards)
        np.add.at(self._sums[1], feedback.arms, 1.0)

    def _export(self):
        return {"sums": self._sums.copy()}

    def _import(self, state):
        self._sums = state.array("sums", np.float64, (2, len(self.arms)))

    def _carry(self, old, change):
        self._sums = change.carry(old._sums, 0.0)


class BeginsAnewEvenWithTheSameArms(Means):
    def with_arms(self, arms):
        return type(self)(arms, horizon=self.horizon, seed=self.seed)


class TakesFromTheOld(Means):
    def _carry(self, old, change):
        super()._carry(old, change)
        old._sums[:] = 0.0


class CountsAnew(Means):
    def _carry(self, old, change):
        super()._carry(old, change)
        self.forgotten = 0


class LosesOpenDecisions(Means):
    def _carry(self, old, change):
        super()._carry(old, change)
        self._pending.load(np.empty(0, dtype=ROW), 0)


class LearnsOfTheGone(Means):
    def _take_rewards(self, rows, rewards):
        super()._take_rewards(rows, rewards)
        self._sums[0, 0] += rewards[rows["arm"] < 0].sum()

    def _take_reward(self, row, reward):
        super()._take_reward(row, reward)
        self._sums[0, 0] += reward if row.arm < 0 else 0.0


class MixesThemUp(Means):
    def _carry(self, old, change):
        super()._carry(old, change)
        self._sums = self._sums[:, ::-1].copy()


class KeepsMoreThanItSaves(Means):
    _bonus = 0.0

    def _law(self):
        weights = 2.0 + self._estimate() + self._bonus
        return weights / weights.sum()

    def _carry(self, old, change):
        super()._carry(old, change)
        self._bonus = np.linspace(0.0, 3.0, len(self.arms))


class PlaysNoNewArm(Means):
    def _law(self):
        weights = (2.0 + self._estimate()) * (np.arange(len(self.arms)) < 10)
        return weights / weights.sum()


class TakesAnyArms(Means):
    def with_arms(self, arms):
        try:
            return super().with_arms(arms)
        except db.errors.InputError:
            return self


FAULTS = {
    checks.the_same_arms_change_nothing: BeginsAnewEvenWithTheSameArms,
    checks.a_policy_stays_as_it_was: TakesFromTheOld,
    checks.ids_and_counters_go_on: CountsAnew,
    checks.decisions_of_before_may_be_told: LosesOpenDecisions,
    checks.rewards_of_gone_arms_teach_nothing: LearnsOfTheGone,
    checks.kept_arms_keep_what_is_known: MixesThemUp,
    checks.with_other_arms_it_can_be_saved: KeepsMoreThanItSaves,
    checks.new_arms_are_played: PlaysNoNewArm,
    checks.wrong_arms_are_refused: TakesAnyArms,
}


def test_every_check_has_its_fault():
    assert set(FAULTS) == set(ARMS)


@pytest.mark.parametrize("check", ARMS, ids=lambda check: check.__name__)
def test_a_fault_is_found(check):
    check(Means)
    with pytest.raises((AssertionError, db.errors.DriftbanditsError)):
        check(FAULTS[check])
