"""A policy of one's own, searched as the comparison searches all others."""

import json

import pytest

import driftbandits as db
from driftbandits.errors import InputError
from driftbandits.experiments.contestants import read_policies
from driftbandits.experiments.engines import Engine
from driftbandits.experiments.run_files import read_experiment, tuned_policies
from driftbandits.tuning import own as module
from driftbandits.tuning import tune
from driftbandits.tuning.own import EQUAL_RUNGS, _runs_in, _searches, read_found, rungs_of, tune_file, write_found
from driftbandits.tuning.spaces import read_space
from driftbandits.tuning.study import count_cells
from reproduction.spaces import SPACES
from reproduction.tuning import comparison_searches
from tests.tuning.small import LONGER, WORLD

ONE = Engine(jobs=1)
POLICY = '''
import driftbandits as db


class Mine(db.SlidingWindowUCB):
    """A window whose length must be said."""

    def __init__(self, arms, *, window, scale=1.0, **common):
        super().__init__(arms, window=window, scale=scale, **common)


class Plain(db.SlidingWindowUCB):
    pass


class Other:
    def __init__(self, arms, *, rate):
        pass
'''
SPACE = {"ranges": {"window": [20, 200], "scale": [0.1, 3.0]}, "whole": ["window"]}


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(module, "EQUAL_RUNGS", ((4, 1), (2, 2)))
    settings = dict(WORLD.settings)
    world = type(WORLD)
    monkeypatch.setattr(module, "environment_1", lambda d: world(WORLD.environment, {**settings, "dimension": d}))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(POLICY)
    return path


def test_world_seeds_points_and_budget_are_those_of_the_comparison():
    ranges = {name: list(ends) for name, ends in SPACES["SW-UCB (plain)"].ranges.items()}
    named = read_space({"label": "mine", "ranges": ranges, "whole": ["window"]}, "SlidingWindowUCB", known=None)
    own = _searches(named, module.EQUAL_DIMENSIONS, default=True)
    theirs = comparison_searches(["SW-UCB (plain)"])
    assert list(own) == ["d=10", "d=3", "d=2"]
    for mine, other in zip(own.values(), theirs.values(), strict=True):
        assert (mine.worlds, mine.rungs, mine.cells) == (other.worlds, other.rungs, other.cells)
        assert (len(mine.points), mine.cells) == (32, 80)
        values = [[p.values for p in search.points if p.origin == "search"] for search in (mine, other)]
        assert values[0] == values[1]
        for slot in ((0, 0), (15, 0)):
            assert mine.cell(0, slot).seed == other.cell(0, slot).seed


def test_what_was_found_is_written_kept_and_gone_on_from(tmp_path, small, file):
    out, policy = tmp_path / "out", f"{file}:Mine"
    first = tune(policy, SPACE, out=out, dimensions=[3], engine=ONE)
    assert (first.path.name, first.played) == ("tuned-Mine.json", 6)
    assert "default" not in {score.origin for score in first.best[0].scores}  # its window has no default
    second = tune(policy, SPACE, out=out, dimensions=[3, 2], engine=ONE)
    assert second.played == 6
    written = json.loads(second.path.read_text())
    assert list(written) == ["how", "d=3", "d=2"]
    assert written["how"].startswith(f"driftbandits tune {policy}: 4 points and 6 cells of environment 1")
    assert written["d=3"]["Mine"]["policy"] == policy
    assert type(written["d=2"]["Mine"]["settings"]["window"]) is int


def test_defaults_are_the_first_point_and_an_edited_file_is_another_search(tmp_path, small, file):
    policy, space = f"{file}:Plain", {"ranges": {"scale": [0.1, 3.0]}, "fixed": {"window": 50}}
    first = tune(policy, space, out=tmp_path, dimensions=[2], engine=ONE)
    default = next(score for score in first.best[0].scores if score.number == 0)
    assert (default.origin, default.values) == ("default", {})
    file.write_text(POLICY + "\n# edited\n")
    assert tune(policy, space, out=tmp_path, dimensions=[2], engine=ONE).played == 6


def test_a_registered_class_a_folder_as_text_and_one_dimension(tmp_path, small):
    space = {**SPACE, "label": "mine"}
    named = tune("SlidingWindowUCB", space, out=tmp_path, dimensions=[2], engine=ONE)
    again = tune(db.SlidingWindowUCB, space, out=str(tmp_path), dimensions=2, engine=ONE)
    assert (again.played, again.path) == (0, named.path)
    assert "tune SlidingWindowUCB:" in json.loads(again.path.read_text())["how"]


