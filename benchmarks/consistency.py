"""Is what AutoBandit believes of an arm the mean of its rewards, whatever the distribution?

Ten distributions of rewards, nothing changes, 20,000 rounds: arms with at least 2,000 plays are counted. Asked: the
estimate lies within 3 standard errors of the plain mean of the arm's rewards in 99 % of arms, and the 95 % interval
covers the true mean in 92 to 98 %. Four arms of each distribution have means that differ little, so that several
are played; arms of a `Uniform` experimenter's log, where all are played, are counted beside those of its own play.

    python -m benchmarks consistency            evaluation seeds, 8 runs of each
    python -m benchmarks consistency --quick    2 runs
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np

import driftbandits as db
from driftbandits.experiments.seeds import EVALUATION

ROUNDS = 20_000
LEAST_PLAYS = 2_000
ARMS = 4
LIFT = np.array([1.0, 0.97, 0.94, 0.9])  # of the arms' means

Draw = Callable[[np.random.Generator, float], float]  # a reward of an arm whose mean is lifted so


class Kind(NamedTuple):
    """A distribution of rewards, by its draw, its mean at a lift of 1, and a range that holds it."""

    draw: Draw
    mean: float
    span: tuple[float, float]


def _chance(chance: float) -> Kind:
    return Kind(lambda rng, lift: float(rng.random() < chance * lift), chance, (0.0, 1.0))


def _sales(chance: float) -> Kind:
    def draw(rng: np.random.Generator, lift: float) -> float:
        amount = 50.0 * math.exp(0.5 * rng.standard_normal() - 0.125)
        return min(amount, 500.0) if rng.random() < chance * lift else 0.0

    return Kind(draw, 50.0 * chance, (0.0, 500.0))


def _t3(rng: np.random.Generator, lift: float) -> float:
    return float(np.clip(0.5 * lift + 0.1 * rng.standard_t(3), -9.5, 10.5))


def _modes(rng: np.random.Generator, lift: float) -> float:
    return float(0.9 * (rng.random() < 0.5 * lift) + 0.05 + 0.02 * rng.standard_normal())


def _exponential(rng: np.random.Generator, lift: float) -> float:
    return min(float(rng.exponential(lift)), 20.0)


KINDS: dict[str, Kind] = {
    "0/1, 0.5 %": _chance(0.005),
    "0/1, 3 %": _chance(0.03),
    "0/1, 30 %": _chance(0.3),
    "sales, 1 %": _sales(0.01),
    "sales, 3 %": _sales(0.03),
    "sales, 10 %": _sales(0.1),
    "t, 3 degrees": Kind(_t3, 0.5, (-9.5, 10.5)),
    "two far modes": Kind(_modes, 0.5, (-0.2, 1.2)),
    "exponential": Kind(_exponential, 1.0, (0.0, 20.0)),
    "constant": Kind(lambda _, lift: lift, 1.0, (0.0, 1.0)),
}


def _mean(name: str, lift: float) -> float:
    return 0.45 * lift + 0.05 if name == "two far modes" else KINDS[name].mean * lift


class Found(NamedTuple):
    """One arm at the end of a run: plain mean and its standard error, estimate, interval, and the true mean."""

    plain: float
    error: float
    estimate: float
    low: float
    high: float
    true: float


def play(name: str, own: bool, seed: int) -> tuple[list[Found], int]:
    """A run in which AutoBandit plays, or learns from arms drawn at random; its arms, and the changes recorded."""
    warnings.simplefilter("ignore")
    kind, rng = KINDS[name], np.random.default_rng(seed)
    policy = db.AutoBandit(db.ArmSet.separate([f"arm {n}" for n in range(ARMS)]), seed=seed, reward_range=kind.span)
    told: list[list[float]] = [[] for _ in range(ARMS)]
    for _ in range(ROUNDS):
        if own:
            choice = policy.ask()
            arm, ident = choice.arm, choice.id
        else:
            arm = int(rng.integers(ARMS))
            ident = int(policy.impose(arm, 1.0 / ARMS).decisions.ids[0])
        reward = kind.draw(rng, float(LIFT[arm]))
        told[arm].append(reward)
        policy.tell(ident, reward)
    estimate, (low, high) = policy.estimate(), policy.interval()
    found = []
    for arm, rewards in enumerate(told):
        if len(rewards) >= LEAST_PLAYS:
            error = float(np.std(rewards)) / math.sqrt(len(rewards))
            true = _mean(name, float(LIFT[arm]))
            ends = float(low[arm]), float(high[arm])
            found.append(Found(float(np.mean(rewards)), error, float(estimate[arm]), *ends, true))
    return found, policy.changes_found


def run(*, quick: bool = False) -> None:
    """Print a table: for every distribution the arms counted, and in how many the estimate and interval are right."""
    seeds = EVALUATION.take(2 if quick else 8)
    print(f"{ROUNDS:,} rounds, {len(seeds)} seeds from {seeds[0]:,}; arms with {LEAST_PLAYS:,} plays")
    print(f"{'':16}{'who plays':12}{'arms':>6}{'within 3 errors':>18}{'covered':>10}{'changes':>9}")
    near = covered = total = 0
    with ProcessPoolExecutor(2) as pool:
        for name in KINDS:
            for own in (True, False):
                runs = list(pool.map(functools.partial(play, name, own), seeds))
                arms = [item for found, _ in runs for item in found]
                close = [abs(item.estimate - item.plain) <= 3.0 * item.error + 1e-3 * abs(item.true) for item in arms]
                inside = [item.low <= item.true <= item.high for item in arms]
                who = "AutoBandit" if own else "at random"
                cells = f"{len(arms):6}{np.mean(close):18.3f}{np.mean(inside):10.3f}{sum(c for _, c in runs):9}"
                print(f"{name:16}{who:12}{cells}", flush=True)
                near, covered, total = near + sum(close), covered + sum(inside), total + len(arms)
    print(f"{'all':28}{total:6}{near / total:18.3f}{covered / total:10.3f}")
