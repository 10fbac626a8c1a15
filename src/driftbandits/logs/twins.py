"""Twins: worlds sampled from what a log says of its arms over time, in which policies play: does adapting pay?

What the log says is a Gaussian process on bins.

symbol  name      shape     meaning
F       features  (N, R)    arms read the coordinates: f_b = level + F x_b; the last column is common to all arms
x_b               (R,)      coordinates in bin b: x_0 ~ N(0, s I), and x_b - x_{b-1} ~ N(0, q rows I)
q, s    rate, start         in units of the noise's variance
fresh                       bins in which a world begins anew: x_b ~ N(0, s I) whatever was before
m_b, P_b                    mean and covariance of x_b given the bins up to b

Arms are cells here: where there are segments, an arm in a segment. Unlike in `estimators.predict`, they learn from
each other as far as their kernel says. Hypotheses are a kernel (that of the arms, or none), a rate, a start, and fresh
bins or none; each is weighed by its evidence, with the noise at its likeliest.
A log of more than `MOST_ROUNDS` rows has twins of so many rounds, of `scale` rows each: the whole path of the log, and
as reward the mean of `scale` rewards, whose noise is smaller by its root. A stretch of the log would not do: most
stretches have no change in them, and what learning costs at first would be paid again in each. Fixed arms need no
play, and are chosen and valued on the whole path.

Worlds are *sampled*: forward filtering, then backward sampling. The mean path would be too smooth, and a policy in it
would have too easy a life.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import bdtrik

from driftbandits._util.intervals import ConfidenceInterval, t_interval
from driftbandits._util.seeding import stream
from driftbandits.arms.arm_set import ArmSet
from driftbandits.environments import Environment, Tabular
from driftbandits.environments.noise import BernoulliNoise, Noise, TruncatedGaussianNoise
from driftbandits.errors import DoubtWarning
from driftbandits.logs.estimators import Bins
from driftbandits.logs.log import Log, cell_arms, cell_count, is_masked, offered
from driftbandits.logs.movement import Movement
from driftbandits.policies import GPUCB, AutoBandit, CalibratedOPKB, Policy, SlidingWindowGPUCB
from driftbandits.policies.length_scales import leading_features
from driftbandits.simulation import simulate
from driftbandits.types import Bools, Floats, Ints

BINS = 300
DRIFTS = (0.1, 1.0, 10.0, 100.0, 1_000.0)  # variance of a walk over the whole log; beside 0
STARTS = (0.01, 0.3, 10.0)
LEVEL_SHARE = 0.5  # of the variance of an arm, for what all arms share
MOST_FEATURES = 80


MOST_ROUNDS = 20_000
TWINS = 6
WINDOWS = (100, 400, 1_600, 6_400)
_WINDOW_TWINS = 2  # other twins, on which the window is chosen
_INSIDE = 0.98  # means of truncated noise lie strictly between -1 and 1
_LEAST_DEVIATION = 0.01
FIXED = "best fixed arm"
_CLASSES: dict[str, type[Policy]] = {
    "AutoBandit": AutoBandit,
    "CalibratedOPKB": CalibratedOPKB,
    "GPUCB": GPUCB,
    "SlidingWindowGPUCB": SlidingWindowGPUCB,
}


@dataclass(frozen=True)
class Hypothesis:
    """How the world may be: `features` (N, R), `rate`, `start`, and the bins in which it begins anew."""

    kernel: str
    features: Floats
    rate: float
    start: float
    fresh: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        """What it says of the world: "still", "drifts" or "switches"."""
        return "switches" if self.fresh else "drifts" if self.rate else "still"


@dataclass(frozen=True)
class Fitted:
    """A hypothesis and the log: log evidence, variance of the noise, m (bins, R) and P (bins, R, R)."""

    hypothesis: Hypothesis
    evidence: float
    noise: float
    mean: Floats
    covariance: Floats


def hypotheses(log: Log, movement: Movement, fresh: Sequence[int]) -> list[Hypothesis]:
    """What is tried where a world moves like this: the changes found, with drift if there is some, or rates of drift.

    Where nothing is seen to move it may stand still, or drift too slowly to be seen.
    """
    rates = (0.0,) if fresh and not movement.slopes else DRIFTS if movement.kind != "still" else (0.0, *DRIFTS)
    return [
        Hypothesis(kernel, features, rate / len(log), start, tuple(fresh))
        for kernel, features in _kernels(log).items()
        for start in STARTS
        for rate in rates
    ]


def _kernels(log: Log) -> dict[str, Floats]:
    """Features of the arms' kernel, if there is one, and of independent arms, if they are few."""
    size = cell_count(log)
    kernels: dict[str, Floats] = {}
    if log.arms is not None or log.segment is not None:
        own = leading_features(cell_arms(log).features, MOST_FEATURES)
        if own is not None:
            kernels["given"] = own
    if not kernels or size <= 2 * MOST_FEATURES:
        kernels["independent"] = np.eye(size)
    return {
        name: np.hstack([math.sqrt(1.0 - LEVEL_SHARE) * phi, np.full((size, 1), math.sqrt(LEVEL_SHARE))])
        for name, phi in kernels.items()
    }


