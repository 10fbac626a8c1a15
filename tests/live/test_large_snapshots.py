"""A snapshot of a large state: memory for its copy is made ready beside the requests, not while they wait."""

import threading

import numpy as np
import pytest

from driftbandits import ArmSet, AutoBandit, live
from driftbandits.live import writer
from driftbandits.state import room
from driftbandits.testing.helpers import require_equal


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(room, "LARGE", 0)
    monkeypatch.setattr(writer, "SECONDS", 0.0)  # a snapshot is due after every request
    monkeypatch.setattr(writer, "SNAPSHOT_SHARE", 1.0)


def test_decisions_are_answered_while_room_for_a_snapshot_is_made(tmp_path, everything_is_large, monkeypatch):
    make, makers, allowed = room.Room.make, set(), threading.Event()

    def watched(one, size):
        makers.add(threading.current_thread().name)
        assert allowed.wait(60)
        make(one, size)

    monkeypatch.setattr(room.Room, "make", watched)
    with live.open(f"sqlite:///{tmp_path}/shop.db") as database:
        shop = database.create("prices", arms=["low", "mid", "high"], seed=0)
        view = database.view("prices")
        for number in range(20):
            assert shop.reward(shop.decide(), 0.1 * (number % 3)).accepted == 1
        assert makers == {"snapshots of prices_0"}
        assert not snapshots(view)  # none was copied meanwhile
        allowed.set()
        for _ in range(1_000):
            shop.reward(shop.decide(), 0.5)
            if len(snapshots(view)) > 1:
                break
        found = view.check()
        assert (found.verdict, found.snapshots > 1) == ("identical", True)


def snapshots(view):
    with view.journal() as journal:
        return journal.snapshot_places()


def test_a_state_copied_into_room_is_the_state(monkeypatch):
    monkeypatch.setattr(room, "LARGE", 0)
    policy = AutoBandit(ArmSet(np.arange(5.0)[:, None]), seed=0)
    for number in range(60):
        policy.tell(policy.ask(), 0.1 * (number % 7))
    wanted, place = policy.state_dict(), room.Room()
    with pytest.raises(room.NoRoom) as missing, place.lent():
        policy.state_dict()
    place.make(missing.value.size)
    with place.lent():
        found = policy.state_dict()
    require_equal(found, wanted)
    for number in range(60):  # what was given away does not change when the policy goes on
        policy.tell(policy.ask(), 0.9 - 0.1 * (number % 7))
    require_equal(found, wanted)
    with pytest.raises(room.NoRoom), place.lent():
        policy.state_dict()


def test_room_is_lent_to_one_thread_and_piece_by_piece(monkeypatch):
    monkeypatch.setattr(room, "LARGE", 64)
    place = room.Room()
    place.make(20)
    with place.lent():
        first, second = room.zeros((2, 4)), room.zeros((3, 4))
        first += 1.0
        assert not second.any()
        assert np.shares_memory(first.base, second)
        assert room.zeros((7,)).base is None  # a small one
        others = []
        thread = threading.Thread(target=lambda: others.append(room.zeros((100,))))
        thread.start()
        thread.join()
        assert others[0].shape == (100,)
        with pytest.raises(room.NoRoom, match="28 numbers"):
            room.zeros((8,))
    assert room.zeros((100,)).shape == (100,)
