"""How the default constants of ADA-OPKB were found: `make tune`.

Points in the logarithms of sigma and c0 to c4 play the paper's environment 1 at d = 10 (as published) and at d = 2
(where the kernel matters) on tuning seeds. The score is the mean final regret over both. Environment 2 is never
touched.

Budget: 512 points and 2,464 runs of 10,000 rounds.
"""

from __future__ import annotations

from pathlib import Path

from driftbandits.experiments.runner import progress_bar
from driftbandits.policies import Constants
from driftbandits.tuning.search import World, count_runs, search
from driftbandits.tuning.spaces import SPACES

RUNGS = ((512, 1), (128, 3), (32, 10), (8, 32), (2, 64))  # (points kept, tuning seeds played so far)
WORLDS = tuple(World("switching/1", {"dimension": dimension, "horizon": 10_000}) for dimension in (10, 2))


def tune_constants(*, out: Path, jobs: int = -1) -> Constants:
    """Search, write every point's score to the folder `out`, print the best and give it."""
    with progress_bar(count_runs(RUNGS, len(WORLDS)), "runs") as advance:
        found = search(SPACES["ADA-OPKB"], WORLDS, RUNGS, default=False, jobs=jobs, progress=advance)
    out.mkdir(parents=True, exist_ok=True)
    found.table.to_csv(out / "constants.csv", index=False)
    best = Constants(**(found.values or {}))
    print(f"best of {RUNGS[0][0]} points: {best!r}, mean regret {found.regret:.1f}")
    print(f"every point: {out / 'constants.csv'}")
    return best
