"""The settings that figures use, as committed."""

import csv
import dataclasses
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from driftbandits import ArmSet, create_policy
from driftbandits.cli.app import app
from driftbandits.configuration.models import read_settings
from driftbandits.errors import InputError
from driftbandits.experiments.building import build_policy, build_world
from driftbandits.experiments.engines import Engine
from driftbandits.experiments.runner import run_cell
from driftbandits.experiments.seeds import TUNING
from driftbandits.experiments.specs import PolicySpec
from driftbandits.policies import Constants
from driftbandits.tuning import own
from driftbandits.tuning.own import EQUAL_RUNGS, write_found
from reproduction import tuning
from reproduction.autobandit import oracle_settings
from reproduction.catalogue import LINEAR_FILE, SETTINGS_FOLDER, tuned_settings, tuned_specs
from reproduction.linear import flipping
from reproduction.paper import PAPER
from reproduction.spaces import GRIDS, SPACES, Grid
from reproduction.suite import SUITE, SUITE_POLICIES, suite_name
from reproduction.tuning import (
    DIMENSIONS_WITH_ALL_POLICIES,
    LINEAR_DIMENSIONS,
    LINEAR_LABELS,
    POLICIES_ELSEWHERE,
    GridSearch,
    comparison_searches,
    constants_search,
    grid_searches,
    how_it_was_made,
    in_order,
    linear_searches,
    play_grids,
    tune_oracles,
    tune_study,
)
from tests.tuning.small import WORLD

ONE = Engine(jobs=1)


@pytest.fixture
def small(monkeypatch):
    for module in (own, tuning):  # both have the budget
        monkeypatch.setattr(module, "EQUAL_RUNGS", ((4, 1), (2, 2)))
    settings = dict(WORLD.settings)
    world = type(WORLD)
    monkeypatch.setattr(tuning, "environment_1", lambda d: world(WORLD.environment, {**settings, "dimension": d}))


def test_what_was_found_is_written_and_found_again(tmp_path, small):
    labels = ["Uniform", "GPUCB"]
    first, second = (tune_study("comparison", out=tmp_path / name, labels=labels, engine=ONE) for name in "ab")
    assert first.path.read_bytes() == second.path.read_bytes()
    written = json.loads(first.path.read_text())
    assert list(written) == ["how", "d=10", "d=3", "d=2"]
    assert written["how"].startswith("driftbandits tune comparison: 4 points and 6 cells")
    assert list(written["d=3"]) == ["GPUCB", "Uniform"]
    uniform = written["d=2"]["Uniform"]
    assert (uniform["policy"], uniform["settings"], uniform["origin"]) == ("Uniform", {}, "default")
    assert first.cells == first.played == 3 * (6 + 2)
    assert [found.name for found in first.best][:2] == ["Uniform, d = 10", "GPUCB, d = 10"]
    assert (tmp_path / "a" / "tuning.db").exists()


def test_a_second_call_plays_nothing_and_entries_not_searched_stay(tmp_path, small):
    tune_study("comparison", out=tmp_path, labels=["Uniform"], dimensions=[2], engine=ONE)
    more = tune_study("comparison", out=tmp_path, labels=["Uniform", "D-UCB (plain)"], dimensions=[2], engine=ONE)
    assert (more.cells, more.played) == (2 + 6, 6)
    tune_study("comparison", out=tmp_path, labels=["Uniform"], dimensions=[3], engine=ONE)
    written = json.loads(more.path.read_text())
    assert {key: list(entry) for key, entry in written.items() if key != "how"} == {
        "d=3": ["Uniform"],
        "d=2": ["D-UCB (plain)", "Uniform"],
    }
    assert {path.name for path in tmp_path.iterdir()} == {"tuned.json", "tuning.db"}


def test_a_storage_may_be_elsewhere(tmp_path, small):
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    options = {"labels": ["Uniform"], "dimensions": [2], "storage": url, "engine": ONE}
    assert tune_study("comparison", out=tmp_path / "a", **options).played == 2
    again = tune_study("comparison", out=tmp_path / "b", **options)
    assert (again.played, again.storage) == (0, url)
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["tuned.json"]


def test_progress_goes_to_standard_error_when_asked_for(tmp_path, small, capsys):
    tune_study("comparison", out=tmp_path, labels=["Uniform"], dimensions=[2], engine=ONE)
    assert capsys.readouterr() == ("", "")
    tune_study("comparison", out=tmp_path, labels=["Uniform"], dimensions=[2], engine=ONE, show=True)
    assert "2/2" in capsys.readouterr().err


