"""Linear bandits: worlds on spheres and on a box, the linear half of Table 1, its claims and its two chapters.

Rivals play twice. "Theory": the sizes (window, period, discount) of their corrected analyses, told the path of theta;
those that choose sizes themselves are told nothing, and MASTER has its tests and replays as analysed. "Tuned": settings
found by the search of the comparison, on the linear world with one switch in the same dimension.

ADA-OPKB is bounded as in the kernel half, with gamma_T log N, which for linear rewards are of the order of d log T and
d: sqrt(gamma_T log N L_T T), printed as d sqrt(L_T T), where theta jumps, and where it turns (gamma_T log N V_T)^(1/3)
T^(2/3) + sqrt(gamma_T log N T), printed as d^(2/3) V_T^(1/3) T^(2/3). As printed these are the rates of the lower
bounds, for infinitely many arms, log N of the order of d; so along the sweeps over d the sphere has N = 3^d arms.
Rivals that regress have gamma_T hidden in their logarithms too. Every bound counts in both readings, and all have a
term d sqrt(T) that is left when nothing moves: the steepest of all that is what is allowed.

"Within a factor" compares ADA-OPKB with the rival that has the least mean regret in a world on the seeds both have
played: the mean of its regret minus the factor times that rival's is below 0. Choosing the best rival on the same seeds
favours the rival.

symbol  meaning
d, N    dimension, number of arms
T       rounds
V_T     path of theta, sum_t ||theta_{t+1} - theta_t||: what the linear rivals are told
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from driftbandits import policies
from driftbandits._util.intervals import t_interval
from driftbandits.experiments.results import Results
from driftbandits.experiments.seeds import EVALUATION
from driftbandits.experiments.specs import HORIZON, Experiment, PolicySpec
from driftbandits.report.blocks import Block
from reproduction.catalogue import (
    ADA_OPKB,
    ADA_OPKB_PUBLISHED,
    AUTOBANDIT,
    CALIBRATED_OPKB,
    LINEAR_FILE,
    THEORY_ENDING,
    TUNED_ENDING,
    by_id,
    quick,
    tuned_settings,
    tuned_spec,
    written_out,
)
from reproduction.chapters import rankings_named, sweep_blocks
from reproduction.claims import Check, CheckVerdict, Claim, ClaimsJudgement, judge_below, make_check
from reproduction.sweeps import (
    ADA_OPKB_BOUND,
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

NORM = 0.8  # of theta
FLIP = 2 * NORM  # how far theta moves where it becomes -theta
ARMS = 100
SWITCH = 3_000  # where the worlds with one switch have it
SWITCHING, DRIFTING = "linear/switching", "linear/drifting"


@dataclass(frozen=True)
class LinearSetting:
    """A linear world by name and settings, and the path of its theta."""

    environment: str
    settings: dict[str, Any]
    path: float


def flipping(dimension: int, switches: Sequence[int], *, horizon: int = HORIZON, size: int = ARMS) -> LinearSetting:
    """Arms drawn from the sphere, and a theta that becomes -theta at every switch.

    >>> flipping(5, (3000,)).path
    1.6
    """
    arms = {"dimension": dimension, "size": size}
    return _flipping(arms, switches, horizon)


def flipping_on_box(dimension: int, error: float, switches: Sequence[int], *, horizon: int = HORIZON) -> LinearSetting:
    """The same on a cube, discretised with this error."""
    return _flipping({"dimension": dimension, "box_error": error}, switches, horizon)


def turning(dimension: int, turns: float, *, horizon: int = HORIZON, size: int = ARMS) -> LinearSetting:
    """Arms drawn from the sphere, and a theta that turns steadily, so many times in all.

    >>> round(turning(5, 1.0).path, 2)
    5.03
    """
    return _turning({"dimension": dimension, "size": size}, turns, horizon)


def turning_on_box(dimension: int, error: float, turns: float, *, horizon: int = HORIZON) -> LinearSetting:
    """The same on a cube, discretised with this error."""
    return _turning({"dimension": dimension, "box_error": error}, turns, horizon)


def one_switch(dimension: int) -> LinearSetting:
    """The linear world that settings are tuned on: switch and rounds are those of the paper's environment 1."""
    return flipping(dimension, (SWITCH,))


