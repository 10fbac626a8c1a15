"""The kernel half of Table 1: how fast regret grows, for each row against its own bound.

With g = gamma_T log N, the paper bounds ADA-OPKB's regret by min(sqrt(g L_T T), (g V_T)^(1/3) T^(2/3) + sqrt(g T)), and
where nothing changes that of OPKB and OPNN by sqrt(g T), all up to logarithms. Its rivals have bounds in powers of
gamma_T, T and V_T. Along a sweep with both axes logarithmic a rate is a slope. All sweeps but that over d are at d = 2,
where gamma_T grows like log T in the end, but faster at first.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from driftbandits import policies
from driftbandits.experiments.results import Results
from driftbandits.experiments.seeds import EVALUATION
from driftbandits.experiments.specs import Experiment, PolicySpec
from driftbandits.report.blocks import Block
from driftbandits.report.pictures import Picture, make_picture
from reproduction.catalogue import (
    ADA_OPKB,
    ADA_OPKB_PUBLISHED,
    OF_THE_PAPER,
    OPKB,
    OPKB_PUBLISHED,
    OPNN_INFINITE,
    OPNN_NARROW,
    THEORY_ENDING,
    by_id,
    written_out,
)
from reproduction.chapters import describe_slopes, sweep_blocks
from reproduction.claims import Check, Claim
from reproduction.figures import (
    GrowthPanel,
    growth_figure,
    growth_key,
)
from reproduction.sweeps import (
    ADA_OPKB_BOUND,
    LOG_ARMS,
    OPKB_LAW,
    Bound,
    PowerLaw,
    Sweep,
    SweptWorld,
    WorldSize,
    check_growth,
    make_sweep,
    sweeps_of,
)
from reproduction.topic import Group, StudyContext

GROWTH_SEEDS = EVALUATION.take(20)
GROWTH_ROUNDS = (2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000)
GROWTH_SEGMENTS = (1, 2, 4, 8, 16)
GROWTH_TURNS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the cosine's phase per run; the variation is proportional to it
GROWTH_DIMENSIONS = (1, 2, 3, 4, 5)
GROWTH_ARMS = (8, 16, 32, 64, 128, 256, 512)
LONG_HORIZON = 32_000  # of the sweeps over L_T, V_T and d: blocks must fit between changes
ARMS, DIMENSION = 100, 2
STEADY_SWEEPS = ("steady-rounds", "arms")  # those of OPKB and OPNN
# V_T in the largest change of any reward: the mean over seeds, which differ by a tenth.
VARIATION_PER_REDRAW, VARIATION_PER_TURN = 1.1, 5.02
GROWTH_POLICIES = (ADA_OPKB, ADA_OPKB_PUBLISHED)
STEADY_POLICIES = (OPKB, OPKB_PUBLISHED, OPNN_INFINITE, OPNN_NARROW)  # where nothing changes
RIVAL_SEEDS, RIVAL_ROUNDS = 6, 32_000  # rounds of some rivals take ten times as long
TOLD_THE_VARIATION = (policies.RestartGPUCB, policies.SlidingWindowGPUCB, policies.WeightedGPUCB)
_STEADY = Bound.both(OPKB_LAW)
_FORGETTING = Bound.both(PowerLaw(rounds=3 / 4, one_plus_variation=1 / 4, gain=7 / 8))
TABLE_1: Mapping[str, Bound] = {
    "ADA-OPKB": ADA_OPKB_BOUND,
    "R-GPUCB": _FORGETTING,
    "SW-GPUCB": _FORGETTING,
    "WGPUCB": _FORGETTING,
    "GPUCB+MASTER": Bound(
        (PowerLaw(rounds=1 / 2, segments=1 / 2, gain=1.0),),
        (PowerLaw(rounds=2 / 3, variation=1 / 3, gain=1.0), PowerLaw(rounds=1 / 2, gain=1.0)),
    ),
    "OPKB": _STEADY,
    "OPNN": _STEADY,
}


def _redraws(segments: int, horizon: int, *, dimension: int = DIMENSION, arms: int = ARMS) -> SweptWorld:
    switches = [horizon * k // segments for k in range(1, segments)]
    settings = {"dimension": dimension, "horizon": horizon, "switches": switches, "kind": "redraw"}
    if arms != ARMS:
        settings["size"] = arms
    variation = VARIATION_PER_REDRAW * len(switches)
    return SweptWorld("switching", settings, WorldSize(horizon, segments, variation, dimension, arms), False)


def _turning(turns: float, horizon: int) -> SweptWorld:
    phase = [[0, 0.0], [horizon, 2 * math.pi * turns]]
    settings = {"dimension": DIMENSION, "size": ARMS, "horizon": horizon, "phase": phase}
    size = WorldSize(horizon, horizon, VARIATION_PER_TURN * turns, DIMENSION, ARMS)
    return SweptWorld("cosine", settings, size, True)


def kernel_rivals(variation: float) -> tuple[PolicySpec, ...]:
    """The rivals of the kernel half of Table 1 with the sizes of their theory, told V_T if they need it.

    >>> [rival.label for rival in kernel_rivals(1.0)]
    ['R-GPUCB (theory)', 'SW-GPUCB (theory)', 'WGPUCB (theory)', 'GPUCB+MASTER (theory)']
    """
    master = {"base": policies.GPUCB.__name__, "mode": "theory", "base_settings": {"beta": "ridge"}}
    return (
        *(_theory(policies.policy_label(policy), policy, {"variation": variation}) for policy in TOLD_THE_VARIATION),
        _theory("GPUCB+MASTER", policies.Master, master),
    )


def _theory(label: str, policy: type[policies.Policy], settings: Mapping[str, Any]) -> PolicySpec:
    every = written_out(policy.__name__, settings)
    return PolicySpec(label + THEORY_ENDING, policy.__name__, every, seeds=RIVAL_SEEDS)


def _adapting(size: WorldSize) -> tuple[PolicySpec, ...]:
    return (*GROWTH_POLICIES, *(kernel_rivals(size.variation) if size.rounds <= RIVAL_ROUNDS else ()))


def _sweeps(*, rounds: tuple[int, ...], long: int, seeds: tuple[int, ...]) -> tuple[Sweep, ...]:
    """All sweeps: over `rounds`, and over the rest at `long` rounds."""

    def sweep(name: str, title: str, symbol: str, rate: float, points: Mapping[float, SweptWorld]) -> Sweep:
        steady = name in STEADY_SWEEPS
        return make_sweep(
            f"growth/{name}",
            title,
            symbol,
            rate,
            points,
            policies=lambda world: STEADY_POLICIES if steady else _adapting(world.size),
            seeds=seeds,
            rows=TABLE_1,
        )

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
# Short runs: two seeds, at most 8,000 rounds, and 4,000 where the rounds stay.
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


def growth_claims(results: Results, sweeps: Sequence[Sweep]) -> list[Claim]:
    """What the theorems say, policy by policy; of the rivals all must keep to their bounds."""

    def checks(claim: str, settings: dict[str, str]) -> tuple[Check, ...]:
        return tuple(
            check_growth(claim, settings[label], results, sweep, label)
            for label in settings
            for sweep in sweeps
            if label in sweep.labels
        )

    ours = {policy.label: policy.label for policy in GROWTH_POLICIES}
    steady = {policy.label: policy.label for policy in STEADY_POLICIES}
    rivals = {rival.label: "sizes of the theory" for rival in kernel_rivals(1.0)}
    return [
        Claim(
            "T1",
            "Table 1",
            "ADA-OPKB's regret grows with T, L_T, V_T and d no faster than the paper's bound.",
            checks("T1", ours),
        ),
        Claim(
            "T2",
            "Theorem 2",
            "Where nothing changes, the regret of OPKB and OPNN grows with T and log N no faster than "
            "sqrt(gamma_T T log N).",
            checks("T2", steady),
        ),
        Claim(
            "T3",
            "Table 1",
            "With the sizes of its theory, the regret of every kernel rival grows no faster than its own bound.",
            checks("T3", rivals),
        ),
    ]


LINES_CAPTION = (
    "The paper’s algorithms along the same sweeps: mean final regret with bars of one standard error, both axes "
    "logarithmic. A policy within its bound rises no steeper than its dotted line, drawn through the same middle."
)


def growth_blocks(context: StudyContext, experiments: Sequence[Experiment]) -> list[Block]:
    """Slopes of all policies, and lines of the paper's own."""
    sweeps = sweeps_of(context.results.experiments, SWEEPS)
    return sweep_blocks(context, sweeps, experiments, name="growth", rate="plain exponent", lines=_lines_picture)


