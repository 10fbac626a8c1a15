"""The banner is there while something is less than in the paper, and goes away with it."""

import dataclasses

from driftbandits.experiments.definitions.lengths import quick
from driftbandits.experiments.definitions.paper import FIGURES
from driftbandits.experiments.groups.judgements import Judgements
from driftbandits.experiments.judging.checks import Check, Claim
from driftbandits.report.banner import banner
from driftbandits.report.context import ReportContext
from tests.report.made_up import own_experiment, results_of


def judged(*seeds):
    checks = tuple(Check("T", ("any",), "s", 0.0, 0.0, 0.0, "regret", n, 25, "holds", "") for n in seeds)

    class Judged(Judgements):
        claims = (Claim("T", "1", "Something.", checks),)

    return Judged()


def test_few_seeds_are_said_to_be_few(tmp_path):
    results = results_of([own_experiment()])
    assert banner(ReportContext(results, tmp_path, judged(25, 8, 2))) == (
        "2 of 3 comparisons have fewer seeds than the paper’s (the fewest: 2 of 25)."
    )
    assert banner(ReportContext(results, tmp_path, judged(25, 30))) == ""
    assert banner(ReportContext(results, tmp_path, judged(25, 0))) == ""  # not played: said elsewhere


def test_narrow_networks_are_said_to_be_narrow(tmp_path):
    figure = FIGURES["switching/1"]
    for experiment, words in ((quick(figure), "networks are 256 wide instead of 2,048."), (figure, "")):
        short = dataclasses.replace(experiment, seeds=(0,))
        assert banner(ReportContext(results_of([short]), tmp_path)) == words
