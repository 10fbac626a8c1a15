import dataclasses

from driftbandits.experiments.definitions.specs import Experiment, PolicySpec
from driftbandits.experiments.groups import default_groups, find_experiments, group_of
from driftbandits.experiments.groups.group import Group
from driftbandits.experiments.groups.passes import (
    Pass,
    Step,
    first_to_play,
    left_to_play,
    make_passes,
    standard_passes,
)

WORLD = {"horizon": 40, "switches": [20], "size": 5}
CHANCE, NETWORK = PolicySpec("chance", "Uniform"), PolicySpec("net", "OPNN", {"width": 2048}, seeds=3)


def experiment(name, *policies):
    return Experiment(name, name, "switching/1", {**WORLD, "size": 5 + len(name)}, policies, seeds=tuple(range(8)))


A, B = experiment("a", CHANCE, NETWORK), experiment("bb", CHANCE)
SMALL = [Group("first", "First", "", (A,)), Group("second", "Second", "", (B,))]
STEPS = [Step("one", ("first",)), Step("some of two", ("second",), seeds=5)]


def rows(one):
    """How many seeds every policy plays, by experiment and label, and how wide networks are."""
    count = {}
    for member in one.experiments:
        for policy in member.policies:
            key = (member.id, policy.label, policy.settings.get("width"))
            count[key] = min(len(member.seeds), policy.seeds or len(member.seeds))
    return count


def test_every_pass_is_the_whole_report_and_sharper_than_the_one_before():
    taste, one, two, last = make_passes(SMALL, STEPS)
    assert rows(taste) == {("a", "chance", None): 2, ("a", "net", 256): 2, ("bb", "chance", None): 2}
    assert rows(one) == {("a", "chance", None): 8, ("a", "net", 256): 2, ("bb", "chance", None): 2}
    assert rows(two) == {("a", "chance", None): 8, ("a", "net", 256): 2, ("bb", "chance", None): 5}
    assert last.experiments == (A, B)


def test_narrow_networks_are_marked_in_the_title():
    taste, *_, last = make_passes(SMALL, STEPS)
    assert [e.title for e in taste.experiments] == ["a (networks 256 wide)", "bb"]
    assert [e.title for e in last.experiments] == ["a", "bb"]


def test_what_is_finished_in_a_pass_is_not_played_in_the_next():
    passes = make_passes(SMALL, STEPS)
    added = left_to_play(passes, set())
    assert [len(cells) for cells in added] == [6, 6, 3, 3 + 3]
    assert len(set().union(*added)) == sum(map(len, added))
    held = set(added[0]) | set(added[1])
    again = left_to_play(passes, held)
    assert [len(cells) for cells in again] == [0, 0, 3, 6]
    assert first_to_play(again) == 1
    assert first_to_play(left_to_play(passes, held | set(added[2]) | set(added[3]))) == 3
    assert left_to_play([Pass("empty", ())], set()) == [{}]


def test_the_standard_passes_begin_with_the_taste_and_end_with_the_catalogue():
    first, *_, before, last = standard_passes()
    catalogue = find_experiments(default_groups())
    assert list(last.experiments) == catalogue
    tastes = [group_of(e.id).quick(e) for e in catalogue]
    assert list(first.experiments) == [taste for taste in tastes if taste is not None]
    wide = {p.label for e in last.experiments for p in e.policies if p.settings.get("width") == 2048}
    assert wide
    for narrow, whole in zip(before.experiments, last.experiments, strict=True):
        kept = [p for p in narrow.policies if p.settings.get("width") != 256 or p in whole.policies]
        assert set(map(str, kept)) <= set(map(str, whole.policies))
        assert dataclasses.replace(narrow, policies=(), title="") == dataclasses.replace(whole, policies=(), title="")
