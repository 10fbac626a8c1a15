import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from driftbandits import environments
from driftbandits.experiments.building import build_world
from driftbandits.experiments.results import collect
from driftbandits.experiments.runner import CURVE_POINTS
from driftbandits.experiments.seeds import EVALUATION, TUNING
from reproduction.catalogue import quick
from reproduction.claims import Check, Claim, claims_markdown
from reproduction.paper import (
    CLAIMED,
    FIVE_MATRICES,
    PAPER,
    ROUNDS_BEFORE_SWITCH,
    STATEMENTS,
    check_claims,
    judge_claims,
)
from tests.reproduction.made_up_results import ROUNDS, all_seeds, claim, noise, played


def test_the_paper_has_its_worlds_at_three_dimensions_and_its_seeds():
    for name in ("switching/1", "switching/2", "cosine/stationary", "cosine/slow"):
        assert len(PAPER[name].seeds) == (50 if name == "cosine/stationary" else 25)
        for dimension in (2, 3):
            assert PAPER[f"{name}/d{dimension}"].settings["dimension"] == dimension
        assert min(p.seeds or 25 for p in PAPER[name].policies) >= 3
    assert PAPER["switching/1"].settings["dimension"] == 10
    world = build_world("switching/1", PAPER["switching/1"].settings, 0)
    assert world.change_rounds.tolist() == [3000]


def test_networks_play_with_the_other_number_of_matrices_too():
    for name, experiment in FIVE_MATRICES.items():
        depths = {policy.label: policy.settings["depth"] for policy in experiment.policies}
        assert all((depth == 3) == ("(published)" in label) for label, depth in depths.items()), name
        assert set(depths.values()) == {3, 5}
        assert all(policy.name in {"AdaOPNN", "OPNN"} for policy in experiment.policies)


def test_the_window_of_the_files_is_compared_where_it_is_another():
    """Two switches and slow drift; with one switch the files have 3,000, and 1,000 where they were tuned anew."""
    compared = [(s.id, c) for s in STATEMENTS for c in s.comparisons if not c.experiment.startswith("sizes/")]
    having = {name for name, c in compared if "window 2000" in c.first + c.second}
    assert having == {"F1b-1", "F2b-1", "F2b-2"}
    files = [c for s in STATEMENTS for c in s.comparisons if c.settings[-1].endswith("the files' rivals")]
    named = {label for c in files for label in (c.first, c.second) if "GPUCB" in label}
    assert named == {"SW-GPUCB (published, window 2000)", "WGPUCB (published)"}


FIGURES = ["F1a-1", "F1a-2", "F1a-3", "F1a-4", "F1b-1", "F1b-2", "F2a-1", "F2a-2", "F2b-1", "F2b-2"]
IDS = [*FIGURES, "T1", "T2", "T3"]


# --- what is claimed -------------------------------------------------------------------------------------------------


def test_every_claim_of_the_notes_is_there_and_without_results_not_run():
    claims = check_claims(collect([], []))
    assert [c.id for c in claims] == IDS
    for found in claims:
        assert found.verdict == "not run"
        assert found.checks
        for check in found.checks:
            assert (check.claim, check.verdict, check.seeds) == (found.id, "not run", 0)
            assert math.isnan(check.estimate)
    assert {c.paper_seeds for c in claims[IDS.index("F2a-1")].checks} == {50}
    assert {c.paper_seeds for c in claims[0].checks} == {25}


def test_labels_of_all_comparisons_are_in_the_catalogue():
    for statement, comparison in ((s, c) for s in STATEMENTS for c in s.comparisons):
        labels = [policy.label for policy in CLAIMED[comparison.experiment].policies]
        assert comparison.first in labels, statement.id
        assert comparison.second in labels, statement.id


def test_comparisons_cover_every_setting_of_every_rival():
    compared = {label: set() for label in FIGURES}
    for s in STATEMENTS:
        for c in s.comparisons:
            compared[s.id] |= {c.first, c.second}
    beyond = {"AutoBandit", "CalibratedOPKB"}
    slow = {policy.label for policy in PAPER["cosine/slow"].policies} - beyond
    assert compared["F2b-2"] == slow
    assert compared["F2b-1"] == slow - {"SW-GPUCB (window 1000)", "ADA-OPKB (published)"}
    assert (
        compared["F2a-2"]
        == {policy.label for policy in PAPER["cosine/stationary"].policies if "0" not in policy.label} - beyond
    )
    for name in ("F1a-1", "F1b-1"):
        assert {"SW-GPUCB (published, tuned)", "ADA-OPKB", "ADA-OPKB (published)"} < compared[name]


def test_the_switch_is_where_the_world_has_it():
    assert environments.create("switching/1", seed=0, size=5).change_rounds.tolist() == [ROUNDS_BEFORE_SWITCH]
    assert "horizon" in PAPER["switching/1"].settings


