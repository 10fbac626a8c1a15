"""No law that is none is ever drawn from, whoever declares it."""

from __future__ import annotations

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import InputError, LawError, StateError
from driftbandits.policies import POLICIES
from driftbandits.policies.core.laws import TOLERANCE, check_law, freeze, is_frozen
from driftbandits.testing.helpers import require_equal
from driftbandits.types import read_only

ARMS = db.ArmSet([[0.0], [0.5], [1.0]])

WRONG = {
    "a list": ([0.5, 0.25, 0.25], "is a list, not a NumPy array"),
    "None": (None, "is a NoneType"),
    "another shape": (np.array([0.5, 0.5]), r"has shape \(2,\), not \(3,\)"),
    "a column": (np.full((3, 1), 1 / 3), r"has shape \(3, 1\)"),
    "whole numbers": (np.array([1, 0, 0]), "entries of type int64"),
    "not a number": (np.array([0.5, np.nan, 0.5]), "nan at arm 1"),
    "infinite": (np.array([np.inf, 0.0, 0.0]), "inf at arm 0"),
    "negative": (np.array([0.6, 0.6, -0.2]), "-0.2 at arm 2"),
    "two per arm": (np.full(3, 2.0), "sums to 6"),
    "nothing": (np.zeros(3), "sums to 0"),
    "a little too much": (np.array([0.5, 0.25, 0.25 + 3 * TOLERANCE]), "sums to 1.000003"),
}


class Declares(db.Uniform):
    """Plays whatever law it is given."""

    given = freeze(np.full(3, 1 / 3))

    def _law(self):
        return self.given


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_law_is_refused_naming_class_and_fault(name, monkeypatch):
    law, fault = WRONG[name]
    policy = Declares(ARMS, seed=0)
    policy.tell(policy.ask(), 0.5)
    before = policy.state_dict()
    monkeypatch.setattr(Declares, "given", law)
    for call in (policy.ask, policy.law, lambda: policy.ask(size=3)):
        with pytest.raises(LawError, match=f"Declares in round 1 .*{fault}"):
            call()
    assert policy.rounds == 1
    monkeypatch.setattr(Declares, "given", np.full(3, 1 / 3))
    require_equal(policy.state_dict(), before)
    assert policy.ask().id == 1


def test_a_wrong_law_under_a_mask_is_refused(monkeypatch):
    policy = Declares(ARMS, seed=0)
    monkeypatch.setattr(Declares, "given", np.array([np.nan, 0.5, 0.5]))
    with pytest.raises(LawError, match="nan"):
        policy.ask(allowed=[0, 1])


def test_a_law_is_looked_at_once(monkeypatch):
    looked = []
    monkeypatch.setattr("driftbandits.policies.core.hooks.check_law", lambda law, **_: looked.append(id(law)))
    policy = Declares(ARMS, seed=0)
    for _ in range(20):
        policy.ask()
    assert len(looked) == 1


def test_rounding_within_the_tolerance_is_no_fault():
    for off in (-0.9 * TOLERANCE, 0.0, 0.9 * TOLERANCE):
        check_law(np.array([0.5, 0.5 + off]), arms=2, policy="Mine", now=0)


@pytest.mark.parametrize("name", ["GPUCB", "TimeVaryingGPUCB", "WeightedGPUCB", "LinUCB"])
def test_an_optimist_that_expects_nan_has_no_law(name, monkeypatch):
    policy = POLICIES[name](ARMS, horizon=50, seed=0)
    policy.tell(policy.ask(), 0.5)
    monkeypatch.setattr(type(policy), "_index", lambda self: np.array([0.0, np.nan, 1.0]))
    for call in (policy.ask, policy.law, lambda: policy.ask(size=2), lambda: policy.ask(allowed=[0, 1])):
        with pytest.raises(LawError, match=f"{name} expects nan of arm 1 in round 1"):
            call()


class WritesInPlace(db.Uniform):
    """Keeps one array as its law and writes to it: what a policy of one's own may well do."""

    def _start(self, horizon):
        super()._start(horizon)
        self._kept = np.array([1.0, 0.0, 0.0])

    def _law(self):
        return self._kept

    def _learn_one(self, row, reward):
        self._kept[:] = np.roll(self._kept, 1) if reward < 0.9 else np.nan