PAIRS = [(world.environment, dict(world.settings)) for world in (WORLD, LONGER)]
SPACES_OF_TWO = {"SlidingWindowUCB": SPACE, "DiscountedUCB": {"ranges": {"discount": [0.9, 0.999]}}}


def test_several_policies_in_several_worlds_have_one_budget_and_play_where_policies_are_named(tmp_path):
    found = tune(SPACES_OF_TWO, out=tmp_path, worlds=PAIRS, runs=24, engine=ONE)
    assert (found.path.name, found.played) == ("tuned.json", found.cells)
    by_name = {best.policy: best for best in found.best}
    assert {best.cells for best in by_name.values()} == {found.cells / 2}
    assert found.cells / 2 <= 24
    chosen = by_name["SlidingWindowUCB"]
    longest = [score for score in chosen.scores if score.cells == max(other.cells for other in chosen.scores)]
    assert chosen.values in [score.values for score in longest]
    world = db.environments.create(WORLD.environment, **WORLD.settings)
    compared = db.compare([str(found.path), "Uniform"], world, seeds=2, jobs=1, show=False)
    labels = set(compared.summary["policy"])
    assert labels == {"SlidingWindowUCB", "DiscountedUCB", "Uniform"}
    direct = db.compare([("SlidingWindowUCB", dict(chosen.settings))], world, seeds=2, jobs=1, show=False)
    regrets = compared.runs[compared.runs["policy"] == "SlidingWindowUCB"]["regret"].tolist()
    assert regrets == direct.runs["regret"].tolist()
    run = tmp_path / "run.yaml"
    run.write_text("environment: switching/1\npolicies: [tuned.json, Uniform]\n")
    specs = read_experiment(run).policies
    assert [spec.label for spec in specs] == ["SlidingWindowUCB", "DiscountedUCB", "Uniform"]
    assert specs[0].settings == chosen.settings
    assert tune(SPACES_OF_TWO, out=tmp_path, worlds=PAIRS, runs=24, engine=ONE).played == 0


def test_a_file_says_all_that_is_searched(tmp_path, file):
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "worlds:\n  - {name: switching/1, settings: {horizon: 300, switches: [150], size: 15}}\nruns: 8\n"
        f"policies:\n  {file.name}:Mine: {{ranges: {{window: [20, 200]}}, whole: [window]}}\n"
    )
    found = tune_file(plan, out=tmp_path / "out", storage=None, engine=ONE, show=False)
    assert found.best[0].policy.endswith("mine.py:Mine")
    plan.write_text("worlds: [switching/1]\npolicies: {}\nrnus: 5\n")
    with pytest.raises(InputError, match="rnus"):
        tune_file(plan, out=tmp_path / "out", storage=None, engine=ONE, show=False)


def test_budgets():
    assert rungs_of(80, worlds=1) == EQUAL_RUNGS
    for worlds in (1, 2, 5):
        for runs in (4 * worlds, 40 * worlds, 300 * worlds):
            rungs = rungs_of(runs, worlds=worlds)
            assert 0.4 * runs <= count_cells(rungs[0][0], rungs, worlds=worlds) <= runs
    few, many = (_runs_in(minutes, "SlidingWindowUCB", (WORLD,)) for minutes in (1.0, 10.0))
    assert many == pytest.approx(10 * few, abs=10)
    assert _runs_in(10.0, "AutoBandit", (WORLD,)) < many  # whose rounds take longer


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"space": SPACE}, "policy already says the space of each"),
        ({"policy": {}}, "there is no policy to search"),
        ({"worlds": []}, "there is no world to search in"),
        ({"worlds": [db.environments.create("switching/1")]}, "by its name or 'file.py:Class'"),
        ({"worlds": "linear/drifting"}, "is for evaluation alone"),
        ({"runs": 0}, "runs must be at least 1, got 0"),
        ({"minutes": -1.0}, "minutes must be"),
        ({"worlds": None, "runs": 5}, "runs and minutes are for worlds that are named"),
        (
            {
                "policy": {
                    "UCB1": {"label": "x", "ranges": {"scale": [0.1, 1]}},
                    "KLUCB": {"label": "x", "ranges": {"scale": [0.1, 1]}},
                }
            },
            "two policies are called 'x'",
        ),
    ],
)
def test_what_a_plan_cannot_be(tmp_path, changed, message):
    given = {"policy": SPACES_OF_TWO, "worlds": PAIRS, **changed}
    with pytest.raises(InputError, match=message):
        tune(**given, out=tmp_path / "out", engine=ONE)
    assert not (tmp_path / "out").exists()


