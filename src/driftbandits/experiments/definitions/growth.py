"""The kernel half of Table 1 as experiments: how fast regret grows, for each row against its own bound.

With g = gamma_T log N, the paper bounds ADA-OPKB's regret by min(sqrt(g L_T T), (g V_T)^(1/3) T^(2/3) + sqrt(g T)), and
where nothing changes that of OPKB and OPNN by sqrt(g T), all up to logarithms. Its rivals have bounds in powers of
gamma_T, T and V_T. Along a sweep with both axes logarithmic a rate is a slope. All sweeps but that over d are at d = 2,
where gamma_T grows like log T in the end, but faster at first.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driftbandits import policies
from driftbandits.experiments.definitions.bounds import Bound, PowerLaw, Sweep, WorldSize, bounded, row_of
from driftbandits.experiments.definitions.first_settings import written_out
from driftbandits.experiments.definitions.rows import (
    ADA_OPKB,
    ADA_OPKB_PUBLISHED,
    OPKB,
    OPKB_PUBLISHED,
    OPNN_INFINITE,
    OPNN_NARROW,
    THEORY_ENDING,
)
from driftbandits.experiments.definitions.specs import Experiment, PolicySpec, by_id

GROWTH_SEEDS = tuple(range(20))
GROWTH_ROUNDS = (2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000)
GROWTH_SEGMENTS = (1, 2, 4, 8, 16)
GROWTH_TURNS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the cosine's phase per run; the variation is proportional to it
GROWTH_DIMENSIONS = (1, 2, 3, 4, 5)
GROWTH_ARMS = (8, 16, 32, 64, 128, 256, 512)
LONG_HORIZON = 32_000  # of the sweeps over L_T, V_T and d: blocks must fit between changes
ARMS, DIMENSION = 100, 2
LOG_ARMS = "log N"
STEADY_SWEEPS = ("steady-rounds", "arms")  # those of OPKB and OPNN
# V_T in the largest change of any reward: the mean over seeds, which differ by a tenth.
VARIATION_PER_REDRAW, VARIATION_PER_TURN = 1.1, 5.02

GROWTH_POLICIES = (ADA_OPKB, ADA_OPKB_PUBLISHED)
STEADY_POLICIES = (OPKB, OPKB_PUBLISHED, OPNN_INFINITE, OPNN_NARROW)  # where nothing changes
RIVAL_SEEDS, RIVAL_ROUNDS = 6, 32_000  # rounds of some rivals take ten times as long
TOLD_THE_VARIATION = (policies.RestartGPUCB, policies.SlidingWindowGPUCB, policies.WeightedGPUCB)

_STEADY = Bound.both(PowerLaw(rounds=1 / 2, log_arms=1 / 2, gain=1 / 2))
_FORGETTING = Bound.both(PowerLaw(rounds=3 / 4, one_plus_variation=1 / 4, gain=7 / 8))
TABLE_1: Mapping[str, Bound] = {
    "ADA-OPKB": Bound(
        PowerLaw(rounds=1 / 2, segments=1 / 2, log_arms=1 / 2, gain=1 / 2),
        PowerLaw(rounds=2 / 3, variation=1 / 3, log_arms=1 / 3, gain=1 / 3),
    ),
    "R-GPUCB": _FORGETTING,
    "SW-GPUCB": _FORGETTING,
    "WGPUCB": _FORGETTING,
    "GPUCB+MASTER": Bound(
        PowerLaw(rounds=1 / 2, segments=1 / 2, gain=1.0), PowerLaw(rounds=2 / 3, variation=1 / 3, gain=1.0)
    ),
    "OPKB": _STEADY,
    "OPNN": _STEADY,
}


@dataclass(frozen=True)
class _Point:
    """A world of a sweep."""

    environment: str
    settings: dict[str, Any]
    size: WorldSize


def _redraws(segments: int, horizon: int, *, dimension: int = DIMENSION, arms: int = ARMS) -> _Point:
    switches = [horizon * k // segments for k in range(1, segments)]
    settings = {"dimension": dimension, "horizon": horizon, "switches": switches, "kind": "redraw"}
    if arms != ARMS:
        settings["size"] = arms
    variation = VARIATION_PER_REDRAW * len(switches)
    return _Point("switching", settings, WorldSize(horizon, segments, variation, dimension, arms))


def _turning(turns: float, horizon: int) -> _Point:
    phase = [[0, 0.0], [horizon, 2 * math.pi * turns]]
    settings = {"dimension": DIMENSION, "size": ARMS, "horizon": horizon, "phase": phase}
    return _Point("cosine", settings, WorldSize(horizon, horizon, VARIATION_PER_TURN * turns, DIMENSION, ARMS))


def kernel_rivals(variation: float) -> tuple[PolicySpec, ...]:
    """The rivals of the kernel half of Table 1 with the sizes of their theory, told V_T if they need it.

    >>> [rival.label for rival in kernel_rivals(1.0)]
    ['R-GPUCB (theory)', 'SW-GPUCB (theory)', 'WGPUCB (theory)', 'GPUCB+MASTER (theory)']
    """
    master = {"base": policies.GPUCB.__name__, "mode": "theory", "base_settings": {"beta": "ridge"}}
    return (
        *(_theory(policy.label, policy, {"variation": variation}) for policy in TOLD_THE_VARIATION),
        _theory(f"{policies.GPUCB.label}+{policies.Master.label}", policies.Master, master),
    )


def _theory(label: str, policy: type[policies.Policy], settings: Mapping[str, Any]) -> PolicySpec:
    every = written_out(policy.__name__, settings)
    return PolicySpec(label + THEORY_ENDING, policy.__name__, every, seeds=RIVAL_SEEDS)


def _adapting(size: WorldSize) -> tuple[PolicySpec, ...]:
    return (*GROWTH_POLICIES, *(kernel_rivals(size.variation) if size.rounds <= RIVAL_ROUNDS else ()))


def _sweeps(*, rounds: tuple[int, ...], long: int, seeds: tuple[int, ...]) -> tuple[Sweep, ...]:
    """All sweeps: over `rounds`, and over the rest at `long` rounds."""

    def sweep(name: str, title: str, symbol: str, rate: float, points: Mapping[float, _Point]) -> Sweep:
        steady = name in STEADY_SWEEPS
        experiments = tuple(
            Experiment(
                f"growth/{name}/{point.size.arms if symbol == LOG_ARMS else value:g}",
                f"{title}: N = {point.size.arms}" if symbol == LOG_ARMS else f"{title}: {symbol} = {value:,g}",
                point.environment,
                point.settings,
                STEADY_POLICIES if steady else _adapting(point.size),
                seeds,
            )
            for value, point in points.items()
        )
        drifting = any(point.environment == "cosine" for point in points.values())
        made = Sweep(f"growth/{name}", title, symbol, tuple(points), rate, experiments)
        rows = {label: row_of(label, TABLE_1) for label in made.labels}
        laws = {label: row.drifts if drifting else row.jumps for label, row in rows.items()}
        return bounded(made, {value: point.size for value, point in points.items()}, laws)

    return (
        sweep("rounds", "Rounds, four segments", "T", 1 / 2, {t: _redraws(4, t) for t in rounds}),
        sweep("drifting-rounds", "Rounds, one turn of drift", "T", 2 / 3, {t: _turning(1.0, t) for t in rounds}),
        sweep("segments", "Segments", "L_T", 1 / 2, {s: _redraws(s, long) for s in GROWTH_SEGMENTS}),
        sweep("variation", "Turns of drift", "V_T", 1 / 3, {v: _turning(v, long) for v in GROWTH_TURNS}),
        sweep(
            "dimension",
            "Dimension, four segments",
            "d",
            0.0,
            {d: _redraws(4, long, dimension=d) for d in GROWTH_DIMENSIONS},
        ),
        sweep("steady-rounds", "Rounds, nothing changes", "T", 1 / 2, {t: _redraws(1, t) for t in rounds}),
        sweep(
            "arms",
            "Arms, nothing changes",
            LOG_ARMS,
            1 / 2,
            {round(math.log(n), 4): _redraws(1, long, arms=n) for n in GROWTH_ARMS},
        ),
    )


SWEEPS = _sweeps(rounds=GROWTH_ROUNDS, long=LONG_HORIZON, seeds=GROWTH_SEEDS)
GROWTH: dict[str, Experiment] = by_id(experiment for sweep in SWEEPS for experiment in sweep.experiments)
# A taste: two seeds, at most 8,000 rounds, and 4,000 where the rounds stay.
QUICK_SWEEPS = _sweeps(rounds=GROWTH_ROUNDS[:3], long=GROWTH_ROUNDS[1], seeds=GROWTH_SEEDS[:2])
_QUICK_POINTS = by_id(experiment for sweep in QUICK_SWEEPS for experiment in sweep.experiments)


def quick_point(experiment: Experiment) -> Experiment | None:
    """The point of a sweep as the quick sweeps have it; None if they leave it out."""
    return _QUICK_POINTS.get(experiment.id)


def without_guests(sweeps: Sequence[Sweep]) -> tuple[Sweep, ...]:
    """The sweeps with the policies defined here alone: the paper claims nothing about those that joined."""

    def cut(experiment: Experiment, own: Mapping[str, Any]) -> Experiment:
        return dataclasses.replace(experiment, policies=tuple(p for p in experiment.policies if p.label in own))

    return tuple(
        dataclasses.replace(sweep, experiments=tuple(cut(e, sweep.bounds) for e in sweep.experiments))
        for sweep in sweeps
    )
