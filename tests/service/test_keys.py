"""Who may come in, and what a browser may be made to send."""

import asyncio
import contextlib
import json
import re
import time

import httpx
import pytest
from starlette.requests import Request
from typer.testing import CliRunner

from driftbandits import live
from driftbandits.cli.app import app
from driftbandits.errors import InputError, OtherDeciderError
from driftbandits.live.definition import define
from driftbandits.service import keys
from driftbandits.service.background import serving
from driftbandits.service.hosting import Elsewhere, Forwarding
from driftbandits.service.keys import COOKIE
from driftbandits.service.problems import Problem
from tests.service.conftest import Sender

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example"},
        {"x-forwarded-for": "10.0.0.1"},
        {"forwarded": "for=10.0.0.1"},
        {"x-forwarded-proto": "https"},
        {"via": "1.1 proxy"},
        {"authorization": "Bearer db_00000000_" + 43 * "a"},
    ],
)
def test_without_a_key_only_this_machine_itself(send, headers):
    answer = send.http.get("/v1/experiments", headers=headers)
    assert answer.status_code == 401
    assert "www-authenticate" in answer.headers


def test_localhost_is_this_machine(send):
    assert send.http.get("/v1/experiments", headers={"host": "localhost:8350"}).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_changes_something_is_json(send, kind):
    answer = send.http.post("/v1/experiments", content=b"{}", headers={"content-type": kind})
    assert answer.status_code == 415


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "https://"])
def test_other_pages_may_not_send(send, origin):
    path = send.make(f"from {re.sub('[^a-z0-9]', '', origin)}")
    assert send.post(f"{path}/pause", {}, origin=origin)[0] == 403


def test_the_own_page_needs_its_token(send):
    path = send.make("tokens")
    assert send.post(f"{path}/pause", {}, origin=send.url)[0] == 403
    page = send.http.get("/").text
    token = re.search(r'data-token="([0-9a-f]{64})"', page)[1]
    assert send.post(f"{path}/pause", {}, origin=send.url, x_csrf_token=token)[0] == 200


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """A server with a key of each scope, and those keys."""
    url = f"sqlite:///{tmp_path_factory.mktemp('closed')}/shop.db"
    with live.open(url) as database:
        made = {scope: keys.create_key(database, f"for {scope}", scope) for scope in keys.SCOPES}
        database.create("prices", arms=["low", "high"], policy="DiscountedUCB")
    with serving(database=url) as where:
        yield where, made


def test_scopes(closed):
    where, made = closed
    wanted = {
        ("POST", "/v1/experiments/prices/decisions"): {"guest", "decide", "admin"},
        ("POST", "/v1/experiments/prices/forget"): {"guest", "decide", "admin"},
        ("GET", "/v1/experiments/prices/summary"): {"decide", "read", "admin"},
        ("GET", "/v1/experiments/prices/events"): {"read", "admin"},
        ("GET", "/v1/experiments"): {"read", "admin"},
        ("GET", "/metrics"): {"read", "admin"},
        ("POST", "/v1/experiments/prices/pause"): {"admin"},
        ("POST", "/v1/experiments/prices/arms"): {"admin"},
        ("POST", "/v1/experiments"): {"admin"},
    }
    for (method, path), allowed in wanted.items():
        content = b'{"ids": []}' if path.endswith("forget") else b"{}"
        body = {"content": content, "headers": JSON} if method == "POST" else {}
        assert httpx.request(method, where + path, **body).status_code == 401
        for scope, key in made.items():
            headers = {**body.get("headers", {}), "authorization": f"Bearer {key}"}
            status = httpx.request(method, where + path, **{**body, "headers": headers}).status_code
            assert (status != 403) == (scope in allowed), (method, path, scope)


