"""How the default constants of ADA-OPKB and ADA-OPNN were found: `driftbandits tune constants`, `tune neural`.

Points in the logarithms of sigma and c0 to c4 play the paper's environment 1 at d = 10 (as published) and at d = 2
(where the kernel matters) on tuning seeds. The score is the mean final regret over both. Environment 2 is never
touched. ADA-OPNN is searched at infinite width, where a run takes as long as one of ADA-OPKB; what is found is then the
default at every width.

Budget of each: 512 points and 2,464 cells of 10,000 rounds.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.definitions.rows import ADA_OPNN_INFINITE
from driftbandits.experiments.running.engines import Engine
from driftbandits.files import write_whole
from driftbandits.policies import Constants
from driftbandits.tuning.launch import launch
from driftbandits.tuning.points import Space, environment_1
from driftbandits.tuning.records import BestSettings, Tuned
from driftbandits.tuning.rungs import Rungs
from driftbandits.tuning.spaces import PAPER_CONSTANTS
from driftbandits.tuning.study import Search

CONSTANTS_RUNGS: Rungs = ((512, 1), (128, 3), (32, 10), (8, 32), (2, 64))  # (points kept, tuning seeds played so far)
CONSTANTS_WORLDS = (environment_1(10), environment_1(2))
CONSTANTS_STUDIES = {
    "constants": Space("AdaOPKB", PAPER_CONSTANTS, lambda values: {"constants": Constants(**values)}),
    "neural": Space(
        "AdaOPNN", PAPER_CONSTANTS, lambda values: {**ADA_OPNN_INFINITE.settings, "constants": Constants(**values)}
    ),
}


def tune_constants(
    study: str,
    *,
    out: Path,
    storage: str | None = None,
    engine: Engine = Engine(),  # noqa: B008  # frozen
    show: bool = False,
) -> Tuned:
    """Search the study of CONSTANTS_STUDIES and write every point's score into `out/<study>.csv`.

    There is one best point, and its `values` are the constants. Storage, engine and `show` are as in `tune_comparison`.
    """
    if study not in CONSTANTS_STUDIES:
        hint = did_you_mean(study, CONSTANTS_STUDIES, cutoff=0.4)
        raise InputError(f"no study is called {study!r}; {hint}known: {', '.join(CONSTANTS_STUDIES)}")
    search = Search(study, CONSTANTS_STUDIES[study], CONSTANTS_WORLDS, CONSTANTS_RUNGS, default=False)
    tuned = launch([search], path=out / f"{study}.csv", storage=storage, engine=engine, show=show)
    _write(tuned.path, tuned.best[0])
    return tuned


def _write(path: Path, found: BestSettings) -> None:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["point", *PAPER_CONSTANTS, "cells", "regret"])
    for score in found.scores:
        values = [score.values[name] for name in PAPER_CONSTANTS]
        table.writerow([score.number, *values, score.cells, score.regret])
    write_whole(path, text.getvalue().encode())
