import dataclasses
import json

import numpy as np
import pytest
import yaml

import driftbandits as db
from driftbandits.errors import InputError
from driftbandits.logs import Log, advise, evaluate
from driftbandits.logs.log import suspicious_arms
from driftbandits.logs.page import reward_course
from driftbandits.logs.recommendation import recommend
from driftbandits.logs.twins import FIXED, Player, Regrets, Twin
from tests.logs.making import logged, moving_means


@pytest.fixture(scope="module")
def switched():
    means = np.repeat([[0.3, 0.7, 0.5], [0.7, 0.3, 0.5]], 300, axis=0)
    return advise(logged(means, 0, learning=False), twins=3)


def test_a_switch_is_said_first_with_when_and_what(switched):
    assert switched.moves is True
    assert switched.verdict.startswith("The world changed once, around round ")
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
    assert "at least 10 times as many rows as arms" in advise(many).verdict


def test_where_nothing_moves_it_says_so_and_how_long_to_wait():
    base = logged(moving_means("still", 500, 3), 0)
    told = base.round + np.random.default_rng(0).integers(1, 50, 500).astype(float)
    log = Log(base.round, base.arm, base.reward, base.probability, base.names, told=told)
    advice = advise(log, twins=2)
    assert advice.moves is False
    assert advice.verdict.startswith("Nothing moves as far as this log can tell")
    assert advice.recommendation.patience == pytest.approx(49, abs=1)
    assert advice.recommendation.waiting.words in repr(advice)
    shortest = advise(dataclasses.replace(log, reward_range=(0.0, 1.0)), twins=2).recommendation
    assert shortest.waiting.low == (0.0 if shortest.policy == "AutoBandit" else None)


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


# --- what is recommended follows from what was lost -------------------------------------------------------------


def recommended(**losses):
    """The recommendation after these losses in twins, `fixed` those of arm b played always."""
    names = {"auto": "AutoBandit", "never": "GP-UCB that never forgets", "fixed": FIXED}
    players = {"AutoBandit": Player("AutoBandit", {}), "GP-UCB that never forgets": Player("GPUCB", {})}
    regrets = Regrets({names[key]: values for key, values in losses.items()}, players, 500, (1, 0, 2))
    log = logged(moving_means("still", 50, 3), 0)
    return recommend(log, regrets, Twin(0.0, 1.0, False, 0.1))


def test_where_it_is_open_the_one_that_lost_the_least_is_recommended_and_it_is_said_to_be_open():
    found = recommended(auto=(0.04, 0.05, 0.03), never=(0.02, 0.001, 0.03), fixed=(0.001, 0.003, 0.001))
    assert found.open
    assert found.fixed_arm == "b"
    assert found.policy == "AutoBandit"  # what stands beside it would notice a change
    assert found.why.startswith(
        "Whether learning pays is open: always b loses 0.00167 per round in the twins, GP-UCB that"
    )
    assert found.words().startswith("Recommended until a longer log tells more: always b, which lost the least")
    assert "or AutoBandit(), which lost more and would notice a change" in found.words()


def test_where_it_is_open_a_learner_that_lost_the_least_is_recommended():
    found = recommended(auto=(0.01, 0.05, 0.001), never=(0.06, 0.05, 0.07), fixed=(0.03, 0.01, 0.04))
    assert found.open
    assert found.fixed_arm is None
    assert found.words() == "Recommended until a longer log tells more: AutoBandit(), which lost the least."


def test_where_it_is_clear_it_is_said_plainly():
    pays = recommended(auto=(0.01, 0.011, 0.012), never=(0.06, 0.05, 0.07), fixed=(0.05, 0.052, 0.051))
    assert pays.words() == "Recommended: AutoBandit()."
    assert not pays.open
    does_not = recommended(auto=(0.05, 0.051, 0.052), never=(0.06, 0.05, 0.07), fixed=(0.01, 0.011, 0.012))
    assert does_not.fixed_arm == "b"
    assert not does_not.open
    assert "does not pay" in does_not.why


