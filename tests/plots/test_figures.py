import numpy as np

from driftbandits.experiments.judging.slopes import Growth
from driftbandits.intervals import ConfidenceInterval
from driftbandits.plots.data import GrowthCurve, GrowthPanel, RankedRegret, RegretCurve, regret_panels
from driftbandits.plots.figures import growth_figure, ranking_figure, regret_figure
from driftbandits.plots.palette import line_styles


def curve(policy, end, seeds=2, changes=()):
    return RegretCurve(policy, seeds, np.array([1, 1000]), np.array([0.0, end]), np.zeros(2), np.array(changes, int))


def legends(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_legend_gives_seeds_and_ends_in_the_order_of_the_ends():
    curves = [curve("low", 10.0), curve("high", 2000.0, seeds=1)]
    figure = regret_figure(regret_panels(curves, true_changes=()), palette=line_styles(["low", "high"]))
    assert legends(figure) == ["high, 1 seed: 2,000", "low, 2 seeds: 10"]


def test_only_policies_that_found_changes_have_a_row_of_ticks():
    curves = [curve("a", 1.0, changes=[300, 310]), curve("b", 2.0)]
    figure = regret_figure(regret_panels(curves, true_changes=[250]), palette=line_styles(["a", "b"]))
    main, strip = figure.axes
    ticks = strip.lines[0].get_xdata()
    assert sorted(ticks[np.isfinite(ticks)]) == [300, 300, 310, 310]
    assert len(strip.lines) == 3  # ticks, the sample of the line, the true jump
    assert main.get_xlim() == strip.get_xlim()


def test_panels_side_by_side_have_axes_in_line():
    curves = [curve(name, k, changes=[5] * (name == "a")) for k, name in enumerate("abcdefg", start=1)]
    figure = regret_figure(regret_panels(curves, true_changes=(), ours="ab"), palette=line_styles("abcdefg"))
    left, right = (axes.get_position() for axes in figure.axes if axes.axison)
    assert (left.y0, left.y1) == (right.y0, right.y1)
    assert figure.axes[0].get_ylim() == figure.axes[-1].get_ylim()


def test_labels_are_no_formulas():
    figure = regret_figure(regret_panels([curve("_a $1$", 1.0)], true_changes=()), palette=line_styles(["_a $1$"]))
    assert legends(figure) == ["\u200b_a \\$1\\$, 2 seeds: 1"]


def test_growth_states_the_slope_and_what_is_allowed():
    values, mean = np.array([1.0, 2.0, 4.0]), np.array([10.0, 20.0, 40.0])
    growth = Growth(ConfidenceInterval(1.0, 0.9, 1.1, 3), 1.0, 0.5, tuple(values))
    panel = GrowthPanel("segments", "L_T", 0.5, (GrowthCurve("a", 3, values, mean, np.ones(3), growth),))
    bare = GrowthPanel("few", "T", 0.5, (GrowthCurve("a", 1, values[:2], mean[:2], np.zeros(2), None),))
    figure = growth_figure([panel, bare], palette=line_styles(["a"]))
    assert legends(figure) == [
        "a, 3 seeds: slope 1.00 (0.90 to 1.10)",
        "allowed: 0.50",
        "a, 1 seed: too few points for a slope",
    ]


def test_ranking_marks_families():
    panel = RankedRegret("E", ("b", "a"), np.array([1.0, 2.0]), np.array([0.1, 0.0]))
    figure = ranking_figure([panel], families={"a": "one", "b": "two"}, palette=line_styles("ab"))
    assert legends(figure) == ["one", "two"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["b", "a"]
