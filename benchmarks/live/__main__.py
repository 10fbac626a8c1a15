"""Single rows: `python -m benchmarks.live [--seeds 10] [--first 0] [row ...]`."""

from __future__ import annotations

import argparse

from benchmarks.live import SEEDS, show
from benchmarks.live.rows import ROWS


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.live", description=__doc__)
    parser.add_argument("rows", nargs="*", default=list(ROWS), help=f"which, of {', '.join(ROWS)}")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    options = parser.parse_args()
    for name in options.rows:
        if name not in ROWS:
            parser.error(f"no row is called {name!r}; known: {', '.join(ROWS)}")
    show(options.rows, seeds=options.seeds, first=options.first)


if __name__ == "__main__":
    main()