def _flipping(arms: dict[str, Any], switches: Sequence[int], horizon: int) -> LinearSetting:
    settings = {**arms, "horizon": horizon, "norm": NORM, "switches": list(switches), "kind": "flip"}
    return LinearSetting(SWITCHING, settings, FLIP * len(switches))


def _turning(arms: dict[str, Any], turns: float, horizon: int) -> LinearSetting:
    speed = 2 * math.pi * turns / horizon
    settings = {**arms, "horizon": horizon, "norm": NORM, "speed": speed}
    return LinearSetting(DRIFTING, settings, (horizon - 1) * FLIP * math.sin(speed / 2))


LINEAR_PREFIX = "linear/"
SPHERE_DIMENSION, BOX_DIMENSION = 5, 2
BOX_ERROR = 0.1  # 841 arms
SPHERE_SEEDS = EVALUATION.take(25)
BOX_SEEDS = EVALUATION.take(10)  # a run of some rivals takes seconds there
PREVIEW_ROUNDS, PREVIEW_ERROR = 2_000, 0.3  # 100 arms
TOLD_THE_PATH = (
    policies.DiscountedLinUCB,
    policies.SlidingWindowLinUCB,
    policies.RestartLinUCB,
    policies.LinearExp3,
)
CHOOSE_SIZES = (policies.SlidingWindowLinUCB, policies.RestartLinUCB, policies.LinearExp3)


def _theory(label: str, policy: type[policies.Policy], settings: Mapping[str, Any]) -> PolicySpec:
    return PolicySpec(label + THEORY_ENDING, policy.__name__, written_out(policy.__name__, settings))


# Rivals of Table 1 that are told nothing of the world.
UNTOLD_RIVALS = (
    *(
        _theory(f"{policies.policy_label(base)}+BOB", policies.BanditOverBandit, {"base": base.__name__})
        for base in CHOOSE_SIZES
    ),
    _theory(
        "LinUCB+MASTER",
        policies.Master,
        {"base": policies.LinUCB.__name__, "mode": "theory", "base_settings": {"beta": "ridge"}},
    ),
)
LINUCB = _theory("LinUCB", policies.LinUCB, {})  # never forgets: its bound is for a theta that stays
UNIFORM = PolicySpec("Uniform", policies.Uniform.__name__, written_out(policies.Uniform.__name__, {}))


def theory_rivals(path: float) -> tuple[PolicySpec, ...]:
    """All rivals of Table 1 with the sizes of their theory, where theta moves this far.

    >>> [rival.settings["variation"] for rival in theory_rivals(1.6) if "variation" in rival.settings]
    [1.6, 1.6, 1.6, 1.6]
    """
    told = (_theory(policies.policy_label(policy), policy, {"variation": path}) for policy in TOLD_THE_PATH)
    return (*told, *UNTOLD_RIVALS)


def tuned_policies(dimension: int) -> tuple[PolicySpec, ...]:
    """All policies that were tuned in linear worlds of this dimension."""
    labels = tuned_settings(LINEAR_FILE)[f"d={dimension}"]
    return tuple(tuned_spec(label, dimension, file=LINEAR_FILE) for label in labels)


def _policies(path: float, dimension: int) -> tuple[PolicySpec, ...]:
    """Every row once: where a search found nothing better than the row it began with, that row stands for both."""
    first = (ADA_OPKB, ADA_OPKB_PUBLISHED, *theory_rivals(path), LINUCB)
    tuned = tuple(p for p in tuned_policies(dimension) if all(_played(p) != _played(other) for other in first))
    return (*first, *tuned, AUTOBANDIT, CALIBRATED_OPKB, UNIFORM)


