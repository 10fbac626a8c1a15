"""Deciding, rewards, steering: what an experiment answers, and that a replay stands where it stood."""

import asyncio
import inspect
import os
import threading

import pytest

from driftbandits import AutoBandit, live
from driftbandits.errors import (
    ConflictError,
    ExperimentExistsError,
    InputError,
    LiveError,
    OtherDeciderError,
    RewardError,
    UnknownDecisionError,
    UnknownExperimentError,
)
from driftbandits.live.definition import define
from driftbandits.live.requests import TooManyOpenError
from tests.live.replicas import replica_of, require_same


def play(shop, rounds):
    for _ in range(rounds):
        choice = shop.decide()
        shop.reward(choice.id, 0.9 if choice.arm == "mid" else 0.2)


def test_a_replay_from_the_beginning_stands_where_the_experiment_stands(shop):
    play(shop, 30)
    batch = shop.decide(5, allowed=["low", "high"])
    shop.forget(batch[0].id)
    shop.pause()
    resting = shop.decide()
    shop.resume()
    shop.rewards({batch[1].id: 0.5, resting.id: 1.0})
    shop.settings(fallback="low")
    play(shop, 5)
    require_same(shop.view.player(), replica_of(shop))
    assert shop.summary().decisions == 41


def test_opened_again_it_goes_on_where_it_stood(url, clock):
    with live.open(url, clock=clock) as database:
        shop = database.create("prices", arms={"low": [1.0], "high": [2.0]}, seed=1)
        play(shop, 20)
        waiting = shop.decide()
        before = replica_of(shop)
    with live.open(url, clock=clock) as database:
        shop = database.experiment("prices")
        require_same(replica_of(shop), before)
        assert shop.reward(waiting.id, 1.0).accepted == 1
        require_same(shop.view.player(), replica_of(shop))


def test_a_reward_is_taken_once(shop):
    choice = shop.decide()
    assert shop.reward(choice.id, 0.5) == live.RewardAnswer(accepted=1)
    assert shop.reward(choice.id, 0.5) == live.RewardAnswer(repeated=1)
    with pytest.raises(ConflictError, match=r"has the reward 0\.5 already"):
        shop.reward(choice.id, 0.6)
    forgotten = shop.decide()
    assert shop.forget([forgotten.id]) == 1
    assert shop.reward(forgotten.id, 0.5) == live.RewardAnswer(late=1)
    assert shop.summary().rewards == 1


@pytest.mark.parametrize("wrong", ["", "zzz", "2-00000000", "1-12345678", 7, None, "9" * 40 + "-12345678"])
def test_an_unknown_id_is_refused(shop, wrong):
    shop.decide()
    with pytest.raises(UnknownDecisionError, match="no decision has the id"):
        shop.reward(wrong, 0.5)


def test_an_id_of_another_experiment_is_refused(shop, url, clock):
    choice = shop.decide()
    other = live.Database(url, clock=clock)
    other.make("other", define(arms=["low", "high"]))
    view = other.view("other")
    with view.journal() as journal:
        assert journal.decision(choice.id) is None


@pytest.mark.parametrize("wrong", [1.5, -0.1, float("nan"), float("inf"), None, "much"])
def test_a_reward_out_of_range_is_refused_and_changes_nothing(shop, wrong):
    choice = shop.decide()
    with pytest.raises(RewardError):
        shop.reward(choice.id, wrong)
    assert shop.summary().events == 2
    answer = shop.rewards([(choice.id, wrong), ("x", 1.0), (choice.id, 1.0)])
    assert (answer.accepted, len(answer.rejected)) == (1, 2)


def test_the_same_key_and_request_get_the_stored_answer(shop):
    first = shop.decide(key="one")
    assert shop.decide(key="one") == first
    with pytest.raises(ConflictError, match="used with another request"):
        shop.decide(2, key="one")
    assert shop.reward(first.id, 0.5, key="two") == shop.reward(first.id, 0.5, key="two") == live.RewardAnswer(1)
    assert shop.summary().decisions == 1


