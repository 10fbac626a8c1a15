"""Journals that move between kinds of machine are sound; what is removed, swapped or altered is damage."""

import json
import shutil

import numpy as np
import pytest

from driftbandits import live
from driftbandits.live.journal import Event, seal_of
from driftbandits.live.recovery import load_snapshot
from driftbandits.state import archive
from tests import machines
from tests.live.replicas import replica_of, snapshot_now
from tests.live.test_experiment import play

PLAY = """
import json, sys
from driftbandits import live
from tests.live.replicas import snapshot_now
url, policy, rounds = json.loads(sys.stdin.read())
with live.open(url) as database:
    known = database.names()
    arms = {str(number): [number / 9] for number in range(10)}
    if not known:
        database.create("prices", arms=arms, policy=policy, seed=3, reward_range=(0, 1))
    shop = database.experiment("prices")
    for number in range(rounds):
        choice = shop.decide()
        arm = int(choice.arm)
        shop.reward(choice, (arm * 0.07 + number % 7 * 0.05) if number < 60 else 0.9 - arm * 0.05)
    snapshot_now(shop)
"""
CHECK = """
import json, sys
from driftbandits import live
with live.open(json.loads(sys.stdin.read())) as database:
    check = database.view("prices").check()
print(json.dumps([check.verdict, check.largest, check.problems, check.notes]))
"""


def checked(kind, url):
    return json.loads(machines.run(kind, "-c", CHECK, text=json.dumps(url)))


@pytest.mark.parametrize("policy", ["AutoBandit", "CalibratedOPKB"])
def test_a_journal_that_moved_is_sound_everywhere(policy, tmp_path):
    kinds = [kind for kind in ("SkylakeX", "oldest") if machines.why_not(kind) is None]
    if not kinds:
        pytest.skip("; ".join(str(machines.why_not(kind)) for kind in ("SkylakeX", "oldest")))
    url = f"sqlite:///{tmp_path}/shop.db"
    other = kinds[-1]
    machines.run(other, "-c", PLAY, text=json.dumps([url, policy, 100]))
    assert checked(other, url)[0] == "identical"
    verdict, largest, problems, notes = checked("native", url)
    assert (verdict, problems) == ("sound", [])
    assert largest < 1e-9
    assert notes[0].startswith("written on ")
    machines.run("native", "-c", PLAY, text=json.dumps([url, policy, 40]))
    for kind in ("native", *kinds):  # written in two places, so nowhere what one machine would have written
        verdict, largest, problems, _ = checked(kind, url)
        assert (verdict, problems) == ("sound", [])
        assert largest < 1e-9


GRID = """
import json, sys
from driftbandits import live
from tests.live.replicas import snapshot_now
url, policy, settings = json.loads(sys.stdin.read())
arms = {f"{i}-{j}": [i / 4, j / 4] for i in range(5) for j in range(5)}
with live.open(url) as database:
    shop = database.create("prices", arms=arms, policy=policy, settings=settings, seed=3, reward_range=(0, 1))
    for number in range(100):
        choice = shop.decide()
        across = arms[choice.arm][0]
        shop.reward(choice, round(0.3 + 0.4 * across if number < 60 else 0.7 - 0.5 * across, 1))
    snapshot_now(shop)
"""


@pytest.mark.parametrize(
    ("policy", "settings", "most"),
    [("CalibratedOPKB", {}, 1e-9), ("AutoBandit", {}, 1e-9), ("OPNN", {"width": 256}, 0.05)],
)
def test_a_grid_with_rewards_that_repeat_is_sound_on_another_machine(policy, settings, most, tmp_path):
    """Mirrored arms and equal rewards: ties are ties on every machine. Networks part further."""
    if reason := machines.why_not("oldest"):
        pytest.skip(reason)
    url = f"sqlite:///{tmp_path}/shop.db"
    machines.run("oldest", "-c", GRID, text=json.dumps([url, policy, settings]))
    verdict, largest, problems, _ = checked("native", url)
    assert (verdict, problems) == ("sound", [])
    assert largest < most


def rows_of(connection):
    columns = ", ".join(Event._fields)
    return [Event(*row) for row in connection.exec_driver_sql(f"SELECT {columns} FROM events ORDER BY seq")]


