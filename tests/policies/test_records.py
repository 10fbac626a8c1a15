"""Plays and last plays: counted as a list of all decisions would say.

The history: thinned whatever the age, of the arms played most, saved bit for bit, and without any influence.
"""

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import StateError
from driftbandits.policies.records import FIRST_STRIDE, FOLLOWED, MOST_ARMS, MOST_POINTS, HistoryLog, Plays, Snapshot
from driftbandits.state import Reader
from driftbandits.testing.helpers import play, require_equal


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


def filled(rewards, arms=2, plays=None):
    """A log after so many rewards; the k-th look says k everywhere."""
    log = HistoryLog(arms)
    for told in range(rewards):
        if log.left <= 0:
            followed = log.follow(np.zeros(arms, int) if plays is None else plays(told))
            log.add(Snapshot(told, followed, np.full((4, len(followed.arms)), told / rewards)))
        log.left -= 1
    return log


@pytest.mark.parametrize("rewards", [1, 5, 499, 1999, 2000, 2001, 50_000])
def test_looks_are_few_and_evenly_spread(rewards):
    log = filled(rewards)
    assert len(log) < MOST_POINTS
    assert (np.diff(log.rounds) == log.stride).all()
    assert log.stride == FIRST_STRIDE or len(log) >= MOST_POINTS // 2  # dense once there is enough to look at
    assert rewards - log.rounds[-1] <= log.stride


def test_thinning_keeps_what_was_looked_at():
    log = filled(9_000)
    rounds, values = log.snapshots(log.shown(np.zeros(2, int)), 9_001, np.ones((4, 2)))
    assert rounds[-1] == 9_001
    assert values[:, :-1] == pytest.approx(
        np.broadcast_to(rounds[:-1, None] / 9_000, (4, len(rounds) - 1, 2)), abs=1e-6
    )


def test_the_arms_shown_are_those_played_most_and_known_since_they_were_followed():
    arms = 200

    def plays(told):
        counts = np.arange(arms)  # 120 to 199 are followed at first
        return np.where(np.arange(arms) < 10, counts + told, counts)  # then 0 to 9 are played and nothing else

    log = filled(4_000, arms, plays)
    shown = log.shown(plays(4_000))
    rounds, values = log.snapshots(shown, 4_000, np.zeros((4, len(shown))))
    assert len(log.arms) == FOLLOWED
    assert shown.tolist() == np.argsort(-plays(4_000), kind="stable")[:MOST_ARMS].tolist()
    fresh = np.isnan(values[0]).any(axis=0)
    assert set(shown[fresh]) == set(range(10))
    first = np.argmax(~np.isnan(values[0]), axis=0)
    assert all(rounds[k] <= 400 for k in first)  # 1.5 times the least of those followed


def test_a_history_has_the_present_and_agrees_with_the_policy():
    policy = db.AutoBandit(db.ArmSet(np.linspace(0, 1, 12)[:, None], names=list("abcdefghijkl")), seed=0)
    assert len(policy.history) == 1
    play(policy, 60)
    history = policy.history
    place = np.argsort(history.arms)
    assert history.rounds[-1] == 60
    assert history.estimate[-1][place] == pytest.approx(policy.estimate())
    assert history.law[-1][place] == pytest.approx(policy.law())
    assert history.names[0] == policy.arms.names[history.arms[0]]
    assert repr(history) == "History(3 moments, rounds 1 to 60, 12 arms)"
    table = history.to_pandas()
    assert list(table.columns) == ["round", "arm", "name", "estimate", "low", "high", "probability"]
    assert len(table) == 3 * 12


@pytest.mark.parametrize("kind", [db.AutoBandit, db.WeightedGPUCB, db.DiscountedUCB, db.CalibratedOPKB, db.LinearExp3])
def test_looking_at_every_reward_changes_no_decision(kind, monkeypatch):
    """Two roads: a policy that looks as often as it can, and one that never does."""
    arms = db.ArmSet(np.linspace(0, 1, 12)[:, None])
    often, never = kind(arms, horizon=240, seed=1), kind(arms, horizon=240, seed=1)
    never._history.left = 10**9
    for _ in range(120):
        often._history.left = 0
        assert play(often, 1) == play(never, 1)
    assert len(never._history) == 0
    assert len(often._history) == 120


