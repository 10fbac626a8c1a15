"""Long lives: a round after 10,000 and at the end of a million in a world that never changes, and the state by then.

Processor time, and the ratio to a round of GPUCB that plays in turns beside, so that a busy machine does not look like
an ageing policy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import driftbandits as db
from benchmarks.rounds import Makers, Player, reward_function, sphere

ROUNDS, WINDOW = 1_000_000, 10_000
SAMPLED = 100_000  # rounds from one window of GPUCB to the next
LAST = 5  # windows at the end, of which the median counts


def state_bytes(value: Any) -> int:
    """Bytes of all arrays in a state."""
    if isinstance(value, dict):
        return sum(state_bytes(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return sum(state_bytes(item) for item in value)
    return value.nbytes if isinstance(value, np.ndarray) else 0


def makers_of(arms: db.ArmSet) -> Makers:
    return {
        "CalibratedOPKB": lambda: db.CalibratedOPKB(arms, seed=0),
        "CalibratedOPKB, theory mode": lambda: db.CalibratedOPKB(arms, seed=0, mode="theory"),
        "AdaOPKB(horizon=None)": lambda: db.AdaOPKB(arms, seed=0),
        "AutoBandit": lambda: db.AutoBandit(arms, seed=0),
    }


def measure(name: str, policy: db.Policy, beside: Player, rounds: int) -> None:
    """Print a row."""
    means, rng = reward_function(policy.arms), np.random.default_rng(3)
    player, ratios, most = Player("", policy, 0.0), [], 0
    for number in range(rounds // WINDOW):
        noise = 0.1 * rng.standard_normal(WINDOW)
        player.play(means, noise)
        beside.play(means, noise[: WINDOW // 4])
        ratios.append(player.processor[-1] / beside.processor[-1])
        if number % 10 == 1 or number < 2:
            most = max(most, state_bytes(policy.state_dict()))
    times = 1e6 * np.array(player.processor)
    size = state_bytes(policy.state_dict())
    late, relative = float(np.median(times[-LAST:])), float(np.median(ratios[-LAST:]))
    print(
        f"| {name} | {rounds:,} | {times[1]:.1f} | {late:.1f} | {late / times[1]:.2f} | {relative / ratios[1]:.2f} "
        f"| {size / 2**20:.2f} MB | {max(most, size) / 2**20:.2f} MB | {policy.changes_found} |",
        flush=True,
    )


def run(*, quick: bool = False, names: tuple[str, ...] = ()) -> None:
    """Print the table."""
    print("\n## Long lives, N = 100, sphere, d = 2, nothing changes\n")
    print("| policy | rounds | us after 10,000 | us at the end | ratio | in GPUCB rounds | state | largest | changes |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    arms = sphere(100, 2)
    for name, make in makers_of(arms).items():
        if not names or name in names:
            measure(name, make(), Player("", db.GPUCB(arms, seed=0), 0.0), 50_000 if quick else ROUNDS)
