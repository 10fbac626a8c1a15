"""Every path of the table: what it takes, what it answers, and what it says of wrong requests."""

import io
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

from driftbandits.policies.auto import doubts
from driftbandits.service.metrics import NOTICES, _Counts


@pytest.fixture(scope="module")
def shop(send):
    return send.make("prices")


def test_an_experiment_is_made_once(send, shop):
    status, answer = send.post("/v1/experiments", {"name": "prices", "arms": ["low"]})
    assert (status, answer["type"]) == (409, "urn:driftbandits:experiment-exists")
    names = [one["name"] for one in send.get("/v1/experiments")[1]["experiments"]]
    assert names.count("prices") == 1


def test_unknown_fields_are_answered_with_the_nearest(send):
    status, answer = send.post("/v1/experiments", {"name": "x", "armz": ["low"]})
    assert status == 422
    assert "did you mean 'arms'" in answer["detail"]
    status, answer = send.post("/v1/experiments", {"name": "x", "arms": [{"name": "low", "feature": [1]}]})
    assert "did you mean 'features'" in answer["detail"]


def test_decisions_and_their_rewards(send, shop):
    first, second = send.decide(shop, 2)
    assert set(first) == {"id", "arm", "probability", "fallback"}
    assert send.post(f"{shop}/rewards", {"id": first["id"], "reward": 1})[1]["accepted"] == 1
    assert send.post(f"{shop}/rewards", {"id": first["id"], "reward": 1.0})[1]["repeated"] == 1
    assert send.post(f"{shop}/rewards", {"id": first["id"], "reward": 0})[0] == 409
    assert send.post(f"{shop}/rewards", {"id": second["id"], "reward": 2})[0] == 422
    assert send.post(f"{shop}/rewards", {"id": "2-00000000", "reward": 1})[0] == 404
    status, answer = send.post(
        f"{shop}/rewards", {"rewards": [{"id": second["id"], "reward": 0.5}, {"id": "nonsense", "reward": 0}]}
    )
    assert (status, answer["accepted"], answer["rejected"][0]["id"]) == (200, 1, "nonsense")


def test_allowed_and_segments(send, shop):
    assert {one["arm"] for one in send.decide(shop, 20, allowed=["low"])} == {"low"}
    assert send.post(f"{shop}/decisions", {"allowed": ["lwo"]})[0] == 422
    assert send.post(f"{shop}/decisions", {"segment": "phone"})[0] == 422
    path = send.make("parts", segments=["phone", "desk"])
    assert len(send.decide(path, 3, segment="desk")) == 3
    rows = send.get(f"{path}/summary")[1]["arms"]
    assert {row["segment"] for row in rows} == {"phone", "desk"}
    assert send.get(f"{path}/history")[0] == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b'{"size": 0}', 422),
        (b'{"size": 1001}', 422),
        (b'{"size": "2"}', 422),
        (b'{"size": true}', 422),
        (b'{"sise": 2}', 422),
        (b"[]", 422),
        (b'{"size": NaN}', 422),
        (b'{"allowed": []}', 422),
    ],
)
def test_wrong_bodies(send, shop, body, status):
    found, answer = send.post(f"{shop}/decisions", body)
    assert found == status, answer
    assert answer["status"] == status
    assert answer["detail"]


def test_problems_are_problems(send, shop):
    answer = send.http.get("/v1/experiments/price/summary")
    assert answer.headers["content-type"] == "application/problem+json"
    assert "did you mean 'prices'" in answer.json()["detail"]
    assert send.get("/v1/nothing")[0] == 404
    assert send.get("/v1/experiments/a%00b/summary")[0] == 404
    wrong = send.http.delete("/v1/experiments")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, POST")


def test_steering(send):
    path = send.make("steered", fallback="mid")
    assert send.post(f"{path}/pause")[1] == {"paused": True}
    assert [one["fallback"] for one in send.decide(path, 2)] == [True, True]
    assert send.get(f"{path}/summary")[1]["mode"] == "paused"
    assert send.post(f"{path}/resume")[1] == {"paused": False}
    assert send.post(f"{path}/arms", {"add": ["top"], "retire": ["low"]})[1]["active"] == ["mid", "high", "top"]
    assert send.post(f"{path}/arms", {"bring_back": ["low"]})[1]["retired"] == []
    assert send.post(f"{path}/arms", {"retire": ["lowest"]})[0] == 422
    ids = [one["id"] for one in send.decide(path, 3)]
    assert send.post(f"{path}/forget", {"ids": ids[:2]})[1] == {"forgotten": 2}
    assert send.post(f"{path}/restart")[1] == {"restarts": 1}
    kinds = [event["kind"] for event in send.get(f"{path}/events")[1]["events"]]
    assert [kind for kind in kinds if kind not in ("decided", "created")] == [
        *("paused", "resumed", "arms", "arms", "forgotten", "forgotten", "restarted")
    ]