def fit(bins: Bins, hypothesis: Hypothesis, *, keep: bool = True) -> Fitted:
    """Filter forward; without `keep` only the evidence is kept."""
    features, start = hypothesis.features, hypothesis.start
    width = features.shape[1]
    level = _level(bins)
    mean, covariance = np.zeros(width), start * np.eye(width)
    means, covariances = np.zeros((len(bins), width)), np.zeros((len(bins) if keep else 0, width, width))
    logs = errors = 0.0
    for b in range(len(bins)):
        if b in hypothesis.fresh:
            mean, covariance = np.zeros(width), start * np.eye(width)
        elif b and hypothesis.rate:
            covariance = covariance + hypothesis.rate * float(bins.rows[b - 1]) * np.eye(width)
        entries = slice(bins.firsts[b], bins.firsts[b + 1])
        if entries.start < entries.stop:
            rows = features[bins.cell[entries]]
            shared = covariance @ rows.T
            system = rows @ shared + np.diag(1.0 / bins.count[entries])
            factor = cho_factor(system, lower=True)
            error = bins.mean[entries] - level - rows @ mean
            solved = cho_solve(factor, error)
            mean = mean + shared @ solved
            covariance = covariance - shared @ cho_solve(factor, shared.T)
            covariance = 0.5 * (covariance + covariance.T)
            errors += float(error @ solved)
            logs += 2.0 * float(np.log(np.diag(factor[0])).sum()) + float(np.log(bins.count[entries]).sum())
        means[b] = mean
        if keep:
            covariances[b] = covariance
    number = float(bins.count.sum())
    within = float(bins.squares.sum() - (bins.count * np.square(bins.mean)).sum())  # of rewards about their bins' means
    noise = max((errors + max(within, 0.0)) / number, 1e-12)
    changes = len(hypothesis.fresh) * math.log(len(bins))  # each might have been in any bin
    return Fitted(hypothesis, -0.5 * (logs + number * math.log(noise)) - changes, noise, means, covariances)


def _level(bins: Bins) -> float:
    return float(bins.count @ bins.mean / bins.count.sum())


def weights_of(fitted: Sequence[Fitted]) -> Floats:
    """Of hypotheses, by their evidence; those that stand still, drift and switch begin with a third each."""
    logs = np.array([one.evidence for one in fitted])
    kinds = np.array([one.hypothesis.kind for one in fitted])
    logs = logs - np.log([np.count_nonzero(kinds == kind) for kind in kinds])
    shares = np.exp(logs - logs.max())
    return np.asarray(shares / shares.sum())


def sample(bins: Bins, fitted: Fitted, rng: np.random.Generator, number: int = 1) -> Floats:
    """Worlds that may be, as mean rewards (number, bins, N)."""
    hypothesis = fitted.hypothesis
    path = np.empty((number, *fitted.mean.shape))
    deviation = math.sqrt(fitted.noise)
    last = len(bins) - 1
    for b in range(last, -1, -1):
        mean, covariance = fitted.mean[b], fitted.covariance[b]
        if b == last or b + 1 in hypothesis.fresh:
            path[:, b] = mean + _draw(covariance, deviation, rng, number)
        elif hypothesis.rate == 0.0:
            path[:, b] = path[:, b + 1]
        else:
            step = hypothesis.rate * float(bins.rows[b]) * np.eye(len(covariance))
            back = cho_solve(cho_factor(covariance + step, lower=True), covariance)
            rest = covariance - covariance @ back
            path[:, b] = mean + (path[:, b + 1] - mean) @ back + _draw(rest, deviation, rng, number)
    return np.asarray(_level(bins) + path @ hypothesis.features.T)


