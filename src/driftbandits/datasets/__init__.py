"""Bandits made from real data: recipes, controls, what could have been had in hindsight, and a test for drift.

Here is the only list of data sets and of the ways to play them.
"""

from __future__ import annotations

from collections.abc import Callable

from driftbandits._util.checks import check_count
from driftbandits._util.seeding import check_seed
from driftbandits.datasets import carriers, digits, flights, forecasts, series, stocks
from driftbandits.datasets.hindsight import (
    SWITCHES,
    DriftTest,
    benchmarks_of,
    drift_test,
    filled,
    switching_totals,
    turnover,
)
from driftbandits.datasets.series import OFFSETS, Panel, SeriesReplay
from driftbandits.errors import InputError, near_and_valid
from driftbandits.text import shown
from driftbandits.types import Ints

__all__ = [
    "COPIES",
    "DriftTest",
    "OFFSETS",
    "Panel",
    "SeriesReplay",
    "SWITCHES",
    "benchmarks_of",
    "create",
    "drift_test",
    "filled",
    "load",
    "names",
    "switching_totals",
    "turnover",
]

DATASETS: dict[str, Callable[[], Panel]] = {
    "flights": flights.load,
    "digits": digits.load,
    "stocks": stocks.load,
    "on-time": carriers.on_time,
    "made-up": carriers.made_up,
    "temperature": forecasts.temperature,
    "wind": forecasts.wind,
    "pressure": forecasts.pressure,
    "humidity": forecasts.humidity,
}

COPIES: dict[str, Callable[[Panel, Ints, int], SeriesReplay]] = {
    "as observed": series.as_observed,
    "reversed": series.reversed_in_time,
    "shuffled": series.shuffled,
    "semi-real": series.semi_real,
}


REAL_PREFIX = "real/"  # begins the names of worlds made from real data; their seed is the number of a start offset
REWARD_RANGES: dict[str, tuple[float, float]] = {
    name: (-1.0 if name in ("flights", "stocks", "made-up") else 0.0, 1.0) for name in DATASETS
}


def names() -> tuple[str, ...]:
    """Names that `create` knows.

    Returns
    -------
    tuple of strings

    >>> names()
    ('flights', 'digits', 'stocks', 'on-time', 'made-up', 'temperature', 'wind', 'pressure', 'humidity')
    """
    return tuple(DATASETS)


def load(name: str) -> Panel:
    """A whole data set, all rounds in their order; read once and kept.

    Parameters
    ----------
    name : one of `names()`

    Returns
    -------
    Panel

    Raises
    ------
    InputError
        For an unknown name, with the nearest valid one.
    MissingDataError
        With the install line, where the data are not there.

    >>> load("digits").reward_range
    (0.0, 1.0)
    """
    if name not in DATASETS:
        raise InputError(f"unknown data set {name!r}; {near_and_valid(name, DATASETS)}")
    return DATASETS[name]()


def create(name: str, *, offset: int = 0, copy: str = "as observed", seed: int = 0) -> SeriesReplay:
    """Build the bandit called `name` from real data.

    Parameters
    ----------
    name : one of `names()`
    offset : replicate 0 to 4; replicate k starts 5% of the rounds times k later, and all are equally long
    copy : "as observed"; "reversed" in time; "shuffled" in blocks; or "semi-real", a smoothed truth with resampled
        residuals
    seed : of the shuffled and the semi-real copy

    Returns
    -------
    SeriesReplay

    Raises
    ------
    InputError
        For an unknown name or copy, with the nearest valid one.
    MissingDataError
        With the install line, where the data are not there.

    >>> world = create("digits", offset=1)
    >>> world.name, len(world.arms), world.horizon, world.reward_range
    ('digits', 42, 2100, (0.0, 1.0))
    """
    if copy not in COPIES:
        raise InputError(f"unknown copy {copy!r}; {near_and_valid(copy, COPIES)}")
    panel = load(name)
    return COPIES[copy](panel, panel.played(_check_offset(offset)), check_seed(seed))


def _check_offset(offset: int) -> int:
    number = check_count("offset", offset, least=0)
    if number >= OFFSETS:
        raise InputError(f"offset must be a whole number from 0 to {OFFSETS - 1}, got {shown(offset)}")
    return number
