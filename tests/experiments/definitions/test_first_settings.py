"""What experiments play does not depend on the defaults of the policies."""

import pytest

from driftbandits.configuration.presets import read_settings
from driftbandits.experiments.definitions.first_settings import FIRST_SETTINGS, written_out
from driftbandits.experiments.groups import EXPERIMENTS
from driftbandits.policies import POLICIES
from driftbandits.policies.inputs import CommonSettings, known_settings
from driftbandits.tuning.comparison import comparison_searches
from driftbandits.tuning.constants import CONSTANTS_STUDIES
from driftbandits.tuning.linear import linear_searches
from driftbandits.tuning.oracles import ladders

DECIDED_BY_THE_EXPERIMENT = {"arms", *CommonSettings.__annotations__}


def left_open(name, settings, decided=frozenset()):
    """Settings of the policy, and of the base it wraps, that `settings` do not name."""
    missing = known_settings(POLICIES[name]) - DECIDED_BY_THE_EXPERIMENT - set(settings) - decided
    if "base" in settings:
        sizes = {"window", "period", "discount", "restart"} if name == "BanditOverBandit" else set()
        missing |= left_open(settings["base"], settings["base_settings"], frozenset(sizes))
    return set(missing)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_row_names_every_setting(name):
    for policy in EXPERIMENTS[name].policies:
        assert left_open(policy.name, policy.settings) == set(), policy.label


SEARCHES = [*comparison_searches().values(), *linear_searches().values()]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.name)
def test_every_point_of_a_search_names_every_setting(search):
    for point in range(len(search.points)):
        policy = search.cell(point, (0, 0)).policy
        assert left_open(policy.name, policy.settings) == set()


def test_every_point_of_a_grid_names_every_setting():
    for ladder in ladders():
        policy = ladder.cells(0, 1)[0].policy
        assert left_open(policy.name, policy.settings) == set(), ladder.label


def test_constants_are_searched_with_all_else_written_out():
    values = dict.fromkeys(("sigma", "c0", "c1", "c2", "c3", "c4"), 1.0)
    for space in CONSTANTS_STUDIES.values():
        assert left_open(space.policy, written_out(space.policy, space.settings(values))) == set()


def test_constants_are_written_out_by_number():
    """A preset called "tuned" would follow the next search."""
    for name in ("OPKB", "AdaOPKB", "OPNN", "AdaOPNN"):
        given = FIRST_SETTINGS[name]["constants"]
        read = read_settings(FIRST_SETTINGS[name])["constants"]
        assert set(given) == set(vars(read))


def test_what_is_given_wins_also_in_a_base():
    master = written_out("Master", {"length": 99, "base": "LinUCB", "base_settings": {"beta": 2.0}})
    assert (master["length"], master["c1"]) == (99, 1.0)
    assert (master["base_settings"]["beta"], master["base_settings"]["ridge"]) == (2.0, 0.05)
    assert "window" not in written_out("BanditOverBandit", {})["base_settings"]


def test_a_class_of_ones_own_has_what_it_is_given():
    assert written_out("mine.py:Mine", {"size": 3}) == {"size": 3}
    assert written_out("Master", {"base": "Mine"})["base_settings"] == {}