def test_looking_changes_no_state():
    policy = db.GPUCB(db.ArmSet(np.linspace(0, 1, 60)[:, None]), seed=1)
    for rounds in (1, 30):
        play(policy, rounds)
        before = policy.state_dict()
        policy.history, policy.summary(), policy.interval()
        require_equal(policy.state_dict(), before)


def test_a_law_that_is_none_does_not_stop_a_reward():
    policy = db.Uniform(db.ArmSet([[0.0], [1.0]]), seed=0)
    choice = policy.ask()
    policy._law = lambda: np.array([np.nan, 1.0])
    policy.tell(choice, 0.5)
    assert len(policy._history) == 0
    with pytest.raises(db.errors.LawError):
        policy.ask()


@pytest.mark.parametrize(
    "wrong",
    [
        {"stride": 5},
        {"left": 99},
        {"rounds": np.array([9, 3])},
        {"rounds": np.array([0, 99])},
        {"arms": np.array([0, 0])},
        {"arms": np.array([0, 7])},
        {"since": np.array([0, 3])},
        {"values": np.full((2, 4, 2), np.nan, dtype=np.float32)},
        {"values": np.full((2, 4, 2), 2.0, dtype=np.float32)},  # a probability
        {"values": np.zeros((2, 3, 2), dtype=np.float32)},
    ],
)
def test_histories_that_cannot_be_are_refused(wrong):
    good = filled(8).export()
    again = HistoryLog(2)
    again.load(Reader(good), rounds=8)
    require_equal(again.export(), good)
    with pytest.raises(StateError):
        HistoryLog(2).load(Reader({**good, **wrong}), rounds=8)


def test_a_rearranged_history_goes_with_its_arms():
    log = HistoryLog(3)
    for told in range(3):
        log.add(Snapshot(told, log.follow(np.array([5, 0, 1])), np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]])))
    other = log.rearranged(np.array([2, -1, 0]))
    now, followed = np.array([[30.0, 40.0, 10.0], [1.0, 0.0, 0.0]]), other.follow(np.array([1, 0, 5]))
    other.add(Snapshot(4, followed, now[:, followed.arms]))
    arms = other.shown(np.array([1, 0, 5]))
    _, values = other.snapshots(arms, 9, now[:, arms])
    assert arms.tolist() == [2, 0, 1]
    assert values[0, :3].tolist()[0][:2] == [1.0, 3.0]
    assert np.isnan(values[0, :3, 2]).all()
    assert values[0, 3].tolist() == [10.0, 30.0, 40.0]


def test_an_interval_found_when_somebody_looks_is_that_of_the_moment():
    """Two roads: Uniform keeps numbers of rewards with a look; a twin is asked for its interval at every look."""
    arms = db.ArmSet(np.linspace(0, 1, 90)[:, None])
    policy, twin = db.Uniform(arms, reward_range=(0, 2), seed=3), db.Uniform(arms, reward_range=(0, 2), seed=3)
    seen = {}
    for told in range(400):
        choice = policy.ask()
        twin.ask()
        if told % FIRST_STRIDE == 0:
            seen[policy.rounds] = twin.interval()
        policy.tell(choice, 0.02 * choice.arm)
        twin.tell(choice, 0.02 * choice.arm)
    seen[policy.rounds] = twin.interval()
    history = db.Uniform.restore(arms, policy.state_dict()).history
    known = ~np.isnan(history.estimate)
    assert history.rounds.tolist() == list(seen)
    for row, (low, high) in enumerate(seen.values()):
        assert history.low[row][known[row]] == pytest.approx(low[history.arms][known[row]], abs=1e-6)
        assert history.high[row][known[row]] == pytest.approx(high[history.arms][known[row]], abs=1e-6)


def test_missing_rewards_count_for_looks():
    """One reward in twenty comes, the others are closed by patience: a look at every second one that comes."""
    policy = db.AutoBandit(db.ArmSet([[0.0], [1.0], [2.0]]), reward_range=(0, 1), patience=40, missing=0.0, seed=0)
    for _ in range(20):
        decisions = policy.ask(size=20)
        policy.tell(decisions.ids[0], 1.0)
    assert len(policy.history) >= 9
