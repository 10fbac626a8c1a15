from driftbandits.experiments.definitions.catalogue import PAPER
from driftbandits.plots.palette import ALGORITHMS, SPARE, STYLES, looks


def test_no_two_policies_of_a_figure_look_alike():
    found = looks(*([policy.label for policy in experiment.policies] for experiment in PAPER.values()))
    for experiment in PAPER.values():
        here = [found[policy.label] for policy in experiment.policies]
        assert len(set(here)) == len(here), experiment.id


def test_published_is_dashed_and_the_rest_solid_whatever_the_order():
    for labels in (["A (odd)", "A (published)", "A"], ["A", "A (published)", "A (odd)"]):
        found = looks(labels)
        assert (found["A"].style, found["A (published)"].style) == (STYLES[0], STYLES[1])
        assert found["A (odd)"].style == STYLES[2]


def test_a_known_algorithm_has_its_colour_whoever_else_is_there():
    assert looks(["x", "y", "OPKB"])["OPKB"].colour == ALGORITHMS["OPKB"]
    assert len(set(ALGORITHMS.values()) | set(SPARE)) == len(ALGORITHMS) + len(SPARE)


def test_more_variants_than_styles_still_have_a_look():
    assert len(looks([f"A ({k})" for k in range(20)])) == 20


def test_variants_that_never_meet_may_both_be_solid():
    found = looks(["A (tuned)", "A (published)"], ["A"])
    assert found["A"] == found["A (tuned)"]
    assert looks(["A (tuned)", "A"])["A (tuned)"].style == STYLES[2]
