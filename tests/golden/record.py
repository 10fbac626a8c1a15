"""Record the golden runs: `python -m tests.golden.record`; with names of policies, those alone."""

from __future__ import annotations

import sys

import numpy as np

from driftbandits._util.machine import fingerprint
from tests.golden.play import PLAY
from tests.golden.settings import SETTINGS
from tests.golden.test_golden import RECORDED, new_policy


def main(names: list[str]) -> None:
    """Play policies in both worlds, and write decisions, laws, estimates and regret."""
    columns = {}
    if names:
        with np.load(RECORDED) as recorded:
            columns = dict(recorded)
    for name in names or SETTINGS:
        for world, play in PLAY.items():
            run = play(new_policy(name))
            columns[f"{name}.{world}.arms"] = run.arms.astype(np.uint8)
            columns[f"{name}.{world}.probabilities"] = run.probabilities
            columns[f"{name}.{world}.laws"] = np.array(run.laws)
            columns[f"{name}.{world}.estimates"] = np.array(run.estimates)
            columns[f"{name}.{world}.regret"] = np.float64(run.regret)
            columns[f"{name}.{world}.machine"] = np.array(fingerprint())
            print(f"{name:24s} {world:6s} {run.regret:9.3f}", flush=True)
    np.savez_compressed(RECORDED, **columns)


if __name__ == "__main__":
    main(sys.argv[1:])
