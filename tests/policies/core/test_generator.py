"""A policy that samples its law: the generator that hooks may draw from, and the faults of those that take another."""

import numpy as np
import pytest

import driftbandits as db

ARMS = db.ArmSet(np.linspace(0, 1, 12)[:, None])


class Sampling(db.Policy):
    """Plays the best arm of one noisy look at the means, and learns rewards with noise of its own added."""

    def _start(self, horizon):
        self._sums = np.zeros((2, len(self.arms)))

    def _estimate(self):
        return self._sums[0] / np.maximum(self._sums[1], 1.0)

    def _law(self):
        looks = self._generator("looks").normal(self._estimate(), 1.0, size=(20, len(self.arms)))
        return np.bincount(looks.argmax(axis=1), minlength=len(self.arms)) / 20

    def _stamp(self):
        return self.rounds, 0

    def _learn(self, feedback):
        for row, reward in feedback.rows():
            self._sums[:, row.arm] += reward + 0.01 * self._generator("blur", row.id).standard_normal(), 1.0

    def _export(self):
        return {"sums": self._sums.copy()}

    def _import(self, state):
        self._sums = state.array("sums", np.float64, (2, len(self.arms)))


class Unnumbered(Sampling):
    """Says that all laws between two rewards are one."""

    def _stamp(self):
        return self._version, 0


class KeepsItsGenerator(Sampling):
    """Draws on and on from one generator, so that looking at the law changes it."""

    def _start(self, horizon):
        super()._start(horizon)
        self._kept = np.random.default_rng(self.seed)

    def _import(self, state):
        super()._import(state)
        self._kept = np.random.default_rng(self.seed)

    def _generator(self, purpose, number=None):
        return self._kept


class BlursByRound(Sampling):
    """Names the noise of a reward by the round in which it is told."""

    def _generator(self, purpose, number=None):
        return super()._generator(purpose)


def failing(kind):
    failed = []
    for check in db.testing.POLICY_CHECKS:
        try:
            check(kind)
        except AssertionError:
            failed.append(check.__name__)
    return failed


@pytest.mark.parametrize("check", db.testing.POLICY_CHECKS, ids=lambda check: check.__name__)
def test_a_policy_that_samples_its_law_passes(check):
    check(Sampling)


def test_laws_that_share_a_number_are_found():
    assert failing(Unnumbered) == ["decisions_of_one_law_share_it"]


def test_a_generator_that_moves_on_is_found():
    assert {"law_and_estimate_change_nothing", "restored_at_any_round_goes_on"} <= set(failing(KeepsItsGenerator))


def test_rewards_are_blurred_by_their_decision_whenever_they_are_told():
    for kind, alike in ((Sampling, True), (BlursByRound, False)):
        late, prompt = kind(ARMS, seed=0), kind(ARMS, seed=0)
        for policy in (late, prompt):
            policy.law()
        choice = prompt.ask()
        prompt.tell(choice, 0.5)
        assert late.ask() == choice
        late.forget(late.ask(size=5))
        late.tell(choice, 0.5)
        assert np.array_equal(late.estimate(), prompt.estimate()) is alike


def test_generators_differ_by_seed_purpose_and_number_and_begin_anew():
    policy, other = Sampling(ARMS, seed=0), Sampling(ARMS, seed=1)

    def numbers(of, *names):
        return of._generator(*names).random(4).tolist()

    first = numbers(policy, "looks")
    assert first == numbers(policy, "looks") == numbers(policy, "looks", 0)
    assert first != policy._draws.random(4).tolist()
    for different in (numbers(policy, "blur"), numbers(policy, "looks", 1), numbers(other, "looks")):
        assert different != first
    policy.ask()
    assert numbers(policy, "looks") == numbers(policy, "looks", 1) != first