# --- comparisons -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gap", "verdict"), [(-200.0, "holds"), (200.0, "does not hold"), (0.0, "undecided")])
def test_the_verdict_flips_with_the_difference(gap, verdict):
    """Seeds differ by thousands, policies by hundreds: only pairing can tell."""

    def curve(_, label, seed):
        return 9000 * noise("world", seed) + 10 * noise(label, seed) + (gap if "OPKB" in label else 0.0) + 30_000

    results = played([all_seeds("switching/1")], curve)
    found = claim(results, "F1a-2")
    assert [c.verdict for c in found.checks] == [verdict] * 2
    assert found.verdict == verdict
    cells = results.cells.set_index(["policy", "seed"])["regret"]
    expected = stats.ttest_rel(cells["ADA-OPKB"], cells["ADA-OPNN"]).confidence_interval(0.95)
    check = found.checks[0]
    np.testing.assert_allclose([check.low, check.high], [expected.low, expected.high])
    assert (check.seeds, check.paper_seeds, check.note, check.unit) == (25, 25, "", "regret")
    assert check.statement == "ADA-OPKB minus ADA-OPNN, regret after 10,000 rounds: below 0"


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(1.0, "holds"), (1.2, "holds"), (1.25, "undecided"), (1.4, "does not hold"), (0.6, "does not hold")],
)
def test_near_is_within_a_quarter_of_the_other(share, verdict):
    def curve(_, label, seed):
        base = 4000 * (share if label.startswith("WGPUCB") else 0.5 if "OPKB" in label else 1.0)
        return base + 10 * noise(label, seed)

    found = claim(played([all_seeds("switching/2")], curve), "F1b-2")
    near = [c for c in found.checks if "within 25%" in c.statement]
    assert [c.verdict for c in near] == [verdict] * 4
    assert all("margin ±1,00" in c.note or "margin ±99" in c.note for c in near)
    assert {c.verdict for c in found.checks if c not in near} == {"holds"}
    assert found.verdict == verdict


def test_before_the_switch_is_the_last_checkpoint_before_it():
    """SW-GPUCB is better until the checkpoint before the switch and worse one checkpoint later."""
    before = ROUNDS <= ROUNDS_BEFORE_SWITCH

    def curve(_, label, seed):
        first = 1.0 if label.startswith("SW") else 2.0
        return np.where(before, first * ROUNDS, (10.0 - first) * ROUNDS) + noise(label, seed)

    found = claim(played([all_seeds("switching/1")], curve), "F1a-1")
    assert found.verdict == "holds"
    last = int(ROUNDS[before][-1])
    assert ROUNDS_BEFORE_SWITCH - last < 10_000 / CURVE_POINTS + 1
    for check in found.checks:
        assert check.estimate == pytest.approx(-last, abs=3)
        assert f"regret after {last:,} rounds" in check.statement


def test_only_seeds_both_have_played_count_and_few_are_marked():
    def curve(_, label, seed):
        seed -= EVALUATION.first
        if label == "ADA-OPNN" and seed not in (3, 4, 5, 6):
            return None
        return 1000.0 + (seed if label == "ADA-OPNN" else 0) + (1e6 if seed < 3 else 0)

    text, published = claim(played([all_seeds("switching/1")], curve), "F1a-2").checks
    assert (text.seeds, text.estimate, text.verdict) == (4, -4.5, "holds")
    assert text.note == "4 of the paper's 25 seeds"
    assert (published.seeds, published.verdict) == (25, "undecided")


@pytest.mark.parametrize("seeds", [1, 2])
def test_fewer_than_three_seeds_decide_nothing(seeds):
    results = played([all_seeds("switching/1", seeds)], lambda _, label, seed: 1.0 + seed if "OPKB" in label else 1e6)
    found = claim(results, "F1a-2")
    assert found.verdict == "undecided"
    assert all("fewer than 3 seeds" in c.note and c.seeds == seeds for c in found.checks)
    assert "nan" not in claims_markdown([found])


def test_other_settings_than_the_catalogue_are_named():
    results = played([quick(PAPER["switching/1"])], lambda *_: 10.0)
    notes = [c.note for c in claim(results, "F1a-2").checks]
    assert "ADA-OPNN not as in the catalogue" in notes[0]
    assert "ADA-OPKB not" not in notes[0]
    shorter = all_seeds("switching/1")
    shorter = dataclasses.replace(shorter, settings={**shorter.settings, "horizon": 500})
    check = claim(played([shorter], lambda *_: 10.0), "F1a-2").checks[0]
    assert "ADA-OPKB not as in the catalogue; ADA-OPNN not as in the catalogue" in check.note
    assert "after 500 rounds" in check.statement