def write(connection, rows, *, numbered=False):
    """These rows in the place of those there are, each with a seal that holds."""
    seal = 0
    experiment = connection.exec_driver_sql("SELECT experiment FROM events LIMIT 1").scalar()
    connection.exec_driver_sql("DELETE FROM events")
    insert = f"INSERT INTO events (experiment, {', '.join(Event._fields)}) VALUES ({', '.join('?' * 11)})"
    for number, row in enumerate(rows, start=1):
        row = row._replace(seq=number) if numbered else row
        row = row._replace(seal=seal_of(row, seal))
        seal = row.seal
        connection.exec_driver_sql(insert, (experiment, *row))
    return seal


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A journal of 1,000 rewards, with a snapshot in the middle and one at the end."""
    folder = tmp_path_factory.mktemp("journal")
    with live.open(f"sqlite:///{folder}/shop.db") as database:
        arms = {"low": [0.0], "mid": [0.5], "high": [1.0]}
        shop = database.create("prices", arms=arms, policy="AutoBandit", seed=3, reward_range=(0, 1))
        for _ in range(2):
            play(shop, 500)
            snapshot_now(shop)
        replica_of(shop).cost = 0.0
    return folder / "shop.db"


@pytest.fixture
def copy(original, tmp_path):
    shutil.copy(original, tmp_path / "shop.db")
    return f"sqlite:///{tmp_path}/shop.db"


def problems_after(url, change):
    with live.open(url) as database:
        with database.writing() as connection:
            change(connection)
        check = database.view("prices").check()
        assert (check.verdict, check.fine) == ("damaged", False)
        return check.problems


def plainly(sql):
    return lambda connection: connection.exec_driver_sql(sql)


def resealed(alter, *, numbered=False):
    return lambda connection: write(connection, alter(rows_of(connection)), numbered=numbered)


def without(rows, first, last):
    return [row for row in rows if not first <= row.seq <= last]


def swapped(rows):
    """Two rewards told in the other order."""
    one, other = [place for place, row in enumerate(rows) if row.kind == "rewarded"][200:202]
    rows[one], rows[other] = rows[other]._replace(seq=rows[one].seq), rows[one]._replace(seq=rows[other].seq)
    return rows


def altered(rows, by=0.01):
    place = [place for place, row in enumerate(rows) if row.kind == "rewarded"][500]
    rows[place] = rows[place]._replace(reward=rows[place].reward + by)
    return rows


DAMAGE = {
    "the last ten rows gone": (plainly("DELETE FROM events WHERE seq > (SELECT max(seq) - 10 FROM events)"), "missing"),
    "ten rows gone inside": (plainly("DELETE FROM events WHERE seq BETWEEN 592 AND 601"), "events 592 to 601"),
    "the first ten rows gone": (plainly("DELETE FROM events WHERE seq <= 10"), "events 1 to 10"),
    "all rows gone": (plainly("DELETE FROM events"), "all events are missing"),
    "a reward altered": (plainly("UPDATE events SET reward = reward + 0.01 WHERE seq = 1003"), "event 1003"),
    "a time altered": (plainly("UPDATE events SET time = time + 1 WHERE seq = 1003"), "event 1003"),
    "ten rows gone, the others sealed anew": (resealed(lambda rows: without(rows, 1995, 2001)), "missing"),
    "a reward altered, all sealed anew": (resealed(altered), "seal"),
    "rewards swapped, all sealed anew": (resealed(swapped), "seal"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_told_with_its_place(copy, damage):
    change, place = DAMAGE[damage]
    assert any(place in problem for problem in problems_after(copy, change))


def forge(by):
    """A reward altered, every row sealed anew, and the new seals and another machine written into the snapshots."""

    def change(connection):
        rows = altered(rows_of(connection), by)
        write(connection, rows)
        seals = {row.seq: row.seal for row in rows_of(connection)}
        for seq, content in connection.exec_driver_sql("SELECT seq, content FROM snapshots").all():
            state = archive.unpack(content, limit=np.inf)
            state["seal"] = seals[seq]
            state["policy"]["provenance"] = [[state["policy"]["provenance"][0][0], "another machine"]]
            packed = archive.pack(state)
            connection.exec_driver_sql("UPDATE snapshots SET content = ? WHERE seq = ?", (packed, seq))

    return change


@pytest.mark.parametrize("by", [0.01, 0.001])
def test_beliefs_alone_tell_that_one_reward_of_a_thousand_was_altered(copy, by):
    """By 1 % of the range, and by a tenth of that: though every seal was forged and another machine is said to have
    written the snapshots, so that beliefs are compared with the tolerance."""
    assert any("differs from the replay in policy" in problem for problem in problems_after(copy, forge(by)))


def test_a_forged_machine_alone_is_no_damage(copy):
    with live.open(copy) as database:
        with database.writing() as connection:
            forge(0.0)(connection)
        check = database.view("prices").check()
    assert (check.verdict, check.problems) == ("sound", ())
    assert "written on another machine" in check.notes


def test_a_snapshot_ahead_of_the_journal_or_of_another_one_is_never_used(copy, caplog):
    with live.open(copy) as database:
        with database.writing() as connection:
            connection.exec_driver_sql("DELETE FROM events WHERE seq > 1991")
        summary = database.experiment("prices").summary()
        assert summary.events == 1991
        assert summary.brought_back == "replayed from the snapshot after event 1001"
        assert "ahead of the journal, whose newest event is 1991" in summary.health[0]
    with live.open(copy) as database:
        with database.writing() as connection:
            resealed(altered)(connection)
        summary = database.view("prices").summary()
    assert summary.brought_back == "replayed from the snapshot after event 1001"  # before the altered event
    assert any("another journal" in sentence for sentence in summary.health)


@pytest.mark.parametrize(
    "odd", [None, "a machine", [1, 2], [["7", "x"]], {"x": 1}, [], [[6, "two\nlines" * 900]], [[6, "\u202e"]]], ids=repr
)
def test_an_unknown_fingerprint_is_read(copy, odd):
    """And what it says is shown in one line, whatever it is."""
    with live.open(copy) as database:
        with database.writing() as connection:
            seq, content = connection.exec_driver_sql("SELECT seq, content FROM snapshots ORDER BY seq").first()
            state = archive.unpack(content, limit=np.inf)
            state["policy"]["provenance"] = odd
            packed = archive.pack(state)
            connection.exec_driver_sql("UPDATE snapshots SET content = ? WHERE seq = ?", (packed, seq))
        load_snapshot(packed, database.view("prices").definition)
        check = database.view("prices").check()
    assert (check.verdict, check.problems) == ("sound", ())
    assert check.notes
    assert all(note.isprintable() and len(note) < 600 for note in check.notes)


def test_look_back_shows_the_recorded_probability(copy):
    with live.open(copy) as database:
        shop = database.experiment("prices")
        for choice in [shop.decide() for _ in range(5)]:
            found = shop.decision(choice.id)
            assert found.law[found.arm] == found.probability == choice.probability
            assert sum(found.law.values()) == pytest.approx(1.0, abs=1e-12)