def test_arms_come_and_go_and_the_last_one_stays(shop):
    play(shop, 10)
    shop.arms(retire=["mid"])
    assert {shop.decide().arm for _ in range(30)} <= {"low", "high"}
    with pytest.raises(InputError, match="no arm would be left"):
        shop.arms(retire=["low", "high"])
    with pytest.raises(InputError, match="no arm is called"):
        shop.arms(retire=["top"])
    with pytest.raises(InputError, match="already"):
        shop.arms(add=["mid"])
    assert shop.arms(bring_back=["mid"]) == {"active": ["low", "mid", "high"], "retired": []}
    require_same(shop.view.player(), replica_of(shop))


def test_paused_the_fallback_answers_and_rewards_are_still_learned(shop):
    choice = shop.decide()
    shop.pause()
    rounds = replica_of(shop).policy.rounds
    answers = [shop.decide() for _ in range(20)]
    assert all(answer.fallback and answer.probability == 1 / 3 for answer in answers)
    assert len({answer.arm for answer in answers}) == 3
    assert shop.reward(choice.id, 1.0).accepted == 1
    assert replica_of(shop).policy.rounds == rounds
    assert replica_of(shop).policy.pending == 0
    shop.settings(fallback="high")
    assert shop.decide().arm == "high"
    shop.resume()
    assert not shop.decide().fallback


def test_restarted_it_knows_nothing_and_older_rewards_are_kept_untold(shop):
    play(shop, 10)
    old = shop.decide()
    shop.restart()
    assert replica_of(shop).policy.rounds == 0
    assert shop.reward(old.id, 1.0).accepted == 1
    summary = shop.summary()
    assert (summary.untold, summary.restarts, replica_of(shop).policy.rounds) == (1, 1, 0)
    play(shop, 3)
    require_same(shop.view.player(), replica_of(shop))


def test_a_policy_that_stops_is_brought_back_and_meanwhile_the_fallback_answers(shop, monkeypatch):
    play(shop, 10)
    monkeypatch.setattr(type(replica_of(shop).policy), "ask", _broken)
    assert shop.decide().fallback
    monkeypatch.undo()
    assert not shop.decide().fallback
    require_same(shop.view.player(), replica_of(shop))


def test_a_policy_that_cannot_be_brought_back_leaves_the_fallback_and_a_restart_helps(shop, monkeypatch):
    kind = type(replica_of(shop).policy)
    play(shop, 3)
    with monkeypatch.context() as broken:
        for name in ("ask", "tell", "impose", "learn"):
            broken.setattr(kind, name, _broken)
        for _ in range(6):
            assert shop.decide().fallback
        summary = shop.summary()
        assert summary.mode == "fallback"
        assert "the fallback decides" in summary.health[-1]
    assert shop.decide().fallback
    shop.restart()
    assert not shop.decide().fallback


def _broken(*_, **__):
    raise ZeroDivisionError("a fault of the policy")


def test_many_threads_get_distinct_decisions_in_few_commits(shop):
    found, errors = [], []

    def work():
        try:
            for _ in range(10):
                choice = shop.decide()
                found.append(choice.id)
                shop.reward(choice.id, 0.5)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(set(found)) == len(found) == 80
    assert shop.summary().rewards == 80
    require_same(shop.view.player(), replica_of(shop))


def test_coroutines_do_the_same(shop):
    async def work():
        twin = shop.asynchronous
        choices = await asyncio.gather(*(twin.decide() for _ in range(10)))
        answers = await asyncio.gather(*(twin.reward(choice.id, 0.5) for choice in choices))
        with pytest.raises(UnknownDecisionError):
            await twin.reward("2-00000000", 0.5)
        batch = await twin.decide(2)
        await twin.rewards({batch[0].id: 0.1})
        await twin.forget(batch[1].id)
        await twin.pause()
        await twin.resume()
        return answers, await twin.summary()

    answers, summary = asyncio.run(work())
    assert all(answer.accepted == 1 for answer in answers)
    assert (summary.decisions, summary.rewards, summary.forgotten, summary.mode) == (12, 11, 1, "running")


def test_every_method_has_a_twin_that_takes_the_same():
    methods = {name: f for name, f in vars(live.Experiment).items() if inspect.isfunction(f) and name[0] != "_"}
    for name in ("close", "submit", "watch"):  # the database closes, and services have a loop of their own
        del methods[name]
    for name, method in methods.items():
        twin = getattr(live.AsyncExperiment, name)
        assert inspect.iscoroutinefunction(twin)
        assert list(inspect.signature(twin).parameters) == list(inspect.signature(method).parameters)


