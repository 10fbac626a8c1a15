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