def test_events_are_read_in_pieces(send, shop):
    send.decide(shop, 5)
    first = send.get(f"{shop}/events?limit=3")[1]
    assert [event["seq"] for event in first["events"]] == [1, 2, 3]
    second = send.get(f"{shop}/events?after={first['next']}&limit=2")[1]
    assert [event["seq"] for event in second["events"]] == [4, 5]
    assert send.get(f"{shop}/events?after=999999")[1] == {"events": [], "next": 999999}
    assert send.get(f"{shop}/events?after=x")[0] == 422


def test_a_query_parameter_that_is_not_there_is_refused(send, shop):
    status, answer = send.get(f"{shop}/events?limt=3")
    assert (status, answer["type"]) == (422, "urn:driftbandits:input")
    assert "'limt'; it takes after and limit" in answer["detail"]
    assert "it takes none" in send.get(f"{shop}/summary?points=3")[1]["detail"]
    before = len(send.get(f"{shop}/events")[1]["events"])
    assert send.post(f"{shop}/decisions?size=3", {})[0] == 422
    assert len(send.get(f"{shop}/events")[1]["events"]) == before


def test_looking_back_at_a_decision(send, shop):
    made = send.decide(shop)[0]
    status, answer = send.get(f"{shop}/decisions/{made['id']}")
    assert (status, answer["arm"], answer["law"][made["arm"]]) == (200, made["arm"], made["probability"])
    assert send.get(f"{shop}/decisions/3-12345678")[0] == 404


def test_the_export_is_the_log(send, shop):
    content = send.http.get(f"{shop}/export.parquet").content
    table = pq.read_table(io.BytesIO(content))
    made = [event for event in send.get(f"{shop}/events")[1]["events"] if event["kind"] == "decided"]
    assert table.column("id").to_pylist() == [event["id"] for event in made]
    assert table.column("arm").to_pylist() == [event["arm"] for event in made]


def test_summary_changes_and_history(send):
    shop = send.make("summed up")
    (made,) = send.decide(shop, 1)
    assert send.post(f"{shop}/rewards", {"id": made["id"], "reward": 1})[1]["accepted"] == 1
    summary = send.get(f"{shop}/summary")[1]
    assert summary["leaders"][0]["arm"] in ("low", "mid", "high")
    assert sum(arm["probability"] for arm in summary["arms"]) == pytest.approx(1.0)
    assert send.get(f"{shop}/changes")[1] == {"changes": []}
    history = send.get(f"{shop}/history?points=2")[1]
    assert len(history["estimate"]) == len(history["times"]) <= 2
    assert history["rewards"][0]["count"] >= 1


def test_health_and_documents_need_no_key(send):
    assert send.http.get("/healthz").text == "alive\n"
    send.wait_until_ready()
    assert send.http.get("/readyz").text == "ready\n"
    document = send.get("/openapi.json")[1]
    assert "/v1/experiments/{name}/decisions" in document["paths"]
    assert "Deciding" in document["components"]["schemas"]
    assert send.get("/docs")[0] == 404


def test_the_same_key_gets_the_stored_answer(send, shop):
    first = send.post(f"{shop}/decisions", {"size": 2}, idempotency_key="one")
    assert send.post(f"{shop}/decisions", {"size": 2}, idempotency_key="one") == first
    status, answer = send.post(f"{shop}/decisions", {"size": 3}, idempotency_key="one")
    assert (status, answer["type"]) == (422, "urn:driftbandits:key-reused")
    assert send.post(f"{shop}/arms", {"add": ["new"]}, idempotency_key="two")[0] == 200
    assert send.post(f"{shop}/arms", {"add": ["new"]}, idempotency_key="two")[0] == 200
    assert send.post(f"{shop}/decisions", {}, idempotency_key="x" * 201)[0] == 422