class WritesUnderAView(WritesInPlace):
    """Gives a view that cannot be written to, of an array that can."""

    def _start(self, horizon):
        super()._start(horizon)
        self._view = read_only(self._kept)

    def _law(self):
        return self._view


@pytest.mark.parametrize("kind", [WritesInPlace, WritesUnderAView], ids=lambda kind: kind.__name__)
def test_a_law_written_to_is_the_one_drawn_from_and_looked_at(kind):
    policy = kind(ARMS, seed=0)
    for arm in (0, 1, 2, 0):
        choice = policy.ask()
        assert (choice.arm, choice.probability) == (arm, 1.0)
        policy.tell(choice, 0.5)
    policy.tell(policy.ask(), 0.95)
    with pytest.raises(LawError, match=f"{kind.__name__} in round 5 has a probability of nan"):
        policy.ask()


@pytest.mark.parametrize("name", ["OPKB", "AdaOPKB", "AutoBandit", "LinearExp3", "Uniform"])
def test_laws_kept_from_round_to_round_cannot_be_written_to(name):
    policy = POLICIES[name](ARMS, horizon=100, seed=0)
    policy.ask()
    assert is_frozen(policy._law())


def test_of_several_rounds_those_before_a_wrong_law_are_decided(monkeypatch):
    policy = db.TimeVaryingGPUCB(ARMS, seed=0)  # whose law moves with every round
    monkeypatch.setattr(type(policy), "_index", lambda self: np.full(3, np.nan) if self.rounds == 3 else np.arange(3.0))
    with pytest.raises(LawError, match="in round 3, so it has no law; nothing was decided in it"):
        policy.ask(size=5)
    assert (policy.rounds, policy.pending) == (3, 3)


def test_no_law_at_all_is_refused_in_the_first_round_too():
    class Silent(db.Uniform):
        def _law(self):
            return None

    with pytest.raises(LawError, match="the law of Silent in round 0 is a NoneType"):
        Silent(ARMS, seed=0).ask()


class Estimates(db.Uniform):
    """Estimates, and stays steady, as it is told."""

    given = 0.0
    steady = 1

    def _estimate(self):
        return self.given

    def _steady(self):
        return self.steady


def test_an_estimate_in_another_form_is_converted(monkeypatch):
    monkeypatch.setattr(Estimates, "given", [0, 0.5, 1])
    assert Estimates(ARMS, seed=0, reward_range=(0.0, 2.0)).estimate().tolist() == [1.0, 1.5, 2.0]


@pytest.mark.parametrize("wrong", [None, 0.5, [0.0, 1.0], [0.0, 1.0, "a"], [0.0, 1.0, np.nan], np.zeros((3, 1))])
def test_a_wrong_estimate_is_refused_naming_class_and_value(monkeypatch, wrong):
    monkeypatch.setattr(Estimates, "given", wrong)
    with pytest.raises(InputError, match=r"_estimate of Estimates gave .* one finite number per arm"):
        Estimates(ARMS, seed=0).estimate()


@pytest.mark.parametrize("wrong", [None, 0, -3, 2.5])
def test_a_law_that_stays_for_no_rounds_would_never_end(monkeypatch, wrong):
    monkeypatch.setattr(Estimates, "steady", wrong)
    for use in (lambda policy: policy.ask(size=3), lambda policy: policy.steady_rounds()):
        with pytest.raises(InputError, match="_steady of Estimates gave"):
            use(Estimates(ARMS, seed=0))


@pytest.mark.parametrize("wrong", [None, [1, 2]])
def test_a_state_that_is_no_mapping_is_refused_by_name(tmp_path, wrong):
    class Saved(db.Uniform):
        def _export(self):
            return wrong

    policy = Saved(ARMS, seed=0)
    policy.ask()
    with pytest.raises(StateError, match="_export of Saved gave"):
        policy.save(tmp_path / "state.npz")
