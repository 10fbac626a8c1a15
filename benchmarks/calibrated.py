"""A round of CalibratedOPKB beside one of GPUCB and ADA-OPKB, early and late in a long epoch, and residual IPS."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

import driftbandits as db
from benchmarks.rounds import (
    Makers,
    Player,
    heading,
    measure,
    measure_on_spheres,
    reward_function,
    sphere,
    square,
)
from driftbandits.estimation import Sums, ips_estimate, law_factor
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


def state_bytes(value: Any) -> int:
    """Bytes of all arrays in a state."""
    if isinstance(value, dict):
        return sum(state_bytes(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return sum(state_bytes(item) for item in value)
    return value.nbytes if isinstance(value, np.ndarray) else 0


def measure_long_epoch(arms: db.ArmSet, mode: Literal["practical", "theory"], rounds: int) -> None:
    """Print a row: a round after 10,000 and at the end of a world that never changes, and the size of the state."""
    policy = db.CalibratedOPKB(arms, seed=0, mode=mode)
    means, rng = reward_function(arms), np.random.default_rng(3)
    player, window = Player("", policy, 0.0), 10_000
    early, most = 0.0, 0
    for start in range(0, rounds, window):
        player.play(means, 0.1 * rng.standard_normal(window))
        most = max(most, state_bytes(policy.state_dict()))
        if start == window:
            early = player.processor[-1]
    late = float(np.mean(player.processor[-3:]))
    print(
        f"| {mode} | {rounds:,} | {1e6 * early:.1f} | {1e6 * late:.1f} | {late / early:.2f} "
        f"| {state_bytes(policy.state_dict()) / 2**20:.2f} MB | {most / 2**20:.2f} MB | {len(policy.changes)} |",
        flush=True,
    )


def run(*, quick: bool = False) -> None:
    heading("A round of CalibratedOPKB, one thread")
    measure_on_spheres(makers_of, 1_000 if quick else 10_000)
    arms = square(10_000)
    many = {name: make for name, make in makers_of(arms).items() if "theory" not in name}
    measure(f"N = 10,000, square, rank {arms.rank}", arms, many, 200 if quick else 4_000)

    print("\n## A long epoch of CalibratedOPKB, N = 100, sphere, d = 2, nothing changes\n")
    print("Processor time of a round: rounds 10,000 to 20,000, and the last 30,000; arrays of the state.\n")
    print("| mode | rounds | us after 10,000 | us at the end | ratio | state | largest state | changes |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    measure_long_epoch(sphere(100, 2), "practical", 50_000 if quick else 1_000_000)
    measure_long_epoch(sphere(100, 2), "theory", 50_000 if quick else 1_000_000)

    print("\n## Worst arm's error of IPS and of residual IPS, rounds of the optimal design, N = 100\n")
    print("| d | rounds | IPS | residual IPS | ratio |\n|---:|---:|---:|---:|---:|")
    for dimension in (2, 10):
        for rounds in (500, 2_000, 8_000):
            arms = sphere(100, dimension)
            pairs = np.array([worst_errors(arms, rounds, seed) for seed in range(2 if quick else 20)])
            plain, residual = pairs.mean(axis=0)
            print(f"| {dimension} | {rounds:,} | {plain:.3f} | {residual:.3f} | {plain / residual:.1f} |", flush=True)