def _played(policy: PolicySpec) -> tuple[str, Mapping[str, Any]]:
    return policy.name, policy.settings


def _experiment(name: str, title: str, world: LinearSetting) -> Experiment:
    dimension = int(world.settings["dimension"])
    return Experiment(
        id=f"{LINEAR_PREFIX}{name}/d{dimension}",
        title=f"{title}, d = {dimension}",
        environment=world.environment,
        settings=world.settings,
        policies=_policies(world.path, dimension),
        seeds=BOX_SEEDS if "box_error" in world.settings else SPHERE_SEEDS,
    )


def _experiments(rounds: int, error: float) -> dict[str, Experiment]:
    """All of them: switches come at the same share of `rounds`, and drift makes one turn."""

    def at(*switches: int) -> list[int]:
        return [switch * rounds // HORIZON for switch in switches]

    d, box = SPHERE_DIMENSION, BOX_DIMENSION
    return by_id(
        (
            _experiment("one-switch", "One switch", flipping(d, at(SWITCH), horizon=rounds)),
            _experiment("two-switches", "Two switches", flipping(d, at(1_500, 5_000), horizon=rounds)),
            _experiment("drift", "One turn of drift", turning(d, 1.0, horizon=rounds)),
            _experiment("box-one-switch", "Box, one switch", flipping_on_box(box, error, at(SWITCH), horizon=rounds)),
            _experiment("box-drift", "Box, one turn of drift", turning_on_box(box, error, 1.0, horizon=rounds)),
        )
    )


LINEAR = _experiments(HORIZON, BOX_ERROR)
_PREVIEW = _experiments(PREVIEW_ROUNDS, PREVIEW_ERROR)


def quick_linear_world(experiment: Experiment) -> Experiment:
    """A short run: two seeds, fewer rounds, which the title says, and a coarser box."""
    short = quick(_PREVIEW[experiment.id])
    return dataclasses.replace(short, title=f"{short.title} (T = {PREVIEW_ROUNDS:,})")


SEEDS = EVALUATION.take(6)
ROUNDS = (2_000, 4_000, 8_000, 16_000, 32_000)
SEGMENTS = (2, 4, 8, 16, 32)  # from 2: with one segment V_T is 0, and bounds in it have no logarithm
TURNS = (0.25, 0.5, 1.0, 2.0, 4.0)
DIMENSIONS = (2, 3, 4, 5, 6)
LONG_HORIZON = 16_000  # of the sweeps over L_T and V_T
ARMS_PER_DIMENSION = 3  # N is this to the power d along the sweeps over d
LINEAR_GROWTH_PREFIX = f"{LINEAR_PREFIX}growth/"
OURS = (ADA_OPKB, ADA_OPKB_PUBLISHED)
_STEADY = PowerLaw(rounds=1 / 2, dimension=1.0)
_IN_SEGMENTS = PowerLaw(rounds=1 / 2, segments=1 / 2, dimension=1.0)
_IN_VARIATION = PowerLaw(rounds=2 / 3, variation=1 / 3, dimension=2 / 3)
_FORGETTING = Bound.both(
    PowerLaw(rounds=3 / 4, variation=1 / 4, dimension=7 / 8),
    PowerLaw(rounds=3 / 4, variation=1 / 4, gain=7 / 8),
    _STEADY,
)
TABLE_1: Mapping[str, Bound] = {
    "ADA-OPKB": Bound((*ADA_OPKB_BOUND.jumps, _IN_SEGMENTS), (*ADA_OPKB_BOUND.drifts, _IN_VARIATION, _STEADY)),
    "D-LinUCB": _FORGETTING,
    "SW-LinUCB": _FORGETTING,
    "RestartUCB": _FORGETTING,
    "Restart-Adv": Bound.both(_IN_VARIATION, _STEADY),
    "SW-LinUCB+BOB": _FORGETTING,
    "RestartUCB+BOB": _FORGETTING,
    # of two terms, d^(2/3) T^(2/3) V^(1/3) and d^(1/2) T^(3/4), the larger exponent of each
    "Restart-Adv+BOB": Bound.both(PowerLaw(rounds=3 / 4, variation=1 / 3, dimension=2 / 3), _STEADY),
    "LinUCB+MASTER": Bound(
        (_IN_SEGMENTS, PowerLaw(rounds=1 / 2, segments=1 / 2, gain=1.0)),
        (
            PowerLaw(rounds=2 / 3, variation=1 / 3, dimension=1.0),
            PowerLaw(rounds=2 / 3, variation=1 / 3, gain=1.0),
            _STEADY,
        ),
    ),
}


def _swept(world: LinearSetting) -> SweptWorld:
    settings, drifts = world.settings, "switches" not in world.settings
    segments = settings["horizon"] if drifts else 1 + len(settings["switches"])
    size = WorldSize(settings["horizon"], segments, world.path, settings["dimension"], settings["size"])
    return SweptWorld(world.environment, settings, size, drifts)


def _jumping(segments: int, horizon: int, dimension: int = SPHERE_DIMENSION, **arms: int) -> LinearSetting:
    switches = [horizon * k // segments for k in range(1, segments)]
    return flipping(dimension, switches, horizon=horizon, **arms)


def _sweeps(
    *, rounds: tuple[int, ...], long: int, dimensions: tuple[int, ...], seeds: tuple[int, ...]
) -> tuple[Sweep, ...]:
    """Two sweeps over T and two over d, where theta jumps and where it turns; one over L_T, one over V_T."""

    def sweep(name: str, title: str, symbol: str, rate: float, points: Mapping[float, LinearSetting]) -> Sweep:
        return make_sweep(
            f"{LINEAR_GROWTH_PREFIX}{name}",
            title,
            symbol,
            rate,
            {value: _swept(world) for value, world in points.items()},
            policies=lambda world: (*OURS, *theory_rivals(world.size.variation)),
            seeds=seeds,
            rows=TABLE_1,
        )

    def by_dimension(world: Callable[..., LinearSetting]) -> dict[float, LinearSetting]:
        return {d: world(d, size=ARMS_PER_DIMENSION**d) for d in dimensions}

    horizon = min(long, HORIZON)
    d = SPHERE_DIMENSION
    return (
        sweep("rounds", "Rounds, four segments", "T", 1 / 2, {t: _jumping(4, t) for t in rounds}),
        sweep("segments", "Segments", "L_T", 1 / 2, {s: _jumping(s, long) for s in SEGMENTS}),
        sweep(
            "dimension",
            "Dimension, four segments",
            "d",
            1.0,
            by_dimension(lambda d, size: _jumping(4, horizon, d, size=size)),
        ),
        sweep(
            "drifting-rounds",
            "Rounds, one turn of drift",
            "T",
            2 / 3,
            {t: turning(d, 1.0, horizon=t) for t in rounds},
        ),
        sweep("variation", "Turns of drift", "V_T", 1 / 3, {v: turning(d, v, horizon=long) for v in TURNS}),
        sweep(
            "drifting-dimension",
            "Dimension, one turn of drift",
            "d",
            2 / 3,
            by_dimension(lambda d, size: turning(d, 1.0, horizon=horizon, size=size)),
        ),
    )


LINEAR_SWEEPS = _sweeps(rounds=ROUNDS, long=LONG_HORIZON, dimensions=DIMENSIONS, seeds=SEEDS)
LINEAR_GROWTH: dict[str, Experiment] = by_id(e for sweep in LINEAR_SWEEPS for e in sweep.experiments)
# Short runs: two seeds, at most 8,000 rounds, 2,000 where the rounds stay, and no sphere of more than 81 arms.
QUICK_LINEAR_SWEEPS = _sweeps(rounds=ROUNDS[:3], long=ROUNDS[0], dimensions=DIMENSIONS[:3], seeds=SEEDS[:2])
_QUICK_POINTS = by_id(e for sweep in QUICK_LINEAR_SWEEPS for e in sweep.experiments)


def quick_linear_point(experiment: Experiment) -> Experiment | None:
    """The point of a sweep as the quick sweeps have it; None if they leave it out."""
    return _QUICK_POINTS.get(experiment.id)


FACTOR = 2.0  # of the best rival's regret: what is taken for keeping up with it
_RIVALS = tuple(rival.label.removesuffix(THEORY_ENDING) for rival in theory_rivals(1.0))
RIVAL_SETTINGS = {"told the path of theta": THEORY_ENDING, "tuned alike": TUNED_ENDING}


def judge_linear(results: Results) -> ClaimsJudgement | None:
    """The claims about linear bandits, if anything they are about has been played."""
    if {*LINEAR, *LINEAR_GROWTH}.isdisjoint(results.cells["experiment"]):
        return None
    sweeps = sweeps_of(results.experiments, LINEAR_SWEEPS)
    return ClaimsJudgement("linear.md", claims=tuple(check_linear_claims(results, sweeps)))


def check_linear_claims(results: Results, sweeps: Sequence[Sweep] = LINEAR_SWEEPS) -> list[Claim]:
    """Every claim, checked against what was played; what was not is "not run".

    LB-1 and LB-2 are what the paper says; LB-3 and LB-4 ask whether the order of its bounds is that of regrets.

    >>> from driftbandits.experiments.results import collect
    >>> [(claim.id, claim.verdict) for claim in check_linear_claims(collect([], []))]
    [('LB-1', 'not run'), ('LB-2', 'not run'), ('LB-3', 'not run'), ('LB-4', 'not run')]
    """
    ours, rivals = [policy.label for policy in OURS], [rival + THEORY_ENDING for rival in _RIVALS]
    regrets = _regrets(results.cells)
    return [
        Claim(
            "LB-1",
            "Table 1",
            "With the linear kernel, ADA-OPKB is nearly minimax optimal: its regret grows no faster than d sqrt(L_T T) "
            "where theta jumps, and than d^(2/3) V_T^(1/3) T^(2/3) where it drifts, up to logarithms.",
            tuple(check_growth("LB-1", label, results, sweep, label) for label in ours for sweep in sweeps),
        ),
        Claim(
            "LB-2",
            "Table 1",
            "With the sizes of its theory, the regret of every linear rival grows no faster than its own bound.",
            tuple(
                check_growth("LB-2", "sizes of the theory", results, sweep, label)
                for label in rivals
                for sweep in sweeps
            ),
        ),
        Claim(
            "LB-3",
            "Table 1",
            "Table 1 read as a ranking, which is our reading: ADA-OPKB keeps up with the linear rivals, with at most "
            f"{FACTOR:g} times the regret of the best one.",
            tuple(
                _check_factor(f"{label} against rivals {settings}", experiment, regrets, label, ending)
                for label in ours
                for settings, ending in RIVAL_SETTINGS.items()
                for experiment in LINEAR.values()
            ),
        ),
        Claim(
            "LB-4",
            "Table 1",
            "The same reading: of the policies in the linear half of Table 1 that are told nothing, ADA-OPKB has the "
            "least regret.",
            tuple(
                _check_below(experiment, regrets, label, rival.label)
                for label in ours
                for experiment in LINEAR.values()
                for rival in UNTOLD_RIVALS
            ),
        ),
    ]


Regrets = Mapping[tuple[str, str], "pd.Series[float]"]


def _regrets(cells: pd.DataFrame) -> Regrets:
    """Final regrets over seeds, by experiment and label."""
    groups = cells.groupby(["experiment", "policy"], sort=False)
    return {(str(e), str(p)): group.set_index("seed")["regret"] for (e, p), group in groups}


def _check_factor(variant: str, experiment: Experiment, regrets: Regrets, label: str, ending: str) -> Check:
    """`label` against the best of the rivals whose labels end in `ending`."""
    mine = regrets.get((experiment.id, label))
    labels = [rival + ending for rival in _RIVALS]
    rivals = {rival: regrets[experiment.id, rival] for rival in labels if (experiment.id, rival) in regrets}
    if mine is None or not rivals:
        statement = f"{label} minus {FACTOR:g} times the best rival, {experiment.title}: below 0"
        return make_check("LB-3", [variant], statement, t_interval([]), "not run", unit="regret")
    best = min(rivals, key=lambda rival: float(rivals[rival].mean()))
    seeds = mine.index.intersection(rivals[best].index)
    ours, theirs = mine.loc[seeds], rivals[best].loc[seeds]
    interval = t_interval((ours - FACTOR * theirs).to_numpy())
    ratio = float(ours.mean()) / float(theirs.mean()) if len(seeds) else math.nan
    statement = f"{label} minus {FACTOR:g} times {best}, {experiment.title}: below 0"
    notes = [f"{ratio:.2f} times"]
    return make_check("LB-3", [variant], statement, interval, judge_below(interval), unit="regret", notes=notes)


def _check_below(experiment: Experiment, regrets: Regrets, label: str, rival: str) -> Check:
    nothing: pd.Series[float] = pd.Series(dtype="float64")
    mine, theirs = (regrets.get((experiment.id, name), nothing) for name in (label, rival))
    seeds = mine.index.intersection(theirs.index)
    interval = t_interval((mine.loc[seeds] - theirs.loc[seeds]).to_numpy())
    verdict: CheckVerdict = judge_below(interval) if len(seeds) else "not run"
    statement = f"{label} minus {rival}, {experiment.title}: below 0"
    return make_check("LB-4", [label], statement, interval, verdict, unit="regret")


def linear_blocks(context: StudyContext, experiments: Sequence[Experiment]) -> list[Block]:
    """One figure of all rankings, with one table per world."""
    return rankings_named("linear", context, experiments)


def linear_growth_blocks(context: StudyContext, experiments: Sequence[Experiment]) -> list[Block]:
    """Slopes of all policies, and their regrets."""
    sweeps = sweeps_of(context.results.experiments, LINEAR_SWEEPS)
    return sweep_blocks(context, sweeps, experiments, name="linear-growth", rate="minimax exponent")


LINEAR_BANDITS = Group(
    name="linear",
    title="Linear bandits",
    lead="Rewards that are linear in the arms, on a sphere (d = 5, 100 arms) and on a box with the paper’s "
    "discretisation (d = 2, error 0.1, 841 arms). ADA-OPKB has the linear kernel. Rivals play with the sizes of their "
    "theory, told how far theta moves, and with settings found by the same search on one switch.",
    experiments=tuple(LINEAR.values()),
    judge=judge_linear,
    blocks=linear_blocks,
    quick=quick_linear_world,
    played="always",
)
LINEAR_TABLE_1 = Group(
    name="linear/growth",
    title="Table 1 for linear bandits: how fast regret grows",
    lead="Each row of the linear half of Table 1 against its own bound, in the rounds T, the segments L_T, the "
    "variation V_T and the dimension d. ADA-OPKB’s bounds, d √(L_T T) and d^(2/3) V_T^(1/3) T^(2/3), are those that "
    "nobody can beat but for logarithms. Rivals have the sizes of their theory.",
    experiments=tuple(LINEAR_GROWTH.values()),
    judge=judge_linear,
    blocks=linear_growth_blocks,
    quick=quick_linear_point,
    played="always",
    anchor="linear-growth",
)