# --- slips, and what is left out --------------------------------------------------------------------------------


def named(rows, arms=None):
    count = len(rows)
    columns = {"round": range(count), "arm": rows, "reward": np.arange(count) % 2, "probability": [0.5] * count}
    return Log.read(columns, arms=arms)


def test_a_misspelt_arm_is_noted_by_evaluate_and_advise(tmp_path):
    log = named(["storm", "derby"] * 50 + ["strom"])
    note = "arm 'strom' occurs in 1 row; did you mean 'storm' (50 rows)?"
    assert note in evaluate(log, "derby", estimator="ips").notes
    advice = advise(log)
    assert advice.notes == (note,)
    assert f"Note: {note}" in repr(advice)
    advice.save(tmp_path / "page.html")
    assert "did you mean" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["storm", "derby"] * 50 + ["Storm "], "'storm' (50 rows) and 'Storm ' (1 row) differ"),
        (["storm", "derby"] * 99 + ["weather"] * 3, "arm 'weather' occurs in 3 rows only"),
        (["12 EUR", "13 EUR"] * 200 + ["14 EUR"] * 5, ""),  # numbers are no slips
        (["storm", "derby"] * 50 + ["strom"] * 40, ""),  # nobody misspells so often
        (["0", "1"] * 50, ""),
    ],
)
def test_which_arms_are_doubted(rows, said):
    notes = suspicious_arms(named(rows))
    assert len(notes) == (1 if said else 0)
    assert all(said in note for note in notes)


def test_arms_that_were_given_are_meant():
    assert (
        suspicious_arms(named(["storm", "derby"] * 50 + ["strom"], db.ArmSet.separate(["storm", "derby", "strom"])))
        == ()
    )


def test_many_slips_are_few_sentences():
    notes = suspicious_arms(named(["storm"] * 200 + [f"storm{letter}" for letter in "abcdefghi"]))
    assert len(notes) == 6
    assert notes[-1] == "4 more arms like that"


def test_rows_without_a_reward_are_said_to_be_left_out():
    log = logged(moving_means("still", 100, 2), 0)
    reward = log.reward.copy()
    reward[:2] = np.nan
    advice = advise(dataclasses.replace(log, reward=reward))
    assert "Note: 2 rows without a reward left out; honest only if they are missing at random" in advice.sentences()


# --- what the page shows ----------------------------------------------------------------------------------------


def test_the_band_of_successes_is_never_empty_nor_beyond_what_rewards_can_be():
    log = logged(moving_means("still", 400, 2), 0)
    reward = np.zeros(400)
    reward[200:] = np.arange(200) % 2
    course = reward_course(dataclasses.replace(log, reward=reward))
    assert (course.low >= 0.0).all()
    assert (course.high <= 1.0).all()
    assert (course.high - course.low > 0.01).all()
    assert ((course.low <= course.value) & (course.value <= course.high)).all()


def test_the_page_says_which_arms_it_shows_and_does_not_deny_a_change_it_found(switched, tmp_path):
    noisy = dataclasses.replace(switched, variation=dataclasses.replace(switched.variation, by_chance=9.0))
    noisy.save(tmp_path / "advice.html")
    page = (tmp_path / "advice.html").read_text()
    assert "Estimated rewards of all arms" in page
    assert "this log is too noisy" not in page
    assert "this measure, which compares single arms" in page


def test_a_page_that_cannot_be_written_is_refused_with_nothing_beside_it(switched, tmp_path):
    for path, message in ((tmp_path, "is a folder"), (tmp_path / "none" / "advice.html", "there is no folder")):
        with pytest.raises(InputError, match=message):
            switched.save(path)
    assert not list(tmp_path.parent.glob(f"{tmp_path.name}[._]*"))
    assert not list(tmp_path.iterdir())
