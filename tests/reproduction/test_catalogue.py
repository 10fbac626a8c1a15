"""What experiments play does not depend on the defaults of the policies."""

import pytest

from driftbandits import design
from driftbandits.configuration.models import read_settings
from driftbandits.errors import InputError
from driftbandits.experiments.building import build_policy, build_world
from driftbandits.experiments.specs import cells_of
from driftbandits.policies import POLICIES, Constants
from driftbandits.policies.inputs import CommonSettings, known_settings
from reproduction import catalogue as rows
from reproduction.catalogue import FIRST_SETTINGS, full, quick, tuned_spec, written_out
from reproduction.groups import EXPERIMENTS
from reproduction.paper import FIGURES, PAPER, rival_rows
from reproduction.real_suite import REAL_SUITE
from reproduction.tuning import CONSTANTS_STUDIES, comparison_searches, grid_searches, linear_searches

DECIDED_BY_THE_EXPERIMENT = {"arms", "contexts", *CommonSettings.__annotations__}


def left_open(name, settings, decided=frozenset()):
    """Settings of the policy, and of the base it wraps, that `settings` do not name."""
    missing = known_settings(POLICIES[name]) - DECIDED_BY_THE_EXPERIMENT - set(settings) - decided
    if "base" in settings:
        sizes = {"window", "period", "discount", "restart"} if name == "BanditOverBandit" else set()
        missing |= left_open(settings["base"], settings["base_settings"], frozenset(sizes))
    return set(missing)


# The suite of real series is about defaults, whatever they are.
@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name not in REAL_SUITE])
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
    for search in grid_searches():
        policy = search.cell(0, (0, 0)).policy
        assert left_open(policy.name, policy.settings) == set(), search.label


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


WORLD = build_world("switching/1", {"dimension": 10, "horizon": 10_000}, 0)
VARIANT = {"share": 0.2, "lowest_index": 4, "threshold": "mean_level", "test_block": False}
OPKB = {"sigma": 100.0, "failure_probability": 1e-4, "c0": 1.38, "c1": 0.1, "c2": 1.81, "c3": 0.02, "c4": 0.3125}
ADA_OPNN = {**OPKB, "c0": 4 * 1.38, "c3": 0.01, "c4": 0.625}  # their scale of mu multiplies 1/2 here too
OPNN = {**ADA_OPNN, "c1": 0.15, "c4": 0.3125}
NETWORK = {"width": 2048, "depth": 5, "steps": 100, "learning_rate": 1e-8, "weight_decay": 10.0, "normalise": False}


def built(row):
    return build_policy(row, WORLD, 0)


@pytest.mark.parametrize(
    ("row", "constants"),
    [
        (rows.OPKB_PUBLISHED, OPKB),
        (rows.ADA_OPKB_PUBLISHED, OPKB),
        (rows.ADA_OPKB_PUBLISHED_ON_DRIFT, OPKB),
        (rows.ADA_OPNN_PUBLISHED, ADA_OPNN),
        (rows.OPNN_PUBLISHED, OPNN),
        (rows.OPNN0_PUBLISHED, OPNN),
    ],
    ids=lambda value: getattr(value, "label", ""),
)
def test_constants_and_variant(row, constants):
    policy = built(row)
    assert {name: getattr(policy.constants, name) for name in constants} == constants
    assert policy.constants.scale is None
    assert {name: getattr(policy.variant, name) for name in VARIANT} == VARIANT
    assert policy.variant.good_arms_by == "initial_gain"
    kept = row.name in ("AdaOPNN", "OPNN")
    assert policy.variant.after_restart == ("kept_features" if kept else "initial_features")


@pytest.mark.parametrize(
    "row", [rows.ADA_OPNN_PUBLISHED, rows.OPNN_PUBLISHED, rows.OPNN0_PUBLISHED], ids=lambda r: r.label
)
def test_networks(row):
    assert {name: row.settings[name] for name in NETWORK} == NETWORK
    assert row.settings["train"] == (row is not rows.OPNN0_PUBLISHED)
    assert {text.settings["depth"] for text in (rows.ADA_OPNN, rows.OPNN, rows.OPNN0)} == {3}


