"""What a person reads: as many lines as there are things to say, whatever the arms are called."""

import dataclasses
import math

import numpy as np
import pytest

import driftbandits as db
from driftbandits.policies.auto.explanation import ArmBelief, Explanation

PLAIN = Explanation(
    rounds=10,
    memory={math.inf: 1.0},
    since=0,
    noise=0.1,
    length_scales={0.5: 1.0},
    best=(ArmBelief(0, "plain", 0.5, 0.4, 0.6),),
    probing=0.01,
    changes=0,
)


@pytest.mark.parametrize(
    "name", ["two\nlines", "\x1b[2Jgone", "tab\there", "tur\u202ened", "\x9b31m", "par\u2029agraph"]
)
def test_names_cannot_break_the_lines(name):
    wild = dataclasses.replace(PLAIN, best=(dataclasses.replace(PLAIN.best[0], name=name),))
    lines = str(wild).split("\n")
    assert len(lines) == len(str(PLAIN).split("\n"))
    assert all(line.isprintable() for line in lines)
    assert f"{name!r} 0.5 [0.4, 0.6]" in lines[5]


def test_sentences_come_before_the_numbers():
    lines = str(dataclasses.replace(PLAIN, changes=2, since=1_200, rounds=3_000)).split("\n")
    assert lines[0] == "After 3,000 rounds: 2 changes found. No change since round 1,200."
    assert lines[1] == "The best arm is plain, with an expected reward of 0.5."
    assert lines[2].startswith("dynamics ")
    assert str(PLAIN).split("\n")[0] == "After 10 rounds: no change found."


def test_drift_and_suspicion_are_said():
    drifting = str(dataclasses.replace(PLAIN, memory={math.inf: 0.2, 2_000.0: 0.8}))
    assert "no change found. Rewards are drifting: data older than 2,000 rounds counts little." in drifting
    doubtful = dataclasses.replace(PLAIN, suspected=0.31, suspected_since=1_234)
    rest = "change around round 1,234 (31 % likely, not yet certain)."
    assert str(doubtful).split("\n")[1] == f"There may have been a {rest}"
    assert str(dataclasses.replace(doubtful, changes=1)).split("\n")[1] == f"There may have been another {rest}"


@pytest.mark.parametrize(("changes", "since"), [(0, 0), (2, 1_000)])
def test_a_probable_change_is_not_reported_as_no_change(changes, since):
    sure = dataclasses.replace(PLAIN, suspected=0.99, suspected_since=4_020, changes=changes, since=since)
    lines = str(sure).split("\n")
    one = "another" if changes else "a"
    assert lines[0].endswith(f"There was probably {one} change around round 4,020 (99 % likely, not yet certain).")
    assert "No change since" not in str(sure)
    assert "may have" not in str(sure)
    numbers = next(line for line in lines if line.startswith("dynamics"))
    assert "unchanged since round 4020 (0.99)" in numbers


def test_the_interval_of_re_tests_and_their_finds_are_said():
    none = str(dataclasses.replace(PLAIN, look_every=1_432.0)).split("\n")[2]
    assert none == "Inferior arms are re-tested about every 1,400 rounds: no change found that way."
    assert "rounds: 2 changes found that way." in str(dataclasses.replace(PLAIN, look_every=80.0, hidden=2))
    twice = dataclasses.replace(PLAIN, look_every=80.0, shown=2)
    assert "no change found that way; 2 changes showed without one." in " ".join(str(twice).split())
    assert "re-tested" not in str(PLAIN)


def test_correlations_of_segments_have_a_line():
    text = str(dataclasses.replace(PLAIN, correlations={0.0: 0.25, 0.5: 0.75, None: 0.0}))
    assert "segments      correlation none (0.25), 0.5 (0.75)" in text


def test_an_explanation_says_what_the_records_say():
    policy = db.AutoBandit(db.ArmSet([[0.0], [1.0], [2.0]]), seed=0)
    rng = np.random.default_rng(0)
    assert policy.explain().since == 0
    for now in range(900):
        choice = policy.ask()
        mean = [0.5, 0.0, -0.5][choice.arm] * (1 if (now // 300) % 2 == 0 else -1)
        policy.tell(choice, mean + 0.05 * rng.standard_normal())
        if policy.changes:
            assert policy.explain().since == policy.changes[-1].interval[0]
    assert policy.changes_found >= 2
    assert policy.changes[-1].odds == pytest.approx(math.exp(policy.changes[-1].statistic))


def test_long_and_empty_names_are_shown_so_that_they_can_be_read():
    arms = db.ArmSet([[0.0], [1.0], [2.0]], names=["x" * 100_000, "", "café"])
    policy = db.AutoBandit(arms, seed=0)
    for _ in range(5):
        policy.tell(policy.ask().id, 0.2)
    text = str(policy.explain())
    assert len(text) < 1000
    assert "xx...xx" in text
    assert " '' " in text
    assert "café " in text


def test_explain_and_summary_name_the_same_arms_with_the_same_numbers():
    """Of rare successes hypotheses outside the samples matter, and intervals reach below the range."""
    policy = db.AutoBandit(db.ArmSet(np.linspace(0.0, 1.0, 8)[:, None]), reward_range=(0, 1), seed=2)
    rng = np.random.default_rng(2)
    for told in range(600):
        choice = policy.ask()
        policy.tell(choice, float(rng.random() < 0.01 + 0.005 * choice.arm))
        if told % 50 == 49:
            shown = policy.explain().best
            estimate, (low, high) = policy.estimate(), policy.interval()
            assert [belief.arm for belief in shown] == np.argsort(-estimate, kind="stable")[:3].tolist()
            for belief in shown:
                arm = belief.arm
                assert (belief.mean, belief.low, belief.high) == (estimate[arm], low[arm], high[arm])


def test_a_kernel_that_is_not_used_is_named():
    points = np.linspace(0.0, 1.0, 6)[:, None]
    own = db.ArmSet(points, {"name": "rbf", "length_scale": 0.2})
    for arms, kernel, said in ((own, "auto", True), (own, "given", False), (db.ArmSet(points), "auto", False)):
        found = db.AutoBandit(arms, kernel=kernel, seed=0).explain()
        assert found.ignores_kernel is said
        assert ('kernel="given" takes it' in str(found)) is said