def test_a_file_of_settings_in_the_place_of_a_policy(tmp_path):
    path = tmp_path / "tuned.json"
    write_found(path, {"d=10": {"mine": ENTRY}, "d=2": {"mine": ENTRY}}, how="by hand")
    with pytest.raises(InputError, match="has settings for d=10, d=2; name one, as in "):
        tuned_policies(str(path))
    assert [spec.label for spec in tuned_policies(f"{path}#d=2")] == ["mine"]
    with pytest.raises(InputError, match="has nothing for 'd=3'; did you mean"):
        tuned_policies(f"{path}#d=3")
    with pytest.raises(InputError, match="leave out rate"):
        read_policies([(f"{path}#d=2", {"rate": 1})])
    assert [one.label for one in read_policies({"found": f"{path}#d=2"})] == ["found: mine"]


class NotRegistered(db.SlidingWindowUCB):
    pass


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"policy": NotRegistered}, "put it into a file and name it 'file.py:NotRegistered'"),
        ({"policy": None}, "policy must be a registered name or 'file.py:Class', got None"),
        ({"space": None}, "space must be a file, or a mapping such as .*, got None"),
        ({"space": 5}, "space must be a file"),
        ({"out": None}, "out must be the folder of what is found, got None"),
        ({"dimensions": None}, r"whole number, got None; name one or several, such as \[10, 2\]"),
        ({"dimensions": "10"}, "whole number, got '10'"),
        ({"dimensions": 2.5}, "whole number, got 2.5"),
    ],
)
def test_arguments_of_another_type(tmp_path, changed, message):
    given = {"policy": "SlidingWindowUCB", "space": SPACE, "out": tmp_path, "dimensions": [2], **changed}
    with pytest.raises(InputError, match=message):
        tune(**given, engine=ONE)


def test_what_cannot_be_searched_is_said_before_anything_is_played(tmp_path, small, file):
    out = tmp_path / "out"
    wrong = [
        (f"{file}:Mine", {"ranges": {"windo": [20, 200]}}, "did you mean 'window'"),
        (f"{file}:Mine", {"ranges": {"window": [20, 200]}}, "window must be a whole number"),
        (f"{file}:Other", {"ranges": {"rate": [0.1, 1]}}, "not one derived from driftbandits.Policy"),
        (f"{file}:Missing", SPACE, "has no 'Missing'"),
        ("no_such.py:Mine", SPACE, "there is no file 'no_such.py'"),
        ("SlidingWindowUBC", SPACE, "did you mean 'SlidingWindowUCB'"),
    ]
    for policy, space, message in wrong:
        with pytest.raises(InputError, match=message):
            tune(policy, space, out=out, engine=ONE)
    with pytest.raises(InputError, match="dimension must be at least 1, got 0"):
        tune("SlidingWindowUCB", SPACE, out=out, dimensions=[0], engine=ONE)
    with pytest.raises(InputError, match="no dimension"):
        tune("SlidingWindowUCB", SPACE, out=out, dimensions=[], engine=ONE)
    assert not out.exists()


ENTRY = {"policy": "Uniform", "settings": {"rate": 1e-05}, "origin": "search", "regret_on_tuning_seeds": 12.5}


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "tuned.json"
    assert read_found(path) == {}
    found = {"d=10": {"mine": ENTRY, "\N{ROCKET}": ENTRY}, "d=2": {"mine": ENTRY}}
    write_found(path, found, how="by hand")
    assert json.dumps(read_found(path)) == json.dumps(found)  # in the same order


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "holds no keys"),
        (b"5", "holds no keys"),
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b'{"how": "x", "d=2": 5}', "d=2"),
        (b'{"d=2": 5}', "how is missing"),
        (b'{"how": "x", "d=2": {"mine": {"policy": "Uniform"}}}', "settings is missing"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path, content, message):
    path = tmp_path / "tuned.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_found(path)
    assert str(path) in str(caught.value)
    assert str(caught.value).endswith("move it away")


def test_a_folder_of_that_name(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        read_found(tmp_path)
