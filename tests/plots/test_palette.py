from driftbandits.plots.frame import COLOURS, DASHES, OTHER_COLOURS, line_styles
from reproduction.paper import PAPER


def test_no_two_policies_of_a_figure_look_alike():
    found = line_styles(*([policy.label for policy in experiment.policies] for experiment in PAPER.values()))
    for experiment in PAPER.values():
        here = [found[policy.label] for policy in experiment.policies]
        assert len(set(here)) == len(here), experiment.id


def test_published_is_dashed_and_the_rest_solid_whatever_the_order():
    for labels in (["A (odd)", "A (published)", "A"], ["A", "A (published)", "A (odd)"]):
        found = line_styles(labels)
        assert (found["A"].dashes, found["A (published)"].dashes) == (DASHES[0], DASHES[1])
        assert found["A (odd)"].dashes == DASHES[2]


def test_variants_differ_in_shade_and_mark_not_in_dashes_alone():
    for labels in (["OPKB", "OPKB (published)", "OPKB (odd)"], ["GPUCB (tuned)", "GPUCB (published)"]):
        found = line_styles(labels).values()
        assert len({style.colour for style in found}) == len({style.marker for style in found}) == len(labels)


def test_no_two_policies_of_a_figure_share_their_colour():
    found = line_styles(*([policy.label for policy in experiment.policies] for experiment in PAPER.values()))
    for experiment in PAPER.values():
        colours = [found[policy.label].colour for policy in experiment.policies]
        assert len(set(colours)) == len(colours), experiment.id


def test_a_known_algorithm_has_its_colour_whoever_else_is_there():
    assert line_styles(["x", "y", "OPKB"])["OPKB"].colour == COLOURS["OPKB"]
    assert not set(COLOURS.values()) & set(OTHER_COLOURS)
    assert len(set(OTHER_COLOURS)) == len(OTHER_COLOURS)


def test_more_variants_than_styles_still_have_a_look():
    assert len(line_styles([f"A ({k})" for k in range(20)])) == 20


def test_variants_that_never_meet_may_both_be_solid():
    found = line_styles(["A (tuned)", "A (published)"], ["A"])
    assert found["A"] == found["A (tuned)"]
    assert line_styles(["A (theory)"])["A (theory)"].dashes == DASHES[0]
    assert line_styles(["A (tuned)", "A"])["A (tuned)"].dashes == DASHES[2]


def test_class_names_have_the_colours_of_labels():
    found = line_styles(["AdaOPKB", "ADA-OPKB"])
    assert found["AdaOPKB"].colour == found["ADA-OPKB"].colour
