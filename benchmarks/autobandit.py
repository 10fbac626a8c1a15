"""A round of AutoBandit beside one of GPUCB on the same arms, and beside a 100 x 100 matrix product."""

from __future__ import annotations

import driftbandits as db
from benchmarks.rounds import Makers, heading, measure, measure_on_spheres, square


def makers_of(arms: db.ArmSet) -> Makers:
    return {
        "GPUCB": lambda: db.GPUCB(arms, seed=0),
        "AutoBandit, kernel given": lambda: db.AutoBandit(arms, seed=0, kernel="given"),
        "AutoBandit": lambda: db.AutoBandit(arms, seed=0),
    }


def run(*, quick: bool = False) -> None:
    heading("A round of AutoBandit, one thread")
    measure_on_spheres(makers_of, 500 if quick else 4_000)
    arms = square(10_000)
    measure(f"N = 10,000, square, rank {arms.rank} cut to 100", arms, makers_of(arms), 50 if quick else 300)
