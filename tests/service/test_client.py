"""The client: the methods of a local experiment, requests sent again, and a service that is away."""

import asyncio
import dataclasses
import inspect
import threading

import httpx
import pyarrow.parquet as pq
import pytest

from driftbandits import ArmSet, errors, live
from driftbandits.live.client import AsyncRemoteExperiment, Attempts, Fallback, RemoteExperiment
from driftbandits.live.summary import ExperimentSummary
from driftbandits.service.background import serving


@pytest.fixture(scope="module")
def client(url):
    with live.Client(url, timeout=30.0) as found:
        yield found


@pytest.fixture(scope="module")
def shop(client):
    return client.create("shop", arms={"low": [1.0], "high": [2.0]}, policy="DiscountedUCB", fallback="low", seed=1)


def test_it_has_the_methods_of_a_local_experiment():
    def methods(kind):
        return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}

    apart = {"submit", "watch", "close", "settings"}  # not over HTTP
    assert methods(live.Experiment) - apart == methods(RemoteExperiment)
    assert methods(live.AsyncExperiment) - apart == methods(AsyncRemoteExperiment)
    for name in methods(RemoteExperiment):
        wanted = list(inspect.signature(getattr(live.Experiment, name)).parameters)
        for kind in (RemoteExperiment, AsyncRemoteExperiment):
            assert list(inspect.signature(getattr(kind, name)).parameters) == wanted, name


def test_decisions_rewards_and_what_can_be_looked_at(client, tmp_path):
    arms = {"low": [1.0], "high": [2.0]}
    shop = client.create("read", arms=arms, policy="DiscountedUCB", fallback="low", seed=1)
    one, several = shop.decide(), shop.decide(3, allowed=["high"])
    assert one.arm in ("low", "high")
    assert {choice.arm for choice in several} == {"high"}
    assert shop.reward(one, 1.0).accepted == 1
    assert shop.rewards({choice.id: 0.5 for choice in several[:2]}).accepted == 2
    assert shop.forget(several[2]) == 1
    summary = shop.summary()
    assert isinstance(summary, ExperimentSummary)
    assert (summary.decisions, summary.rewards, summary.forgotten) == (4, 3, 1)
    assert shop.changes() == ()
    assert shop.history().names is not None
    assert shop.decision(one.id).arm == one.arm
    assert shop.events(after=1, limit=1)[0]["id"] == one.id
    shop.export(tmp_path / "log.parquet")
    assert pq.read_table(tmp_path / "log.parquet").num_rows == 4
    assert "read" in client.names()
    shop.pause()
    assert shop.decide().fallback
    shop.resume()
    assert shop.arms(add=[{"name": "top", "features": [3.0]}], retire=["low"])["active"] == ["high", "top"]
    shop.restart()
    assert shop.summary().restarts == 1


def test_errors_are_the_librarys_own(client, shop):
    with pytest.raises(errors.UnknownDecisionError):
        shop.reward("2-00000000", 1.0)
    with pytest.raises(errors.RewardError):
        shop.reward(shop.decide().id, 7.0)
    with pytest.raises(errors.UnknownExperimentError, match="did you mean 'shop'"):
        client.experiment("shopp").decide()
    with pytest.raises(errors.ExperimentExistsError):
        client.create("shop", arms=["a"])
    with pytest.raises(errors.InputError, match="did you mean 'patience'"):
        client.create("other", arms=["a"], patiense=3)
    with pytest.raises(errors.UnknownExperimentError):
        client.experiment("shopp").export("log.parquet")


def test_the_same_as_coroutines(url, tmp_path):
    async def play():
        async with live.AsyncClient(url, timeout=30.0) as client:
            shop = await client.create("coroutines", arms=["a", "b"], policy="DiscountedUCB")
            made = await asyncio.gather(*(shop.decide() for _ in range(20)))
            assert len({one.id for one in made}) == 20
            assert (await shop.rewards({one.id: 1.0 for one in made})).accepted == 20
            assert (await shop.reward(made[0].id, 1.0)).repeated == 1
            for steer in (shop.pause, shop.resume, shop.restart):
                await steer()
            assert (await shop.arms(add=["c"]))["active"] == ["a", "b", "c"]
            assert await shop.forget([(await shop.decide()).id]) == 1
            assert (await shop.summary()).decisions == 21
            assert await shop.changes() == ()
            assert len(await shop.history()) == 1
            assert (await shop.decision(made[0].id)).arm == made[0].arm
            assert len(await shop.events()) > 40
            assert await shop.export(tmp_path / "log.parquet") > 0
            assert "coroutines" in await client.names()

    asyncio.run(play())


