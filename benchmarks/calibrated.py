"""A round of CalibratedOPKB beside one of GPUCB and ADA-OPKB, and residual IPS."""

from __future__ import annotations

import numpy as np

import driftbandits as db
from benchmarks.rounds import (
    Makers,
    heading,
    measure,
    measure_on_spheres,
    sphere,
    square,
)
from driftbandits.design.blocks import Sums, ips_estimate, law_factor
from driftbandits.policies.gp.posterior import ArmPosterior
from driftbandits.types import Floats

NOISE_DEVIATION, REWARD_VARIANCE = 0.1, 0.1


def makers_of(arms: db.ArmSet) -> Makers:
    return {
        "GPUCB": lambda: db.GPUCB(arms, seed=0),
        "ADA-OPKB": lambda: db.AdaOPKB(arms, horizon=10_000, seed=0),
        "CalibratedOPKB": lambda: db.CalibratedOPKB(arms, seed=0),
        "CalibratedOPKB, theory mode": lambda: db.CalibratedOPKB(arms, seed=0, mode="theory"),
    }


def worst_errors(arms: db.ArmSet, rounds: int, seed: int) -> tuple[float, float]:
    """Largest error over the arms of IPS and of residual IPS, both from the same rounds of the optimal design.

    The baseline is the posterior mean of as many earlier rounds, which is what the blocks before a block have; the
    regulariser is noise / (signal n), for a signal of 0.1.
    """
    rng = np.random.default_rng(seed)
    means = arms.features @ rng.standard_normal(arms.rank)
    means *= 0.8 / np.abs(means).max()
    regulariser = NOISE_DEVIATION**2 / (REWARD_VARIANCE * rounds)
    law = db.solve_design(arms, regulariser=regulariser).probabilities
    early = ArmPosterior(arms.features, ridge=NOISE_DEVIATION**2 / REWARD_VARIANCE)
    for arm in rng.choice(len(arms), size=rounds, p=law).tolist():
        early.add(arm, float(means[arm] + NOISE_DEVIATION * rng.standard_normal()))
    baseline = early.mean
    played = rng.choice(len(arms), size=rounds, p=law)
    rewards = means[played] + NOISE_DEVIATION * rng.standard_normal(rounds)
    factor = law_factor(arms.features, law, regulariser)

    def error(baseline: Floats | None) -> float:
        sums = Sums.empty(1, len(arms))
        sums.add(np.zeros(rounds, dtype=np.int64), played, rewards if baseline is None else rewards - baseline[played])
        estimate = ips_estimate(arms.features, [factor], sums, [baseline])
        return float(np.abs(estimate - means).max())

    return error(None), error(baseline)


def run(*, quick: bool = False) -> None:
    heading("A round of CalibratedOPKB, one thread")
    measure_on_spheres(makers_of, 1_000 if quick else 10_000)
    arms = square(10_000)
    many = {name: make for name, make in makers_of(arms).items() if "theory" not in name}
    measure(f"N = 10,000, square, rank {arms.rank}", arms, many, 200 if quick else 4_000)

    print("\n## Worst arm's error of IPS and of residual IPS, rounds of the optimal design, N = 100\n")
    print("| d | rounds | IPS | residual IPS | ratio |\n|---:|---:|---:|---:|---:|")
    for dimension in (2, 10):
        for rounds in (500, 2_000, 8_000):
            arms = sphere(100, dimension)
            pairs = np.array([worst_errors(arms, rounds, seed) for seed in range(2 if quick else 20)])
            plain, residual = pairs.mean(axis=0)
            print(f"| {dimension} | {rounds:,} | {plain:.3f} | {residual:.3f} | {plain / residual:.1f} |", flush=True)
