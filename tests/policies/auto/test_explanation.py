"""What a person reads: as many lines as there are things to say, whatever the arms are called."""

import dataclasses
import math

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
    assert f"{name!r} 0.5 [0.4, 0.6]" in lines[4]


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
