"""Every row called "published" has the numbers of the authors' files, as the paper's letters spell them."""

import pytest

from driftbandits import design
from driftbandits.experiments.definitions import rows
from driftbandits.experiments.definitions.paper import FIGURES, PAPER, rival_rows
from driftbandits.experiments.running.build import build_policy, build_world
from driftbandits.policies import Constants

WORLD = build_world("switching/1", {"dimension": 10, "horizon": 10_000}, 0)
VARIANT = {"share": 0.2, "lowest_index": 4, "threshold": "mean_level", "test_block": False}
OPKB = {"sigma": 100.0, "failure_probability": 1e-4, "c0": 1.38, "c1": 0.1, "c2": 1.81, "c3": 0.02, "c4": 0.3125}
ADA_OPNN = {**OPKB, "c0": 4 * 1.38, "c3": 0.01, "c4": 0.625}  # their scale of mu multiplies 1/2 here too
OPNN = {**ADA_OPNN, "c1": 0.15, "c4": 0.3125}
NETWORK = {"width": 2048, "depth": 3, "steps": 100, "learning_rate": 1e-8, "weight_decay": 10.0, "normalise": False}


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


@pytest.mark.parametrize(
    "row", [rows.ADA_OPNN_PUBLISHED, rows.OPNN_PUBLISHED, rows.OPNN0_PUBLISHED], ids=lambda r: r.label
)
def test_networks(row):
    assert {name: row.settings[name] for name in NETWORK} == NETWORK
    assert row.settings["train"] == (row is not rows.OPNN0_PUBLISHED)


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
    for row, window in ((rows.SW_GPUCB_PUBLISHED, 3000), (rows.SW_GPUCB_RETUNED, 1000)):
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
