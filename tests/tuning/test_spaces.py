"""Spaces of one's own, as files and mappings."""

import numpy as np
import pytest

from driftbandits import POLICIES, ArmSet, create_policy
from driftbandits.errors import InputError
from driftbandits.policies import policy_label
from driftbandits.tuning.own import EQUAL_RUNGS
from driftbandits.tuning.spaces import Space, read_space, trial_points
from reproduction.catalogue import GPUCB_PUBLISHED, SW_GPUCB_PUBLISHED, tuned_settings, written_out
from reproduction.spaces import SPACES
from reproduction.tuning import CONSTANTS_STUDIES, comparison_searches

COUNT = EQUAL_RUNGS[0][0]


@pytest.mark.parametrize("label", SPACES)
def test_points_are_fixed_inside_their_ranges_and_usable(label):
    space = SPACES[label]
    points = trial_points(space, COUNT)
    assert points == trial_points(space, COUNT)
    assert points[0].origin == "default"
    assert points[0].values == {}
    assert len(points) == (COUNT if space.ranges else 1)
    arms = ArmSet(np.eye(3))
    for point in points:
        create_policy(space.policy, arms, horizon=100, seed=0, **space.settings(point.values))
        for name, value in point.values.items():
            low, high = space.ranges[name]
            assert low <= value <= high


def test_points_are_those_of_the_first_search():
    """The sequence must not move, or what was found with it is not found again."""
    points = trial_points(SPACES["SW-UCB (plain)"], COUNT)
    assert dict(points[1].values) == {"scale": 0.403, "window": 8480.0}
    assert {"scale": 0.769, "window": 3160.0} in [dict(point.values) for point in points]


@pytest.mark.parametrize(
    ("label", "settings"),
    [
        ("GPUCB", GPUCB_PUBLISHED.settings),
        ("SW-GPUCB", SW_GPUCB_PUBLISHED.settings),
        ("WGPUCB", written_out("WeightedGPUCB", {"ridge": 0.01, "scale": 0.5, "discount": 0.9996})),
    ],
)
def test_published_settings_take_the_place_of_the_last_point(label, settings):
    space = SPACES[label]
    points = trial_points(space, COUNT)
    assert points[-1].origin == "published"
    assert written_out(space.policy, space.settings(points[-1].values)) == settings
    unpublished = Space(space.policy, space.ranges, space.settings)
    assert points[:-1] == trial_points(unpublished, COUNT)[:-1]
    assert [point.origin for point in points].count("published") == 1


def test_a_cover_is_searched_from_a_few_arms_to_all_of_the_world():
    space = SPACES["DAL-GP-UCB"]
    covers = [space.settings(point.values)["cover"] for point in trial_points(space, COUNT)[1:]]
    assert all(isinstance(cover, int) for cover in covers)
    assert min(covers) < 15
    assert 80 < max(covers) <= 100


def test_a_search_for_the_default_leaves_it_out():
    points = trial_points(CONSTANTS_STUDIES["constants"], 8, default=False)
    assert [point.origin for point in points] == ["search"] * 8


def test_labels_of_the_comparison_are_those_of_its_classes():
    assert set(tuned_settings()["d=10"]) == set(SPACES)
    for label, space in SPACES.items():
        assert policy_label(POLICIES[space.policy]) in label


def test_every_policy_with_something_to_search_has_the_same_budget():
    budgets = {search.cells for search in comparison_searches().values() if search.space.ranges}
    assert budgets == {80}
    assert {search.cells for search in comparison_searches().values() if not search.space.ranges} == {16}


KNOWN = frozenset({"rate", "window", "noise"})
GIVEN = {
    "label": "mine",
    "ranges": {"rate": [0.001, 0.1], "window": [100, 10_000]},
    "whole": ["window"],
    "fixed": {"noise": 0.2},
}


def test_points_lie_in_the_ranges_whole_where_asked_with_what_is_fixed():
    named = read_space(GIVEN, "my.py:Mine", known=KNOWN)
    assert (named.label, named.space.policy) == ("mine", "my.py:Mine")
    points = trial_points(named.space, 32)
    assert named.space.settings(points[0].values) == {"noise": 0.2}
    for point in points[1:]:
        settings = named.space.settings(point.values)
        assert 0.001 <= settings["rate"] <= 0.1
        assert type(settings["window"]) is int
        assert 100 <= settings["window"] <= 10_000
        assert settings["noise"] == 0.2
    below = sum(point.values["rate"] < 0.01 for point in points[1:])
    assert 14 <= below <= 18  # half of them: it is searched in logarithms


def test_a_file_says_the_same_as_a_mapping_and_the_label_is_that_of_the_class_by_default(tmp_path):
    file = tmp_path / "space.yaml"
    file.write_text("ranges: {rate: [1e-3, 0.1]}\n")
    named = read_space(file, "folder/my.py:Mine", known=None)
    assert named.label == "Mine"
    assert named.space.ranges == {"rate": (0.001, 0.1)}


def test_all_that_is_wrong_is_said_at_once_with_its_place(tmp_path):
    file = tmp_path / "space.yaml"
    file.write_text(
        "ranges:\n  rat: [0.5, 0.1]\n  window: [9.5, 20]\n  seed: [1, 2]\nwhole: [windw, window]\nfixed: {window: 3}\n"
    )
    with pytest.raises(InputError) as caught:
        read_space(file, "my.py:Mine", known=KNOWN)
    said = [line.removeprefix(str(file)) for line in str(caught.value).splitlines()]
    assert said == [
        ":2:3: Mine has no setting 'rat'; did you mean 'rate'? known: noise, rate, window",
        ":4:3: Mine cannot be given 'seed': the seeds are those of the experiment",
        ":2:3: rat must go from the lower end to the higher, got [0.5, 0.1]",
        ":3:3: window is both searched and fixed; leave out one of the two",
        ":3:3: window takes whole numbers, so must its ends, got [9.5, 20]",
        ":5:9: 'windw' is not searched; did you mean 'window'? ranges: rat, window, seed",
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rages": {}}, "did you mean 'ranges'"),
        ({"ranges": {}}, "ranges"),
        ({"ranges": {"rate": [0, 1]}}, r"ranges.rate\[0\]: input should be greater than 0"),
        ({"ranges": {"rate": [1, 2, 3]}}, "ranges.rate"),
        ({"ranges": {"rate": [1, float("inf")]}}, "finite"),
        ({"ranges": {"rate": ["a", 1]}}, "ranges.rate"),
        ({"label": " "}, "blank"),
    ],
)
def test_what_is_not_a_space(changed, message):
    with pytest.raises(InputError, match=message):
        read_space({**GIVEN, **changed}, "my.py:Mine", known=KNOWN)