def test_coroutines_steer_and_look_too(shop, tmp_path):
    async def work():
        twin = shop.asynchronous
        choice = await twin.decide()
        await twin.reward(choice, 0.5)
        await twin.arms(add="top")
        await twin.settings(fallback="low")
        await twin.restart(key="anew")
        assert len((await twin.history()).names) == 4
        assert await twin.changes() == shop.changes()
        assert (await twin.events(after=1))[0]["kind"] == "decided"
        assert await twin.export(tmp_path / "log.parquet") == 1
        return await twin.summary()

    assert asyncio.run(work()).restarts == 1


def test_a_coroutine_that_is_cancelled_leaves_the_others_served(shop):
    async def work():
        twin = shop.asynchronous
        tasks = [asyncio.create_task(twin.decide()) for _ in range(5)]
        await asyncio.sleep(0)
        tasks[2].cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        added = asyncio.create_task(twin.arms(add="top"))
        await asyncio.sleep(0)
        added.cancel()
        return found, await twin.decide()

    found, last = asyncio.run(work())
    assert [isinstance(each, asyncio.CancelledError) for each in found] == [False, False, True, False, False]
    assert not last.fallback
    require_same(shop.view.player(), replica_of(shop))


def test_closed_it_can_be_opened_again(url, clock):
    with live.open(url, clock=clock) as database:
        shop = database.create("prices", arms=["low", "high"], policy="DiscountedUCB", seed=1)
        play(shop, 3)
        shop.close()
        again = database.experiment("prices")
        assert again is database.experiment("prices")
        play(again, 2)
        assert again.summary().rewards == 5


def test_steering_with_a_key_is_done_once(shop):
    for _ in range(2):
        shop.restart(key="anew")
        shop.pause(key="pause")
        assert shop.settings(fallback="mid", key="settings")["fallback"] == "mid"
        assert shop.arms(add="top", key="arms")["active"] == ["low", "mid", "high", "top"]
    assert shop.summary().restarts == 1
    assert shop.summary().events == 5


@pytest.mark.parametrize("add", ["top", ["top"], [{"name": "top"}], {"name": "top"}])
def test_one_arm_may_be_given_as_one(shop, add):
    assert shop.arms(add=add, retire="low") == {"active": ["mid", "high", "top"], "retired": ["low"]}
    events = shop.summary().events
    assert shop.arms()["retired"] == ["low"]
    assert shop.summary().events == events


def test_a_decision_stands_for_its_id(shop):
    first, second = shop.decide(), shop.decide()
    assert shop.reward(first, 0.5).accepted == 1
    assert shop.forget([second]) == 1


@pytest.mark.parametrize("wrong", ["", "x" * 201, "a\x00b", "\ud800", "line\nbreak", 7])
def test_a_key_that_cannot_be_stored_is_refused_before_it_spoils_what_others_sent(shop, wrong):
    with pytest.raises(InputError, match="a key is a text"):
        shop.decide(key=wrong)


def test_looking_back_shows_what_stood_when_it_was_decided(shop):
    play(shop, 12)
    law = replica_of(shop).policy.law()
    choice = shop.decide()
    shop.reward(choice.id, 0.25)
    play(shop, 5)
    record = shop.decision(choice.id)
    assert (record.arm, record.probability, record.reward, record.closed) == (
        choice.arm,
        choice.probability,
        0.25,
        "rewarded",
    )
    assert list(record.law.values()) == law.tolist()
    with pytest.raises(UnknownDecisionError):
        shop.decision("2-00000000")


def test_a_link_to_the_database_leads_to_the_same_lock(shop, url, tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "shop.db")
    with live.open(f"sqlite:///{tmp_path}/link.db") as second, pytest.raises(OtherDeciderError):
        second.experiment("prices")


def test_a_second_name_of_the_file_is_refused(tmp_path):
    with live.open(f"sqlite:///{tmp_path}/one.db") as database:
        database.create("prices", arms=["low", "high"], policy="DiscountedUCB")
    (tmp_path / "second.db").hardlink_to(tmp_path / "one.db")
    for name in ("one", "second"):
        with (
            live.open(f"sqlite:///{tmp_path}/{name}.db") as database,
            pytest.raises(LiveError, match=r"another name \(a hard link\)"),
        ):
            database.experiment("prices")


