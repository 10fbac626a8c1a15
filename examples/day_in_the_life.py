"""A day in the life of a service: twenty headlines that three in a hundred readers click, and one of them twenty.

Readers come all day, more by daylight. Who has not clicked after half an hour will not: patience makes that a reward of
0. At ten o'clock a headline is added, at eleven one is retired, at noon another headline becomes the one
to read, and twice the server is stopped and started again. A day passes in seconds: the server's clock is this
program's. By six in the evening most readers get the new headline, found without being told.

    python examples/day_in_the_life.py [--readers N] [--keep shop.db]

With `--keep` the database stays: `driftbandits serve --database sqlite:///shop.db` shows the page that the day left.
"""

import argparse
import heapq
import math
import random
import tempfile
from pathlib import Path

import driftbandits as db
from driftbandits.live.client import RemoteExperiment
from driftbandits.service.background import serving

MIDNIGHT = 1_794_268_800  # 2026-11-10, UTC
HOUR, PATIENCE = 3600.0, 1800.0
READERS = 4_000
GROUP = 20  # readers who are asked for at a time
ADDED, RETIRED = "A dog that can count", "Weather: as expected"
HEADLINES = [
    *("Mayor opens new bridge", "Ten ways to save energy", "Local team wins again", RETIRED, "Train strike ends"),
    *(
        "Old cinema to be saved",
        "Five cheap dinners",
        "What the budget means",
        "A walk by the river",
        "School starts late",
    ),
    *(
        "Bakery of the year",
        "New rules for scooters",
        "Storm warning lifted",
        "Museum shows lost maps",
        "How to sleep better",
    ),
    *(
        "Council votes on trees",
        "Ask the gardener",
        "Market moves to square",
        "Choir looks for voices",
        "Letters to us",
    ),
]


def clicks(headline: str, hour: float) -> float:
    """Chance of a click: two to four in a hundred, but of the one to read; that is another one from noon on."""
    if headline == ADDED:
        return 0.045
    place = HEADLINES.index(headline)
    best = 2 if hour < 12 else 12  # "Local team wins again", then "Storm warning lifted"
    return 0.2 if place == best else 0.02 + 0.02 * (place * 7 % 20) / 19


class Day:
    """Readers of one day, the clicks that are still to come, and the clock that both share."""

    def __init__(self, readers: int) -> None:
        self.now = float(MIDNIGHT)
        self.times = arrivals(readers)
        self.draw = random.Random(7)
        self.clicks: list[tuple[float, str]] = []  # when, and of which decision

    def clock(self) -> int:
        return round(1e6 * self.now)

    def hour(self) -> float:
        return (self.now - MIDNIGHT) / HOUR

    def play(self, shop: RemoteExperiment, until: float) -> None:
        """Readers up to an hour of the day; clicks are sent when they happen."""
        end = MIDNIGHT + until * HOUR
        while group := [time for time in self.times[:GROUP] if time < end]:
            self.times = self.times[len(group) :]
            self.send(shop, group[-1])
            self.now = group[-1]
            for choice in shop.decide(len(group)):
                if self.draw.random() < clicks(choice.arm, self.hour()):
                    heapq.heappush(self.clicks, (self.now + self.draw.expovariate(1 / 120), choice.id))
        self.send(shop, end)
        self.now = end

    def send(self, shop: RemoteExperiment, until: float) -> None:
        """Clicks up to a time, each at its own."""
        while self.clicks and self.clicks[0][0] <= until:
            self.now, ident = heapq.heappop(self.clicks)
            shop.reward(ident, 1.0)


def arrivals(readers: int) -> list[float]:
    """Times of so many readers; at three in the afternoon six times as many as at three in the night."""
    draw = random.Random(3)
    found: list[float] = []
    while len(found) < readers:
        hour = 24 * draw.random()
        if draw.random() < (1 + 0.7 * math.sin((hour - 9) * math.pi / 12)) / 1.7:
            found.append(MIDNIGHT + hour * HOUR)
    return sorted(found)


def live_a_day(url: str, readers: int) -> tuple[db.live.ExperimentSummary, tuple[db.Change, ...]]:
    """Play the day on a server that is stopped and started twice; the summary and the changes at its end."""
    day = Day(readers)
    with serving(database=url, clock=day.clock) as server, db.live.Client(server, timeout=60.0) as client:
        shop = client.create("headlines", arms=HEADLINES, patience=PATIENCE, missing=0.0, seed=1)
        day.play(shop, 8.0)
    with serving(database=url, clock=day.clock) as server, db.live.Client(server, timeout=60.0) as client:
        shop = client.experiment("headlines")
        day.play(shop, 10.0)
        shop.arms(add=[ADDED])
        day.play(shop, 11.0)
        shop.arms(retire=[RETIRED])
        day.play(shop, 17.0)
    with serving(database=url, clock=day.clock) as server, db.live.Client(server, timeout=60.0) as client:
        shop = client.experiment("headlines")
        day.play(shop, 24.0)
        return shop.summary(), shop.changes()


def main() -> None:
    parser = argparse.ArgumentParser(description="A day in the life of a service.")
    parser.add_argument("--readers", type=int, default=READERS)
    parser.add_argument("--keep", type=Path, help="a database to keep; it must not exist")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.keep.absolute() if given.keep else Path(folder) / "day.db"
        summary, changes = live_a_day(f"sqlite:///{path}", given.readers)
    print(summary)
    for change in changes:
        print(change)


if __name__ == "__main__":
    main()
