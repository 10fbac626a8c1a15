"""Experiments whose requests have contexts: over HTTP, by the clients, and on the page."""

import asyncio
import json

import numpy as np
import pytest

import driftbandits as db
from driftbandits import live
from driftbandits.errors import InputError, KeyReusedError
from driftbandits.service import contexts as by_context
from driftbandits.service import keys
from driftbandits.service.background import serving
from tests.service.browser import CHROMIUM, HOW_TO_GET_IT, browser
from tests.service.conftest import Sender

CONTEXTS = {
    "length": [0, 4000],
    "device": ["mobile", "desktop"],
    "<b>hour</b>": {"cyclic": 24},
    "member": {"optional": "boolean"},
    "text": {"vector": 2},
}
REQUEST = {"length": 200, "device": "mobile", "<b>hour</b>": 9.5, "text": [0.5, -1]}
ARMS = ["small", "large", "<i>odd</i>"]


def requests(rng, number):
    return [
        {
            "length": int(rng.integers(4000)),
            "device": str(rng.choice(["mobile", "desktop"])),
            "<b>hour</b>": 24 * rng.random(),
            "text": rng.standard_normal(2).tolist(),
            "member": [True, False, None][rng.integers(3)],
        }
        for _ in range(number)
    ]


def reward_of(arm, context):
    small = 0.9 - 0.7 * context["length"] / 4000 - 0.2 * (context["device"] == "desktop")
    return {"small": small, "large": 0.5}.get(arm, 0.2)


@pytest.fixture(scope="module")
def router(send):
    """An experiment that tests only read, with 400 rewards."""
    path = send.make("models", arms=ARMS, policy="AutoBandit", contexts=CONTEXTS)
    rng = np.random.default_rng(0)
    for _ in range(20):
        asked = requests(rng, 20)
        status, answer = send.post(f"{path}/decisions", {"contexts": asked})
        assert (status, len(answer["decisions"])) == (200, 20)
        rewards = [
            {"id": made["id"], "reward": min(max(reward_of(made["arm"], one) + 0.1 * (rng.random() - 0.5), 0.0), 1.0)}
            for made, one in zip(answer["decisions"], asked, strict=True)
        ]
        assert send.post(f"{path}/rewards", {"rewards": rewards})[1]["accepted"] == 20
    return path


@pytest.fixture(scope="module")
def empty(send):
    return send.make("empty", arms=ARMS, policy="AutoBandit", contexts=CONTEXTS)


def test_a_decision_for_a_request(send, router):
    status, answer = send.post(f"{router}/decisions", {"context": REQUEST}, idempotency_key="one")
    assert status == 200
    assert send.post(f"{router}/decisions", {"context": REQUEST}, idempotency_key="one")[1] == answer
    other = {"context": {**REQUEST, "length": 201}}
    assert send.post(f"{router}/decisions", other, idempotency_key="one")[1]["type"] == "urn:driftbandits:key-reused"
    status, record = send.get(f"{router}/decisions/{answer['decisions'][0]['id']}")
    assert record["context"] == REQUEST
    assert record["law"][record["arm"]] == answer["decisions"][0]["probability"]


WRONG = [
    ({"context": {**REQUEST, "lenght": 3}}, "no column 'lenght'; did you mean 'length'"),
    ({"context": {**REQUEST, "length": "80"}}, "context column 'length' must be a finite number, got '80'"),
    ({"context": {**REQUEST, "length": float("nan")}}, "context column 'length' must be a finite number, got nan"),
    ({"context": {**REQUEST, "text": [1.0]}}, "context column 'text' must be 2 finite numbers"),
    ({"context": {**REQUEST, "device": "tv"}}, "context column 'device' must be one of 'mobile', 'desktop', got 'tv'"),
    ({"context": {**REQUEST, "device": "x" * 500_000}}, "context column 'device' must be one of"),
    ({"context": {**REQUEST, "member": 1}}, "context column 'member' must be true or false, or None, got 1"),
    ({"context": {**REQUEST, "text": [[[[1]]]]}}, "context column 'text'"),
    ({"context": [1, 2]}, "a context must be a mapping"),
    ({"context": "mobile"}, "context: "),
    ({"contexts": [REQUEST, {}]}, "row 1: the context has no 'length'"),
    ({"contexts": []}, "contexts: "),
    ({"contexts": [REQUEST], "size": 2}, "in the place of a size"),
    ({"context": REQUEST, "contexts": [REQUEST]}, "in the place of a size"),
    ({}, "each decision needs its context"),
]


