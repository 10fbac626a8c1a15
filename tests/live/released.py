"""A database as a release wrote it, for the versions after it: a day of a shop, compressed.

`python -m tests.state.record_release` writes that of the present version, with the states of policies.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import driftbandits as db
from tests.state.released import FOLDER

JOURNAL, BOOKS = "journal.db.gz", "journal.json"
START = 1_800_000_000_000_000  # microseconds since 1970
NAMES = ["7 EUR", "9 EUR", "12 EUR"]


class Clock:
    """Ten seconds pass whenever it is looked at."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        self.now += 10_000_000
        return self.now


def play_day(database: db.live.Database) -> dict[str, object]:
    """Decisions, rewards, arms that come and go, a pause; what must be known of it afterwards."""
    arms = {name: [float(name.split()[0])] for name in NAMES}
    shop = database.create("prices", arms=arms, patience=3600.0, missing=0.0, reward_range=(0, 1), seed=4)
    choices = [shop.decide() for _ in range(30)]
    for number, choice in enumerate(choices[:25]):
        shop.reward(choice, float(choice.arm == "9 EUR" and number % 3 > 0))
    shop.forget(choices[25])
    shop.arms(add={"14 EUR": [14.0]}, retire="7 EUR")
    choices += shop.decide(20)
    shop.pause()
    choices.append(shop.decide())
    shop.resume()
    summary = shop.summary()
    books = {
        name: getattr(summary, name) for name in ("decisions", "rewards", "open", "forgotten", "fallbacks", "events")
    }
    return {"an open decision": choices[49].id, "a rewarded one": choices[3].id, "books": books}


def record(folder: Path) -> None:
    """Write the database and what must be known of it."""
    with tempfile.TemporaryDirectory() as place:
        with db.live.open(f"sqlite:///{place}/shop.db", clock=Clock()) as database:
            known = play_day(database)
        content = Path(place, "shop.db").read_bytes()
    (folder / JOURNAL).write_bytes(gzip.compress(content, 9, mtime=0))
    (folder / BOOKS).write_text(json.dumps(known, indent=1) + "\n")


def unpacked(folder: Path, target: Path) -> dict[str, object]:
    """Put the database of a release there; what must be known of it."""
    target.write_bytes(gzip.decompress((folder / JOURNAL).read_bytes()))
    known: dict[str, object] = json.loads((folder / BOOKS).read_text())
    return known


RELEASES = sorted(FOLDER.iterdir())
