import dataclasses
import json

import numpy as np
import pytest

from driftbandits.logs import Log
from driftbandits.logs.recommendation import Recommendation, Waiting, waiting_of


def delayed(delays, reward=None, **columns):
    rounds = len(delays)
    reward = np.full(rounds, 0.5) if reward is None else np.asarray(reward, dtype=float)
    told = np.where(np.isnan(reward), np.nan, np.arange(rounds) + np.asarray(delays, dtype=float))
    return Log(np.arange(rounds), np.zeros(rounds, int), reward, np.ones(rounds), ("a",), told=told, **columns)


def test_patience_is_what_all_but_one_in_a_hundred_took_and_missing_what_the_rest_was_worth():
    reward = np.r_[np.full(990, 1.0), np.full(10, 0.25)]
    found = waiting_of(delayed(np.r_[np.full(990, 3), np.full(10, 80)], reward))
    assert found == Waiting(3.0, None, 0.25)
    assert "within 3 rounds" in found.words
    assert "0.25 on average" in found.words


def test_rewards_that_never_came_say_nothing_of_what_they_were_worth():
    reward = np.where(np.arange(500) % 5 == 0, np.nan, 1.0)
    found = waiting_of(delayed(np.arange(500) % 7, reward))
    assert found.missing == "forget"
    assert found.lost == 99  # the last is still waited for
    assert "99 older rewards never came" in found.words


def test_what_is_still_open_at_the_end_is_not_missing():
    reward = np.r_[np.ones(990), np.full(10, np.nan)]
    found = waiting_of(delayed(np.r_[np.full(970, 20), np.full(30, 30)], reward))
    assert (found.missing, found.lost) == ("forget", 0)
    assert "None came later" in found.words
    assert waiting_of(delayed(np.r_[np.full(5, 99), np.full(995, 20)], reward)).missing == 1.0


def test_seconds_are_those_of_the_log():
    log = delayed(np.full(400, 3), seconds=10.0 * np.arange(400))
    assert waiting_of(log).seconds == 30.0
    timed = dataclasses.replace(log, time=log.round * 1.0, seconds=None)
    assert waiting_of(timed).seconds == waiting_of(timed).patience == 3.0
    assert "within 3 seconds" in waiting_of(timed).words


def test_who_learns_from_open_decisions_waits_for_nothing():
    mostly_zero = np.where(np.arange(500) % 5 == 0, 1.0, 0.0)
    delays = np.r_[np.full(499, 3), 80]
    found = waiting_of(delayed(delays, mostly_zero), low=0.0)
    assert (found.patience, found.missing) == (80.0, 0.0)
    assert found.words.startswith("The slowest reward came after 80 rounds: close decisions then, as missing=0.")
    dense = waiting_of(delayed(delays), low=0.0)
    assert dense.missing == "forget"
    assert "leave patience out" in dense.words
    silent = waiting_of(delayed(delays, np.where(np.arange(500) % 5 == 0, 1.0, np.nan)), low=0.0)
    assert "if silence is a failure, close decisions then as missing=0" in silent.words
    for waiting in (found, dense):
        timed = dataclasses.replace(waiting, seconds=9.0)
        body = json.loads(Recommendation("AutoBandit", {}, (0.0, 1.0), "", None, timed).service_file(delayed([1]), "x"))
        assert (body["patience"], body["missing"]) == ((9.0, 0.0) if waiting is found else (None, None))


def test_without_delays_nothing_is_said():
    log = delayed(np.zeros(300))
    assert waiting_of(log) is None
    assert waiting_of(dataclasses.replace(log, told=None)) is None


@pytest.mark.parametrize(
    ("waiting", "expected"),
    [(None, (None, None)), (Waiting(3.0, None, 0.25), (None, None)), (Waiting(3.0, 30.0, 0.25), (30.0, 0.25))],
)
def test_the_service_is_given_seconds_or_nothing(waiting, expected):
    chosen = Recommendation("AutoBandit", {}, (0.0, 1.0), "", None, waiting)
    body = json.loads(chosen.service_file(delayed([1, 2, 3]), "shop"))
    assert (body["patience"], body["missing"]) == expected
    assert body["arms"] == [{"name": "a", "features": None}]


def test_rounds_and_times_together_are_read():
    rows = {"round": [0, 1, 2], "time": [5.0, 6.0, 8.0], "arm": ["a"] * 3, "reward": [1, 0, 1], "probability": [1] * 3}
    log = Log.read({**rows, "told": [1, 2, 3]})
    assert log.time is None
    np.testing.assert_array_equal(log.seconds, [5, 6, 8])
    np.testing.assert_array_equal(log.clock, [0, 1, 2])
    assert waiting_of(log).seconds == 2.0
