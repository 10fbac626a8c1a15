"""Facts of a policy stand on its class, and everything that shows policies reads them there."""

import pytest

import driftbandits as db
from driftbandits.experiments.building import cost_of
from driftbandits.experiments.specs import Cell, PolicySpec, policy_class
from driftbandits.plots.palette import line_styles
from driftbandits.policies.core.facts import Family

OWN = """
import driftbandits as db

class Cousin(db.GPUCB):
    family = "cousins"

    @classmethod
    def seconds(cls, rounds, settings):
        return rounds * settings.get("beta", 1.0)
"""


def test_labels_and_colours_tell_policies_apart_and_every_one_has_a_family():
    kinds = list(db.POLICIES.values())
    assert len({kind.label for kind in kinds}) == len(kinds)
    colours = [kind.colour for kind in kinds if kind.colour is not None]
    assert len(set(colours)) == len(colours)
    assert {kind.family for kind in kinds} == set(Family) - {Family.OTHER}


def test_the_list_follows_the_order_of_families():
    places = [list(Family).index(kind.family) for kind in db.POLICIES.values()]
    assert places == sorted(places)


def test_a_derived_class_has_its_own_name_and_colour_and_the_family_it_comes_from():
    class Mine(db.AdaOPKB):
        pass

    assert (Mine.label, Mine.colour, Mine.of_the_paper) == ("Mine", None, False)
    assert (Mine.family, Mine.reports_changes) == (Family.OPTIMISATION, True)


@pytest.mark.parametrize("name", db.POLICIES)
def test_a_policy_is_drawn_in_its_colour(name):
    kind = db.POLICIES[name]
    if kind.colour is not None:
        assert line_styles([f"{kind.label} (tuned)"])[f"{kind.label} (tuned)"].colour == kind.colour


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


def test_facts_of_a_users_class_count_and_a_file_that_is_gone_leaves_none(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    name = f"{file}:Cousin"
    assert (policy_class(name).label, policy_class(name).family) == ("Cousin", "cousins")
    assert cost_of(Cell("switching/1", {"horizon": 50}, PolicySpec("a", name, {"beta": 2.0}), 0)) == 100.0
    file.unlink()
    assert policy_class(name) is db.Policy
    file.write_text("raise SystemExit('not today')")
    assert policy_class(name) is db.Policy
