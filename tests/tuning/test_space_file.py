"""Spaces of one's own, as files and mappings."""

import pytest

from driftbandits.errors import InputError
from driftbandits.tuning.points import trial_points
from driftbandits.tuning.space_file import read_space

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
