"""A round of AutoBandit beside one of GPUCB on the same arms, and beside a 100 x 100 matrix product."""

from __future__ import annotations

import argparse

import driftbandits as db
from benchmarks.rounds import Makers, heading, measure, sphere, square


def makers_of(arms: db.ArmSet) -> Makers:
    return {
        "GPUCB": lambda: db.GPUCB(arms, seed=0),
        "AutoBandit, kernel given": lambda: db.AutoBandit(arms, seed=0, kernel="given"),
        "AutoBandit": lambda: db.AutoBandit(arms, seed=0),
    }


def run(*, quick: bool = False) -> None:
    heading("A round of AutoBandit, one thread")
    for dimension in (10, 2):
        arms = sphere(100, dimension)
        measure(f"N = 100, sphere, d = {dimension}", arms, makers_of(arms), 500 if quick else 4_000)
    arms = square(10_000)
    measure(f"N = 10,000, square, rank {arms.rank} cut to 100", arms, makers_of(arms), 50 if quick else 300)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    run(quick=parser.parse_args().quick)
