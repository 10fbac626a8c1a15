import numpy as np

from driftbandits.experiments.judging.slopes import Growth
from driftbandits.intervals import ConfidenceInterval
from driftbandits.plots.data import GrowthCurve, GrowthPanel, RankedRegret, RegretCurve, changes_panels, regret_panels
from driftbandits.plots.figures import growth_figure, ranking_figure, regret_figure
from driftbandits.plots.palette import line_styles


def curve(policy, end, seeds=2, changes=()):
    return RegretCurve(policy, seeds, np.array([1, 1000]), np.array([0.0, end]), np.zeros(2), np.array(changes, int))


def legends(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def drawn(curves, *, true_changes=(), ours="", **more):
    panels = regret_panels(curves, true_changes=true_changes, ours=ours)
    palette = line_styles([c.policy for c in curves])
    return regret_figure([*panels, *changes_panels(panels)], palette=palette, **more)


def test_legend_gives_ends_in_their_order_and_seeds_that_are_not_the_usual():
    figure = drawn([curve("low", 10.0), curve("middle", 20.0), curve("high", 2000.0, seeds=1)])
    assert legends(figure) == ["high, 1 seed: 2,000", "middle: 20", "low: 10"]
    assert figure.axes[0].get_ylabel() == "cumulative regret, mean of 2 seeds"


def test_a_figure_has_one_legend_for_all_panels_or_none():
    curves = [curve(name, k) for k, name in enumerate("abcdefg", start=1)]
    figure = drawn(curves, ours="ab", true_changes=[500])
    assert len(figure.legends) == 1
    assert legends(figure) == [
        *("b: 2", "a: 1", "g: 7", "f: 6", "e: 5", "d: 4", "c: 3"),
        *("the curves of the other panel", "the world jumps"),
    ]
    assert drawn(curves, legend=False).legends == []


def test_a_policy_in_two_worlds_is_named_once_without_an_end():
    world = regret_panels([curve("a", 1.0)], true_changes=())
    assert legends(regret_figure([*world, *world], palette=line_styles("a"))) == ["a"]


def test_reported_changes_have_a_panel_with_named_rows():
    figure = drawn([curve("a", 1.0, changes=[300, 310]), curve("b", 2.0)], true_changes=[250])
    main, changes = figure.axes
    ticks = np.concatenate([line.get_xdata() for line in changes.lines if len(line.get_xdata()) > 2])
    assert sorted(ticks[np.isfinite(ticks)]) == [300, 300, 310, 310]
    assert [label.get_text() for label in changes.get_yticklabels()] == ["a\n1.0 per run"]
    assert main.get_xlim() == changes.get_xlim()


def test_panels_side_by_side_have_axes_and_titles_in_line():
    curves = [curve(name, k, changes=[5] * (name == "a")) for k, name in enumerate("abcdefg", start=1)]
    figure = drawn(curves, ours="ab")
    places = {(axes.get_position().y0, axes.get_position().y1) for axes in figure.axes}
    assert (len(figure.axes), len(places)) == (3, 1)
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()


def test_curves_have_the_marks_of_their_policies():
    palette = line_styles(["a", "a (published)"])
    panels = regret_panels([curve("a", 1.0), curve("a (published)", 2.0)], true_changes=())
    lines = regret_figure(panels, palette=palette).axes[0].lines
    assert {line.get_marker() for line in lines} == {palette["a"].marker, palette["a (published)"].marker} == {"o", "s"}


def test_labels_are_no_formulas():
    assert legends(drawn([curve("_a $1$", 1.0)])) == ["\u200b_a \\$1\\$: 1"]


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
