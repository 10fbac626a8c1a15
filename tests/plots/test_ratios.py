import math

import pandas as pd

from driftbandits.plots.ratios import ratio_figure, ratio_rows

TABLE = pd.DataFrame(
    {"world": ["slow/d2", "slow/d10", "flip-1/d2", "level-3/d3"], "over_window": [0.5, 0.8, 1.6, math.nan]}
)


def draw(table=TABLE):
    return ratio_figure(ratio_rows(table, "over_window"), limit=1.5, subject="mine", rival="tuned window")


def test_rows_have_the_worst_world_first_and_leave_out_what_was_not_played():
    rows = ratio_rows(TABLE, "over_window")
    assert [(row.world, dict(row.ratios)) for row in rows] == [
        ("flip-1", {"d2": 1.6}),
        ("slow", {"d2": 0.5, "d10": 0.8}),
    ]


def test_a_dot_a_world_and_dimension_with_lines_at_one_and_at_the_limit():
    (axes,) = draw().axes
    dots = {line.get_color(): list(line.get_xdata()) for line in axes.lines if line.get_linestyle() == "None"}
    assert sorted(dots.values()) == [[0.8], [1.6, 0.5]]
    assert [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() != "None"] == [1.0, 1.5]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["flip-1", "slow"]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first row on top
    assert axes.get_xscale() == "log"


def test_all_dots_and_lines_are_inside_however_far_apart():
    far = pd.DataFrame({"world": ["a/d2", "b/d3"], "over_window": [0.02, 30.0]})
    low, high = draw(far).axes[0].get_xlim()
    assert low < 0.02 < 30.0 < high
    low, high = draw(far.assign(over_window=0.3)).axes[0].get_xlim()
    assert high > 1.5


def test_the_legend_names_the_dimensions_that_were_played():
    (legend,) = draw().legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["d = 10", "d = 2", "most allowed where the world changes, 1.5"]
