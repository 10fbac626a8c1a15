import dataclasses

import pytest

from driftbandits.experiments.definitions.linear import LINEAR
from driftbandits.experiments.definitions.linear_growth import LINEAR_SWEEPS
from driftbandits.experiments.groups.judgements import judge
from driftbandits.experiments.judging.linear import LinearJudgement, judge_linear
from driftbandits.experiments.judging.results import collect
from tests.experiments.judging.made_up_results import noise, played

ONE_SWITCH = dataclasses.replace(LINEAR["linear/one-switch/d5"], seeds=tuple(range(6)))


def claim(results, name):
    return next(c for c in judge_linear(results).claims if c.id == name)


def checks_here(results, name, label):
    return [
        c for c in claim(results, name).checks if c.verdict != "not run" and c.statement.startswith(f"{label} minus")
    ]


def along(sweep, slopes):
    """Regret with the slope of each label, 0.1 where none is given."""
    values = {e.id: value for value, e in zip(sweep.values, sweep.experiments, strict=True)}

    def regret(name, label, seed):
        return 100 * values[name] ** slopes.get(label, 0.1) * (1 + 0.001 * noise(f"{name}{label}", seed))

    return played(sweep.experiments, regret)


def test_nothing_played_is_not_judged():
    assert judge_linear(collect([], [])) is None


@pytest.mark.parametrize(
    ("sweep", "slope", "verdict"),
    [(LINEAR_SWEEPS[0], 0.49, "holds"), (LINEAR_SWEEPS[0], 0.55, "does not hold"), (LINEAR_SWEEPS[5], 0.6, "holds")],
)
def test_growth_is_judged_by_the_minimax_rate(sweep, slope, verdict):
    found = claim(along(sweep, {"ADA-OPKB": slope}), "LB-1")
    mine = next(c for c in found.checks if c.settings == ("ADA-OPKB",) and c.verdict != "not run")
    assert mine.verdict == verdict
    assert mine.estimate == pytest.approx(slope, abs=0.01)
    assert ("gamma_T" in mine.note) == (sweep.symbol == "T")


def test_each_rival_is_judged_by_its_own_bound():
    slopes = {"D-LinUCB (theory)": 0.7, "LinUCB+MASTER (theory)": 0.7}
    found = {c.statement.partition(",")[0]: c for c in claim(along(LINEAR_SWEEPS[0], slopes), "LB-2").checks}
    assert found["D-LinUCB (theory)"].verdict == "holds"
    assert found["LinUCB+MASTER (theory)"].verdict == "does not hold"
    assert len(found) == 8


@pytest.mark.parametrize(("regret", "verdict"), [(190.0, "holds"), (210.0, "does not hold")])
def test_keeping_up_is_at_most_twice_the_best_rival(regret, verdict):
    own = {"ADA-OPKB": regret, "SW-LinUCB (tuned)": 100.0}
    results = played([ONE_SWITCH], lambda _, label, seed: own.get(label, 900.0) + noise(label, seed))
    told, tuned = checks_here(results, "LB-3", "ADA-OPKB")
    assert tuned.verdict == verdict
    assert "2 times SW-LinUCB (tuned)" in tuned.statement
    assert told.verdict == "holds"


def test_those_told_nothing_are_compared_one_by_one():
    own = {"ADA-OPKB": 300.0, "LinUCB+MASTER (theory)": 200.0}
    results = played([ONE_SWITCH], lambda _, label, seed: own.get(label, 900.0) + noise(label, seed))
    found = {c.statement: c.verdict for c in checks_here(results, "LB-4", "ADA-OPKB")}
    assert sorted(found.values()) == ["does not hold", "holds", "holds", "holds"]
    assert next(s for s, v in found.items() if v == "does not hold").startswith("ADA-OPKB minus LinUCB+MASTER")


def test_two_seeds_decide_nothing():
    results = played([dataclasses.replace(ONE_SWITCH, seeds=(0, 1))], lambda _, label, seed: 100.0 + noise(label, seed))
    given = [c for c in claim(results, "LB-4").checks if c.verdict != "not run"]
    assert {c.verdict for c in given} == {"undecided"}
    assert all("fewer than 3 seeds" in c.note for c in given)


def test_it_is_one_of_the_judgements_with_a_file_of_its_own():
    results = played([ONE_SWITCH], lambda _, label, seed: 100.0 + noise(label, seed))
    found = judge(results)
    assert [type(one) for one in found.each] == [LinearJudgement]
    assert "| LB-3 |" in found.files["linear.md"]
