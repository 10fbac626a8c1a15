"""Sweeps: experiments that differ in one quantity, how fast regret grows along them, and how fast Table 1 allows.

symbol   name         meaning
T        rounds
L_T      segments     1 + number of changes
V_T      variation    how far the rewards move in all
d, N     dimension, arms
gamma_T  gain         information gain (`driftbandits.information_gain`); known only once the arms are built
x        value        the swept quantity: T, L_T, d, log N, or turns of the drift, to which V_T is proportional
Reg(x)   regret       final regret of one run
s        slope        of log Reg(x) over log x, by least squares
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from driftbandits._util.intervals import ConfidenceInterval, t_interval
from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.sklearn_kernels import NeuralTangentKernel
from driftbandits.design import information_gain
from driftbandits.environments import Environment
from driftbandits.experiments.building import build_policy, build_world
from driftbandits.experiments.results import Results
from driftbandits.experiments.specs import Experiment, PolicySpec
from driftbandits.neural.model import on_sphere
from driftbandits.policies import Policy
from driftbandits.policies.opkb.opkb import PaperBlockPolicy
from driftbandits.policies.opkb.opnn import PAPER_DEPTH, NeuralBlockPolicy
from driftbandits.types import Floats
from reproduction.catalogue import by_id
from reproduction.claims import Check, judge_at_most, make_check


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
    """A term of a bound without explicit logarithms of T: the exponents of what it is made of."""

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


Terms = tuple[PowerLaw, ...]


@dataclass(frozen=True)
class Bound:
    """A row of Table 1: the terms of what is least of its bound where rewards jump a few times, and where they drift.

    A term that may be read with gamma_T or with d stands here in both readings.
    """

    jumps: Terms
    drifts: Terms

    @classmethod
    def both(cls, *terms: PowerLaw) -> Bound:
        """The same for both."""
        return cls(terms, terms)


OPKB_LAW = PowerLaw(rounds=1 / 2, log_arms=1 / 2, gain=1 / 2)  # sqrt(g T) with g = gamma_T log N
# sqrt(g L_T T), and (g V_T)^(1/3) T^(2/3) + sqrt(g T)
ADA_OPKB_BOUND = Bound(
    (dataclasses.replace(OPKB_LAW, segments=1 / 2),),
    (PowerLaw(rounds=2 / 3, variation=1 / 3, log_arms=1 / 3, gain=1 / 3), OPKB_LAW),
)


def row_of(label: str, rows: Mapping[str, Bound]) -> Bound:
    """The row that a label stands for, whatever its settings.

    >>> row_of("SW-GPUCB (theory)", {"SW-GPUCB": Bound.both(PowerLaw(3 / 4))}).jumps[0].rounds
    0.75
    """
    return rows[label.partition(" (")[0]]


@dataclass(frozen=True)
class Sweep:
    """Experiments that differ in one quantity: its symbol, its values, and its exponent in the paper's rate.

    `bounds` has the terms of the bounds of policies that have one, by label, and `sizes` what they are about, by value.
    """

    id: str
    title: str
    symbol: str
    values: tuple[float, ...]
    rate: float
    experiments: tuple[Experiment, ...]
    bounds: Mapping[str, Terms] = field(default_factory=dict)
    sizes: Mapping[float, WorldSize] = field(default_factory=dict)

    @property
    def labels(self) -> list[str]:
        """All that play along it, each once."""
        return list(dict.fromkeys(policy.label for e in self.experiments for policy in e.policies))


@dataclass(frozen=True)
class SweptWorld:
    """A world of a sweep: its name, its settings, and what bounds are about."""

    environment: str
    settings: dict[str, Any]
    size: WorldSize
    drifts: bool


def make_sweep(
    name: str,
    title: str,
    symbol: str,
    rate: float,
    points: Mapping[float, SweptWorld],
    *,
    policies: Callable[[SweptWorld], tuple[PolicySpec, ...]],
    seeds: tuple[int, ...],
    rows: Mapping[str, Bound],
) -> Sweep:
    """The experiments at these points, and the bounds that the `rows` of Table 1 give their policies.

    Numbers of arms are swept by their logarithm, and named as they are.
    """
    in_arms = symbol == LOG_ARMS
    experiments = tuple(
        Experiment(
            f"{name}/{world.size.arms if in_arms else value:g}",
            f"{title}: N = {world.size.arms}" if in_arms else f"{title}: {symbol} = {value:,g}",
            world.environment,
            world.settings,
            policies(world),
            seeds,
        )
        for value, world in points.items()
    )
    sweep = Sweep(name, title, symbol, tuple(points), rate, experiments)
    drifting = any(world.drifts for world in points.values())
    bounds = {label: row_of(label, rows) for label in sweep.labels}
    return dataclasses.replace(
        sweep,
        bounds={label: bound.drifts if drifting else bound.jumps for label, bound in bounds.items()},
        sizes={value: world.size for value, world in points.items()},
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


LEAST_POINTS_OF_SWEEP = 3
LOG_ARMS = "log N"
FIXED_GAIN = ("L_T", "V_T")  # arms and rounds stay the same along these


@dataclass(frozen=True)
class Growth:
    """Growth of one policy's regret along a sweep.

    `slope` is the mean of the slopes of single seeds; `late` the same over the last half of the points, where the
    first blocks weigh less; `allowed` the slope of the paper's bound on the same `values`.
    """

    slope: ConfidenceInterval
    late: float
    allowed: float
    values: tuple[float, ...]


def measure_growth(cells: pd.DataFrame, sweep: Sweep, policy: str) -> Growth | None:
    """Growth of the regret of the policy with this label, from a table of runs; None with fewer than three points.

    Slopes are fitted seed by seed, and the interval is Student's over them. The bound is about a single run, not about
    the mean of many; and the runs of one seed share their arms along the sweep, which makes points depend on each
    other, but slopes of different seeds do not.
    """
    regrets = regret_by_seed(cells, sweep, policy)
    if regrets.shape[1] < LEAST_POINTS_OF_SWEEP:
        return None
    values = tuple(float(value) for value in regrets.columns)
    table = regrets.to_numpy(dtype=np.float64)
    half = len(values) // 2
    return Growth(
        slope=t_interval(log_slopes(values, table)),
        late=float(np.mean(log_slopes(values[half:], table[:, half:]))) if len(table) else math.nan,
        allowed=allowed_slope(sweep, policy, values),
        values=values,
    )


def regret_by_seed(cells: pd.DataFrame, sweep: Sweep, policy: str) -> pd.DataFrame:
    """Final regret, one row per seed and one column per value of the sweep, without gaps.

    Of an unfinished sweep: the points played on at least half as many seeds as the most played one, and the seeds that
    have them all. A run without any regret has no logarithm and counts as not played.
    """
    value_of = {e.id: value for value, e in zip(sweep.values, sweep.experiments, strict=True)}
    here = cells[(cells["policy"] == policy) & cells["experiment"].isin(list(value_of)) & (cells["regret"] > 0)]
    points = here["experiment"].map(value_of).astype(np.float64)
    table = here.assign(value=points).pivot(index="seed", columns="value", values="regret")
    played = table.notna().sum()
    kept: pd.DataFrame = table.loc[:, 2 * played >= played.max()]
    return kept.dropna()


def log_slopes(values: Sequence[float], regrets: Floats) -> Floats:
    """Least-squares slope of log regret over log value for every row of `regrets`, shape (rows, len(values)).

    >>> log_slopes([1.0, 2.0, 4.0], np.array([[3.0, 6.0, 12.0], [5.0, 5.0, 5.0]])).round(6).tolist()
    [1.0, 0.0]
    """
    x = np.log(np.asarray(values, dtype=np.float64))
    x = x - x.mean()
    slopes: Floats = np.log(regrets) @ x / (x @ x)
    return slopes


def allowed_slope(sweep: Sweep, policy: str, values: Sequence[float]) -> float:
    """Slope of the policy's bound on these values of the sweep; of one without a bound, the exponent of the sweep.

    A sum grows no faster than the steepest of its terms, and how large each is is not known: so the steepest counts,
    which a bound never exceeds. A power of gamma_T counts with its growth on the very arms and horizons. Other
    logarithms that the paper hides are left out, and would allow a little more.
    """
    if policy not in sweep.bounds:
        return sweep.rate
    return max(_slope_of(term, sweep, policy, values) for term in sweep.bounds[policy])


def _slope_of(term: PowerLaw, sweep: Sweep, policy: str, values: Sequence[float]) -> float:
    own = np.log([term.at(sweep.sizes[value]) for value in values])
    if term.gain and sweep.symbol not in FIXED_GAIN:
        own = own + term.gain * np.log(_gains(sweep, policy, values))
    return float(log_slopes(values, np.exp(own)[None, :])[0])


def _gains(sweep: Sweep, policy: str, values: Sequence[float]) -> list[float]:
    experiments = dict(zip(sweep.values, sweep.experiments, strict=True))
    specs = [next(p for p in experiments[value].policies if p.label == policy) for value in values]
    return [information_gain_of(experiments[value], spec) for value, spec in zip(values, specs, strict=True)]


def information_gain_of(experiment: Experiment, spec: PolicySpec) -> float:
    """gamma_T of the arms of the experiment's first seed, in the features and with the regulariser of the policy.

    Arms are drawn anew for every seed, but the growth of gamma_T hardly depends on the draw. A network counts with its
    tangent kernel, scaled to k(x, x) = 1 on the unit sphere; a regression with its ridge in the place of sigma.
    """
    what = json.dumps([experiment.environment, experiment.settings, experiment.seeds[0]], sort_keys=True)
    return _gain(what, json.dumps([spec.name, spec.settings, spec.kernel], sort_keys=True))


@lru_cache(maxsize=1024)  # claims and figures ask for the same
def _gain(world_key: str, policy_key: str) -> float:
    *_, seed = json.loads(world_key)
    name, policy_settings, kernel = json.loads(policy_key)
    spec = PolicySpec(name, name, policy_settings, kernel)
    world = _world(world_key)
    policy = build_policy(spec, world, seed)
    features = _tangent_features(policy.arms, spec) if isinstance(policy, NeuralBlockPolicy) else policy.arms.features
    return information_gain(features, horizon=world.horizon, sigma=_regulariser(policy, spec))


@lru_cache(maxsize=2)  # long worlds are large, and the policies of one come one after the other
def _world(key: str) -> Environment:
    environment, settings, seed = json.loads(key)
    return build_world(environment, settings, seed)


def _regulariser(policy: Policy, spec: PolicySpec) -> float:
    if isinstance(policy, PaperBlockPolicy):
        return policy.constants.sigma
    base = spec.settings.get("base_settings", {})
    return float(spec.settings["ridge"] if "ridge" in spec.settings else base["ridge"])


def _tangent_features(arms: ArmSet, spec: PolicySpec) -> Floats:
    kernel = NeuralTangentKernel(depth=int(spec.settings.get("depth", PAPER_DEPTH)))
    return ArmSet(on_sphere(arms.points), kernel=kernel).features  # an ArmSet scales its kernel to k(x, x) <= 1


def check_growth(claim: str, settings: str, results: Results, sweep: Sweep, label: str) -> Check:
    """The slope of `label` along the sweep against that of its bound on the same points."""
    growth = measure_growth(results.cells, sweep, label)
    what = f"{label}, slope of log regret over log {sweep.symbol} ({sweep.title})"
    brief = f"{label} in {sweep.symbol} ({sweep.title})"
    if growth is None:
        statement = f"{what}: at most that of its bound"
        nothing = t_interval([])
        return make_check(
            claim,
            [settings],
            statement,
            nothing,
            "not run",
            unit="slope",
            notes=["fewer than three points"],
            brief=brief,
        )
    points, lasting = len(growth.values), sum(any(p.label == label for p in e.policies) for e in sweep.experiments)
    found = [
        f"slope {growth.late:.2f} over the last {points - points // 2} of {points} points",
        *([f"the sweep has {lasting} points"] if points < lasting else []),
    ]
    verdict = judge_at_most(growth.slope, growth.allowed)
    statement = f"{what}: at most {growth.allowed:.2f}"
    return make_check(claim, [settings], statement, growth.slope, verdict, unit="slope", notes=found, brief=brief)
