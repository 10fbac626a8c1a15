"""How the default constants of ADA-OPKB and ADA-OPNN were found: `make tune`.

Points in the logarithms of sigma and c0 to c4 play the paper's environment 1 at d = 10 (as published) and at d = 2
(where the kernel matters) on tuning seeds. The score is the mean final regret over both. Environment 2 is never
touched. ADA-OPNN is searched at infinite width, where a run takes as long as one of ADA-OPKB; what is found is then the
default at every width.

Budget of each: 512 points and 2,464 runs of 10,000 rounds.
"""

from __future__ import annotations

from pathlib import Path

from driftbandits.experiments.runner import progress_bar
from driftbandits.policies import Constants
from driftbandits.tuning.search import Space, World, count_runs, search
from driftbandits.tuning.spaces import CONSTANTS

RUNGS = ((512, 1), (128, 3), (32, 10), (8, 32), (2, 64))  # (points kept, tuning seeds played so far)
WORLDS = tuple(World("switching/1", {"dimension": dimension, "horizon": 10_000}) for dimension in (10, 2))
SEARCHED = {
    "constants": Space("AdaOPKB", CONSTANTS, lambda values: {"constants": Constants(**values)}),
    "neural": Space(
        "AdaOPNN", CONSTANTS, lambda values: {"constants": Constants(**values), "width": "infinite", "train": False}
    ),
}


def tune_constants(study: str, *, out: Path, jobs: int = -1) -> Constants:
    """Search the study of SEARCHED, write every point's score to the folder `out`, print the best and give it."""
    with progress_bar(count_runs(RUNGS, len(WORLDS)), "runs") as advance:
        found = search(SEARCHED[study], WORLDS, RUNGS, default=False, jobs=jobs, progress=advance)
    out.mkdir(parents=True, exist_ok=True)
    found.table.to_csv(out / f"{study}.csv", index=False)
    best = Constants(**(found.values or {}))
    print(f"{study}: best of {RUNGS[0][0]} points: {best!r}, mean regret {found.regret:.1f}")
    print(f"every point: {out / f'{study}.csv'}")
    return best
