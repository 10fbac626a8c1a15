"""A real server is stopped by SIGTERM and killed by SIGKILL, under load. `make soak` does it many times."""

import json
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest

from attacks.servers import Clients, judge, process
from driftbandits import live
from driftbandits.errors import OtherDeciderError
from driftbandits.live import Database
from driftbandits.live.definition import define
from driftbandits.service.background import serving
from tests.service.conftest import Sender


@pytest.fixture
def database(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with live.open(url) as opened:
        opened.make("prices", define(arms=["low", "mid", "high"], policy="DiscountedUCB", seed=2))
    return url


def test_a_server_is_ready_once_its_experiments_are_open(database, monkeypatch):
    opened, go_on = Database.experiment, threading.Event()

    def slowly(self, name):
        go_on.wait()
        return opened(self, name)

    monkeypatch.setattr(Database, "experiment", slowly)
    with serving(database=database) as where, Sender(where) as send:
        status, answer = send.get("/readyz")
        assert (status, answer["type"]) == (503, "urn:driftbandits:opening")
        assert send.http.get("/healthz").status_code == 200
        go_on.set()
        send.wait_until_ready()


def test_what_kernels_need_is_imported_before_serving(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    arms = [{"name": f"{price} EUR", "features": [price]} for price in (9, 12, 14)]
    with live.open(url) as opened:
        opened.make("prices", define(arms=arms, kernel={"name": "rbf", "length_scale": 2.0}, seed=2))
    program = (
        "import sys\nfrom driftbandits.service.hosting import Service\n"
        "from driftbandits.service.settings import read_settings\n"
        f"service = Service(read_settings({{'database': {url!r}}}))\nbefore = set(sys.modules)\n"
        "service.database.experiment('prices').decide()\nservice.database.close()\n"
        "print([name for name in set(sys.modules) - before if name.startswith(('sklearn', 'scipy'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_kill_9_under_load_loses_nothing_and_it_goes_on(database):
    with process(database) as server, Clients([server.url]) as clients:
        clients.wait_for(60)
        server.kill()
    assert judge(database, clients) == []
    with process(database) as server, Clients([server.url]) as more:
        more.wait_for(20)
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait() == 0
        assert time.monotonic() - begun < 10
    clients.decided += more.decided
    clients.rewarded += more.rewarded
    assert judge(database, clients) == []
    assert all(isinstance(json.loads(line), dict) for line in server.lines if line.startswith("{"))
    assert "stopped; everything that was answered is on disk" in "".join(server.lines)


def test_a_second_server_on_a_sqlite_file_is_refused(database):
    with serving(database=database), pytest.raises(OtherDeciderError) as refused, serving(database=database):
        pass
    assert "use Postgres for several" in str(refused.value)


def test_a_port_that_is_taken_is_named_with_the_cure(database, tmp_path):
    with serving(database=database) as where:
        port = where.rstrip("/").rpartition(":")[2]
        command = [
            sys.executable,
            "-m",
            "driftbandits",
            "serve",
            "--port",
            port,
            "-d",
            f"sqlite:///{tmp_path}/other.db",
        ]
        found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 1
    assert f"could not listen at 127.0.0.1:{port}; is another server there? Take --port" in found.stderr


def test_a_full_disk_is_a_503_and_nothing_is_lost(tmp_path):
    """`max_page_count` makes the database full; when there is room again the same key settles what was open."""
    from driftbandits.service.hosting import Service

    url = f"sqlite:///{tmp_path}/shop.db"
    usual = Service._open

    def small(self):
        database = live.open(url, pragmas={"max_page_count": 40})
        database.hold()
        return database

    Service._open = small
    try:
        with serving(database=url) as where:
            made = {"name": "shop", "arms": ["a", "b"], "policy": "DiscountedUCB", "seed": 1}
            assert httpx.post(f"{where}/v1/experiments", json=made).status_code == 201
            answers = []
            for number in range(200):
                path, key = f"{where}/v1/experiments/shop/decisions", {"idempotency-key": str(number)}
                answers.append(httpx.post(path, json={"size": 20}, headers=key, timeout=60))
                if answers[-1].status_code != 200:
                    break
            assert answers[-1].status_code == 503
            assert "full" in answers[-1].json()["detail"]
            assert answers[-1].headers["retry-after"] == "1"
    finally:
        Service._open = usual
    stored = [one["id"] for answer in answers[:-1] for one in answer.json()["decisions"]]
    with serving(database=url) as where:
        path, key = f"{where}/v1/experiments/shop/decisions", {"idempotency-key": str(len(answers) - 1)}
        again = httpx.post(path, json={"size": 20}, headers=key, timeout=60)
        assert again.status_code == 200
        found = httpx.get(f"{where}/v1/experiments/shop/summary").json()
        assert found["decisions"] == len(stored) + 20
        assert not {one["id"] for one in again.json()["decisions"]} & set(stored)