def _lines_picture(context: StudyContext, sweeps: Sequence[Sweep], panels: Sequence[GrowthPanel]) -> Picture | None:
    """The paper's own algorithms only: with all rivals nobody could tell them apart."""
    played = [(e, p) for s in sweeps for e in s.experiments for p in e.policies]
    ours = {p.label for e, p in played if context.kind(e, p).__name__ in OF_THE_PAPER}
    cut = [dataclasses.replace(panel, curves=tuple(c for c in panel.curves if c.policy in ours)) for panel in panels]
    drawn = [panel for panel in cut if panel.curves]
    if not drawn:
        return None
    return make_picture(
        drawn,
        lambda some, *, legend: growth_figure(some, palette=context.palette, legend=legend),
        describe_slopes,
        key=growth_key(drawn, palette=context.palette),
        caption=LINES_CAPTION,
        folder=context.figures,
        name="growth-lines",
    )


# Its claims are judged with those of the paper's figures, see `paper.judge_claims`.
GROWTH_OF_REGRET = Group(
    name="growth",
    title="Table 1: how fast regret grows",
    lead="The paper bounds the regret of ADA-OPKB by its rates in the rounds T, the segments L_T and the variation V_T "
    "(Table 1), and where nothing changes that of OPKB and OPNN. Along a sweep of one of them, with both axes "
    "logarithmic, a rate is a slope. Rivals have the sizes of their theory and bounds of their own.",
    experiments=tuple(GROWTH.values()),
    blocks=growth_blocks,
    quick=quick_point,
    played="always",
)
