"""Rows of Table 1 as power laws, and the sweeps along which regret is held against them.

symbol   name         meaning
T        rounds
L_T      segments     1 + number of changes
V_T      variation    how far the rewards move in all
d, N     dimension, arms
gamma_T  gain         information gain; known only once the arms are built, so its power stands apart
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from driftbandits.experiments.definitions.specs import Experiment, by_id


@dataclass(frozen=True)
class WorldSize:
    """What a bound is about."""

    rounds: int
    segments: int
    variation: float
    dimension: int
    arms: int


@dataclass(frozen=True)
class PowerLaw:
    """The leading term of a bound without logarithms of T: the exponents of what it is made of."""

    rounds: float
    segments: float = 0.0
    variation: float = 0.0
    one_plus_variation: float = 0.0
    dimension: float = 0.0
    log_arms: float = 0.0
    gain: float = 0.0

    def at(self, world: WorldSize) -> float:
        """Its value in a world, but for the gain.

        >>> PowerLaw(rounds=1 / 2, dimension=1.0).at(WorldSize(400, 1, 0.0, dimension=5, arms=100))
        100.0
        """
        return float(
            world.rounds**self.rounds
            * world.segments**self.segments
            * (world.variation**self.variation if self.variation else 1.0)
            * (1.0 + world.variation) ** self.one_plus_variation
            * world.dimension**self.dimension
            * math.log(world.arms) ** self.log_arms
        )


@dataclass(frozen=True)
class Bound:
    """A row of Table 1: what is least of its bound where rewards jump a few times, and where they drift."""

    jumps: PowerLaw
    drifts: PowerLaw

    @classmethod
    def both(cls, law: PowerLaw) -> Bound:
        """One law for both."""
        return cls(law, law)


def row_of(label: str, rows: Mapping[str, Bound]) -> Bound:
    """The row that a label stands for, whatever its settings.

    >>> row_of("SW-GPUCB (theory)", {"SW-GPUCB": Bound.both(PowerLaw(3 / 4))}).jumps.rounds
    0.75
    """
    return rows[label.partition(" (")[0]]


@dataclass(frozen=True)
class Sweep:
    """Experiments that differ in one quantity: its symbol, its values, and its exponent in the paper's rate.

    `bounds` has what policies with a bound of their own are allowed, up to a factor and their power of gamma_T: by
    label, at every value. `gain_powers` has those powers.
    """

    id: str
    title: str
    symbol: str
    values: tuple[float, ...]
    rate: float
    experiments: tuple[Experiment, ...]
    bounds: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    gain_powers: Mapping[str, float] = field(default_factory=dict)

    @property
    def labels(self) -> list[str]:
        """All that play along it, each once."""
        return list(dict.fromkeys(policy.label for e in self.experiments for policy in e.policies))


def bounded(sweep: Sweep, sizes: Mapping[float, WorldSize], laws: Mapping[str, PowerLaw]) -> Sweep:
    """The sweep with the bounds of these labels."""
    return dataclasses.replace(
        sweep,
        bounds={label: {value: law.at(size) for value, size in sizes.items()} for label, law in laws.items()},
        gain_powers={label: law.gain for label, law in laws.items()},
    )


def sweeps_of(experiments: Sequence[Experiment], sweeps: Sequence[Sweep]) -> tuple[Sweep, ...]:
    """The sweeps as far as these experiments hold at least two of their points, with the policies that play there."""
    given = by_id(experiments)
    kept = []
    for sweep in sweeps:
        points = [(v, given[e.id]) for v, e in zip(sweep.values, sweep.experiments, strict=True) if e.id in given]
        if len(points) > 1:
            values, members = zip(*points, strict=True)
            kept.append(dataclasses.replace(sweep, values=values, experiments=members))
    return tuple(kept)
