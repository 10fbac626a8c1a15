"""What a log can tell: what another price would have earned, whether the world moves, and what to do about it.

A shop drew its prices at random for a while and kept a log: which price, with what probability, what it brought. In
the middle a competitor gave up, and nobody noticed.

    python examples/log_advice.py [FOLDER]    # FOLDER: where to leave log.csv and advice.html
"""

import csv
import sys
import tempfile
from pathlib import Path

import numpy as np

import driftbandits as db

PRICES = np.array([6.0, 8.0, 10.0, 12.0, 14.0, 16.0])
VISITORS, COMPETITOR_GONE = 3_000, 1_700


def chance_of_a_sale(price: float, visitor: int) -> float:
    """Nine in ten buy what costs nothing, fewer what costs more; without the competitor more of them."""
    half = 9.0 if visitor < COMPETITOR_GONE else 14.0  # EUR at which half of those are left
    return float(0.9 / (1 + np.exp((price - half) / 1.5)))


def write_log(path: Path) -> None:
    """One row per decision. This is all that a program has to write down."""
    arms = db.ArmSet(PRICES[:, None], names=[f"{price:.0f} EUR" for price in PRICES])
    policy = db.Uniform(arms, seed=0)  # or whatever decides for you, as long as its probabilities are true
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        log = csv.writer(file)
        log.writerow(["round", "arm", "reward", "probability"])
        for visitor in range(VISITORS):
            choice = policy.ask()
            price = PRICES[choice.arm]
            sold = rng.random() < chance_of_a_sale(price, visitor)
            log.writerow([visitor, choice.name, price * sold, choice.probability])


def main(folder: Path) -> None:
    write_log(folder / "log.csv")
    arms = db.ArmSet(PRICES[:, None], names=[f"{price:.0f} EUR" for price in PRICES])
    log = db.logs.Log.read(folder / "log.csv", arms=arms, reward_range=(0, 16))
    print(log)

    print("\nWhat would one price all the time have earned?")
    for name in ("8 EUR", "12 EUR"):
        print(db.logs.evaluate(log, name, by=[COMPETITOR_GONE]))

    print("\nDoes the world move, and does adapting pay?")
    advice = db.logs.advise(log)
    print(advice)
    page, *files = advice.save(folder / "advice.html")
    print(f"\nThe page {Path(page).name} has the pictures; beside it: {', '.join(Path(file).name for file in files)}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            main(Path(place))