def _draw(covariance: Floats, deviation: float, rng: np.random.Generator, number: int) -> Floats:
    """Deviations of normal vectors, shape (number, R); eigenvalues below zero are rounding."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    scaled = rng.standard_normal((number, len(values))) * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(deviation * (scaled @ vectors.T))


def bands(bins: Bins, fitted: Sequence[Fitted], weights: Floats, rng: np.random.Generator, number: int) -> Floats:
    """Sampled worlds (number, bins, N), hypotheses in proportion to their weights: for means and bands of figures."""
    chosen: Ints = rng.choice(len(fitted), size=number, p=weights)
    drawn = [int(np.count_nonzero(chosen == k)) for k in range(len(fitted))]
    return np.concatenate([sample(bins, one, rng, times) for one, times in zip(fitted, drawn, strict=True) if times])


@dataclass(frozen=True)
class SharesOfSuccesses(Noise):
    """Means of `number` rewards of 0 or 1.

    >>> SharesOfSuccesses(4).sample(np.array([0.5, 0.5]), np.array([0.01, 0.5]))
    array([0. , 0.5])
    """

    number: int

    def sample(self, means: Floats, uniforms: Floats) -> Floats:
        """Shares F^-1(u)."""
        share = np.clip(means, 1e-12, 1.0 - 1e-12)
        found = np.ceil(bdtrik(uniforms, self.number, share))
        return np.asarray(np.clip(np.nan_to_num(found), 0.0, self.number) / self.number)

    def range(self, low: float, high: float) -> tuple[float, float]:
        """As of single rewards."""
        return BernoulliNoise().range(low, high)

    def deviation(self, means: Floats) -> Floats:
        """sqrt(m (1 - m) / number)."""
        return BernoulliNoise().deviation(means) / math.sqrt(self.number)


@dataclass(frozen=True)
class Player:
    """A policy of the twin: its class, and settings for the log's rounds."""

    policy: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Regrets:
    """Mean regret per round of every player, in the log's units: by twin (players: tuples of equal length)."""

    by_twin: Mapping[str, tuple[float, ...]]
    players: Mapping[str, Player]
    rounds: int
    order: tuple[int, ...]  # cells as the player prefers them who never changes: the first that is offered is played
    scale: int = 1  # rows of the log that a round stands for

    @property
    def fixed(self) -> int:
        """The cell this player likes best."""
        return self.order[0]

    def interval(self, name: str) -> ConfidenceInterval:
        """Mean over twins, with an interval; no regret is below 0."""
        found = t_interval(self.by_twin[name])
        return dataclasses.replace(found, low=max(found.low, 0.0))

    def ranked(self) -> list[str]:
        """Players, the least regret first."""
        return sorted(self.by_twin, key=lambda name: float(np.mean(self.by_twin[name])))


@dataclass(frozen=True)
class Twin:
    """How the log's rewards are turned into those of worlds: to [0, 1] if there are two, else to [-1, 1]."""

    low: float
    high: float
    two_valued: bool
    deviation: float
    scale: int = 1

    @property
    def reward_range(self) -> tuple[float, float]:
        """Of the worlds."""
        return (0.0, 1.0) if self.two_valued else (-1.0, 1.0)

    @property
    def unit(self) -> float:
        """What 1 in a world is in the log."""
        return (self.high - self.low) * (1.0 if self.two_valued else 0.5)

    def world(self, arms: ArmSet, means: Floats, mask: Bools | None = None) -> Tabular:
        """The world of mean rewards (T, N), given in the log's units, that offers what `mask` says."""
        share = (means - self.low) / (self.high - self.low)
        if self.two_valued:
            coins = BernoulliNoise() if self.scale == 1 else SharesOfSuccesses(self.scale)
            return Tabular(arms, np.clip(share, 0.0, 1.0), noise=coins, allowed=mask, name="twin")
        inside = np.clip(2.0 * share - 1.0, -_INSIDE, _INSIDE)
        deviation = max(self.deviation / self.unit / math.sqrt(self.scale), _LEAST_DEVIATION / self.scale)
        return Tabular(arms, inside, noise=TruncatedGaussianNoise(deviation), allowed=mask, name="twin")


def twin_of(log: Log, noise: float) -> Twin:
    """How to turn this log's rewards; `noise` is their variance about the means."""
    known = log.reward[log.known]
    low, high = float(known.min()), float(known.max())
    two_valued = bool(np.isin(known, (low, high)).all())
    if log.reward_range is not None and not two_valued:
        low, high = log.reward_range
    elif two_valued and log.reward_range is not None:
        low = min(low, log.reward_range[0])
        two_valued = low == float(known.min())
    return Twin(low, high if high > low else low + 1.0, two_valued, math.sqrt(noise), scale_of(log))


