import numpy as np

from driftbandits.experiments.judging.slopes import Growth
from driftbandits.intervals import ConfidenceInterval
from driftbandits.plots.data import GrowthCurve, GrowthPanel
from driftbandits.plots.palette import line_styles
from driftbandits.plots.slopes import slopes_figure


def curve(policy, slope, allowed):
    growth = None if slope is None else Growth(slope, 0.5, allowed, (1.0, 2.0, 4.0))
    values = np.array([1.0, 2.0, 4.0])
    return GrowthCurve(policy, 5, values, values, np.zeros(3), growth)


def test_every_policy_has_a_dot_an_interval_and_a_bar():
    within = curve("ADA-OPKB", ConfidenceInterval(0.4, 0.3, 0.5, 5), 0.6)
    one_seed = curve("GPUCB", ConfidenceInterval(0.7, np.nan, np.nan, 1), 0.75)
    unmeasured = curve("Uniform", None, 1.0)
    panel = GrowthPanel("Rounds", "T", 0.5, (within, one_seed, unmeasured))
    figure = slopes_figure([panel], palette=line_styles(["ADA-OPKB", "GPUCB", "Uniform"]))
    (axes,) = figure.axes
    drawn = [(line.get_xdata(), line.get_marker()) for line in axes.lines]
    places = sorted(float(x) for xs, marker in drawn if marker in ("o", "|") for x in np.atleast_1d(xs))
    assert places == [0.4, 0.6, 0.7, 0.75]
    assert [list(xs) for xs, marker in drawn if marker == "None"] == [[0.3, 0.5]]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ADA-OPKB", "GPUCB", "Uniform"]
    bars = [(bar.get_y() + bar.get_height() / 2, bar.get_x() + bar.get_width()) for bar in axes.patches]
    np.testing.assert_allclose(bars, [(0, 0.6), (1, 0.75)])  # green ends at what is allowed


def test_one_legend_serves_all_sweeps_and_symbols_are_formulas():
    panel = GrowthPanel("Segments", "L_T", 0.5, (curve("A", ConfidenceInterval(0.4, 0.3, 0.5, 5), 0.6),))
    figure = slopes_figure([panel] * 4, palette=line_styles(["A"]))
    assert len(figure.legends) == 1
    assert {axes.get_xlabel() for axes in figure.axes} == {"slope of log regret over log $L_T$"}
    assert slopes_figure([panel], palette=line_styles(["A"]), legend=False).legends == []
    corners = {(round(axes.get_position().x0, 3), round(axes.get_position().y0, 3)) for axes in figure.axes}
    assert len({x for x, _ in corners}) == len({y for _, y in corners}) == 2  # four panels: two by two
