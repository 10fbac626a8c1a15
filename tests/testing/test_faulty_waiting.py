"""The checks of late rewards fail for policies that break what they promise, one fault each."""

import numpy as np
import pytest

import driftbandits as db
from driftbandits.policies.algorithm import UNTIL_TOLD
from driftbandits.testing import POLICY_CHECKS
from driftbandits.testing.policies import masked_batches_equal_single_asks
from tests.policies.base_class_checks import WAITING


class Sound(db.Policy):
    """Softmax of the means told: a law that moves with rewards alone."""

    def _start(self, horizon):
        self._sums = np.zeros((2, len(self.arms)))

    def _estimate(self):
        return self._sums[0] / np.maximum(self._sums[1], 1.0)

    def _law(self):
        weights = np.exp(2.0 * self._estimate())
        return weights / weights.sum()

    def _learn(self, feedback):
        np.add.at(self._sums[0], feedback.arms, feedback.rewards)
        np.add.at(self._sums[1], feedback.arms, 1.0)

    def _export(self):
        return {"sums": self._sums.copy()}

    def _import(self, state):
        self._sums = state.array("sums", np.float64, (2, len(self.arms)))

    def _quiet_rounds(self):
        return UNTIL_TOLD


class Impatient(Sound):
    """Learns rewards as they come, whatever the order."""

    def _must_wait(self, ident):
        return False


class Forgetful(Sound):
    """Loses what is held when it is saved."""

    def _state(self):
        return {**super()._state(), "held": {"rows": self._held.rows()[:0], "rewards": np.zeros(0), "warned": False}}


class Endless(Sound):
    """Its patience never runs out."""

    def _close_old(self):
        if self._pending.fallen:
            self._pending.pick_up()


class Unbroken(Sound):
    """Asks whole batches from one law, whatever closes meanwhile."""

    def _rounds_to_close(self):
        return UNTIL_TOLD


class Drifting(Sound):
    """Says that its law stays until a reward is told, and turns it with every round."""

    def _law(self):
        return np.roll(super()._law(), self.rounds)

    def _stamp(self):
        return self.rounds, 0


class Strict(Sound):
    """Refuses rewards of decisions that have expired."""

    def _locate(self, given):
        where, numbers, good = super()._locate(given)
        if not good.all():
            raise db.errors.UnknownDecisionError("decision is closed already")
        return where, numbers, good


class Careless(Sound):
    """Takes any settings."""

    def __init__(self, arms, **settings):
        super().__init__(arms, **{k: v for k, v in settings.items() if k not in ("order", "patience", "missing")})


class TwoFaced(Sound):
    """Plays otherwise in the order asked."""

    def _law(self):
        return super()._law() if self.order == "told" else np.full(len(self.arms), 1.0 / len(self.arms))


FAULTS = {
    Impatient: "quick_rewards_wait_if_asked",
    Forgetful: "held_rewards_are_state",
    Endless: "patience_closes_as_missing",
    Unbroken: "batches_end_where_patience_runs_out",
    Drifting: "masked_batches_equal_single_asks",
    Strict: "late_rewards_are_counted",
    Careless: "wrong_waiting_is_refused",
    TwoFaced: "told_at_once_both_orders_are_one",
}
PAIRS = [(Impatient, "the_order_told_does_not_matter_if_asked"), (Endless, "dropped_decisions_are_not_waited_for")]
CHECKS = {check.__name__: check for check in (*WAITING, masked_batches_equal_single_asks)}


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
def test_the_sound_one_passes(check):
    check(Sound)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_is_found(kind):
    with pytest.raises((AssertionError, db.DriftbanditsError)):
        CHECKS[FAULTS[kind]](kind)


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_every_other_check_can_fail_too(kind, name):
    with pytest.raises((AssertionError, db.DriftbanditsError)):
        CHECKS[name](kind)
    assert set(CHECKS) == {*FAULTS.values(), *(named for _, named in PAIRS)}
