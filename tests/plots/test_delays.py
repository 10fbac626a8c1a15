import math

import pandas as pd
import pytest

from driftbandits.plots.delays import Dot, delay_figure, delay_panels
from driftbandits.plots.palette import line_styles

NAN = math.nan
TABLE = pd.DataFrame(
    [
        ("flip by 1.6", "A", 1.0, 8.0, 10.0, 14.0),
        ("flip by 1.6", "B", 0.5, 300.0, 400.0, 900.0),
        ("hidden", "A", 0.25, 70.0, 70.0, 70.0),
        ("hidden", "B", 0.0, NAN, NAN, NAN),
        ("partial", "A", 0.75, 20.0, 30.0, 40.0),
    ],
    columns=["change", "policy", "share_found", "lower_quartile", "median", "upper_quartile"],
)


def draw(table=TABLE):
    return delay_figure(delay_panels(table), palette=line_styles(table["policy"]))


def dots(axes):
    return [line for line in axes.lines if line.get_linestyle() == "None"]


def test_panels_have_delays_and_shares_of_every_policy_in_the_order_of_the_table():
    delays, shares = delay_panels(TABLE)
    assert delays.changes == shares.changes == ("flip by 1.6", "hidden", "partial")
    assert delays.dots["A"] == (Dot(10.0, 8.0, 14.0), Dot(70.0, 70.0, 70.0), Dot(30.0, 20.0, 40.0))
    assert [dot.value for dot in shares.dots["A"]] == [1.0, 0.25, 0.75]
    assert [math.isnan(dot.value) for dot in delays.dots["B"]] == [False, True, True]
    assert shares.dots["B"][1].value == 0.0  # played and never found, unlike the next, which was not played
    assert math.isnan(shares.dots["B"][2].value)


def test_a_dot_a_policy_and_change_beside_each_other():
    delay, share = draw().axes
    for axes in (delay, share):
        first, second = dots(axes)
        assert (second.get_ydata() - first.get_ydata()).tolist() == pytest.approx([0.24] * 3)
        assert [text.get_text() for text in axes.get_yticklabels()] == ["flip by 1.6", "hidden", "partial"]
        assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first row on top
    assert list(dots(delay)[0].get_xdata()) == [10.0, 70.0, 30.0]
    assert list(dots(share)[0].get_xdata()) == [1.0, 0.25, 0.75]
    assert (delay.get_xscale(), share.get_xscale()) == ("log", "linear")


def test_all_quartiles_are_inside():
    low, high = draw().axes[0].get_xlim()
    assert low < 8.0 < 900.0 < high


def test_axes_have_units_and_the_one_legend_every_policy():
    figure = draw()
    assert [axes.get_xlabel() for axes in figure.axes] == ["rounds, median and quartiles (log scale)", "share of runs"]
    assert [[text.get_text() for text in legend.get_texts()] for legend in figure.legends] == [["A", "B"]]


def test_a_policy_has_the_colour_of_its_look_and_a_mark_of_its_own():
    first, second = dots(draw().axes[0])
    look = line_styles(TABLE["policy"])
    assert (first.get_color(), second.get_color()) == (look["A"].colour, look["B"].colour)
    assert first.get_marker() != second.get_marker()


def test_nothing_found_can_be_drawn():
    nothing = TABLE[TABLE["share_found"] == 0.0]
    low, high = draw(nothing).axes[0].get_xlim()
    assert 0 < low < high
