"""What is searched: spaces of settings, the points tried in them, and the file that describes a space.

label: mine                # in tables; the class's name by default
ranges:                    # ends of what is searched, in logarithms
  rate: [0.001, 0.1]
  window: [100, 10000]
whole: [window]            # of these, whole numbers only
fixed: {noise: 0.1}        # settings that every point has

Points are fixed before anything is played, and are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from scipy.stats import qmc

from driftbandits._util.checks import check_path
from driftbandits.configuration.files import ConfigFile, read_config_file
from driftbandits.configuration.models import Field, Settings, StrictModel, check_name, default_label, validated
from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.specs import HORIZON, NOT_POLICY_SETTINGS

Values = Mapping[str, float]
Origin = Literal["default", "published", "search"]


@dataclass(frozen=True)
class Space:
    """What is searched: names with the ends of their ranges (in logarithms), and how values become settings.

    `settings` are what the space decides; all others are the policy's defaults, and so are all of no values, the point
    called "default". `published` are the values of the authors' files, where those give some.
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
    return TuningWorld("switching/1", {"dimension": dimension, "horizon": HORIZON})


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

    >>> points = trial_points(Space("GPUCB", {"beta": (0.1, 10.0)}, dict, published={"beta": 2.0}), 32)
    >>> len(points), points[0].origin, points[-1]
    (32, 'default', Point(origin='published', values={'beta': 2.0}))
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


End = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Ends = Annotated[list[End], Field(min_length=2, max_length=2)]
EXAMPLE = {"ranges": {"rate": [0.001, 0.1]}}


class SpaceConfig(StrictModel):
    """What is searched for one policy."""

    label: str | None = Field(default=None, min_length=1, description="Name in tables; that of the class by default.")
    ranges: dict[str, Ends] = Field(min_length=1, description="Ends of every setting that is searched, in logarithms.")
    whole: list[str] = Field(default=[], description="Those of the ranges that take whole numbers alone.")
    fixed: Settings = Field(default={}, description="Settings that every point has, the default too.")


@dataclass(frozen=True)
class NamedSpace:
    """A space to be searched, and what its policy is called in tables."""

    label: str
    space: Space


def read_space(source: str | Path | Mapping[str, Any], policy: str, *, known: frozenset[str] | None) -> NamedSpace:
    """The space that a file or a mapping describes for `policy`, whose settings are `known` (None: it takes any).

    Raises InputError with the place of everything that is wrong, and the nearest setting that exists.
    """
    if isinstance(source, Mapping):
        file = ConfigFile(Path("space"), dict(source))
    else:
        check_path(f"space must be a file, or a mapping such as {EXAMPLE}", source)
        file = read_config_file(Path(source), needs=("ranges",), example="ranges: {rate: [0.001, 0.1]}")
    config = validated(SpaceConfig, file)
    if problems := list(_problems(config, file, default_label(policy), known)):
        raise InputError("\n".join(problems))
    label = check_name(config.label or default_label(policy), "label")
    return NamedSpace(label, _space(config, policy))


def _space(config: SpaceConfig, policy: str) -> Space:
    def settings(values: Values) -> dict[str, Any]:
        searched = {name: round(value) if name in config.whole else value for name, value in values.items()}
        return {**config.fixed, **searched}

    return Space(policy, {name: (low, high) for name, (low, high) in config.ranges.items()}, settings)


def _problems(config: SpaceConfig, file: ConfigFile, name: str, known: frozenset[str] | None) -> Iterator[str]:
    """What is wrong in a file whose keys and types are right."""
    for part in ("ranges", "fixed"):
        for setting in getattr(config, part):
            if reason := _refusal(setting, name, known):
                yield f"{file.where((part, setting))}: {reason}"
    for setting, (low, high) in config.ranges.items():
        where = file.where(("ranges", setting))
        if low >= high:
            yield f"{where}: {setting} must go from the lower end to the higher, got [{low:g}, {high:g}]"
        if setting in config.fixed:
            yield f"{where}: {setting} is both searched and fixed; leave out one of the two"
        if setting in config.whole and not (low.is_integer() and high.is_integer()):
            yield f"{where}: {setting} takes whole numbers, so must its ends, got [{low:g}, {high:g}]"
    for number, setting in enumerate(config.whole):
        if setting not in config.ranges:
            where, hint = file.where(("whole", number)), did_you_mean(setting, config.ranges)
            yield f"{where}: {setting!r} is not searched; {hint}ranges: {', '.join(config.ranges)}"


def _refusal(setting: str, name: str, known: frozenset[str] | None) -> str:
    """Why the policy cannot be given this setting; empty where it can."""
    if setting in NOT_POLICY_SETTINGS:
        return f"{name} cannot be given {setting!r}: {NOT_POLICY_SETTINGS[setting]}"
    if known is None or setting in known:
        return ""
    return f"{name} has no setting {setting!r}; {did_you_mean(setting, known)}known: {', '.join(sorted(known))}"
