import math

import numpy as np
import pandas as pd
import pytest

from driftbandits._util.intervals import ConfidenceInterval
from driftbandits.plots.frame import line_styles
from reproduction.figures import (
    Dot,
    GrowthCurve,
    GrowthPanel,
    delay_figure,
    delay_panels,
    ratio_figure,
    ratio_rows,
    slopes_figure,
)
from reproduction.sweeps import Growth

NAN = math.nan
DELAYS = pd.DataFrame(
    [
        ("flip by 1.6", "A", 1.0, 8.0, 10.0, 14.0),
        ("flip by 1.6", "B", 0.5, 300.0, 400.0, 900.0),
        ("hidden", "A", 0.25, 70.0, 70.0, 70.0),
        ("hidden", "B", 0.0, NAN, NAN, NAN),
        ("partial", "A", 0.75, 20.0, 30.0, 40.0),
    ],
    columns=["change", "policy", "share_found", "lower_quartile", "median", "upper_quartile"],
)


def draw_delays(table=DELAYS):
    return delay_figure(delay_panels(table), palette=line_styles(table["policy"]))


def dots(axes):
    return [line for line in axes.lines if line.get_linestyle() == "None"]


def test_panels_have_delays_and_shares_of_every_policy_in_the_order_of_the_table():
    delays, shares = delay_panels(DELAYS)
    assert delays.changes == shares.changes == ("flip by 1.6", "hidden", "partial")
    assert delays.dots["A"] == (Dot(10.0, 8.0, 14.0), Dot(70.0, 70.0, 70.0), Dot(30.0, 20.0, 40.0))
    assert [dot.value for dot in shares.dots["A"]] == [1.0, 0.25, 0.75]
    assert [math.isnan(dot.value) for dot in delays.dots["B"]] == [False, True, True]
    assert shares.dots["B"][1].value == 0.0  # played and never found, unlike the next, which was not played
    assert math.isnan(shares.dots["B"][2].value)


def test_a_dot_a_policy_and_change_beside_each_other():
    delay, share = draw_delays().axes
    for axes in (delay, share):
        first, second = dots(axes)
        assert (second.get_ydata() - first.get_ydata()).tolist() == pytest.approx([0.24] * 3)
        assert [text.get_text() for text in axes.get_yticklabels()] == ["flip by 1.6", "hidden", "partial"]
        assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first row on top
    assert list(dots(delay)[0].get_xdata()) == [10.0, 70.0, 30.0]
    assert list(dots(share)[0].get_xdata()) == [1.0, 0.25, 0.75]
    assert (delay.get_xscale(), share.get_xscale()) == ("log", "linear")


def test_all_quartiles_are_inside():
    low, high = draw_delays().axes[0].get_xlim()
    assert low < 8.0 < 900.0 < high


def test_axes_have_units_and_the_one_legend_every_policy():
    figure = draw_delays()
    assert [axes.get_xlabel() for axes in figure.axes] == ["rounds, median and quartiles (log scale)", "share of runs"]
    assert [[text.get_text() for text in legend.get_texts()] for legend in figure.legends] == [["A", "B"]]


def test_a_policy_has_the_colour_of_its_look_and_a_mark_of_its_own():
    first, second = dots(draw_delays().axes[0])
    look = line_styles(DELAYS["policy"])
    assert (first.get_color(), second.get_color()) == (look["A"].colour, look["B"].colour)
    assert first.get_marker() != second.get_marker()


def test_nothing_found_can_be_drawn():
    nothing = DELAYS[DELAYS["share_found"] == 0.0]
    low, high = draw_delays(nothing).axes[0].get_xlim()
    assert 0 < low < high


RATIOS = pd.DataFrame(
    {"world": ["slow/d2", "slow/d10", "flip-1/d2", "level-3/d3"], "over_window": [0.5, 0.8, 1.6, math.nan]}
)


def draw_ratios(table=RATIOS):
    return ratio_figure(ratio_rows(table, "over_window"), limit=1.5, subject="mine", rival="tuned window")


def test_rows_have_the_worst_world_first_and_leave_out_what_was_not_played():
    rows = ratio_rows(RATIOS, "over_window")
    assert [(row.world, dict(row.ratios)) for row in rows] == [
        ("flip-1", {"d2": 1.6}),
        ("slow", {"d2": 0.5, "d10": 0.8}),
    ]


def test_a_dot_a_world_and_dimension_with_lines_at_one_and_at_the_limit():
    (axes,) = draw_ratios().axes
    dots = {line.get_color(): list(line.get_xdata()) for line in axes.lines if line.get_linestyle() == "None"}
    assert sorted(dots.values()) == [[0.8], [1.6, 0.5]]
    assert [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() != "None"] == [1.0, 1.5]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["flip-1", "slow"]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first row on top
    assert axes.get_xscale() == "log"


def test_all_dots_and_lines_are_inside_however_far_apart():
    far = pd.DataFrame({"world": ["a/d2", "b/d3"], "over_window": [0.02, 30.0]})
    low, high = draw_ratios(far).axes[0].get_xlim()
    assert low < 0.02 < 30.0 < high
    low, high = draw_ratios(far.assign(over_window=0.3)).axes[0].get_xlim()
    assert high > 1.5


def test_the_legend_names_the_dimensions_that_were_played():
    (legend,) = draw_ratios().legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["d = 10", "d = 2", "most allowed where the world changes, 1.5"]


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
