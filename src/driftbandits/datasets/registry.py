"""The only list of data sets and of the ways to play them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable

from driftbandits.datasets import copies, digits, flights, stocks
from driftbandits.datasets.panel import OFFSETS, Panel
from driftbandits.datasets.replay import Replay
from driftbandits.errors import InputError, did_you_mean
from driftbandits.seeding import check_seed
from driftbandits.types import Ints

DATASETS: dict[str, Callable[[], Panel]] = {
    "flights": flights.load,
    "digits": digits.load,
    "stocks": stocks.load,
}

COPIES: dict[str, Callable[[Panel, Ints, int], Replay]] = {
    "as observed": copies.as_observed,
    "reversed": copies.reversed_in_time,
    "shuffled": copies.shuffled,
    "semi-real": copies.semi_real,
}


def names() -> tuple[str, ...]:
    """Names that `create` knows.

    >>> names()
    ('flights', 'digits', 'stocks')
    """
    return tuple(DATASETS)


def load(name: str) -> Panel:
    """The whole data set called `name`, all rounds in their order; read once and kept."""
    if name not in DATASETS:
        raise InputError(f"unknown data set {name!r}; {_near_and_valid(name, DATASETS)}")
    return DATASETS[name]()


def create(name: str, *, offset: int = 0, copy: str = "as observed", seed: int = 0) -> Replay:
    """Build the bandit called `name` from real data.

    Parameters
    ----------
    name : one of `names()`
    offset : replicate 0 to 4; replicate k starts 5% of the rounds times k later, and all are equally long
    copy : "as observed"; "reversed" in time; "shuffled" in blocks; or "semi-real", a smoothed truth with resampled
        residuals
    seed : of the shuffled and the semi-real copy

    Raises InputError for an unknown name or copy, with the nearest valid one, and MissingDataError with the install
    line where the data are not there.

    >>> world = create("digits", offset=1)
    >>> world.name, len(world.arms), world.horizon, world.reward_range
    ('digits', 42, 2100, (0.0, 1.0))
    """
    if copy not in COPIES:
        raise InputError(f"unknown copy {copy!r}; {_near_and_valid(copy, COPIES)}")
    panel = load(name)
    return COPIES[copy](panel, panel.played(_check_offset(offset)), check_seed(seed))


def _check_offset(offset: int) -> int:
    try:
        number = operator.index(offset)
    except TypeError:
        number = -1
    if not 0 <= number < OFFSETS or isinstance(offset, bool):
        raise InputError(f"offset must be a whole number from 0 to {OFFSETS - 1}, got {offset!r}")
    return number


def _near_and_valid(name: str, valid: Iterable[str]) -> str:
    choices = list(valid)
    return f"{did_you_mean(name, choices)}valid: {', '.join(choices)}"
