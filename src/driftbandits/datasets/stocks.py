"""Which stock tomorrow? The New York exchange over 5,651 days: the negative control.

Source: the file nyse_o.csv of the package universal-portfolios 0.4.17 (its code is under the "Feedback MIT License" of
its LICENSE file, which says nothing of the data: they are fetched by the user's pip and never copied here).

- Round: a trading day. Arm: a stock.
- Reward: the logarithm of the price relative, clipped to the 99% quantile of its size in the first 5% of the days and
  divided by it, so that it lies in [-1, 1]. The table is the observation: no noise is added.
- Kernel: the correlation matrix of daily logarithmic returns of the first 5% of the days; points are the first three
  principal components of that matrix.

Tomorrow's differences between stocks can hardly be told from today's. A method that gains here by restarting has been
tuned on what it is tested on.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from driftbandits.arms.arm_set import ArmSet
from driftbandits.datasets.series import Panel, data_file, from_table, preparation, principal_points
from driftbandits.types import Floats

PACKAGE = "universal-portfolios==0.4.17"


@lru_cache(maxsize=1)
def load() -> Panel:
    """Read the prices."""
    names, returns = _read()
    early = returns[: preparation(len(returns))]
    correlation = np.asarray(np.corrcoef(early.T))
    limit = float(np.quantile(np.abs(early), 0.99))
    return Panel(
        name="stocks",
        arms=ArmSet(principal_points(correlation), kernel=correlation, names=names),
        cells=from_table(np.clip(returns, -limit, limit) / limit),
        reward_range=(-1.0, 1.0),
        block=5,
        smoothing=125,
    )


def _read() -> tuple[list[str], Floats]:
    """Names and daily logarithmic returns, shape (days, stocks); the file has prices in units of the day before."""
    path = data_file("universal", "data/nyse_o.csv", package=PACKAGE, dataset="stocks")
    with path.open(encoding="utf-8") as file:
        names = file.readline().strip().split(",")
        prices = np.loadtxt(file, delimiter=",")
    return names, np.diff(np.log(prices), axis=0, prepend=0.0)
