import dataclasses

import numpy as np
import pandas as pd
import pytest

from driftbandits._util.intervals import ConfidenceInterval
from driftbandits.plots.frame import line_styles
from driftbandits.plots.regret import (
    MOST_CURVES_PER_PANEL,
    RegretCurve,
    changes_panels,
    regret_curves,
    regret_figure,
    regret_panels,
    tick_rounds,
)
from reproduction.figures import (
    GrowthCurve,
    GrowthPanel,
    RankedRegret,
    growth_figure,
    growth_panel,
    ranked_regret,
    ranking_figure,
)
from reproduction.growth import SWEEPS
from reproduction.sweeps import Growth


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


def drawn_curve(policy, end, seeds=2, changes=()):
    return RegretCurve(policy, seeds, np.array([1, 1000]), np.array([0.0, end]), np.zeros(2), np.array(changes, int))


def legends(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def drawn(curves, *, true_changes=(), ours="", **more):
    panels = regret_panels(curves, true_changes=true_changes, ours=ours)
    palette = line_styles([c.policy for c in curves])
    return regret_figure([*panels, *changes_panels(panels)], palette=palette, **more)


def test_legend_gives_ends_in_their_order_and_seeds_that_are_not_the_usual():
    figure = drawn([drawn_curve("low", 10.0), drawn_curve("middle", 20.0), drawn_curve("high", 2000.0, seeds=1)])
    assert legends(figure) == ["high, 1 seed: 2,000", "middle: 20", "low: 10"]
    assert figure.axes[0].get_ylabel() == "cumulative regret, mean of 2 seeds"


def test_a_figure_has_one_legend_for_all_panels_or_none():
    curves = [drawn_curve(name, k) for k, name in enumerate("abcdefg", start=1)]
    figure = drawn(curves, ours="ab", true_changes=[500])
    assert len(figure.legends) == 1
    assert legends(figure) == [
        *("b: 2", "a: 1", "g: 7", "f: 6", "e: 5", "d: 4", "c: 3"),
        *("the curves of the other panel", "the world jumps"),
    ]
    assert drawn(curves, legend=False).legends == []


def test_a_policy_in_two_worlds_is_named_once_without_an_end():
    world = regret_panels([drawn_curve("a", 1.0)], true_changes=())
    assert legends(regret_figure([*world, *world], palette=line_styles("a"))) == ["a"]


def test_reported_changes_have_a_panel_with_named_rows():
    figure = drawn([drawn_curve("a", 1.0, changes=[300, 310]), drawn_curve("b", 2.0)], true_changes=[250])
    main, changes = figure.axes
    ticks = np.concatenate([line.get_xdata() for line in changes.lines if len(line.get_xdata()) > 2])
    assert sorted(ticks[np.isfinite(ticks)]) == [300, 300, 310, 310]
    assert [label.get_text() for label in changes.get_yticklabels()] == ["a\n1.0 per run"]
    assert main.get_xlim() == changes.get_xlim()


def test_panels_side_by_side_have_axes_and_titles_in_line():
    curves = [drawn_curve(name, k, changes=[5] * (name == "a")) for k, name in enumerate("abcdefg", start=1)]
    figure = drawn(curves, ours="ab")
    places = {(axes.get_position().y0, axes.get_position().y1) for axes in figure.axes}
    assert (len(figure.axes), len(places)) == (3, 1)
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()


def test_curves_have_the_marks_of_their_policies():
    palette = line_styles(["a", "a (published)"])
    panels = regret_panels([drawn_curve("a", 1.0), drawn_curve("a (published)", 2.0)], true_changes=())
    lines = regret_figure(panels, palette=palette).axes[0].lines
    assert {line.get_marker() for line in lines} == {palette["a"].marker, palette["a (published)"].marker} == {"o", "s"}


def test_labels_are_no_formulas():
    assert legends(drawn([drawn_curve("_a $1$", 1.0)])) == ["\u200b_a \\$1\\$: 1"]


def test_growth_has_lines_of_the_fitted_and_of_the_allowed_slope():
    values, mean = np.array([1.0, 2.0, 4.0]), np.array([10.0, 20.0, 40.0])
    growth = Growth(ConfidenceInterval(1.0, 0.9, 1.1, 3), 1.0, 0.5, tuple(values))
    panel = GrowthPanel("segments", "L_T", 0.5, (GrowthCurve("a", 3, values, mean, np.ones(3), growth),))
    bare = GrowthPanel("few", "T", 0.5, (GrowthCurve("a", 1, values[:2], mean[:2], np.zeros(2), None),))
    figure = growth_figure([panel, bare], palette=line_styles(["a"]))
    assert legends(figure) == ["a", "fitted slope", "steepest slope that the bound allows"]
    lines = {line.get_linestyle(): line.get_ydata() for line in figure.axes[0].lines if line.get_linestyle() in "-:"}
    np.testing.assert_allclose(lines["-"], [10, 20, 40])
    np.testing.assert_allclose(lines[":"][2] / lines[":"][0], 2.0)  # 4 to the power of 0.5
    assert [axes.get_xlabel() for axes in figure.axes] == ["segments $L_T$", "rounds $T$"]


def test_ranking_marks_families():
    panel = RankedRegret("E", ("b", "a"), np.array([1.0, 2.0]), np.array([0.1, 0.0]))
    figure = ranking_figure([panel], families={"a": "one", "b": "two"}, palette=line_styles("ab"))
    assert legends(figure) == ["one", "two"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["b", "a"]