def test_an_experiment_is_made_once_by_one_key(send):
    body = {"name": "once", "arms": ["a", "b"]}
    assert send.post("/v1/experiments", body, idempotency_key="make")[0] == 201
    assert send.post("/v1/experiments", body, idempotency_key="make")[0] == 201
    assert send.post("/v1/experiments", {**body, "seed": 1}, idempotency_key="make")[0] == 422
    assert send.post("/v1/experiments", body, idempotency_key="other")[0] == 409
    status, answer = send.post("/v1/experiments", {**body, "name": "twice"}, idempotency_key="make")
    assert (status, answer["type"]) == (422, "urn:driftbandits:key-reused")
    assert send.get("/v1/experiments/twice/summary")[0] == 404


def test_metrics_count_what_the_journal_has(send):
    shop = send.make("counted")
    for made in send.decide(shop, 7)[:2]:
        send.post(f"{shop}/rewards", {"id": made["id"], "reward": 1})
    text = send.http.get("/metrics").text
    events = send.get(f"{shop}/events")[1]["events"]
    decisions = sum(event["kind"] == "decided" for event in events)
    assert f'driftbandits_decisions_total{{experiment="counted"}} {float(decisions)}' in text
    for name in ("rewards_total", "late_total", "expired_total", "fallbacks_total", "changes_total", "open_decisions"):
        assert f'driftbandits_{name}{{experiment="counted"}}' in text
    for name in ("batch_requests", "decide_seconds", "reward_seconds", "commit_seconds", "step_seconds"):
        assert f'driftbandits_{name}_count{{experiment="counted"}}' in text
    assert 'driftbandits_replayed_events{experiment="counted"} 1.0' in text


def test_what_the_policy_doubts_is_in_health_and_metrics(send, monkeypatch):
    monkeypatch.setattr(doubts, "LIMIT", -1.0)  # whatever the rewards
    monkeypatch.setattr(doubts, "CHECKS", 1)
    shop = send.make("doubtful", policy="AutoBandit")
    rng = np.random.default_rng(0)
    for _ in range(3):
        told = [{"id": one["id"], "reward": float(rng.uniform(0.2, 0.8))} for one in send.decide(shop, 100)]
        assert send.post(f"{shop}/rewards", {"rewards": told})[0] == 200
    health = send.get(f"{shop}/summary")[1]["health"]
    assert any("does not fit the rewards" in sentence for sentence in health)
    text = send.http.get("/metrics").text
    assert 'driftbandits_notices{experiment="doubtful",kind="DoubtWarning"} 1.0' in text
    assert 'driftbandits_notices{experiment="doubtful",kind="RewardRangeWarning"} 0.0' in text


def test_kinds_of_notices_are_bounded():
    replica = SimpleNamespace(notices={f"Kind{number}Warning": "" for number in range(99)})
    family = _Counts._notices([SimpleNamespace(name="shop", replica=replica)])
    values = {sample.labels["kind"]: sample.value for sample in family.samples}
    assert values == {**dict.fromkeys(NOTICES, 0.0), "other": 1.0}


def test_many_arms_with_nothing_in_common_are_played(send):
    path = send.make("many", arms=[f"arm {number}" for number in range(300)], policy="AutoBandit")
    made = send.decide(path, 2)
    assert not any(one["fallback"] for one in made)
    assert send.post(f"{path}/rewards", {"id": made[0]["id"], "reward": 1.0})[0] == 200
    assert send.get(f"{path}/summary")[1]["mode"] == "running"


def test_what_no_policy_can_play_is_refused_when_it_is_made(send):
    points = [{"name": f"arm {number}", "features": [13.0 * number % 7, 5.0 * number % 11]} for number in range(300)]
    body = {"name": "rough", "arms": points, "kernel": {"name": "rbf", "length_scale": 1e-3}}
    status, answer = send.post("/v1/experiments", {**body, "settings": {"rank": 10, "kernel": "given"}})
    assert status == 422, answer
    assert send.get("/v1/experiments/rough/summary")[0] == 404


def test_a_body_where_none_is_wanted_says_so(send, shop):
    assert "takes an empty body" in send.post(f"{shop}/pause", {"why": 1})[1]["detail"]
    assert "no field 'x'" in send.post(f"{shop}/rewards", {"id": "rewards", "reward": 1.0, "x": 1})[1]["detail"]
