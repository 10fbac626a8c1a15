"""The suite of real series: who plays, and how it is judged."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from driftbandits import datasets
from driftbandits.experiments.playing import play
from reproduction.catalogue import AUTOBANDIT
from reproduction.real_suite import DEVELOPMENT, JUDGED, REAL_SUITE, ROUNDS, judge_real_suite


def test_every_series_is_for_development_or_for_judging_and_its_length_is_written_down():
    assert sorted((*DEVELOPMENT, *JUDGED)) == sorted(datasets.names())
    for name in datasets.names():
        assert len(datasets.load(name).played(0)) == ROUNDS[name]


def test_rivals_have_their_defaults_and_a_window_of_a_tenth():
    for name, experiment in zip(ROUNDS, REAL_SUITE.values(), strict=True):
        settings = {policy.name: dict(policy.settings) for policy in experiment.policies[1:]}
        assert settings.pop("SlidingWindowGPUCB") == {"window": ROUNDS[name] // 10}
        assert settings.pop("ThompsonSampling") == {"discount": 0.999}
        assert len(settings) == 4
        assert not any(settings.values())


def _results(regrets):
    """Results with these mean regrets, by series and policy."""
    cells = pd.DataFrame(
        [
            {"experiment": f"series/{series}", "policy": policy, "seed": seed, "regret": regret + seed - 0.5}
            for series, row in regrets.items()
            for policy, regret in row.items()
            for seed in (0, 1)
        ]
    )
    return SimpleNamespace(cells=cells)


def test_each_series_counts_by_the_best_rival_there_and_losses_come_first():
    own = AUTOBANDIT.label
    judged = judge_real_suite(
        _results(
            {"flights": {own: 90.0, "a": 100.0, "b": 120.0}, "wind": {own: 300.0, "a": 200.0, "b": 150.0}},
        )
    )
    assert judged.over_best.index.tolist() == ["wind", "flights"]
    assert judged.over_best.loc["wind"].tolist() == [2.0, pytest.approx(200 / 150), 1.0]
    assert judged.means()[own] == pytest.approx(np.sqrt(0.9 * 2.0))
    assert judged.means(DEVELOPMENT)[own] == pytest.approx(0.9)
    assert judged.means(JUDGED).index[0] == "b"
    assert "| wind | 2.00 | 1.33 | 1.00 |" in judged.markdown()


def test_nothing_is_judged_before_autobandit_has_played():
    assert judge_real_suite(_results({"flights": {"a": 100.0}})) is None


@pytest.mark.slow
def test_the_judgement_is_that_of_the_runs():
    experiment = REAL_SUITE["series/digits"]
    few = dataclasses.replace(experiment, policies=experiment.policies[:3], seeds=(0,))
    judged = judge_real_suite(play([few]))
    cells = play([few]).cells.set_index("policy")["regret"]
    best = cells.drop(AUTOBANDIT.label).min()
    assert judged.over_best.loc["digits", AUTOBANDIT.label] == cells[AUTOBANDIT.label] / best
