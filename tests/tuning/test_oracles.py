import dataclasses
import json
from importlib import resources

import pytest
from typer.testing import CliRunner

from driftbandits.cli.app import app
from driftbandits.errors import InputError
from driftbandits.experiments.definitions.oracle_settings import oracle_settings
from driftbandits.experiments.definitions.seeds import TUNING_SEEDS
from driftbandits.experiments.definitions.specs import PolicySpec
from driftbandits.experiments.definitions.suite import SUITE, suite_name
from driftbandits.experiments.running.build import build_policy, build_world
from driftbandits.experiments.running.engines import Engine
from driftbandits.tuning import oracles
from driftbandits.tuning.grids import GRIDS, Grid
from driftbandits.tuning.oracles import OVER_ALL_WORLDS, Ladder, climb, ladders, tune_oracles

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
FILE = resources.files("driftbandits.experiments.definitions") / "oracles.json"


@pytest.fixture
def small(monkeypatch):
    """Searches in two worlds that take a second; a window without a kernel is told nothing."""
    monkeypatch.setattr(
        oracles, "informed_spec", lambda label, policy, settings, _: PolicySpec(label, policy, settings)
    )
    return ladders({"window": WINDOWS}, TINY)


def made_up(regret):
    """Plays cells by a formula of their settings, world and seed, and keeps what was asked for."""
    asked = []

    def play(cells):
        asked.append([(c.policy.settings["window"], c.environment, c.seed) for c in cells])
        return {c.key: regret(c) for c in cells}

    return play, asked


def windows(worlds=TINY[:1], rungs=((9, 1), (2, 2))):
    return Ladder("here", "window", WINDOWS, worlds, rungs, (0, 1, 2))


@pytest.mark.usefixtures("small")
def test_the_best_go_on_and_the_best_of_all_their_seeds_is_found():
    scores = {20: (9.0, 1.0), 50: (2.0, 6.0), 200: (3.0, 3.0)}
    play, asked = made_up(lambda cell: scores[cell.policy.settings["window"]][cell.seed - TUNING_SEEDS[0]])
    (found,) = climb([windows()], play)
    assert found.alive == (2, 1)
    assert found.scores == pytest.approx((3.0, 4.0))
    assert found.seeds == 2
    assert {window for window, _, _ in asked[1]} == {50, 200}


@pytest.mark.usefixtures("small")
def test_over_several_worlds_the_geometric_mean_counts():
    best_in_sum, best_in_product = {"a": 5.0, "b": 5.0}, {"a": 1.0, "b": 20.0}
    regrets = {20: best_in_sum, 50: best_in_product, 200: {"a": 9.0, "b": 9.0}}
    play, _ = made_up(lambda cell: regrets[cell.policy.settings["window"]]["b" if "noise" in cell.settings else "a"])
    (found,) = climb([windows(TINY, ((9, 1),))], play)
    assert found.alive[0] == 1
    assert found.scores[0] == pytest.approx(20**0.5)


@pytest.mark.usefixtures("small")
def test_of_equals_the_lower_number_is_better():
    play, _ = made_up(lambda cell: 1.0)
    assert climb([windows()], play)[0].alive == (0, 1)


def test_only_tuning_seeds_are_played():
    for search in (ladders()[0], ladders()[-1]):
        assert {cell.seed for cell in search.cells(0, 6)} <= set(TUNING_SEEDS)


def test_it_writes_what_it_found_and_goes_on_where_it_was(small, tmp_path):
    first = tune_oracles(out=tmp_path, engine=Engine(jobs=1), searches=small)
    text = first.path.read_text()
    written = json.loads(text)
    assert set(written["worlds"]) == {"flip-1/d2", "noisy/d2"}
    assert set(written["singles"]) == {"window"}
    assert written["singles"]["window"]["seeds"] == 2
    assert written["worlds"]["noisy/d2"]["window"]["settings"] in WINDOWS.points
    assert first.played == first.cells
    again = tune_oracles(out=tmp_path, engine=Engine(jobs=1), searches=small)
    assert again.played == 0
    assert again.path.read_text() == text


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot make the folder"):
        tune_oracles(out=tmp_path / "file" / "out", searches=[])


def test_the_command(small, tmp_path, monkeypatch):
    monkeypatch.setattr(oracles, "ladders", lambda: small)
    result = CliRunner().invoke(app, ["tune", "oracles", "--jobs", "1", "--out", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    assert [row["search"] for row in printed["found"]] == ["window, flip-1/d2", "window, noisy/d2", "window, single"]
    assert printed["path"] == str(tmp_path / "oracles.json")


@pytest.mark.parametrize("label", GRIDS)
def test_every_point_is_a_setting_of_its_policy_and_told_the_noise(label):
    world = SUITE["suite/noisy/d2"]
    search = Ladder(OVER_ALL_WORLDS, label, GRIDS[label], (world,), ((99, 1),), tuple(range(len(GRIDS[label].points))))
    built = build_world(world.environment, world.settings, 0)
    for point in search.alive:
        (cell,) = search.cells(point, 1)
        assert cell.policy.settings["noise"] == 0.5
        build_policy(cell.policy, built, 0)


# The file as committed.


def test_the_file_says_how_it_was_made_and_has_every_world_and_baseline():
    found = json.loads(FILE.read_text())
    assert found["how"] == oracles.how_it_was_made()
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
