"""What one wrong sign does to SW-GPUCB: the regression of the authors' code with it, without it, and ours.

python -m benchmarks wrong_sign            6 seeds, about half a minute
python -m benchmarks wrong_sign --quick    2 seeds

When an observation of arm b leaves the window, their code adds A v v'A / (1 + v'A v) to the inverse A of the Gram
matrix, v the features of b, where removing it takes A v v'A / (1 - v'A v): too little is given back, for ever. The
sums of rewards are right, so means shrink towards 0 and widths with them, and arms are no longer tried again. Such a
run hangs on the last bit: the same sums in another order moved its mean over 6 seeds by up to a tenth.

symbol     name        meaning
M          relation    Phi A Phi', (N, N): all that A is needed for
z          sums        rewards of the window by arm, (N,)
lambda     LAMBDA      of their files; A begins as lambda I instead of I / lambda, so the ridge is 1 / lambda
v          SCALE       of their files
gamma      their gain  half a log-determinant, halved once more where it enters beta
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

import driftbandits as db
from driftbandits.environments import Environment
from driftbandits.types import Floats

LAMBDA, SCALE, FAILURE_PROBABILITY, WINDOW = 20.0, 0.01, 1e-4, 3_000
WORLDS = ("switching/1", "switching/2")
OUR_RIDGE, OUR_SCALE = 1.0 / LAMBDA, SCALE * LAMBDA  # the correct policy that their settings come to
ROWS = ("as coded", "sign corrected", "ours")


class WindowAsCoded:
    """SW-GPUCB as the authors' code computes it, in their settings.

    `wrong_sign`: divide by 1 + v'A v where an observation leaves the window, as they do, or by 1 - v'A v.
    """

    def __init__(self, kernel: Floats, *, window: int, wrong_sign: bool) -> None:
        self.relation: Floats = LAMBDA * kernel
        self.sums: Floats = np.zeros(len(kernel))
        self._window = window
        self._sign = 1.0 if wrong_sign else -1.0
        self._kept: deque[tuple[int, float]] = deque()

    def index(self, beta: float) -> Floats:
        """mu + v beta sigma of every arm."""
        sd = np.sqrt(LAMBDA * self.relation.diagonal())
        return np.asarray(self.relation @ self.sums + SCALE * beta * sd)

    def learn(self, arm: int, reward: float) -> None:
        """Take in a reward, and let the oldest go if the window is full."""
        self._kept.append((arm, reward))
        self.sums[arm] += reward
        self._add(arm, -1.0, 1.0 + self.relation[arm, arm])
        if len(self._kept) > self._window:
            leaving, old = self._kept.popleft()
            self.sums[leaving] -= old
            self._add(leaving, 1.0, 1.0 + self._sign * self.relation[leaving, leaving])

    def _add(self, arm: int, sign: float, divisor: float) -> None:
        column = self.relation[:, arm].copy()
        self.relation += (sign / divisor) * np.outer(column, column)


def betas(arms: db.ArmSet, window: int) -> Floats:
    """Their beta for 1 up to `window` rounds: the gain is computed at powers of 2, and straight between them."""
    nodes = 2 ** np.arange(math.ceil(math.log2(window)) + 1)
    gains = [0.5 * db.information_gain(arms, horizon=int(rounds), sigma=LAMBDA) for rounds in nodes]
    gain = np.interp(np.arange(1, window + 1), nodes, gains)
    return np.asarray(1.0 + np.sqrt(2.0 * (0.5 * gain + 1.0 + math.log(1.0 / FAILURE_PROBABILITY))))


def play_as_coded(world: Environment, *, seed: int, wrong_sign: bool, window: int = WINDOW) -> float:
    """Total regret of their policy in `world`, with the noise that `simulate` gives every policy."""
    kernel = world.arms.features @ world.arms.features.T
    policy, beta = WindowAsCoded(kernel, window=window, wrong_sign=wrong_sign), betas(world.arms, window)
    arms = np.zeros(world.horizon, dtype=np.int64)
    for now in range(world.horizon):
        if now > 0:  # with nothing known they play arm 0
            arms[now] = int(policy.index(float(beta[min(now, window - 1)])).argmax())
        policy.learn(int(arms[now]), float(world.rewards(now, arms[now : now + 1], seed)[0]))
    return float((world.best(0, world.horizon) - world.means_of(0, arms)).sum())


def play(row: str, world: Environment, *, seed: int) -> float:
    """Total regret of one row of the table."""
    if row != "ours":
        return play_as_coded(world, seed=seed, wrong_sign=row == "as coded")
    policy = our_policy(world.arms, world.horizon, seed=seed)
    return float(db.simulate(policy, world, seed=seed).regret.sum())


def our_policy(arms: db.ArmSet, horizon: int, *, seed: int, window: int = WINDOW) -> db.SlidingWindowGPUCB:
    """SW-GPUCB with the rule for beta and the settings of their files, as the study plays it."""
    return db.SlidingWindowGPUCB(
        arms, horizon=horizon, seed=seed, window=window, ridge=OUR_RIDGE, scale=OUR_SCALE, beta="ridge"
    )


def run(*, quick: bool = False) -> None:
    """Print the table."""
    seeds = range(2 if quick else 6)
    print(f"\n## SW-GPUCB with window {WINDOW:,}: mean regret ± standard error, {len(seeds)} seeds\n")
    print(f"| world | {' | '.join(ROWS)} |\n|---|{'---:|' * len(ROWS)}")
    for name in WORLDS:
        shown = []
        for row in ROWS:
            regrets = [play(row, db.environments.create(name, seed=seed), seed=seed) for seed in seeds]
            error = np.std(regrets, ddof=1) / math.sqrt(len(regrets))
            shown.append(f"{np.mean(regrets):,.0f} ± {error:,.0f}")
        print(f"| {name} | {' | '.join(shown)} |", flush=True)
