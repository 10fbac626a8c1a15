"""All attacks: `make attack`, or `python -m attacks [--quick] [--only name] [--seed n]`.

Ten to twenty minutes on two idle cores, a few with --quick. Each promise of the library about what happens
when things go wrong is tried many times; a table says what happened, and the exit code is 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import driftbandits
from attacks.common import AttackRow, Options

NAMES = (
    "saving",
    "interruptions",
    "timeouts",
    "threads",
    "ids",
    "files",
    "bombs",
    "states",
    "store",
    "runner",
    "forks",
    "live",
    "abuse",
    "keys",
    "capacity",
    "service",
)
LONG = ("service",)  # in full only where asked for: `make soak`


def main() -> int:
    parser = argparse.ArgumentParser(prog="attacks", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few tries of each")
    parser.add_argument("--only", action="append", choices=NAMES, help="this attack; may be given several times")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the attacks' randomness; moments of signals stay random"
    )
    parser.add_argument("--share", type=float, default=1.0, help="this part of the usual tries, as in 0.1")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 2), help="how many processes")
    parser.add_argument("--out", type=Path, default=Path("results/attack"), help="folder for table and examples")
    given = parser.parse_args()
    options = Options(quick=given.quick, seed=given.seed, jobs=given.jobs, share=given.share)
    begun = time.monotonic()
    rows: list[AttackRow] = []
    for name in given.only or NAMES:
        print(f"{name}, {time.monotonic() - begun:.0f} s after the start", flush=True)
        own = replace(options, quick=True) if name in LONG and not given.only else options
        rows.extend(importlib.import_module(f"attacks.{name}").run(own))
    seconds = time.monotonic() - begun
    text = _text(rows, seconds)
    print(f"\n{text}")
    _write(given.out, rows, text, seconds)
    return int(any(row.broken for row in rows))


def _text(rows: Sequence[AttackRow], seconds: float) -> str:
    lines = ["| attack | tries | what happened | verdict |", "|---|---:|---|---|", *map(_line, rows), ""]
    lines += [f"- {row.attack}: {outcome}: {examples[0]}" for row in rows for outcome, examples in row.examples.items()]
    lines += ["", f"{seconds:.0f} s; library: {Path(driftbandits.__file__).parent}"]
    return "\n".join(lines)


def _line(row: AttackRow) -> str:
    counts = ", ".join(f"{count:,} {what}" for what, count in row.counts.most_common())
    if "longest seconds" in row.details:
        counts += f"; longest {row.details['longest seconds']:.2f} s"
    verdict = f"BROKEN, {row.broken:,}" if row.broken else "kept"
    return f"| {row.attack} | {row.tries:,} | {counts} | {verdict} |"


def _write(folder: Path, rows: Sequence[AttackRow], text: str, seconds: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "attack.md").write_text(text + "\n", encoding="utf-8")
    content = {
        "command": sys.argv,
        "library": str(Path(driftbandits.__file__).parent),
        "seconds": round(seconds, 1),
        "rows": [vars(row) for row in rows],
    }
    (folder / "attack.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
