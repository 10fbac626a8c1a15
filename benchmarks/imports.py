"""How long a program waits for its first decision, and the command line to answer, beside scikit-learn's import.

python -m benchmarks imports            about a minute
python -m benchmarks imports --quick    some ten seconds

Each is a process of its own, all in turns, after a turn that is not counted: it compiles everything into a folder of
this run, whatever was compiled before and wherever Python is told to leave that be, and fills the disk's cache.
Processor time beside wall time, because the first minds less what else the machine does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping

import numpy as np

KERNELS = "import sklearn.gaussian_process.kernels"
DECISION = "first decision of AutoBandit"
_FIRST = "import driftbandits as db; db.AutoBandit(db.ArmSet([[x / 99] for x in range(100)]), seed=0).ask()"
HELP = "driftbandits --help"
ALLOWED = {DECISION: "0.5 s", HELP: "0.2 s"}  # of processor time, on an idle machine
COMMANDS = {
    "python alone": ("-c", "pass"),
    KERNELS: ("-c", KERNELS),
    DECISION: ("-c", _FIRST),
    HELP: ("-m", "driftbandits", "--help"),
}


def _spent(arguments: tuple[str, ...], environment: Mapping[str, str]) -> tuple[float, float]:
    """Seconds of wall and of processor time of one process."""
    wall, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True, env=environment)
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - wall, processor


def _in_turns(turns: int) -> dict[str, tuple[float, float]]:
    """Median seconds of each command, of wall and of processor time."""
    with tempfile.TemporaryDirectory() as compiled:
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled}
        times = [[_spent(command, environment) for command in COMMANDS.values()] for _ in range(turns + 1)]
    medians = np.median(times[1:], axis=0)
    return {name: (float(wall), float(processor)) for name, (wall, processor) in zip(COMMANDS, medians, strict=True)}


def run(*, quick: bool = False) -> None:
    turns = 3 if quick else 15
    medians = _in_turns(turns)
    print(f"\n## Imports, medians of {turns} turns\n")
    print("| process | wall | processor | allowed |")
    print("|---|---:|---:|---:|")
    for name, (wall, processor) in medians.items():
        print(f"| {name} | {wall:.2f} s | {processor:.2f} s | {ALLOWED.get(name, '')} |")
