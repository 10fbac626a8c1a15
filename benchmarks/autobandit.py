"""A round of AutoBandit beside one of GPUCB on the same arms and beside a 100 x 100 product; a long life of it."""

from __future__ import annotations

import numpy as np

import driftbandits as db
from benchmarks.lives import state_bytes
from benchmarks.rounds import Makers, Player, heading, measure, measure_on_spheres, square

ROUNDS_OF_A_WORLD = 20_000
WINDOW = 10_000


def makers_of(arms: db.ArmSet) -> Makers:
    return {
        "GPUCB": lambda: db.GPUCB(arms, seed=0),
        "AutoBandit, kernel given": lambda: db.AutoBandit(arms, seed=0, kernel="given"),
        "AutoBandit": lambda: db.AutoBandit(arms, seed=0),
    }


def measure_long_life(size: int, rounds: int) -> None:
    """Print a row: a round after 10,000 and at the end, in a world that changes now and then; arrays of the state."""
    place = np.linspace(0.0, 1.0, size)
    player = Player("", db.AutoBandit(db.ArmSet(place[:, None]), seed=0), 0.0)
    rng, most = np.random.default_rng(3), 0
    for start in range(0, rounds, WINDOW):
        peak = start // ROUNDS_OF_A_WORLD * 3 % 7 / 7
        player.play(0.7 * np.exp(-np.square((place - peak) / 0.15)), 0.1 * rng.standard_normal(WINDOW))
        most = max(most, state_bytes(player.policy.state_dict()))
    early, late = (1e6 * float(np.median(part)) for part in (player.processor[1:4], player.processor[-4:]))
    print(
        f"| {size} | {rounds:,} | {early:.0f} | {late:.0f} | {late / early:.2f} "
        f"| {state_bytes(player.policy.state_dict()) / 2**20:.2f} MB | {most / 2**20:.2f} MB "
        f"| {player.policy.changes_found} of {(rounds - 1) // ROUNDS_OF_A_WORLD} |",
        flush=True,
    )


def run(*, quick: bool = False) -> None:
    heading("A round of AutoBandit, one thread")
    measure_on_spheres(makers_of, 500 if quick else 4_000)
    arms = square(10_000)
    measure(f"N = 10,000, square, rank {arms.rank} cut to 100", arms, makers_of(arms), 50 if quick else 300)

    print("\n## A long life of AutoBandit on a line, whose best arm changes every 20,000 rounds\n")
    print("Processor time of a round: rounds 10,000 to 40,000, and the last 40,000; limit 1.2.\n")
    print("| arms | rounds | us after 10,000 | us at the end | ratio | state | largest state | changes found |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    measure_long_life(20, 80_000 if quick else 1_000_000)
