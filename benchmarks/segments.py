"""One policy for all segments of the requests, one per segment, one that does not know of segments: regret of each.

python -m benchmarks segments            10 seeds, some minutes
python -m benchmarks segments --quick    2 seeds

Five segments of 20 options. The mean reward of an option in a segment is what all segments share plus what is the
segment's own, of equal variance: any two segments have the correlation 1/2. Requests come from all alike.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.types import Floats

OPTIONS, SEGMENTS, ROUNDS, NOISE, SPREAD = 20, 5, 5_000, 0.1, 0.25
NAMES = [f"segment {number}" for number in range(SEGMENTS)]

Choose = Callable[[int], tuple[db.Policy, db.Decision, int]]  # for a segment: who decided, what, and the option


def _options() -> db.ArmSet:
    return db.ArmSet(np.linspace(0.0, 1.0, OPTIONS)[:, None])


def draw_means(seed: int) -> Floats:
    """Mean reward of every option in every segment, shape (SEGMENTS, OPTIONS)."""
    points = np.linspace(0.0, 1.0, OPTIONS)[:, None]
    root = np.linalg.cholesky(RBF(0.15)(points) + 1e-9 * np.eye(OPTIONS))
    rng = np.random.default_rng(seed)
    shared, own = root @ rng.standard_normal(OPTIONS), rng.standard_normal((SEGMENTS, OPTIONS)) @ root.T
    return np.asarray(np.clip(SPREAD * math.sqrt(0.5) * (shared + own), -0.7, 0.7))


def crossed(seed: int) -> Choose:
    """One policy on options in segments; it is told nothing of how much these have in common."""
    policy = db.AutoBandit(db.ArmSet.crossed(_options(), NAMES), seed=seed)
    masks = [policy.arms.of(name) for name in NAMES]

    def choose(segment: int) -> tuple[db.Policy, db.Decision, int]:
        choice = policy.ask(allowed=masks[segment])
        return policy, choice, choice.arm % OPTIONS

    return choose


def one_per_segment(seed: int) -> Choose:
    """Five policies that know nothing of one another."""
    policies = [db.AutoBandit(_options(), seed=seed * SEGMENTS + number) for number in range(SEGMENTS)]

    def choose(segment: int) -> tuple[db.Policy, db.Decision, int]:
        choice = policies[segment].ask()
        return policies[segment], choice, choice.arm

    return choose


def one_for_all(seed: int) -> Choose:
    """One policy that is not told of segments."""
    policy = db.AutoBandit(_options(), seed=seed)

    def choose(segment: int) -> tuple[db.Policy, db.Decision, int]:
        del segment
        choice = policy.ask()
        return policy, choice, choice.arm

    return choose


ROWS: Mapping[str, Callable[[int], Choose]] = {
    "crossed": crossed,
    "one per segment": one_per_segment,
    "one for all": one_for_all,
}


def play(row: str, seed: int, rounds: int) -> tuple[float, float]:
    """Regret, and seconds of processor time per round; every row meets the same requests and the same noise."""
    means, choose = draw_means(seed), ROWS[row](seed)
    rng = np.random.default_rng([seed, 1])
    segments, noise = rng.integers(SEGMENTS, size=rounds), NOISE * rng.standard_normal(rounds)
    regret, begun = 0.0, time.process_time()
    for segment, error in zip(segments.tolist(), noise.tolist(), strict=True):
        policy, choice, option = choose(segment)
        policy.tell(choice, float(np.clip(means[segment, option] + error, -1.0, 1.0)))
        regret += float(means[segment].max() - means[segment, option])
    return regret, (time.process_time() - begun) / rounds


def _shown(regrets: Sequence[float]) -> str:
    error = np.std(regrets, ddof=1) / math.sqrt(len(regrets))
    return f"{np.mean(regrets):,.0f} ± {error:,.0f}"


def run(*, quick: bool = False) -> None:
    """Print the table."""
    seeds, rounds = range(2 if quick else 10), 1_000 if quick else ROUNDS
    found = {row: [play(row, seed, rounds) for seed in seeds] for row in ROWS}
    regrets = {row: [regret for regret, _ in runs] for row, runs in found.items()}
    print(f"\n## Segments: regret after {rounds:,} rounds ± standard error, {len(seeds)} seeds\n")
    print("| policy | regret | microseconds per round |\n|---|---:|---:|")
    for row, runs in found.items():
        print(f"| {row} | {_shown(regrets[row])} | {1e6 * np.mean([seconds for _, seconds in runs]):,.0f} |")
    better = min(np.mean(regrets[row]) for row in ROWS if row != "crossed")
    print(f"\ncrossed / better of the others: {np.mean(regrets['crossed']) / better:.2f}")
