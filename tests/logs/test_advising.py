import json

import numpy as np
import pytest
import yaml

import driftbandits as db
from driftbandits.errors import InputError
from driftbandits.logs import Log, advise
from driftbandits.logs.twins import FIXED
from tests.logs.making import logged, moving_means


@pytest.fixture(scope="module")
def switched():
    means = np.repeat([[0.3, 0.7, 0.5], [0.7, 0.3, 0.5]], 300, axis=0)
    return advise(logged(means, 0, learning=False), twins=3)


def test_a_switch_is_said_first_with_when_and_what(switched):
    assert switched.moves is True
    assert switched.verdict.startswith("The world changed once, around round 3")
    assert len(switched.changes) == switched.least_changes == 1
    assert abs(switched.changes[0].when - 300) < 15
    assert set(switched.changes[0].arms) == {"a", "b"}
    assert "a rose from 0.29" in switched.changes[0].words
    assert switched.beliefs.weight_of("switches") > 0.9
    assert switched.variation.total == pytest.approx(0.4, abs=0.1)


def test_players_are_ranked_in_twins(switched):
    assert len(switched.regrets.by_twin) == 5
    assert len(switched.regrets.by_twin[FIXED]) == 3
    assert switched.regrets.rounds == 600
    best = switched.regrets.ranked()[0]
    assert switched.regrets.interval(best).estimate < switched.regrets.interval(FIXED).estimate
    assert switched.recommendation.reward_range == (0.0, 1.0)


def test_the_page_and_the_files_are_whole(switched, tmp_path):
    written = switched.save(tmp_path / "advice.html")
    page = (tmp_path / "advice.html").read_text()
    order = [page.index(text) for text in ("The world changed once", "1. Does", "2. How", "3. Does", "4. What")]
    assert order == sorted(order)
    assert page.count("data:image/svg+xml") == 6  # each for wide screens and for narrow ones
    assert len(written) == 5
    values = yaml.safe_load((tmp_path / "advice.run.yaml").read_text())
    assert values["policies"][0]["name"] == switched.recommendation.policy
    body = json.loads((tmp_path / "advice.service.json").read_text())
    assert [arm["name"] for arm in body["arms"]] == ["a", "b", "c"]
    assert body["reward_range"] == [0.0, 1.0]


def test_names_that_look_like_markup_are_shown_as_they_are(tmp_path):
    log = logged(moving_means("still", 100, 2), 0)
    odd = Log(log.round, log.arm, log.reward, log.probability, ("<b>$x$</b>", "y"))
    advise(odd).save(tmp_path / "short.html")
    assert "<b>$x$" not in (tmp_path / "short.html").read_text()


def test_too_short_a_log_recommends_nothing(tmp_path):
    advice = advise(logged(moving_means("switch", 200, 3), 0))
    assert advice.moves is None
    assert advice.recommendation is None
    assert advice.verdict.startswith("This log cannot tell")
    assert len(advice.save(tmp_path / "short.html")) == 1
    page = (tmp_path / "short.html").read_text()
    assert "This log cannot tell" in page
    assert "Nothing is recommended" in page


def test_arms_hardly_played_are_too_little():
    log = logged(moving_means("still", 400, 3), 0)
    more = Log(log.round, log.arm, log.reward, log.probability, tuple("abcdefghij"))
    assert "7 of 10 arms were never played" in advise(more).verdict
    many = Log(log.round, log.arm, log.reward, log.probability, tuple(f"arm {k}" for k in range(60)))
    assert "at least 10 per arm" in advise(many).verdict


def test_where_nothing_moves_it_says_so_and_how_long_to_wait():
    base = logged(moving_means("still", 500, 3), 0)
    told = base.round + np.random.default_rng(0).integers(1, 50, 500).astype(float)
    log = Log(base.round, base.arm, base.reward, base.probability, base.names, told=told)
    advice = advise(log, twins=2)
    assert advice.moves is False
    assert advice.verdict.startswith("Nothing moves as far as this log can tell")
    assert advice.recommendation.patience == pytest.approx(49, abs=1)
    assert "within 49" in repr(advice)


def test_rewards_of_two_values_give_twins_of_two_values(tmp_path):
    world = np.repeat([[0.2, 0.5], [0.5, 0.2]], 400, axis=0)
    log = logged(world, 0, learning=False, noise=0.0)
    clicks = (np.random.default_rng(0).random(800) < log.reward).astype(float)
    arms = db.ArmSet([[0.0], [1.0]], names=["a", "b"])
    own = Log(log.round, log.arm, clicks, log.probability, log.names, arms=arms, reward_range=(0.0, 1.0))
    advice = advise(own, twins=2)
    advice.save(tmp_path / "clicks.html")
    assert "BernoulliNoise()" in (tmp_path / "clicks_twin.py").read_text()
    assert advice.moves


@pytest.mark.parametrize(("settings", "message"), [({"log": 3}, "wants a Log"), ({"false_alarm": 0}, "false_alarm")])
def test_bad_input_is_named(settings, message):
    log = logged(moving_means("still", 50, 2), 0)
    with pytest.raises(InputError, match=message):
        advise(**{"log": log, **settings})