def scale_of(log: Log) -> int:
    """How many rows of the log a round of its twins stands for."""
    return -(-len(log) // MOST_ROUNDS)


def sample_world(log: Log, bins: Bins, fitted: Fitted, arms: ArmSet, number: int, seed: int) -> tuple[Twin, Tabular]:
    """Twin `number`: a sampled path, of a long log one row of several; what these rows offered is offered again."""
    rows = np.arange(0, len(log), scale_of(log))
    path = sample(bins, fitted, stream(seed, "twin", number))[0]
    twin = twin_of(log, fitted.noise)
    return twin, twin.world(arms, _means(path, bins, fitted, rows), offered(log, rows))


def _means(path: Floats, bins: Bins, fitted: Fitted, rows: Ints) -> Floats:
    """Mean rewards (T, N) of some rows of the log; between the bins' centres drifting paths are straight."""
    if fitted.hypothesis.rate == 0.0:
        return np.asarray(path[bins.of_row[rows]])
    ends = np.cumsum(bins.rows)
    centres = ends - 0.5 * bins.rows - 0.5
    return np.column_stack([np.interp(rows, centres, path[:, arm]) for arm in range(path.shape[1])])


def play_twins(
    log: Log,
    bins: Bins,
    fitted: Sequence[Fitted],
    weights: Floats,
    *,
    twins: int = TWINS,
    seed: int = 0,
    advance: Callable[[], None] = lambda: None,
) -> Regrets:
    """Let all players play in sampled twins; the window's length is chosen in other twins before."""
    arms = cell_arms(log)
    chosen = stream(seed, "hypotheses").choice(len(fitted), size=twins + _WINDOW_TWINS, p=weights)
    worlds = [sample_world(log, bins, fitted[k], arms, number, seed) for number, k in enumerate(chosen)]
    rounds, scale = worlds[0][1].horizon, scale_of(log)
    window = _window(worlds[twins:], rounds, advance)
    players = players_of(window, masked=is_masked(log))
    order = _preferences([world for _, world in worlds[twins:]])
    found: dict[str, list[float]] = {name: [] for name in (*players, FIXED)}
    for number, (twin, world) in enumerate(worlds[:twins]):
        for name, player in players.items():
            found[name].append(twin.unit * _regret(player, world, twin, number))
            advance()
        found[FIXED].append(twin.unit * fixed_regret(world, order))
    by_twin = {name: tuple(values) for name, values in found.items()}
    return Regrets(by_twin, players, rounds, tuple(order.tolist()), scale)


def _preferences(worlds: Sequence[Tabular]) -> Ints:
    """Cells, those first that are best on average over the rounds in which they are offered."""
    means = np.stack([world.means(0, world.horizon) for world in worlds])
    there = ~np.isnan(means)
    sums, counts = np.where(there, means, 0.0).sum(axis=(0, 1)), there.sum(axis=(0, 1))
    return np.argsort(-np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf), kind="stable")


def fixed_regret(world: Environment, order: Ints) -> float:
    """Mean regret per round of who always plays the first in `order` that is offered, in the world's units."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    means = world.means(0, world.horizon)
    played = np.where(np.isnan(means), len(order), rank).argmin(axis=1)
    return float((world.best(0, world.horizon) - means[np.arange(len(means)), played]).mean())


def players_of(window: int, *, masked: bool = False) -> dict[str, Player]:
    """Who plays, beside the best fixed arm; CalibratedOPKB learns nothing in rounds that do not offer every arm."""
    blocks = {} if masked else {"CalibratedOPKB": Player("CalibratedOPKB", {})}
    return {
        "AutoBandit": Player("AutoBandit", {}),
        **blocks,
        "GP-UCB that never forgets": Player("GPUCB", {}),
        f"GP-UCB with a window of {window:,}": Player("SlidingWindowGPUCB", {"window": window}),
    }


def _window(worlds: Sequence[tuple[Twin, Tabular]], rounds: int, advance: Callable[[], None]) -> int:
    """The window with the least regret, in rows of the log."""
    scale = worlds[0][0].scale
    tried = [scale * window for window in WINDOWS if window < rounds] or [WINDOWS[0]]
    regrets = []
    for window in tried:
        player = Player("SlidingWindowGPUCB", {"window": window})
        regrets.append(sum(_regret(player, world, twin, 0) for twin, world in worlds))
        advance()
    return tried[int(np.argmin(regrets))]


def steps_of(log: Log, twins: int) -> int:
    """How often `play_twins` calls `advance`."""
    rounds = len(range(0, len(log), scale_of(log)))
    tried = max(sum(window < rounds for window in WINDOWS), 1)
    return tried + twins * len(players_of(1, masked=is_masked(log)))


def policy_of(player: Player, arms: ArmSet, reward_range: tuple[float, float], seed: int, scale: int = 1) -> Policy:
    """A new policy of a player's, for rounds of `scale` rows."""
    settings = {name: value // scale if name == "window" else value for name, value in player.settings.items()}
    return _CLASSES[player.policy](arms, seed=seed, reward_range=reward_range, **settings)


def _regret(player: Player, world: Tabular, twin: Twin, seed: int) -> float:
    """Mean regret per round, in the world's units."""
    policy = policy_of(player, world.arms, twin.reward_range, seed, twin.scale)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtWarning)  # means of few rewards look like amounts that vary
        return float(simulate(policy, world, seed=seed).regret.mean())