def test_presets_for_configuration_files_are_the_same():
    assert Constants.published() == built(rows.ADA_OPKB_PUBLISHED).constants
    assert Constants.published_neural() == built(rows.ADA_OPNN_PUBLISHED).constants
    assert Constants.published_stationary() == built(rows.OPNN_PUBLISHED).constants


def test_kernel_and_first_block_of_ada_opkb():
    assert rows.ADA_OPKB_PUBLISHED_ON_DRIFT.kernel == {"name": "rbf", "length_scale": 1.0}
    policy = built(rows.ADA_OPKB_PUBLISHED)
    policy.ask()
    assert policy._levels.block_size == 39


def test_windows():
    for row, window in ((rows.SW_GPUCB_PUBLISHED, 3000), (rows.SW_GPUCB_IN_FILES, 2000), (rows.SW_GPUCB_RETUNED, 1000)):
        assert {name: row.settings[name] for name in ("ridge", "scale", "window")} == {
            "ridge": 0.05,
            "scale": 0.2,
            "window": window,
        }
    assert {name: rows.GPUCB_PUBLISHED.settings[name] for name in ("ridge", "scale")} == {"ridge": 0.05, "scale": 0.2}


def test_width_of_wgpucb_is_that_of_the_authors():
    """Their width has no division by sqrt(lambda), and the largest gain there can be."""
    policy = built(rows.WGPUCB_PUBLISHED)
    assert (policy.ridge, policy.scale, policy.discount) == (0.01, 0.5, 0.9996)
    choice = policy.ask()
    policy.tell(choice.id, 0.1)
    gain = 0.5 * design.information_gain(WORLD.arms, horizon=10_000, sigma=0.01)
    expected = 0.8 + 0.1 * (2 * (gain + 4 * 2.302585092994046)) ** 0.5
    beliefs = policy._believe()
    width = (policy._index() - beliefs.mean) / beliefs.sd
    assert width == pytest.approx([0.5 * expected] * len(WORLD.arms))
    assert expected == pytest.approx(3.86, abs=0.02)


def test_a_row_that_the_search_found_again_is_one_row_with_both_labels():
    window = rival_rows(rows.SW_GPUCB_PUBLISHED)
    assert window["published"] is window["tuned"]
    assert window["tuned"].settings == rows.SW_GPUCB_PUBLISHED.settings
    two = rival_rows(rows.SW_GPUCB_PUBLISHED, 2)
    assert [row.label for row in two.values()] == ["SW-GPUCB (published)", "SW-GPUCB (tuned)"]
    for experiment in PAPER.values():
        played = [(p.name, repr(sorted(p.settings.items())), repr(p.kernel)) for p in experiment.policies]
        assert len(set(played)) == len(played), experiment.id


def test_opkb_as_published_is_in_figure_2a():
    assert rows.OPKB_PUBLISHED in FIGURES["cosine/stationary"].policies


def test_tuned_settings_by_label():
    assert tuned_spec("SW-GPUCB", 10).name == "SlidingWindowGPUCB"
    read_settings(tuned_spec("SW-GPUCB", 10).settings)
    with pytest.raises(InputError, match="no tuned settings for 'SWGPUCB'"):
        tuned_spec("SWGPUCB", 10)


def test_quick_and_full_change_seeds_and_widths_only():
    experiment = PAPER["switching/1"]
    taste, whole = quick(experiment), full(experiment)
    assert len(taste.seeds) == 2
    assert {p.settings["width"] for p in taste.policies if p.label.startswith("ADA-OPNN")} == {256}
    assert [p.label for p in taste.policies] == [p.label for p in whole.policies]
    assert len(cells_of(whole)) == 25 * len(experiment.policies)
    assert len(cells_of(experiment)) < len(cells_of(whole))
