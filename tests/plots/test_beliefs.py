"""The figure of what a policy believes: what is drawn, and that few arms have colours."""

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import InputError
from driftbandits.plots.belief_lines import belief_lines


@pytest.fixture(scope="module")
def policy():
    arms = db.ArmSet(np.linspace(0, 1, 12)[:, None], names=[f"option {k}" for k in range(12)])
    policy = db.AutoBandit(arms, seed=0)
    rng = np.random.default_rng(0)
    for now in range(500):
        choice = policy.ask()
        best = 3 if now < 250 else 9
        policy.tell(choice, 0.5 - 0.08 * abs(choice.arm - best) + 0.05 * rng.standard_normal())
    return policy


def test_few_arms_have_colours_and_bands_the_rest_is_grey(policy):
    panel = belief_lines(policy, coloured=4)
    coloured = [line for line in panel.lines if line.colour is not None]
    assert len(coloured) == 4
    assert panel.grey == 8
    assert len({line.colour for line in coloured}) == 4
    assert all(line.low is not None for line in coloured)
    assert all(line.low is None for line in panel.lines if line.colour is None)
    assert {"option 3", "option 9"} <= {line.name for line in coloured}
    assert all(line.colour is not None for line in belief_lines(policy, coloured=12).lines[-8:])
    assert belief_lines(policy, coloured=12).grey == 4


def test_lines_are_the_history_and_marks_the_changes(policy):
    panel = belief_lines(policy, coloured=6)
    history = policy.history
    assert panel.rounds.tolist() == history.rounds.tolist()
    for line in panel.lines:
        assert np.array_equal(line.estimate, history.estimate[:, history.names.index(line.name)], equal_nan=True)
    assert panel.changes == tuple((change.interval[0], change.round) for change in policy.changes)
    assert len(panel.changes) >= 1


def test_a_figure_is_drawn_for_policies_with_and_without_bands(policy, tmp_path):
    for each in (policy, db.OPKB(policy.arms, horizon=100, seed=0), db.Uniform(db.ArmSet([[0.0]]))):
        figure = db.plots.beliefs(each)
        figure.savefig(tmp_path / "beliefs.png")
        assert figure.axes[0].get_xlabel() == "round"


def test_names_do_not_overlap(policy):
    axes = db.plots.beliefs(policy, coloured=8).axes[0]
    heights = sorted(text.get_position()[1] for text in axes.texts)
    assert len(heights) == 8
    assert np.diff(heights).min() > 0.05


def test_only_policies_have_beliefs():
    with pytest.raises(InputError, match="wants a policy, got str"):
        db.plots.beliefs("policy")
