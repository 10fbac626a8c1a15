"""The grids of the paper's section 6, and the search over them."""

import json
import math

import pytest

from driftbandits.configuration.models import plain_settings
from driftbandits.experiments.runner import run_cell
from driftbandits.tuning.study import count_cells
from reproduction.catalogue import ADA_OPKB, PAPER_FILE, SETTINGS_FOLDER, tuned_settings, written_out
from reproduction.paper import WGPUCB_TUNED
from reproduction.spaces import PAPER_GRIDS, PAPER_SPACES
from reproduction.tuning import PAPER_RUNGS, how_the_paper_was_tuned, paper_searches

SEARCHES = paper_searches()


def test_the_grids_are_those_of_the_text():
    """Steps 1, 2, 5; lambda from 0.01 to 100, v from 0.001 to 1, c0 to c4 from 0.001 to 100, sigma from 1 to 1,000."""
    one_two_five = [a * 10**k for k in range(-3, 3) for a in (1, 2, 5)][:-2]
    for name in ("c0", "c1", "c2", "c3", "c4"):
        assert PAPER_GRIDS["ADA-OPKB"][name] == pytest.approx(one_two_five)
        assert PAPER_GRIDS["ADA-OPNN"][name] == PAPER_GRIDS["ADA-OPKB"][name]
    assert PAPER_GRIDS["ADA-OPKB"]["sigma"] == (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
    for rival in ("SW-GPUCB", "WGPUCB"):
        assert (PAPER_GRIDS[rival]["ridge"][0], PAPER_GRIDS[rival]["ridge"][-1]) == (0.01, 100)
        assert (PAPER_GRIDS[rival]["scale"][0], PAPER_GRIDS[rival]["scale"][-1]) == (0.001, 1)
    assert (PAPER_GRIDS["SW-GPUCB"]["window"][0], PAPER_GRIDS["SW-GPUCB"]["window"][-1]) == (100, 10_000)
    assert PAPER_GRIDS["WGPUCB"]["discount"] == (0.99, 0.995, 0.999, 0.9995, 0.9999)
    assert PAPER_GRIDS["ADA-OPNN"]["learning_rate"] == (1e-9, 1e-8, 1e-7)


@pytest.mark.parametrize("label", PAPER_SPACES)
def test_every_point_is_on_the_grid_and_both_ends_are_reached(label):
    search, grid = SEARCHES[label, 10], PAPER_GRIDS[label]
    seen = {name: set() for name in grid}
    for point in search.points:
        settings = plain_settings(search.space.settings(point.values))
        for name, value in settings.get("constants", settings).items():
            if point.origin == "search" and name in grid:
                assert any(math.isclose(value, g) for g in grid[name]), (name, value)
                seen[name].add(value)
    for name, values in seen.items():
        assert (min(values), max(values)) == pytest.approx((min(grid[name]), max(grid[name])))


def test_all_have_one_budget_and_begin_with_what_is_played():
    assert {len(search.points) for search in SEARCHES.values()} == {128}
    assert {count_cells(len(s.points), s.rungs, worlds=1) for s in SEARCHES.values()} == {296}
    assert "296 cells" in how_the_paper_was_tuned()
    for search in SEARCHES.values():
        assert search.points[0].origin == "default"
    settings = SEARCHES["ADA-OPKB", 10].cell(0, (0, 0)).policy.settings
    assert settings == ADA_OPKB.settings


def test_the_committed_file_has_what_the_command_found():
    written = json.loads((SETTINGS_FOLDER / PAPER_FILE).read_text())
    assert written.pop("how") == how_the_paper_was_tuned()
    assert list(written) == ["d=10"]
    assert list(written["d=10"]) == list(PAPER_SPACES)
    for label, entry in written["d=10"].items():
        search = SEARCHES[label, 10]
        points = [plain_settings(search.space.settings(point.values)) for point in search.points]
        assert entry["settings"] in points, label


def test_a_committed_score_is_played_again():
    """That of ADA-OPKB: the mean over 16 tuning seeds of the settings that were found."""
    search, entry = SEARCHES["ADA-OPKB", 10], tuned_settings(PAPER_FILE)["d=10"]["ADA-OPKB"]
    points = [plain_settings(search.space.settings(point.values)) for point in search.points]
    place = points.index(entry["settings"])
    regrets = [float(run_cell(search.cell(place, (seed, 0))).regret[-1]) for seed in range(PAPER_RUNGS[-1][1])]
    assert sum(regrets) / len(regrets) == pytest.approx(entry["regret_on_tuning_seeds"], rel=0.02)


def test_the_grids_hold_nothing_much_better_than_what_is_played():
    """For ADA-OPKB nothing at all; for the rivals as little as tuned rows and the authors' own leave."""
    found = tuned_settings(PAPER_FILE)["d=10"]
    assert written_out("AdaOPKB", found["ADA-OPKB"]["settings"]) == ADA_OPKB.settings
    played = tuned_settings()["d=10"]
    assert WGPUCB_TUNED.settings["discount"] == pytest.approx(played["WGPUCB"]["settings"]["discount"])
    for label in ("SW-GPUCB", "WGPUCB"):
        assert found[label]["regret_on_tuning_seeds"] > 0.8 * played[label]["regret_on_tuning_seeds"], label
