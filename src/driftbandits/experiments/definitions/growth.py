"""Table 1 as experiments: how fast regret grows with the rounds T, the segments L_T and the variation V_T.

With g = gamma log N, the paper bounds ADA-OPKB's regret by min(sqrt(g L_T T), (g V_T)^(1/3) T^(2/3) + sqrt(g T)) up to
logarithms, so on a log-log sweep the slopes must not exceed 1/2 and 2/3 in T, 1/2 in L_T and 1/3 in V_T, and in T what
the growth of gamma adds. All sweeps are at d = 2, where gamma grows like log T in the end, but faster at first.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from driftbandits.experiments.definitions.rows import ADA_OPKB, ADA_OPKB_PUBLISHED
from driftbandits.experiments.definitions.specs import Experiment, by_id

GROWTH_SEEDS = tuple(range(20))
GROWTH_ROUNDS = (2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000)
GROWTH_SEGMENTS = (1, 2, 4, 8, 16)
GROWTH_TURNS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the cosine's phase per run; the variation is proportional to it
LONG_HORIZON = 32_000  # of the sweeps over L_T and V_T: blocks must fit between changes
GROWTH_POLICIES = (ADA_OPKB, ADA_OPKB_PUBLISHED)


@dataclass(frozen=True)
class Sweep:
    """Experiments that differ in one quantity: its symbol, its values, and the slope the paper's rate allows.

    `bounds` has what policies with a bound of their own are allowed, up to a factor: by label, at every value.
    """

    id: str
    title: str
    symbol: str
    values: tuple[float, ...]
    rate: float
    experiments: tuple[Experiment, ...]
    bounds: Mapping[str, Mapping[float, float]] = field(default_factory=dict)


def _redraws(segments: int, horizon: int) -> dict[str, Any]:
    switches = [horizon * k // segments for k in range(1, segments)]
    return {"dimension": 2, "horizon": horizon, "switches": switches, "kind": "redraw"}


def _turning(turns: float, horizon: int) -> dict[str, Any]:
    phase = [[0, 0.0], [horizon, 2 * math.pi * turns]]
    return {"dimension": 2, "size": 100, "horizon": horizon, "phase": phase}


def _sweeps(*, rounds: tuple[int, ...], long: int, seeds: tuple[int, ...]) -> tuple[Sweep, ...]:
    """The four sweeps: over `rounds`, and over L_T and V_T at `long` rounds."""

    def sweep(
        name: str, title: str, symbol: str, rate: float, environment: str, points: Mapping[float, dict[str, Any]]
    ) -> Sweep:
        experiments = tuple(
            Experiment(
                f"{name}/{value:g}", f"{title}: {symbol} = {value:,}", environment, settings, GROWTH_POLICIES, seeds
            )
            for value, settings in points.items()
        )
        return Sweep(name, title, symbol, tuple(points), rate, experiments)

    return (
        sweep("growth/rounds", "Rounds, four segments", "T", 1 / 2, "switching", {t: _redraws(4, t) for t in rounds}),
        sweep(
            "growth/drifting-rounds",
            "Rounds, one turn of drift",
            "T",
            2 / 3,
            "cosine",
            {t: _turning(1.0, t) for t in rounds},
        ),
        sweep(
            "growth/segments",
            "Segments",
            "L_T",
            1 / 2,
            "switching",
            {s: _redraws(s, long) for s in GROWTH_SEGMENTS},
        ),
        sweep(
            "growth/variation",
            "Turns of drift",
            "V_T",
            1 / 3,
            "cosine",
            {v: _turning(v, long) for v in GROWTH_TURNS},
        ),
    )


SWEEPS = _sweeps(rounds=GROWTH_ROUNDS, long=LONG_HORIZON, seeds=GROWTH_SEEDS)
GROWTH: dict[str, Experiment] = by_id(experiment for sweep in SWEEPS for experiment in sweep.experiments)
# A taste: two seeds, at most 16,000 rounds.
QUICK_SWEEPS = _sweeps(rounds=GROWTH_ROUNDS[:4], long=GROWTH_ROUNDS[3], seeds=GROWTH_SEEDS[:2])
_QUICK_POINTS = by_id(experiment for sweep in QUICK_SWEEPS for experiment in sweep.experiments)


def quick_point(experiment: Experiment) -> Experiment | None:
    """The point of a sweep as the quick sweeps have it; None if they leave it out."""
    return _QUICK_POINTS.get(experiment.id)


def sweeps_of(experiments: Sequence[Experiment], sweeps: Sequence[Sweep] = SWEEPS) -> tuple[Sweep, ...]:
    """The sweeps as far as these experiments hold at least two of their points, with the policies that play there."""
    given = by_id(experiments)
    kept = []
    for sweep in sweeps:
        points = [(v, given[e.id]) for v, e in zip(sweep.values, sweep.experiments, strict=True) if e.id in given]
        if len(points) > 1:
            values, members = zip(*points, strict=True)
            kept.append(dataclasses.replace(sweep, values=values, experiments=members))
    return tuple(kept)


def without_guests(sweeps: Sequence[Sweep]) -> tuple[Sweep, ...]:
    """The sweeps with the policies defined here alone: the paper claims nothing about those that joined."""
    own = {policy.label for policy in GROWTH_POLICIES}

    def cut(experiment: Experiment) -> Experiment:
        return dataclasses.replace(experiment, policies=tuple(p for p in experiment.policies if p.label in own))

    return tuple(dataclasses.replace(sweep, experiments=tuple(map(cut, sweep.experiments))) for sweep in sweeps)