def test_keys_are_kept_as_hashes_and_can_be_revoked(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with live.open(url) as database:
        key = keys.create_key(database, "shop", "decide")
        keyring = keys.Keyring(database, now=iter(range(0, 100, 10)).__next__)
        keyring.refresh()
        assert keyring.find(key).name == "shop"
        assert keyring.find(key[:-1] + ("a" if key[-1] != "a" else "b")) is None
        assert keyring.find("") is None
        keys.revoke_key(database, key.split("_")[1])
        keyring.refresh()
        assert keyring.find(key) is None
        assert keyring.exists  # a server never opens by itself
        with pytest.raises(InputError, match="no key in use"):
            keys.revoke_key(database, key.split("_")[1])
        with pytest.raises(InputError, match="scope must be one of"):
            keys.create_key(database, "shop", "all")
    assert key.split("_", 2)[2].encode() not in (tmp_path / "shop.db").read_bytes()


def test_a_running_server_learns_of_new_and_revoked_keys(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with serving(database=url) as where, live.open(url) as beside:
        sender = Sender(where)
        assert sender.get("/v1/experiments")[0] == 200
        key = keys.create_key(beside, "first", "admin")
        _until(lambda: sender.get("/v1/experiments")[0] == 401)
        keyed = Sender(where, key)
        assert keyed.get("/v1/experiments")[0] == 200
        keys.revoke_key(beside, key.split("_")[1])
        _until(lambda: keyed.get("/v1/experiments")[0] == 401)
        sender.http.close()
        keyed.http.close()


def _until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_bound_elsewhere_it_needs_a_key(tmp_path):
    with (
        pytest.raises(InputError, match="there is no key yet"),
        serving(database=f"sqlite:///{tmp_path}/shop.db", host="0.0.0.0"),
    ):
        pass


def test_login_and_logout(closed):
    where, made = closed
    with httpx.Client(base_url=where) as browser:
        assert browser.get("/").headers["location"] == "/login"
        form = {"content-type": "application/x-www-form-urlencoded", "origin": where}
        assert browser.post("/login", content=b"key=nonsense", headers=form).status_code == 401
        assert browser.post("/login", data={"key": made["decide"]}).status_code == 401
        evil = {"origin": "http://evil.example"}
        assert browser.post("/login", data={"key": made["admin"]}, headers=evil).status_code == 403
        answer = browser.post("/login", data={"key": made["admin"]}, headers={"origin": where})
        cookie = answer.headers["set-cookie"].lower()
        assert answer.headers["location"] == "/"
        assert all(word in cookie for word in (COOKIE, "httponly", "samesite=strict", "path=/"))
        page = browser.get("/experiments/prices")
        assert page.status_code == 200
        assert "script-src 'self'" in page.headers["content-security-policy"]
        token = re.search(r'data-token="([0-9a-f]{64})"', page.text)[1]
        pause = "/v1/experiments/prices/pause"
        assert browser.post(pause, content=b"{}", headers=JSON).status_code == 403  # a cookie alone changes nothing
        assert browser.post(pause, content=b"{}", headers={**JSON, "x-csrf-token": token}).status_code == 200
        assert "secure" not in cookie
        session = browser.cookies[COOKIE]
        assert made["admin"] not in session
        with httpx.Client(base_url=where, cookies={COOKIE: session}) as copied:
            assert copied.get("/").status_code == 200
            browser.post("/logout")
            assert browser.get("/").headers["location"] == "/login"
            assert copied.get("/").headers["location"] == "/login"  # the session has ended, not only its cookie


def test_a_session_ends_with_its_key_and_after_its_time(tmp_path, monkeypatch):
    with live.open(f"sqlite:///{tmp_path}/shop.db") as database:
        key = keys.create_key(database, "page", "read")
        keyring = keys.Keyring(database)
        keyring.reread()
        row = keyring.find(key)
        session = keys.begin_session(database, row)
        keyring.reread()
        assert keyring.find_session(session) == row
        assert keyring.find(session) is None
        assert keyring.find_session(session[:-1] + "!") is None
        assert [one.id for one in keys.list_keys(database)] == [row.id]
        keys.end_session(database, session[:-20] + 20 * "x")  # its id alone ends nothing
        keyring.reread()
        assert keyring.find_session(session) == row
        monkeypatch.setattr(keys, "SESSION_SECONDS", -1)
        assert keyring.find_session(session) is None
        monkeypatch.undo()
        keys.revoke_key(database, row.id)
        keyring.reread()
        assert keyring.find_session(session) is None


def test_cookies_of_others_do_no_harm():
    ours = f"{keys.COOKIE}=dbs_one"
    for other in ('{"a": "b;c", "d": [1]}', 'a="b', "=", "x={1}"):
        assert keys.cookie_of({"cookie": f"prefs={other}; {ours}"}) == "dbs_one"
        assert keys.cookie_of({"cookie": f"{ours}; prefs={other}"}) == "dbs_one"
    assert keys.cookie_of({}) == ""


def test_keys_are_not_forwarded_in_plain_to_other_machines():
    request = Request({"type": "http", "headers": [], "query_string": b"", "raw_path": b"/", "method": "GET"})
    caller, there = keys.Caller("a", "admin", "db_a_b"), Elsewhere("shop", "http://10.0.0.5:8350")
    sending = Forwarding(None, plain=False)
    with pytest.raises(OtherDeciderError, match="keys are not sent over plain HTTP"):
        asyncio.run(sending._send(request, caller, b"", there))


def test_idempotency_keys_belong_to_the_api_key(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with live.open(url) as database:
        first, second, admin = (keys.create_key(database, "k", scope) for scope in ("decide", "decide", "admin"))
    with serving(database=url) as where, contextlib.ExitStack() as stack:
        one, other, owner = (stack.enter_context(Sender(where, key)) for key in (first, second, admin))
        path = owner.make("prices")
        answers = [sender.post(f"{path}/decisions", {}, idempotency_key="one") for sender in (one, other)]
        assert [status for status, _ in answers] == [200, 200]
        assert answers[0] != answers[1]
        assert one.post(f"{path}/decisions", {}, idempotency_key="one") == answers[0]
        assert other.post(f"{path}/decisions", {"size": 2}, idempotency_key="one")[0] == 422
        body = {"name": "more", "arms": ["a", "b"], "seed": 1}
        assert owner.post("/v1/experiments", body, idempotency_key="one")[0] == 201
        assert owner.post("/v1/experiments", body, idempotency_key="one")[0] == 201
        events = owner.get(f"{path}/events")[1]["events"]
        assert {event.get("key") for event in events if event["kind"] == "decided"} == {"one"}


def test_https_makes_cookies_secure(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with live.open(url) as database:
        key = keys.create_key(database, "first", "read")
    with serving(database=url, public_url="https://shop.example") as where:
        answer = httpx.post(f"{where}/login", data={"key": key}, headers={"origin": "https://shop.example"})
        assert "secure" in answer.headers["set-cookie"].lower()


def test_files_are_three_and_no_path_leads_elsewhere(send):
    assert send.http.get("/static/page.js").headers["content-type"].startswith("text/javascript")
    script = send.http.get("/static/plotly.min.js")
    assert len(script.content) > 1_000_000
    assert send.http.get("/static/plotly.min.js", headers={"if-none-match": script.headers["etag"]}).status_code == 304
    for path in ("/static/..%2fapp.py", "/static/app.py", "/static/%2e%2e/settings.py", "/static//etc/passwd"):
        assert send.http.get(path).status_code == 404


def test_the_commands_make_list_and_revoke(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"

    def run(*words):
        return CliRunner().invoke(app, ["keys", *words, "--database", url])

    key = run("create", "--scope", "read", "--name", "page").stdout.strip()
    assert keys._KEY.fullmatch(key)
    ident = key.split("_")[1]
    assert ident in run("list").stdout
    assert run("revoke", ident).exit_code == 0
    assert run("revoke", ident).exit_code == 1
    assert key.split("_", 2)[2] not in run("list", "--json").stdout


def test_listing_keys_makes_no_database(tmp_path):
    found = CliRunner().invoke(app, ["keys", "list", "--database", f"sqlite:///{tmp_path}/none.db"])
    assert found.exit_code != 0
    assert list(tmp_path.iterdir()) == []


def test_a_key_is_limited_to_so_many_decisions_per_minute(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(keys.time, "monotonic", lambda: now[0])
    with live.open(f"sqlite:///{tmp_path}/shop.db") as database:
        ring = keys.Keyring(database)
        gate = keys.Gate(ring, local=True)
        made = keys.create_key(database, "page", "decide", per_minute=60)
        free = keys.create_key(database, "shop", "decide")
        guest = keys.create_key(database, "app", "guest")
        assert [row.per_minute for row in keys.list_keys(database)] == [60, None, keys.GUEST_PER_MINUTE]
        ring.refresh()
        limited, other, visitor = (gate.admit({"authorization": f"Bearer {key}"}, None) for key in (made, free, guest))
    gate.count(limited, 50)
    gate.count(other, 100_000)
    gate.count(visitor, keys.GUEST_PER_MINUTE)
    with pytest.raises(Problem) as refused:
        gate.count(limited, 20)
    assert (refused.value.status, refused.value.headers["retry-after"]) == (429, "10")
    now[0] += 10.0
    gate.count(limited, 20)
    with pytest.raises(Problem):
        gate.count(limited, 1)


def test_nobody_is_admitted_by_keys_that_cannot_be_read(tmp_path):
    now = [0.0]
    with live.open(f"sqlite:///{tmp_path}/shop.db") as database:
        made = {"authorization": f"Bearer {keys.create_key(database, 'shop', 'admin')}"}
        ring = keys.Keyring(database, lambda: now[0])
        gate = keys.Gate(ring, local=True)
        ring.refresh()
        now[0] = keys.STALE_SECONDS - 1
        assert gate.admit(made, "127.0.0.1").scope == "admin"
        now[0] = keys.STALE_SECONDS + 1
        with pytest.raises(Problem, match="keys cannot be read") as refused:
            gate.admit(made, "127.0.0.1")
        assert refused.value.status == 503
        ring.refresh()
        assert gate.admit(made, "127.0.0.1").scope == "admin"


def test_a_guest_teaches_nothing(tmp_path):
    """With a guest that lies the policy decides and learns, to the bit, as without one."""
    states = []
    for lies in (False, True):
        url = f"sqlite:///{tmp_path}/{lies}.db"
        with live.open(url) as database:
            database.make("shop", define(arms=["low", "mid", "high"], seed=7, patience=3600, missing=0.0))
            owner, guest = (keys.create_key(database, scope, scope) for scope in ("decide", "guest"))
        with serving(database=url) as where, Sender(where, owner) as shop, Sender(where, guest) as liar:
            path = "/v1/experiments/shop"
            for number in range(60):
                if lies and number % 4 == 0:
                    for one in liar.decide(path, 2):
                        assert not one["fallback"]
                        assert 0.0 < one["probability"] <= 1.0
                        assert liar.post(f"{path}/rewards", {"id": one["id"], "reward": 1.0})[0] == 200
                made = shop.decide(path)[0]
                if lies:  # about a decision of others, whose id it has seen
                    false = {"id": made["id"], "reward": float(made["arm"] != "high")}
                    assert liar.post(f"{path}/rewards", false)[0] == 404
                    assert liar.post(f"{path}/rewards", {"rewards": [false]})[1]["accepted"] == 0
                    assert liar.post(f"{path}/forget", {"ids": [made["id"]]})[0] == 404
                shop.post(f"{path}/rewards", {"id": made["id"], "reward": float(made["arm"] == "high")})
            status, answer = liar.post(f"{path}/decisions", {"allowed": ["low"]})
            assert status == 403
            assert "allowed" in answer["detail"]
            summary = shop.get(f"{path}/summary")[1]
            assert (summary["decisions"], summary["guests"], summary["untold"]) == (
                (90, 30, 30) if lies else (60, 0, 0)
            )
        with live.open(url) as database:
            view = database.view("shop")
            assert view.check().verdict == "identical"
            state = view.player().policy.state_dict()
            states.append((state["rounds"], view.player().policy.law().tolist(), view.player().policy.summary()))
            assert len([row for row in view.events(limit=10_000) if row["kind"] == "decided"]) == summary["decisions"]
    assert states[0][:2] == states[1][:2]
    assert str(states[0][2]) == str(states[1][2])


def end_of(database, ident):
    return next(row.expires for row in keys.list_keys(database) if row.id == ident)


def test_keys_end_and_rotate(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/shop.db"
    day, hour = 86_400 * 10**6, 3600 * 10**6
    with live.open(url) as database:
        key = keys.create_key(database, "shop", "decide", per_minute=50, days=10)
        for_ever = keys.create_key(database, "page", "read")
        first, other = key.split("_")[1], for_ever.split("_")[1]
        born = end_of(database, first) - 10 * day
        made = keys.rotate_key(database, first, hours=2)
        second = made.split("_")[1]
        row = next(row for row in keys.list_keys(database) if row.id == second)
        assert (row.name, row.scope, row.per_minute) == ("shop", "decide", 50)
        assert abs(row.expires - row.created - 10 * day) < 10**6
        assert 0 <= end_of(database, first) - born - 2 * hour < 60 * 10**6
        third = keys.rotate_key(database, other).split("_")[1]
        assert end_of(database, third) is None
        ring = keys.Keyring(database)
        ring.refresh()
        assert ring.ending(7) == [("shop", pytest.approx(2 / 24, abs=0.01)), ("page", pytest.approx(1, abs=0.01))]
        assert all(ring.find(one) is not None for one in (key, made, for_ever))
        later = time.time_ns() + 3 * hour * 1000
        monkeypatch.setattr(keys.time, "time_ns", lambda: later)
        assert [ring.find(one) is None for one in (key, made, for_ever)] == [True, False, False]
        with pytest.raises(InputError, match=f"no key in use has the id '{first}'; ids in use: {other}"):
            keys.rotate_key(database, first)
        for wrong in ({"days": 0}, {"days": 1e9}, {"per_minute": 0}):
            with pytest.raises(InputError, match=next(iter(wrong))):
                keys.create_key(database, "x", "read", **wrong)


def test_keys_over_http_by_both_clients_and_on_the_page(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with live.open(url) as database:
        admin = keys.create_key(database, "owner", "admin")
    with serving(database=url) as where, live.Client(where, admin, timeout=60) as client:
        shop = client.create("prices", arms=["low", "high"])
        key = client.create_key("guest", name="app", per_minute=7, days=30)
        with live.Client(where, key) as guest:
            assert guest.experiment("prices").decide().arm in ("low", "high")
        ident = key.split("_")[1]
        found = {row["id"]: row for row in client.list_keys()}[ident]
        assert (found["name"], found["scope"], found["per_minute"], found["revoked"]) == ("app", "guest", 7, None)
        assert found["expires"] - found["created"] == pytest.approx(30 * 86_400)
        assert "hash" not in found
        assert not any("ends in" in sentence for sentence in shop.summary().health)
        new = client.rotate_key(ident, hours=5)
        assert any("the key app ends in 5 hours" in sentence for sentence in shop.summary().health)

        async def go_on():
            async with live.AsyncClient(where, admin, timeout=60) as one:
                await one.revoke_key(ident)
                with pytest.raises(InputError, match=ident):
                    await one.revoke_key(ident)
                return [row["revoked"] is not None for row in await one.list_keys()]

        assert asyncio.run(go_on()) == [False, True, False]
        assert httpx.post(f"{where}/v1/experiments/prices/decisions", headers=bearer(key), json={}).status_code == 401
        assert httpx.post(f"{where}/v1/experiments/prices/decisions", headers=bearer(new), json={}).status_code == 200
        assert httpx.get(f"{where}/v1/keys", headers=bearer(new)).status_code == 403


def bearer(key):
    return {"authorization": f"Bearer {key}"}


def test_keys_end_and_rotate_on_the_command_line(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    run = CliRunner().invoke
    made = run(app, ["keys", "create", "--scope", "read", "--days", "9", "-d", url])
    ident = made.stdout.split("_")[1]
    rotated = run(app, ["keys", "rotate", ident, "--hours", "1", "-d", url])
    assert rotated.stdout.startswith("db_")
    rows = json.loads(run(app, ["keys", "list", "-d", url, "--json"]).stdout)
    assert [bool(row["expires"]) for row in rows] == [True, True]
    assert rows[0]["expires"] < rows[1]["expires"]