def test_all_are_searched_where_all_are_compared():
    searches = comparison_searches()
    for dimension in DIMENSIONS_WITH_ALL_POLICIES:
        assert [label for label, d in searches if d == dimension] == list(SPACES)
    assert [label for label, d in searches if d == 3] == list(POLICIES_ELSEWHERE)
    assert len({search.study_name for search in searches.values()}) == len(searches)


def test_input_that_is_not_usable(tmp_path):
    with pytest.raises(InputError, match="did you mean 'SW-GPUCB'"):
        tune_study("comparison", out=tmp_path, labels=["SWGPUCB"])
    with pytest.raises(InputError, match="dimension must be at least 1, got 0"):
        tune_study("comparison", out=tmp_path, dimensions=[0])
    (tmp_path / "tuned.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        tune_study("comparison", out=tmp_path, labels=["Uniform"])
    with pytest.raises(InputError, match="cannot make the folder"):
        tune_study("comparison", out=tmp_path / "tuned.json" / "below", labels=["Uniform"])


@pytest.mark.parametrize("study", ["constants", "neural"])
def test_the_best_constants_and_every_score_are_kept(study, tmp_path, monkeypatch):
    monkeypatch.setattr(tuning, "CONSTANTS_RUNGS", ((4, 1), (2, 2)))
    monkeypatch.setattr(tuning, "CONSTANTS_WORLDS", (WORLD,))
    tuned = tune_study(study, out=tmp_path, engine=Engine(jobs=1))
    (found,) = tuned.best
    assert tuned.cells == tuned.played == 6
    assert found.settings["constants"]["c0"] == Constants(**found.values).c0
    with (tmp_path / f"{study}.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["cells"] for row in rows] == ["2", "2", "1", "1"]
    assert float(rows[0]["regret"]) == found.regret
    assert float(rows[0]["sigma"]) == found.values["sigma"]


@pytest.mark.parametrize("study", ["constants", "neural"])
def test_the_budget_is_the_one_stated(study):
    assert (len(constants_search(study).points), constants_search(study).cells) == (512, 2464)


def test_the_defaults_are_points_of_their_search():
    """They were found by it, so the points must not have moved since."""
    for study, default in (("constants", Constants.tuned()), ("neural", Constants.neural())):
        assert default in [Constants(**point.values) for point in constants_search(study).points]


def test_an_unknown_study_is_answered_with_the_nearest(tmp_path):
    with pytest.raises(InputError, match="did you mean 'neural'"):
        tune_study("neurall", out=tmp_path)


SEARCHES = linear_searches()


def test_the_committed_file_has_what_the_command_searches():
    written = json.loads((SETTINGS_FOLDER / LINEAR_FILE).read_text())
    assert list(written) == ["how", *(f"d={d}" for d in LINEAR_DIMENSIONS)]
    assert written["how"] == how_it_was_made("driftbandits tune linear", world="the linear world with one switch")
    assert all(tuple(written[f"d={d}"]) == LINEAR_LABELS for d in LINEAR_DIMENSIONS)


@pytest.mark.parametrize(("label", "dimension"), SEARCHES)
def test_settings_are_those_of_a_point_of_the_search(label, dimension):
    entry, search = tuned_settings(LINEAR_FILE)[f"d={dimension}"][label], SEARCHES[label, dimension]
    assert [p.origin for n, p in enumerate(search.points) if search.settings(n) == entry["settings"]] == [
        entry["origin"]
    ]
    assert search.rungs == EQUAL_RUNGS


def test_a_committed_score_is_played_again():
    search, entry = SEARCHES["RestartUCB", 2], tuned_settings(LINEAR_FILE)["d=2"]["RestartUCB"]
    point = next(n for n in range(len(search.points)) if search.settings(n) == entry["settings"])
    regrets = [run_cell(search.cell(point, (seed, 0))).regret[-1] for seed in range(16)]
    assert round(float(np.mean(regrets)), 1) == entry["regret_on_tuning_seeds"]


def test_what_was_found_is_written_in_order(tmp_path, monkeypatch):
    for module in (own, tuning):  # both have the budget
        monkeypatch.setattr(module, "EQUAL_RUNGS", ((2, 1), (1, 2)))
    monkeypatch.setattr(tuning, "LINEAR_LABELS", ("SW-LinUCB", "LinUCB"))
    monkeypatch.setattr(tuning, "one_switch", lambda dimension: flipping(dimension, [100], horizon=200, size=8))
    found = tune_study("linear", out=tmp_path, engine=Engine(jobs=1))
    written = json.loads(found.path.read_text())
    assert found.path.name == LINEAR_FILE
    assert {key: list(entry) for key, entry in written.items() if key != "how"} == {
        "d=5": ["SW-LinUCB", "LinUCB"],
        "d=2": ["SW-LinUCB", "LinUCB"],
    }
    assert tune_study("linear", out=tmp_path, engine=Engine(jobs=1)).played == 0


COMMITTED = comparison_searches()
TUNED = SETTINGS_FOLDER / "tuned.json"


def test_the_file_says_how_it_was_made_and_is_as_the_command_writes_it(tmp_path):
    written = json.loads(TUNED.read_text())
    how = written.pop("how")
    assert how == how_it_was_made("driftbandits tune comparison")
    backwards = dict(reversed(written.items()))
    order = dict.fromkeys(("d=10", "d=3", "d=2"), tuple(SPACES))
    write_found(tmp_path / "tuned.json", in_order(backwards, order), how=how)
    assert (tmp_path / "tuned.json").read_text() == TUNED.read_text()


def test_it_has_what_the_command_searches():
    found = tuned_settings()
    assert {(label, int(key[2:])) for key in found if key != "how" for label in found[key]} == set(COMMITTED)
    assert [spec.label for spec in tuned_specs(10)] == list(SPACES)


def test_elsewhere_are_the_policies_that_experiments_play_there():
    figures = [p.label.removesuffix(" (tuned)") for e in PAPER.values() for p in e.policies if "(tuned)" in p.label]
    assert set(POLICIES_ELSEWHERE) == {*figures, *SUITE_POLICIES}
    assert list(POLICIES_ELSEWHERE) == [label for label in SPACES if label in POLICIES_ELSEWHERE]


def test_the_strongest_rival_since_the_paper_stands_wherever_policies_are_compared():
    for compared in (SPACES, SUITE_POLICIES, GRIDS):
        assert "DAL-GP-UCB" in compared


@pytest.mark.parametrize(("label", "dimension"), COMMITTED)
def test_settings_are_those_of_a_point_of_the_search_and_usable(label, dimension):
    entry = tuned_settings()[f"d={dimension}"][label]
    search = COMMITTED[label, dimension]
    origins = [p.origin for n, p in enumerate(search.points) if search.settings(n) == entry["settings"]]
    assert origins == [entry["origin"]]
    assert entry["policy"] == search.space.policy
    assert entry["regret_on_tuning_seeds"] > 0
    create_policy(entry["policy"], ArmSet(np.eye(3)), horizon=100, seed=0, **read_settings(entry["settings"]))


def test_the_committed_score_is_played_again():
    search = COMMITTED["Uniform", 2]
    regrets = [run_cell(search.cell(0, (seed, 0))).regret[-1] for seed in range(16)]
    assert round(float(np.mean(regrets)), 1) == tuned_settings()["d=2"]["Uniform"]["regret_on_tuning_seeds"]


WINDOWS = Grid(
    "SlidingWindowUCB",
    tuple({"window": window} for window in (20, 50, 200)),
    single=((9, 1), (2, 2)),
    tuned=((9, 1), (2, 2), (1, 3)),
)
TINY = tuple(
    dataclasses.replace(world, settings={**world.settings, "horizon": 200, "switches": [100], "size": 10})
    for world in (SUITE["suite/flip-1/d2"], SUITE["suite/noisy/d2"])
)
ORACLES = SETTINGS_FOLDER / "oracles.json"


@pytest.fixture
def small_grids(monkeypatch):
    """Searches in two worlds that take a second; a window without a kernel is told nothing."""
    monkeypatch.setattr(tuning, "informed_spec", lambda label, policy, settings, _: PolicySpec(label, policy, settings))
    return grid_searches({"window": WINDOWS}, TINY)


def made_up(regret):
    """Plays cells by a formula of their settings, world and seed, and keeps what was asked for."""
    asked = []

    def play(cells):
        asked.append([(c.policy.settings["window"], c.environment, c.seed) for c in cells])
        return {c.key: regret(c) for c in cells}

    return play, asked


def windows(worlds=TINY[:1], rungs=((9, 1), (2, 2))):
    return GridSearch("here", "window", WINDOWS, worlds, rungs, ({}, {}, {}))


@pytest.mark.usefixtures("small_grids")
def test_the_best_go_on_and_the_best_of_all_their_seeds_is_found():
    scores = {20: (9.0, 1.0), 50: (2.0, 6.0), 200: (3.0, 3.0)}
    play, asked = made_up(lambda cell: scores[cell.policy.settings["window"]][cell.seed - TUNING.first])
    play_grids([found := windows()], play)
    assert found.standing().alive == (2, 1)
    assert found.score == pytest.approx(3.0)
    assert {window for window, _, _ in asked[1]} == {50, 200}


@pytest.mark.usefixtures("small_grids")
def test_over_several_worlds_the_geometric_mean_counts():
    best_in_sum, best_in_product = {"a": 5.0, "b": 5.0}, {"a": 1.0, "b": 20.0}
    regrets = {20: best_in_sum, 50: best_in_product, 200: {"a": 9.0, "b": 9.0}}
    play, _ = made_up(lambda cell: regrets[cell.policy.settings["window"]]["b" if "noise" in cell.settings else "a"])
    play_grids([found := windows(TINY, ((9, 1),))], play)
    assert found.best == 1
    assert found.score == pytest.approx(20**0.5)


@pytest.mark.usefixtures("small_grids")
def test_of_equals_the_lower_number_is_better():
    play, _ = made_up(lambda cell: 1.0)
    play_grids([found := windows()], play)
    assert found.standing().alive == (0, 1)


def test_only_tuning_seeds_are_played():
    for search in (grid_searches()[0], grid_searches()[-1]):
        assert {search.cell(0, (seed, 0)).seed for seed in range(6)} <= set(TUNING.take(6))


def test_it_writes_what_it_found_and_goes_on_where_it_was(small_grids, tmp_path):
    first = tune_oracles(out=tmp_path, engine=Engine(jobs=1), searches=small_grids)
    text = first.path.read_text()
    written = json.loads(text)
    assert set(written["worlds"]) == {"flip-1/d2", "noisy/d2"}
    assert set(written["singles"]) == {"window"}
    assert written["singles"]["window"]["seeds"] == 2
    assert written["worlds"]["noisy/d2"]["window"]["settings"] in WINDOWS.points
    assert first.played == first.cells
    again = tune_oracles(out=tmp_path, engine=Engine(jobs=1), searches=small_grids)
    assert again.played == 0
    assert again.path.read_text() == text


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot make the folder"):
        tune_oracles(out=tmp_path / "file" / "out", searches=[])


def test_the_command(small_grids, tmp_path, monkeypatch):
    monkeypatch.setattr(tuning, "grid_searches", lambda: small_grids)
    result = CliRunner().invoke(app, ["tune", "oracles", "--jobs", "1", "--out", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    assert [row["search"] for row in printed["found"]] == ["window, flip-1/d2", "window, noisy/d2", "window, single"]
    assert printed["path"] == str(tmp_path / "oracles.json")


@pytest.mark.parametrize("label", GRIDS)
def test_every_point_is_a_setting_of_its_policy_and_told_the_noise(label):
    world = SUITE["suite/noisy/d2"]
    (search,) = grid_searches({label: dataclasses.replace(GRIDS[label], tuned=None)}, (world,))
    built = build_world(world.environment, world.settings, 0)
    for point in range(len(GRIDS[label].points)):
        cell = search.cell(point, (0, 0))
        assert cell.policy.settings["noise"] == 0.5
        build_policy(cell.policy, built, 0)


# The file as committed.


def test_the_file_says_how_it_was_made_and_has_every_world_and_baseline():
    found = json.loads(ORACLES.read_text())
    assert found["how"] == tuning.how_oracles_were_made()
    assert list(found["worlds"]) == [suite_name(world) for world in SUITE.values()]
    assert list(found["singles"]) == list(GRIDS)
    for world in found["worlds"].values():
        assert list(world) == [label for label, grid in GRIDS.items() if grid.tuned is not None]


def test_its_settings_are_points_of_the_grids():
    found = oracle_settings()
    for entries in (found["singles"], *found["worlds"].values()):
        for label, entry in entries.items():
            assert entry["settings"] in GRIDS[label].points
            assert entry["policy"] == GRIDS[label].policy
