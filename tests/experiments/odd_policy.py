"""A policy that does to its worker what the tests ask for; they copy this file and name it `file.py:Odd`.

What it does is told by files beside it, not by settings or code, for those would change the cell's key: `slow`, `kill`,
`fail`, `exit`, `interrupt` and `warn` hold the seeds concerned. Every run leaves a file in `plays`, and its process
number in `workers`."""

import os
import signal
import sys
import time
import uuid
import warnings
from collections import Counter
from pathlib import Path

from driftbandits.experiments.specs import Cell, PolicySpec
from driftbandits.policies import Uniform

HERE = Path(__file__).parent


class OddError(Exception):
    """An error that only the worker can unpickle."""


class OddWarning(RuntimeWarning):
    """Likewise a warning."""


class Odd(Uniform):
    def __init__(self, arms, *, horizon, seed):
        super().__init__(arms, horizon=horizon, seed=seed)
        for folder, name in (("plays", f"{seed}-{uuid.uuid4().hex}"), ("workers", str(os.getpid()))):
            (HERE / folder).mkdir(exist_ok=True)
            (HERE / folder / name).touch()
        if _told("slow", seed):
            time.sleep(0.3)
        if _told("kill", seed):
            time.sleep(0.3)  # others may finish first
            os.kill(os.getpid(), signal.SIGKILL)
        if _told("fail", seed):
            raise OddError(f"odd at seed {seed}")
        if _told("exit", seed):
            sys.exit(0)
        if _told("interrupt", seed):
            raise KeyboardInterrupt
        if _told("warn", seed):
            for number in range(3):
                warnings.warn(f"odd for the {number}. time", OddWarning, stacklevel=1)


def _told(name, seed):
    file = HERE / name
    return file.exists() and str(seed) in file.read_text().split()


# For the tests.


def odd_cells(folder, number=8):
    """Cells of a copy of this policy in `folder`, which is then told what to do by `tell`."""
    file = Path(folder) / "odd.py"
    file.write_bytes(Path(__file__).read_bytes())
    spec = PolicySpec("odd", f"{file}:Odd")
    return [Cell("switching/1", {"horizon": 60, "switches": [30], "size": 8}, spec, seed) for seed in range(number)]


def tell(folder, name, *seeds):
    """`slow`, `kill`, `fail`, `exit`, `interrupt` or `warn` at these seeds, and at no others."""
    (Path(folder) / name).write_text(" ".join(map(str, seeds)))


def plays(folder):
    """How often each seed was played."""
    return Counter(int(path.name.partition("-")[0]) for path in (Path(folder) / "plays").iterdir())


def same(results, others):
    """Equal in all but time."""
    return [_content(result) for result in results] == [_content(result) for result in others]


def _content(result):
    return (
        result.cell,
        result.rounds.tolist(),
        result.regret.tolist(),
        result.changes,
        result.detection,
        result.turnover,
    )
