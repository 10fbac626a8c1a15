"""Facts of a policy stand on its class, and everything that shows policies reads them there.

No law that is none is ever drawn from, whoever declares it.

A policy that samples its law: the generator that hooks may draw from, and the faults of those that take another.
"""

from __future__ import annotations

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import InputError, LawError, StateError
from driftbandits.experiments.building import TIMINGS, cost_of
from driftbandits.experiments.specs import Cell, PolicySpec, policy_class
from driftbandits.plots.frame import COLOURS, OTHER_COLOURS, line_styles
from driftbandits.policies import LABELS, POLICIES, policy_label
from driftbandits.policies.algorithm import TOLERANCE, Family, check_law, freeze, is_frozen
from driftbandits.testing.helpers import require_equal
from driftbandits.types import read_only

OWN = """
import driftbandits as db

class Cousin(db.GPUCB):
    family = "cousins"
"""


def test_labels_and_colours_tell_policies_apart_and_every_one_has_a_family():
    kinds = list(db.POLICIES.values())
    assert len({policy_label(kind) for kind in kinds}) == len(kinds)
    assert set(LABELS) < set(db.POLICIES)
    colours = [COLOURS[kind.__name__] for kind in kinds if kind.__name__ in COLOURS]
    assert len(set(colours)) == len(colours) > 10
    assert {kind.family for kind in kinds} == set(Family) - {Family.OTHER}


def test_the_list_follows_the_order_of_families():
    places = [list(Family).index(kind.family) for kind in db.POLICIES.values()]
    assert places == sorted(places)


def test_a_derived_class_has_its_own_name_and_the_family_it_comes_from():
    class Mine(db.AdaOPKB):
        pass

    assert policy_label(Mine) == "Mine"
    assert (Mine.family, Mine.reports_changes) == (Family.OPTIMISATION, True)


@pytest.mark.parametrize("name", db.POLICIES)
def test_a_policy_is_drawn_in_its_colour(name):
    label = f"{policy_label(db.POLICIES[name])} (tuned)"
    assert line_styles([label])[label].colour == COLOURS.get(name, OTHER_COLOURS[0])


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("AdaOPNN", {}, True),
        ("OPNN", {"train": False}, False),
        ("NeuralUCB", {"width": "infinite"}, False),
        ("GPUCB", {}, False),
        ("nobody", {}, False),
    ],
)
def test_who_trains_depends_on_the_settings(name, settings, expected):
    assert policy_class(name).trains(settings) is expected


def test_a_wider_or_deeper_network_costs_more_and_an_untrained_one_little_more_than_a_kernel():
    def cost(name, **settings):
        return cost_of(Cell("switching/1", {}, PolicySpec("a", name, settings), 0))

    assert cost("OPNN", width=256) < cost("OPNN") < cost("OPNN", depth=5) < cost("AdaOPNN", depth=5)
    assert cost("OPKB") < cost("OPNN", train=False) < 3 * cost("OPKB") < cost("NeuralUCB")


def test_timings_are_those_of_policies_and_a_wrapper_costs_what_its_base_does():
    assert set(TIMINGS) - {"Policy"} <= set(db.POLICIES)

    def cost(name, **settings):
        return cost_of(Cell("switching/1", {}, PolicySpec("a", name, settings), 0))

    assert cost("Master") == pytest.approx(cost("GPUCB") + 0.35)
    assert cost("Master", base="LinUCB") == pytest.approx(cost("LinUCB") + 0.35)


def test_facts_of_a_users_class_count_and_a_file_that_is_gone_leaves_none(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    name = f"{file}:Cousin"
    assert (policy_label(policy_class(name)), policy_class(name).family) == ("Cousin", "cousins")
    assert cost_of(Cell("switching/1", {"horizon": 50}, PolicySpec("a", name), 0)) == pytest.approx(50 * 30e-6)
    file.unlink()
    assert policy_class(name) is db.Policy
    file.write_text("raise SystemExit('not today')")
    assert policy_class(name) is db.Policy


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
    monkeypatch.setattr("driftbandits.policies.algorithm.check_law", lambda law, **_: looked.append(id(law)))
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


TWELVE_ARMS = db.ArmSet(np.linspace(0, 1, 12)[:, None])


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
        late, prompt = kind(TWELVE_ARMS, seed=0), kind(TWELVE_ARMS, seed=0)
        for policy in (late, prompt):
            policy.law()
        choice = prompt.ask()
        prompt.tell(choice, 0.5)
        assert late.ask() == choice
        late.forget(late.ask(size=5))
        late.tell(choice, 0.5)
        assert np.array_equal(late.estimate(), prompt.estimate()) is alike


def test_generators_differ_by_seed_purpose_and_number_and_begin_anew():
    policy, other = Sampling(TWELVE_ARMS, seed=0), Sampling(TWELVE_ARMS, seed=1)

    def numbers(of, *names):
        return of._generator(*names).random(4).tolist()

    first = numbers(policy, "looks")
    assert first == numbers(policy, "looks") == numbers(policy, "looks", 0)
    assert first != policy._draws.random(4).tolist()
    for different in (numbers(policy, "blur"), numbers(policy, "looks", 1), numbers(other, "looks")):
        assert different != first
    policy.ask()
    assert numbers(policy, "looks") == numbers(policy, "looks", 1) != first