def test_retuned_window_must_beat_everyone():
    def curve(best):
        return lambda _, label, seed: {"SW-GPUCB (window 1000)": 50.0, best: 20.0}.get(label, 90.0) + noise(label, seed)

    slow = [all_seeds("cosine/slow")]
    assert claim(played(slow, curve("nobody")), "F2b-2").verdict == "holds"
    assert claim(played(slow, curve("WGPUCB (tuned)")), "F2b-2").verdict == "depends on the settings"
    beaten = claim(played(slow, curve("WGPUCB (tuned)")), "F2b-2").checks
    assert [c.statement.split(",")[0] for c in beaten if c.verdict == "does not hold"] == [
        "SW-GPUCB (window 1000) minus WGPUCB (tuned)"
    ]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ({"a": ["holds", "holds"], "b": ["holds"]}, "holds"),
        ({"a": ["holds", "does not hold"], "b": ["does not hold", "undecided"]}, "does not hold"),
        ({"a": ["holds"], "b": ["holds", "does not hold"]}, "depends on the settings"),
        ({"a": ["holds"], "b": ["does not hold"], "c": ["undecided"]}, "depends on the settings"),
        ({"a": ["holds"], "b": ["holds", "undecided"]}, "undecided"),
        ({"a": ["holds"], "b": ["not run"]}, "undecided"),
        ({"a": ["holds", "not run"]}, "undecided"),
        ({"a": ["does not hold"], "b": ["undecided"]}, "undecided"),
        ({"a": ["not run"], "b": ["not run"]}, "not run"),
        ({}, "not run"),
    ],
)
def test_rule_of_a_claim(verdicts, expected):
    checks = tuple(
        Check("X", (settings,), "", 0.0, 0.0, 0.0, "regret", 25, 25, verdict, "")
        for settings, given_verdicts in verdicts.items()
        for verdict in given_verdicts
    )
    assert Claim("X", "0", "", checks).verdict == expected


def test_a_claim_says_what_holds_under_which_settings():
    """As published ADA-OPKB is ahead of WGPUCB, and behind it once WGPUCB is tuned."""

    def curve(_, label, seed):
        first = {"ADA-OPKB (published)": 3000, "WGPUCB (published)": 4000, "ADA-OPNN (published)": 4000}
        return first.get(label, {"WGPUCB (tuned)": 800}.get(label, 4200)) + noise(label, seed)

    found = claim(played([all_seeds("switching/2")], curve), "F1b-2")
    assert {under.settings: under.verdict for under in found.by_settings} == {
        "paper's text against published and the files' rivals": "does not hold",
        "paper's text against tuned rivals": "does not hold",
        "published against published and the files' rivals": "holds",
        "published against tuned rivals": "does not hold",
    }
    assert found.verdict == "depends on the settings"
    text = claims_markdown([found])
    halves = "ADA-OPKB (published) below WGPUCB (published): holds; WGPUCB (published) near ADA-OPNN (published): holds"
    assert f"| F1b-2 | published against published and the files' rivals | **holds** | {halves} |" in text


def test_a_row_with_two_labels_is_compared_once_and_counts_under_both():
    found = claim(played([all_seeds("cosine/slow")], lambda _, label, seed: 1e4 + noise(label, seed)), "F2b-1")
    window = [c for c in found.checks if "SW-GPUCB (published, tuned)" in c.statement]
    assert len(window) == 4
    assert {c.settings for c in window} == {
        ("paper's text against published rivals", "paper's text against tuned rivals"),
        ("published against published rivals", "published against tuned rivals"),
    }
    assert [len(under.checks) for under in found.by_settings] == [4] * 6
    first = claim(played([all_seeds("switching/2")], lambda _, label, seed: 1e4 + noise(label, seed)), "F1b-1")
    assert [under.settings for under in first.by_settings] == [
        "paper's text against published and tuned rivals",
        "paper's text against the files' rivals",
        "published against published and tuned rivals",
        "published against the files' rivals",
    ]


def test_sizes_are_judged_on_tuning_seeds_against_all_others_of_the_grid():
    for name, size in (("F1a-3", "window 3000"), ("F1a-4", "discount 0.9995")):
        statement = next(s for s in STATEMENTS if s.id == name)
        experiment = CLAIMED[statement.comparisons[0].experiment]
        assert TUNING.holds(experiment.seeds)
        named = {p.label for p in experiment.policies if size in p.label}
        assert {c.first for c in statement.comparisons} == named
        assert {c.second for c in statement.comparisons} == {p.label for p in experiment.policies} - named


# --- reading ---------------------------------------------------------------------------------------------------------


def test_markdown_has_one_row_per_check():
    results = played(
        [all_seeds(name, 4) for name in ("switching/1", "cosine/slow")], lambda _, label, seed: 1e4 + noise(label, seed)
    )
    claims = check_claims(results)
    text = claims_markdown(claims)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 6 + len(claims) + sum(len(c.checks) + len(c.by_settings) for c in claims)
    widths = {len(row.split("|")) for row in rows}
    assert widths == {6, 7, 9}
    assert "nan" not in text
    assert all(f"| {name} |" in text for name in IDS)


def test_judged_once_for_all_and_only_where_something_was_played():
    assert judge_claims(collect([], [])) is None
    results = played([all_seeds("switching/1", 4)], lambda _, label, seed: 1e4 + noise(label, seed))
    judgement = judge_claims(results)
    assert judgement is not None
    assert [c.id for c in judgement.claims] == IDS
    assert "| F1a-1 |" in judgement.markdown()
    assert "| F2a-1 |" not in judgement.markdown()  # not run
    assert judgement.files == {"claims.md": judgement.markdown()}
