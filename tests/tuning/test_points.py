import numpy as np
import pytest

from driftbandits import POLICIES, ArmSet, create_policy
from driftbandits.experiments.definitions.first_settings import written_out
from driftbandits.experiments.definitions.rows import GPUCB_PUBLISHED, SW_GPUCB_PUBLISHED
from driftbandits.experiments.definitions.tuned_settings import tuned_settings
from driftbandits.tuning.comparison import COMPARISON_RUNGS, comparison_searches
from driftbandits.tuning.constants import CONSTANTS_STUDIES
from driftbandits.tuning.points import Space, trial_points
from driftbandits.tuning.spaces import SPACES

COUNT = COMPARISON_RUNGS[0][0]


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
        assert POLICIES[space.policy].label in label


def test_every_policy_with_something_to_search_has_the_same_budget():
    budgets = {search.cells for search in comparison_searches().values() if search.space.ranges}
    assert budgets == {80}
    assert {search.cells for search in comparison_searches().values() if not search.space.ranges} == {16}
