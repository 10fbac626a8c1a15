"""Plays and last plays: counted as a list of all decisions would say."""

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import StateError
from driftbandits.policies.core.plays import Plays
from driftbandits.state import Reader


def test_counts_are_those_of_the_decisions():
    policy = db.GPUCB(db.ArmSet(np.linspace(0, 1, 7)[:, None]), seed=3)
    played = []
    for _ in range(30):
        choice = policy.ask()
        batch = policy.ask(size=3, allowed=[1, 2, 5])
        played += [choice.arm, *batch.arms.tolist()]
        policy.tell(choice, 0.2)
    last = [max((k for k, own in enumerate(played) if own == arm), default=-1) for arm in range(7)]
    summary = policy.summary()
    order = np.argsort(summary.arms)
    assert summary.plays[order].tolist() == [played.count(arm) for arm in range(7)]
    assert summary.last_played[order].tolist() == last


@pytest.mark.parametrize(
    ("counts", "last"),
    [
        ([1, 0], [-1, -1]),  # played and never
        ([0, 0], [3, -1]),  # never and played
        ([3, 0], [1, -1]),  # three times by round 1
        ([1, 1], [4, 4]),  # two arms in one round
        ([6, 0], [4, -1]),  # more plays than rounds
        ([1, 0], [5, -1]),  # in a round not asked yet
        ([-1, 0], [-1, -1]),
    ],
)
def test_plays_that_cannot_be_are_refused(counts, last):
    state = Reader({"counts": np.array(counts), "last": np.array(last)})
    with pytest.raises(StateError):
        Plays(2).load(state, rounds=5)


def test_rearranged_plays_go_with_their_arms():
    plays = Plays(3)
    plays.add_many(np.array([0, 2, 2]), np.arange(3))
    other = plays.rearranged(np.array([2, -1, 0, -1]))
    assert other.counts.tolist() == [2, 0, 1, 0]
    assert other.last.tolist() == [2, -1, 0, -1]
