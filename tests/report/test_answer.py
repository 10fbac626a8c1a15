"""The sentences of the answer follow from the verdicts."""

import pytest

from driftbandits.experiments.definitions.ids import ENVIRONMENT_2
from driftbandits.experiments.groups.judgements import Judgements
from driftbandits.experiments.judging.checks import Check, Claim
from driftbandits.experiments.judging.claims import check_claims
from driftbandits.experiments.judging.linear import check_linear_claims
from driftbandits.experiments.judging.results import collect
from driftbandits.report.answer import THEMES, findings, least_regret, make_answer
from driftbandits.report.context import ReportContext
from tests.experiments.judging.made_up_results import all_seeds, noise, played
from tests.report.made_up import own_experiment, results_of


def claim(name, *verdicts, text="Something else."):
    """A claim with one check per setting."""
    checks = [
        Check(name, (f"setting {k}",), "s", -1.0, -2.0, 0.0, "regret", 3, 3, verdict, "")
        for k, verdict in enumerate(verdicts)
    ]
    return Claim(name, "1", text, tuple(checks))


def sentence(*claims):
    (found,) = findings(claims)
    return found.text


def test_a_sentence_says_what_became_of_each_claim():
    text = sentence(claim("T1", "holds"), claim("T2", "does not hold"), claim("T3", "undecided"))
    assert text == (
        "Of how fast regret grows, it holds that ADA-OPKB keeps to its bound in rounds, segments, variation and "
        "dimension; "
        "it does not hold that OPKB and OPNN keep to their bound where nothing changes; "
        "undecided is whether the kernel rivals keep to their own bounds."
    )


def test_other_verdicts_make_other_sentences():
    seen = {sentence(claim("LB-1", first), claim("LB-2", second)) for first in VERDICTS for second in VERDICTS}
    assert len(seen) == len(VERDICTS) ** 2


VERDICTS = ("holds", "does not hold", "undecided")


def test_what_depends_on_settings_names_them():
    assert "depends on the settings (yes with setting 0; no with setting 1)" in sentence(
        claim("F1a-2", "holds", "does not hold")
    )


def test_what_was_not_played_is_said_to_be_and_a_theme_without_runs_is_left_out():
    (found,) = findings([claim("LB-1", "holds"), claim("LB-2", "not run"), claim("T1", "not run")])
    assert found.text.endswith("minimax rate; the rest was not played.")
    assert [mark.verdict.word for mark in found.marks] == ["holds", "not run"]


def test_a_claim_that_no_theme_knows_is_told_in_its_own_words():
    assert sentence(claim("X", "holds", text="Bandits are fun.")) == "Besides, it holds that Bandits are fun."


def test_every_claim_has_a_theme():
    nothing = collect([], [])
    themed = [name for theme in THEMES for name in theme.clauses]
    assert sorted(themed) == sorted(c.id for c in [*check_claims(nothing), *check_linear_claims(nothing)])


@pytest.mark.parametrize(("ours", "found"), [(100.0, "it holds"), (900.0, "it does not hold")])
def test_the_answer_turns_with_the_results(ours, found):
    def regret(_, label, seed):
        return (ours if label.startswith("ADA") else 400.0) + noise(label, seed)

    results = played([all_seeds(ENVIRONMENT_2, 4)], regret)
    (first,) = findings(check_claims(results, sweeps=()))
    assert f"{found} that SW-GPUCB loses to ADA-OPKB and ADA-OPNN on environment 2" in first.text
    assert {mark.id for mark in first.marks} == {"F1b-1", "F1b-2", "F2b-1"}


def test_the_least_regret_is_told_where_all_have_played(tmp_path):
    world = all_seeds(ENVIRONMENT_2, 1)
    best = world.policies[3].label
    whole = played([world], lambda _, label, __: 1.0 if label == best else 2.0)
    assert least_regret(ReportContext(whole, tmp_path)) == (
        f"Of all that played, the least mean regret has {best} on environment 2."
    )
    part = played([world], lambda _, label, __: 1.0 if label == best else None)
    assert least_regret(ReportContext(part, tmp_path)) == ""


def test_the_lead_counts_the_claims_and_without_claims_there_is_no_answer(tmp_path):
    results = results_of([own_experiment()])
    assert make_answer(ReportContext(results, tmp_path)) is None

    class Judged(Judgements):
        claims = (claim("T1", "holds"), claim("T2", "does not hold"))

    answer = make_answer(ReportContext(results, tmp_path, Judged()))
    assert answer.lead.endswith("Taken apart into 2 claims: 1 holds and 1 does not hold.")
