"""What it costs CalibratedOPKB that designs of more than 1,000 arms are solved loosely: regret beside exact designs.

1,200 arms of the unit square, a world that stays as it is, tuning seeds; both policies in the same world with the same
noise. `python -m benchmarks.loose --pairs 100`: ten minutes on one core.
"""

from __future__ import annotations

import argparse
from unittest import mock

import joblib
import numpy as np
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

import driftbandits as db
from benchmarks.together import FIRST_SEED, with_limit
from driftbandits.policies.opkb import parts

ARMS, ROUNDS, NOISE = 1_200, 1_000, 0.1
EXACT = 1e-6  # the gap to which designs of few arms are solved


def play(seed: int) -> tuple[float, float]:
    """Regrets with loose and with exact designs."""
    rng = np.random.default_rng(seed)
    arms = db.ArmSet(rng.random((ARMS, 2)), RBF(0.2))
    means = arms.features @ rng.standard_normal(arms.rank)
    means *= 0.8 / np.abs(means).max()
    noise = NOISE * rng.standard_normal(ROUNDS)
    loose = _regret(arms, means, noise, seed)
    with mock.patch.object(parts, "_GAP_OF_MANY", EXACT):
        return loose, _regret(arms, means, noise, seed)


def _regret(arms: db.ArmSet, means: np.ndarray, noise: np.ndarray, seed: int) -> float:
    policy, earned = db.CalibratedOPKB(arms, seed=seed), 0.0
    with threadpool_limits(limits=1):
        for error in noise.tolist():
            choice = policy.ask()
            mean = float(means[choice.arm])
            policy.tell(choice, min(max(mean + error, -1.0), 1.0))
            earned += mean
    return float(means.max()) * len(noise) - earned


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + options.pairs)
    pairs = np.array(joblib.Parallel(n_jobs=options.jobs)(joblib.delayed(play)(seed) for seed in seeds))
    loose, exact = pairs.T
    print(f"{len(pairs)} pairs: regret {loose.mean():.1f} with loose designs, {exact.mean():.1f} with exact ones.")
    print(f"Difference, of the mean of both: {with_limit((loose - exact) / pairs.mean())}")


if __name__ == "__main__":
    main()