@pytest.mark.parametrize(("body", "words"), WRONG)
def test_a_wrong_context_is_refused_with_the_name_of_the_column(send, empty, body, words):
    status, answer = send.post(f"{empty}/decisions", json.dumps(body).encode())
    assert (status, words in answer["detail"]) == (422, True), answer
    assert len(send.get(f"{empty}/events")[1]["events"]) == 1


def test_ten_megabytes_of_context_are_refused(send, empty):
    body = json.dumps({"context": {**REQUEST, "device": "x" * 10_000_000}}).encode()
    assert send.post(f"{empty}/decisions", body)[0] == 413
    assert len(send.get(f"{empty}/events")[1]["events"]) == 1


def test_columns_that_are_none_are_refused(send):
    for contexts, words in [
        ({"device": "text"}, "context column 'device' must be"),
        ({"device": 5}, "context column 'device' must be"),
        ("device", "contexts: "),
        (0, "the size of a context"),
    ]:
        body = {"name": "wrong", "arms": ["a", "b"], "contexts": contexts}
        status, answer = send.post("/v1/experiments", body)
        assert (status, words in answer["detail"]) == (422, True), answer


def test_a_guest_has_a_context_too(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with live.open(url) as database:
        database.create("models", arms=ARMS, contexts=CONTEXTS, seed=0)
        guest = keys.create_key(database, "app", "guest")
    with serving(database=url) as where, Sender(where, guest) as send:
        path = "/v1/experiments/models/decisions"
        assert len(send.post(path, {"contexts": [REQUEST, REQUEST]})[1]["decisions"]) == 2
        assert send.post(path, {})[0] == 422


def test_the_clients_pass_contexts(url):
    columns = db.Contexts(hour=db.cyclic(24), price=float, text=3, age=db.optional((0, 100)))
    context = {"hour": np.int64(3), "price": np.float32(0.5), "text": np.ones(3), "age": np.nan}
    with live.Client(url, timeout=30.0) as client:
        shop = client.create("clients", arms=ARMS, contexts=columns, seed=0)
        one, several = shop.decide(context=context, key="a"), shop.decide(contexts=[context, context])
        assert shop.decide(context=context, key="a") == one
        with pytest.raises(KeyReusedError):
            shop.decide(context={**context, "hour": 4}, key="a")
        with pytest.raises(InputError, match="context column 'price' must be a finite number, got None"):
            shop.decide(context={**context, "price": np.nan})
        assert len(several) == 2
        assert shop.decision(one).context == {"hour": 3, "price": 0.5, "text": [1.0, 1.0, 1.0]}

        async def ask():
            asked = shop.asynchronous
            try:
                return await asked.decide(contexts={name: [value] * 2 for name, value in context.items()})
            finally:
                await asked.client.close()

        assert len(asyncio.run(ask())) == 2
        assert shop.summary().decisions == 5


def test_the_document_has_contexts(send):
    schemas = send.get("/openapi.json")[1]["components"]["schemas"]
    assert "cyclic" in schemas["Creation"]["properties"]["contexts"]["description"]
    assert {"context", "contexts"} <= set(schemas["Deciding"]["properties"])


def test_slices_are_means_over_the_latest_requests(send, router, database):
    status, found = send.get(f"{router}/contexts")
    assert status == 200
    assert {name for name, weight in found["columns"].items() if weight > 0.5} == {"length", "device"}
    kinds = {one["column"]: one["kind"] for one in found["slices"]}
    assert kinds == {"length": "number", "device": "category"}
    with live.open(database) as opened:
        view = opened.view("models")
        policy, latest = view.player().policy, by_context.latest_contexts(view)
    assert len(latest) == 64
    some = latest[::10][:6]
    for one in found["slices"]:
        for k, value in enumerate(one["values"]):
            mean = np.mean([policy.estimate(context={**c, one["column"]: value}) for c in some], axis=0)
            assert one["best"][k] == ARMS[mean.argmax()]
            assert one["highest"][k] == pytest.approx(mean.max(), abs=1e-5)
            expected = [mean[ARMS.index(arm)] for arm in one["arms"]]
            np.testing.assert_allclose([row[k] for row in one["estimate"]], expected, atol=1e-5)
    length = next(one for one in found["slices"] if one["column"] == "length")
    assert (length["best"][0], length["best"][-1]) == ("small", "large")


def test_there_are_slices_of_every_kind_of_column():
    spec = {**CONTEXTS, "price": "number", "long": {"vector": 100}, "maybe": {"optional": {"vector": 2}}}
    latest = [
        {**REQUEST, "price": 3, "maybe": [1, 2], "text": [0, 0]},
        {**REQUEST, "price": 5, "maybe": [2, 2], "text": [0, 1]},
        {**REQUEST, "price": 4, "text": [0, 2]},
    ]
    parts = by_context.parts_of(spec, latest)
    assert list(parts) == ["length", "device", "<b>hour</b>", "member", "text[1]", "price", "maybe[0]"]
    assert parts["member"].values == (True, False, None)
    assert (parts["price"].values[0], parts["price"].values[-1]) == (3.0, 5.0)
    assert parts["text[1]"].replaced(latest[0], 7)["text"] == [0, 7]
    assert parts["maybe[0]"].replaced(latest[2], 7) == latest[2]
    vectors = by_context.parts_of(2, [[1, 2], [3, 2]])
    assert [part.replaced([1, 2], 5) for part in vectors.values()] == [[5, 2]]
    assert [part.name for part in by_context.shown(parts, {"price": 0.9, "length": 0.6, "device": 0.4})] == [
        "price",
        "length",
    ]
    assert len(by_context.shown(parts, {})) == 4


def test_without_contexts_there_are_no_slices(send):
    path = send.make("plain")
    status, answer = send.get(f"{path}/contexts")
    assert (status, answer["detail"]) == (422, "experiment 'plain' has no contexts")
    assert send.post(f"{path}/decisions", {"context": REQUEST})[0] == 422


def test_before_any_decision_there_is_nothing_to_show(send, empty):
    assert send.get(f"{empty}/contexts")[1]["slices"] == []


@pytest.mark.skipif(CHROMIUM is None, reason=HOW_TO_GET_IT)
def test_the_page_shows_which_arm_is_for_which_request(send, router, empty):
    with browser() as page:
        for width in (1400, 390):
            page.troubles.clear()
            page.open(f"{send.url}/experiments/models", width=width)
            page.wait("document.querySelector('#slices .main-svg')")
            assert page.troubles == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert "Rewards depend on length (> 99.9 % sure), device" in page.text("#request-note")
            rows = page.evaluate("[...document.querySelectorAll('#slices tbody tr')].map((row) => row.innerText)")
            assert [row.split()[0] for row in rows] == ["mobile", "desktop"]
            size = page.evaluate("document.querySelector('#slices .main-svg').getBoundingClientRect().width")
            assert 0.3 * width < size <= width
            assert "on average over the latest requests" in page.text("#answer")
        page.open(f"{send.url}/experiments/empty")
        assert '{"context":{"length":2000,"device":"mobile","<b>hour</b>":0,"text":[0,0]}}' in page.text("#first")
        assert page.text("#request-note") == "Nothing is known yet: no reward has come."
        send.make("without")
        page.open(f"{send.url}/experiments/without")
        assert page.evaluate("document.querySelector('#requests').hidden")
