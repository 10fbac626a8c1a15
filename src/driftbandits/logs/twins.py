"""Twins: worlds sampled from what a log says, in which policies play, to see whether adapting pays."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits.arms import ArmSet
from driftbandits.environments import BernoulliNoise, Tabular, TruncatedGaussianNoise
from driftbandits.intervals import ConfidenceInterval, t_interval
from driftbandits.logs import posterior
from driftbandits.logs.log import Log
from driftbandits.logs.posterior import Fitted
from driftbandits.logs.regression import Bins
from driftbandits.policies import GPUCB, AutoBandit, CalibratedOPKB, Policy, SlidingWindowGPUCB
from driftbandits.seeding import stream
from driftbandits.simulation import simulate
from driftbandits.types import Floats

MOST_ROUNDS = 20_000
TWINS = 6
WINDOWS = (100, 400, 1_600, 6_400)
_WINDOW_TWINS = 2  # other twins, on which the window is chosen
_INSIDE = 0.98  # means of truncated noise lie strictly between -1 and 1
_LEAST_DEVIATION = 0.01
FIXED = "best fixed arm"


@dataclass(frozen=True)
class Player:
    """A policy of the twin: its class, and settings."""

    policy: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Regrets:
    """Mean regret per round of every player, in the log's units: by twin (players: tuples of equal length)."""

    by_twin: Mapping[str, tuple[float, ...]]
    players: Mapping[str, Player]
    rounds: int
    fixed: int  # the arm of the player who never changes it

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

    @property
    def reward_range(self) -> tuple[float, float]:
        """Of the worlds."""
        return (0.0, 1.0) if self.two_valued else (-1.0, 1.0)

    @property
    def unit(self) -> float:
        """What 1 in a world is in the log."""
        return (self.high - self.low) * (1.0 if self.two_valued else 0.5)

    def world(self, arms: ArmSet, means: Floats) -> Tabular:
        """The world of mean rewards (T, N), given in the log's units."""
        share = (means - self.low) / (self.high - self.low)
        if self.two_valued:
            return Tabular(arms, np.clip(share, 0.0, 1.0), noise=BernoulliNoise(), name="twin")
        inside = np.clip(2.0 * share - 1.0, -_INSIDE, _INSIDE)
        deviation = max(self.deviation / self.unit, _LEAST_DEVIATION)
        return Tabular(arms, inside, noise=TruncatedGaussianNoise(deviation), name="twin")


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
    return Twin(low, high if high > low else low + 1.0, two_valued, math.sqrt(noise))


def arms_of(log: Log) -> ArmSet:
    """The log's arms; without points, arms that have nothing in common."""
    return log.arms if log.arms is not None else ArmSet.from_features(np.eye(len(log.names)), names=log.names)


def means_of(log: Log, bins: Bins, fitted: Fitted, number: int, seed: int) -> Floats:
    """Mean rewards (T, N) of twin `number`: a sampled path, of a long log a stretch of it."""
    path = posterior.sample(bins, fitted, stream(seed, "twin", number))[0]
    rounds = min(len(log), MOST_ROUNDS)
    first = 0 if rounds == len(log) else int(stream(seed, "stretch", number).integers(len(log) - rounds))
    rows = np.arange(first, first + rounds)
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
    arms = arms_of(log)
    chosen = stream(seed, "hypotheses").choice(len(fitted), size=twins + _WINDOW_TWINS, p=weights)
    worlds = []
    for number, k in enumerate(chosen):
        noise = fitted[k].noise
        worlds.append((twin_of(log, noise), means_of(log, bins, fitted[k], number, seed)))
    rounds = len(worlds[0][1])
    window = _window(arms, worlds[twins:], rounds, advance)
    players = players_of(window)
    fixed = int(np.mean([means.mean(axis=0) for _, means in worlds[twins:]], axis=0).argmax())
    found: dict[str, list[float]] = {name: [] for name in (*players, FIXED)}
    for number, (twin, means) in enumerate(worlds[:twins]):
        world = twin.world(arms, means)
        for name, player in players.items():
            found[name].append(twin.unit * _regret(player, arms, world, twin, number))
            advance()
        best = world.means(0, rounds)
        found[FIXED].append(twin.unit * float((best.max(axis=1) - best[:, fixed]).mean()))
    return Regrets({name: tuple(values) for name, values in found.items()}, players, rounds, fixed)


def players_of(window: int) -> dict[str, Player]:
    """Who plays, beside the best fixed arm."""
    return {
        "AutoBandit": Player("AutoBandit", {}),
        "CalibratedOPKB": Player("CalibratedOPKB", {}),
        "GP-UCB that never forgets": Player("GPUCB", {}),
        f"GP-UCB with a window of {window:,}": Player("SlidingWindowGPUCB", {"window": window}),
    }


_CLASSES: dict[str, type[Policy]] = {
    "AutoBandit": AutoBandit,
    "CalibratedOPKB": CalibratedOPKB,
    "GPUCB": GPUCB,
    "SlidingWindowGPUCB": SlidingWindowGPUCB,
}


def _window(arms: ArmSet, worlds: Sequence[tuple[Twin, Floats]], rounds: int, advance: Callable[[], None]) -> int:
    """The window with the least regret."""
    tried = [window for window in WINDOWS if window < rounds] or [WINDOWS[0]]
    regrets = []
    for window in tried:
        player = Player("SlidingWindowGPUCB", {"window": window})
        regrets.append(sum(_regret(player, arms, twin.world(arms, means), twin, 0) for twin, means in worlds))
        advance()
    return tried[int(np.argmin(regrets))]


def steps_of(twins: int, rounds: int) -> int:
    """How often `play_twins` calls `advance`."""
    return max(sum(window < rounds for window in WINDOWS), 1) + twins * len(players_of(1))


def policy_of(player: Player, arms: ArmSet, reward_range: tuple[float, float], seed: int) -> Policy:
    """A new policy of a player's."""
    return _CLASSES[player.policy](arms, seed=seed, reward_range=reward_range, **player.settings)


def _regret(player: Player, arms: ArmSet, world: Tabular, twin: Twin, seed: int) -> float:
    """Mean regret per round, in the world's units."""
    policy = policy_of(player, arms, twin.reward_range, seed)
    return float(simulate(policy, world, seed=seed).regret.mean())
