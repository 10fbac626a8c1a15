"""What is searched, and the points at which it is tried: fixed before anything is played, the same on every machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.stats import qmc

from driftbandits.experiments.definitions.ids import ENVIRONMENT_1
from driftbandits.experiments.definitions.specs import HORIZON

Values = Mapping[str, float]
Origin = Literal["default", "published", "search"]


@dataclass(frozen=True)
class Space:
    """What is searched: names with the ends of their ranges (in logarithms), and how values become settings.

    `settings` are what the space decides; all others are those of `definitions.first_settings`, and so are all of no
    values, the point called "default" (for a class of the user's own: its defaults). `published` are the values of the
    authors' files, where those give some.
    """

    policy: str
    ranges: Mapping[str, tuple[float, float]]
    settings: Callable[[Values], dict[str, Any]]
    published: Values | None = None


@dataclass(frozen=True)
class TuningWorld:
    """A world to be tuned on, by registered name."""

    environment: str
    settings: Mapping[str, Any]


def environment_1(dimension: int) -> TuningWorld:
    """The paper's environment 1 (one switch) in this dimension; the paper tunes on it, and meets all others untuned."""
    return TuningWorld(ENVIRONMENT_1, {"dimension": dimension, "horizon": HORIZON})


@dataclass(frozen=True)
class Point:
    """A point of a space, and where it comes from; the default has no values: see `Space`."""

    origin: Origin
    values: Values = field(default_factory=dict)


def trial_points(space: Space, count: int, *, default: bool = True) -> tuple[Point, ...]:
    """`count` points of the space: its default, a scrambled Sobol sequence in the logarithms, what was published.

    Values are rounded to three digits. A published point takes the place of the sequence's last, so every space has the
    same number of points; one without ranges has nothing to search, and its default alone. `default=False` leaves out
    the default, where the search is to find it.

    >>> from driftbandits.tuning.spaces import SPACES
    >>> points = trial_points(SPACES["SW-GPUCB"], 32)
    >>> len(points), points[0].origin, points[-1]
    (32, 'default', Point(origin='published', values={'ridge': 0.05, 'scale': 0.2, 'window': 3000.0}))
    """
    if not space.ranges:
        return (Point("default"),)
    first = [Point("default")] if default else []
    last = [Point("published", space.published)] if space.published is not None else []
    between = [Point("search", values) for values in _sobol(space.ranges, count)]
    return (*first, *between[: count - len(first) - len(last)], *last)[:count]


def _sobol(ranges: Mapping[str, tuple[float, float]], count: int) -> list[dict[str, float]]:
    sobol = qmc.Sobol(len(ranges), scramble=True, rng=np.random.default_rng(0))
    unit = sobol.random_base2(int(np.ceil(np.log2(count))))
    low, high = np.log(np.array(list(ranges.values()), dtype=np.float64)).T
    values = np.exp(low + unit * (high - low))
    return [{name: float(f"{v:.3g}") for name, v in zip(ranges, row, strict=True)} for row in values]
