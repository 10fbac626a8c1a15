"""Real series judged by what could have been earned on them in hindsight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from driftbandits.escaping import csv
from driftbandits.experiments.judging.judgement import Judgement
from driftbandits.experiments.judging.results import Results


@dataclass(frozen=True, eq=False)
class RealSeriesJudgement(Judgement):
    """`references` is what `reference_table` gives; the page shows every policy against them."""

    references: pd.DataFrame

    @property
    def files(self) -> Mapping[str, str]:
        """The references."""
        return {"references.csv": csv(self.references)}


def judge_real_series(results: Results) -> RealSeriesJudgement | None:
    """What the references earn on the series that were played."""
    return None if results.references is None else RealSeriesJudgement(results.references)