def test_a_database_that_is_not_there_is_not_made_by_looking(tmp_path):
    with pytest.raises(LiveError, match="there is no database"):
        live.open(f"sqlite:///{tmp_path}/none.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_one_process_decides_and_any_number_may_look(shop, url):
    play(shop, 3)
    with live.open(url) as second:
        with pytest.raises(OtherDeciderError, match="Postgres"):
            second.experiment("prices")
        assert second.view("prices").summary().rewards == 3
        assert second.names() == ["prices"]
        with pytest.raises(ExperimentExistsError):
            second.make("prices", define(arms=["a", "b"]))
        with pytest.raises(UnknownExperimentError, match="did you mean 'prices'"):
            second.view("price")


def test_what_is_closed_or_forked_says_so(shop):
    child = os.fork()
    if child == 0:
        try:
            shop.decide()
        except LiveError as error:
            os._exit(7 if "fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    shop.close()
    with pytest.raises(LiveError, match="closed"):
        shop.decide()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({}, "needs arms"),
        ({"arms": []}, "list of names"),
        ({"arms": "red"}, "list of names"),
        ({"arms": ["a", "a"]}, "two arms are called 'a'"),
        ({"arms": ["a", "b\n"]}, "line breaks"),
        ({"arms": ["a", {"name": "b", "features": [1.0]}]}, "same number of features"),
        ({"arms": [{"name": "a", "feature": [1.0]}]}, "did you mean 'features'"),
        ({"arms": {"a": [1.0], "b": [float("nan")]}}, "finite"),
        ({"arms": ["a", "b"], "polcy": "OPKB"}, "did you mean 'policy'"),
        ({"arms": ["a", "b"], "policy": "AutoBandid"}, "did you mean 'AutoBandit'"),
        ({"arms": ["a", "b"], "settings": {"horizon": 9}}, "has no end"),
        ({"arms": ["a", "b"], "settings": {"flor": 0.1}}, "did you mean 'floor'"),
        ({"arms": ["a", "b"], "patience": 60}, "patience needs missing"),
        ({"arms": ["a", "b"], "patience": -1, "missing": 0}, "patience"),
        ({"arms": ["a", "b"], "fallback": "c"}, "fallback must name an arm"),
        ({"arms": ["a", "b"], "kernel": {"name": "rbf"}}, "have none"),
        ({"arms": ["a", "b"], "reward_range": [1, 0]}, "low < high"),
        ({"arms": ["a", "b"], "missing": "never"}, "missing"),
        ({"arms": [1, 2]}, "a name \\(a text\\)"),
        ({"arms": ["a", "b"], "policy": AutoBandit}, "policy='AutoBandit'"),
        ({"arms": ["a", "b"], "floor": 0.1}, "goes into settings"),
        ({"arms": {"a": [1.0], "b": [2.0]}, "kernel": "rbf"}, "such as {'name': 'rbf'"),
        ({"arms": ["a", "b"], "settings": {"order": "asked"}}, "in the order of the decisions"),
    ],
)
def test_what_an_experiment_cannot_be_made_with_is_said(url, wrong, says):
    with live.open(url) as database:
        with pytest.raises(InputError, match=says):
            database.create("x", **wrong)
        assert database.names() == []


@pytest.mark.parametrize("wrong", ["shop.db", "sqlite://", "sqlite:///:memory:", "mysql://x/y", None])
def test_a_url_that_is_none_is_refused(wrong):
    with pytest.raises(InputError):
        live.open(wrong)


def test_the_limit_on_open_decisions_holds_however_many_ask_at_once(shop):
    values = {"size": 1, "allowed": None, "segment": None}
    asked = [shop.submit("decide", values, most=10) for _ in range(30)]
    refused = [one.exception() for one in asked if one.exception() is not None]
    assert len(refused) == 20
    assert {type(one) for one in refused} == {TooManyOpenError}
    assert "10 decisions wait for a reward, and 10 may" in str(refused[0])
    shop.reward(asked[0].result()[0]["id"], 1.0)
    assert shop.submit("decide", values, most=10).result()
    require_same(shop.view.player(), replica_of(shop))


def test_the_limit_on_arms_counts_retired_ones(shop):
    shop.arms(add=["top"], retire=["low"])
    with pytest.raises(InputError, match="at most 4 arms"):
        shop.submit("arms", {"add": [{"name": "new", "features": []}]}, most=4).result()
    assert shop.submit("arms", {"bring_back": ["low"]}, most=4).result()["retired"] == []
