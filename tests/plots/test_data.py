import dataclasses

import numpy as np
import pandas as pd
import pytest

from driftbandits.experiments.definitions.growth import SWEEPS
from driftbandits.plots.data import (
    MOST_CURVES_PER_PANEL,
    RegretCurve,
    changes_panels,
    growth_panel,
    ranked_regret,
    regret_curves,
    regret_panels,
    tick_rounds,
)


def curve(policy, end=1.0, changes=()):
    return RegretCurve(policy, 2, np.array([1, 10]), np.array([0.0, end]), np.array([0.0, 0.5]), np.array(changes, int))


@pytest.fixture
def tables():
    points = [("e", "a", s, r, 10.0 * s + r) for s in (0, 1) for r in (1, 2)] + [("e", "b", 0, r, r) for r in (1, 2)]
    curves = pd.DataFrame(points, columns=["experiment", "policy", "seed", "round", "regret"])
    cells = pd.DataFrame(
        [("e", "a", 0, 2.0, [2]), ("e", "a", 1, 12.0, [1, 2]), ("e", "b", 0, 2.0, []), ("f", "a", 0, 9.0, [7])],
        columns=["experiment", "policy", "seed", "regret", "changes"],
    )
    return curves, cells


def test_curves_are_means_over_seeds_with_standard_errors(tables):
    first, second = regret_curves(*tables, "e")
    assert (first.policy, first.seeds, second.policy, second.seeds) == ("a", 2, "b", 1)
    np.testing.assert_allclose(first.mean, [6.0, 7.0])
    np.testing.assert_allclose(first.standard_error, [5.0, 5.0])
    np.testing.assert_array_equal(first.changes, [1, 2, 2])
    np.testing.assert_array_equal(second.standard_error, [0.0, 0.0])  # one seed
    assert regret_curves(*tables, "none") == []


def test_few_policies_share_a_panel():
    (panel,) = regret_panels([curve("a", 3.0), curve("b", 7.0)], true_changes=[9, 4, 5], ours={"a"})
    assert (panel.title, panel.others, panel.spans, panel.horizon, panel.top) == ("", (), ((4, 5), (9, 9)), 10, 7.5)


def test_many_policies_are_parted_and_shown_behind_each_other():
    curves = [curve(name, k) for k, name in enumerate("abcdefgh")]
    ours, rivals = regret_panels(curves, true_changes=(), ours={"a", "c"})
    assert [c.policy for c in ours.curves] == ["a", "c"]
    assert [c.policy for c in ours.others] == list("bdefgh") == [c.policy for c in rivals.curves]
    assert ours.top == rivals.top == 7.5


def test_what_goes_beyond_the_paper_stands_beside_its_rivals_and_the_title_says_so():
    curves = [curve(name) for name in "abcdef"]
    titles = [
        regret_panels(curves, true_changes=(), ours="ab", beyond=beyond)[1].title for beyond in ("", "ef", "cdef")
    ]
    assert titles == ["Rivals", "Rivals, and beyond the paper", "Beyond the paper"]


def test_changes_have_a_panel_with_those_who_reported_any():
    curves = [curve(name, changes=[3] * (name in "bf")) for name in "abcdefg"]
    (panel,) = changes_panels(regret_panels(curves, true_changes=[4], ours="ab"))
    assert [c.policy for c in panel.curves] == ["b", "f"]
    assert (panel.spans, panel.horizon) == (((4, 4),), 10)
    assert changes_panels(regret_panels([curve("a")], true_changes=[4])) == []


def test_no_panel_is_crowded_and_no_curve_is_lost():
    curves = [curve(str(k)) for k in range(27)]
    panels = regret_panels(curves, true_changes=())
    assert [c.policy for panel in panels for c in panel.curves] == [c.policy for c in curves]
    assert max(len(panel.curves) for panel in panels) <= MOST_CURVES_PER_PANEL
    assert panels[0].title == "Policies (1 of 4)"


def test_nothing_to_show_is_no_panel():
    assert regret_panels([], true_changes=()) == []


def test_ticks_are_as_many_as_can_be_told_apart():
    assert len(tick_rounds(curve("a", changes=range(10_000)), 10_000)) == 500
    assert len(tick_rounds(curve("a"), 10)) == 0


def test_ranking_has_the_best_first(tables):
    ranking = ranked_regret(tables[1], "e", title="E")
    assert ranking.policies == ("b", "a")
    np.testing.assert_allclose(ranking.mean, [2.0, 7.0])
    np.testing.assert_allclose(ranking.standard_error, [0.0, 5.0])


def test_growth_has_means_and_the_slope_of_a_power_law():
    sweep = next(s for s in SWEEPS if s.symbol == "L_T")
    policy = sweep.experiments[0].policies[0]
    rows = [
        (e.id, policy.label, seed, (1 + seed) * value**0.4)
        for value, e in zip(sweep.values, sweep.experiments, strict=True)
        for seed in range(3)
    ]
    cells = pd.DataFrame(rows, columns=["experiment", "policy", "seed", "regret"])
    panel = growth_panel(cells, sweep)
    (found,) = panel.curves  # the others have not played
    np.testing.assert_allclose(found.mean, 2 * np.array(sweep.values) ** 0.4)
    assert found.growth.slope.estimate == pytest.approx(0.4)
    assert (found.seeds, panel.rate) == (3, 0.5)
    assert found.growth.allowed == pytest.approx(0.5)
    short = dataclasses.replace(sweep, values=sweep.values[:2], experiments=sweep.experiments[:2])
    assert growth_panel(cells, short).curves[0].growth is None