class Flaky(httpx.BaseTransport):
    """Loses every other answer after the server gave it: the worst moment."""

    def __init__(self, inner):
        self.inner, self.count, self.keys = inner, 0, []

    def handle_request(self, request):
        answer = self.inner.handle_request(request)
        self.count += 1
        self.keys.append(request.headers.get("idempotency-key"))
        if self.count % 2:
            answer.read()
            answer.close()
            raise httpx.ReadError("lost on its way")
        return answer

    def close(self):
        self.inner.close()


def test_a_lost_answer_is_asked_for_again_and_nothing_is_done_twice(url):
    with live.Client(url, timeout=30.0) as client:
        http = client._link.http
        flaky = http._transport = Flaky(http._transport)
        shop = client.create("flaky", arms=["a", "b"], policy="DiscountedUCB")
        shop._operations.fallback.see({"arms": [], "fallback": None})
        made = [shop.decide() for _ in range(5)]
        assert [shop.reward(one.id, 1.0).accepted for one in made] == [1] * 5
        summary = shop.summary()
    assert (summary.decisions, summary.rewards) == (5, 5)
    assert flaky.count == 24
    assert flaky.keys[0] == flaky.keys[1] != flaky.keys[2]


def test_when_the_service_is_away_the_fallback_decides(tmp_path):
    database = f"sqlite:///{tmp_path}/shop.db"
    with serving(database=database) as url:
        client = live.Client(url, timeout=30.0)
        shop = client.create("shop", arms=["a", "b", "c"], policy="DiscountedUCB")
        shop.decide()
        shop.arms(retire=["b"])
    client._link.timeout = 0.3
    made = [shop.decide(), *shop.decide(20)]
    assert {one.arm for one in made} == {"a", "c"}
    assert {(one.fallback, one.probability) for one in made} == {(True, 0.5)}
    assert [one.arm for one in shop.decide(2, allowed=["c"])] == ["c", "c"]
    assert shop.reward(made[0].id, 1.0) == live.RewardAnswer()  # it is not sent
    with pytest.raises(errors.AwayError):
        shop.reward("2-00000000", 1.0)
    with pytest.raises(errors.AwayError):
        client.experiment("unseen").decide()
    client.close()


def test_callers_are_not_kept_waiting_while_it_is_away():
    clock = iter(range(100))
    fallback = Fallback("shop", now=lambda: 0.4 * next(clock))
    fallback.see({"arms": [{"name": "a", "retired": False}], "fallback": None})
    fallback.fail()
    assert [fallback.is_away for _ in range(4)] == [True, True, False, False]


def test_attempts_end_in_time_and_follow_only_what_is_open():
    now = [0.0]
    attempts = Attempts(5.0, now=lambda: now[0])
    assert not attempts.is_open(409)  # a conflict of its own
    waited = 0
    while (pause := attempts.pause()) is not None:
        now[0] += pause
        now[0] += attempts.left
        waited += 1
    assert waited >= 2
    assert now[0] < 5.0 + 1e-6
    assert attempts.is_open(409)  # the first attempt is still under way
    assert attempts.is_open(503)
    assert not attempts.is_open(404)


def test_many_threads_share_a_client(shop):
    made, lock = [], threading.Lock()

    def work():
        own = [shop.decide().id for _ in range(10)]
        with lock:
            made.extend(own)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 40


def test_the_answer_has_all_that_a_summary_needs(send, shop):
    answer = send.get("/v1/experiments/shop/summary")[1]
    assert {field.name for field in dataclasses.fields(ExperimentSummary)} <= set(answer)


def test_a_url_without_its_scheme_is_named():
    with pytest.raises(errors.InputError, match=r"http://.*got '127\.0\.0\.1:8350'"):
        live.Client("127.0.0.1:8350")


@pytest.mark.parametrize(
    "fields", [{"arms": "abc"}, {"arms": ["a", "b"], "segments": "mobile"}], ids=["arms", "segments"]
)
def test_a_text_is_no_list_of_arms(client, fields):
    text = "abc" if fields["arms"] == "abc" else "mobile"
    with pytest.raises(
        errors.InputError, match=rf"must be a list of names.*got '{text}'; for a single one use \['{text}'\]"
    ):
        client.create("strings", **fields)
    assert "strings" not in client.names()

    async def create():
        async with live.AsyncClient(client.url, timeout=30.0) as other:
            await other.create("strings", **fields)

    with pytest.raises(errors.InputError, match="must be a list of names"):
        asyncio.run(create())


def test_a_text_is_no_list_of_allowed_arms(shop):
    with pytest.raises(errors.InputError, match=r"allowed must be a list of names of arms, got 'low'; use \['low'\]"):
        shop.decide(allowed="low")


def test_separate_arms_are_their_names(client):
    made = client.create("headlines", arms=ArmSet.separate(["storm", "derby"]))
    assert made.arms(add=["strike"])["active"] == ["storm", "derby", "strike"]
