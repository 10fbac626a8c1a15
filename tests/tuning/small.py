"""A search that takes a second, and a process of its own that plays it: python -m tests.tuning.small URL GO."""

import json
import sys
import time
from pathlib import Path

from driftbandits.experiments.engines import Engine
from driftbandits.tuning.search import SearchOutcome, run_searches
from driftbandits.tuning.spaces import TuningWorld
from driftbandits.tuning.study import Search
from reproduction.spaces import SPACES

WORLD = TuningWorld("switching/1", {"horizon": 300, "switches": [150], "size": 15})
LONGER = TuningWorld("switching/1", {"horizon": 600, "switches": [300], "size": 15})
SMALL = Search("small", SPACES["SW-UCB (plain)"], (WORLD,), ((4, 1), (2, 3)))
SHARED = Search("shared", SPACES["SW-UCB (plain)"], (WORLD, LONGER), ((8, 1), (4, 2), (2, 3)))


def play(searches, url, *, jobs=1, **options) -> SearchOutcome:
    return run_searches(searches, storage=url, engine=Engine(jobs=jobs), **options)


def main(url: str, go: Path) -> None:
    print("ready", flush=True)
    while not go.exists():
        time.sleep(0.01)
    outcome = play([SHARED], url)
    print(json.dumps({"played": outcome.played, "values": outcome.best[0].values, "regret": outcome.best[0].regret}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
