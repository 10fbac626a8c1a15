"""A round of every policy over the number of arms: one command makes the table and the figure of docs/performance.md.

Points drawn from the unit square, RBF(0.2); rewards of the kernel with noise 0.1. A policy plays until its time is up;
of a design solved now and then the median knows nothing, so the worst round stands beside it, without the first, which
is the start. Each is measured in turns with GPUCB on the same arms: ratios are against its median there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import driftbandits as db
from benchmarks.lives import state_bytes
from benchmarks.rounds import reward_function, square

SIZES = (10, 100, 1_000, 10_000, 100_000)
SECONDS, LONGEST = 2.0, 15.0  # that a policy plays, and at most until it has played LEAST_ROUNDS
LEAST_ROUNDS, MOST_ROUNDS = 200, 2_000
TURN = 20  # rounds of a policy before GPUCB has its turn
NEURAL = ("OPNN", "AdaOPNN", "NeuralUCB", "SlidingWindowNeuralUCB")  # `benchmarks.neural`
FIGURE = Path("docs/figures/time-per-round.png")


@dataclass(frozen=True)
class Measured:
    """Seconds of one policy with one number of arms, and the bytes of its state."""

    policy: str
    arms: int
    start: float
    median: float
    worst: float
    in_gpucb_rounds: float
    state: int
    rounds: int


class Timed:
    """A policy that plays, and how long every round took."""

    def __init__(self, name: str, arms: db.ArmSet) -> None:
        begun = time.process_time()
        self.policy = db.create_policy(name, arms, horizon=10_000, seed=0)
        self.policy.tell(self.policy.ask(), 0.0)
        self.start = time.process_time() - begun
        self.seconds: list[float] = []
        self._noise = np.random.default_rng(3)

    def play(self, means: np.ndarray, rounds: int) -> None:
        """So many rounds."""
        policy = self.policy
        for error in (0.1 * self._noise.standard_normal(rounds)).tolist():
            begun = time.process_time()
            choice = policy.ask()
            policy.tell(choice, min(max(float(means[choice.arm]) + error, -1.0), 1.0))
            self.seconds.append(time.process_time() - begun)


def _enough(rounds: int, seconds: float) -> bool:
    return rounds >= MOST_ROUNDS or seconds >= LONGEST or (rounds >= LEAST_ROUNDS and seconds >= SECONDS)


def measure(name: str, arms: db.ArmSet) -> Measured:
    """One policy beside GPUCB."""
    means, mine, beside = reward_function(arms), Timed(name, arms), Timed("GPUCB", arms)
    while not _enough(len(mine.seconds), sum(mine.seconds)):
        mine.play(means, TURN)
        if sum(beside.seconds) < SECONDS:
            beside.play(means, TURN)
    median = float(np.median(mine.seconds))
    return Measured(
        policy=name,
        arms=len(arms),
        start=mine.start,
        median=median,
        worst=max(mine.seconds),
        in_gpucb_rounds=median / float(np.median(beside.seconds)),
        state=state_bytes(mine.policy.state_dict()),
        rounds=len(mine.seconds),
    )


def row(found: Measured) -> str:
    """A row of the table."""
    return (
        f"| {found.policy} | {found.arms:,} | {found.start:.2f} s | {1e6 * found.median:,.0f} "
        f"| {found.in_gpucb_rounds:.1f} | {1e3 * found.worst:,.1f} ms | {found.state / 2**20:,.2f} MB "
        f"| {found.rounds:,} |"
    )


def summary(found: Sequence[Measured]) -> list[str]:
    """A line per policy: microseconds over the number of arms, and the worst round and the state of the largest."""
    sizes = list(dict.fromkeys(item.arms for item in found))
    lines = [
        "| policy | " + " | ".join(f"{size:,} arms" for size in sizes) + " | worst round | start | state |",
        "|---|" + "---:|" * (len(sizes) + 3),
    ]
    for name in dict.fromkeys(item.policy for item in found):
        mine = {item.arms: item for item in found if item.policy == name}
        last = mine[max(mine)]
        medians = [f"{1e6 * mine[size].median:,.0f}" if size in mine else "–" for size in sizes]
        large = f"{1e3 * last.worst:,.0f} ms | {last.start:.1f} s | {last.state / 2**20:,.1f} MB"
        lines.append(f"| {name} | " + " | ".join(medians) + f" | {large} |")
    return lines


def draw(found: Sequence[Measured], path: Path) -> None:
    """Time per round over the number of arms, a line per policy, both axes logarithmic."""
    from matplotlib.figure import Figure

    from driftbandits.plots.frame import COLOURS

    figure = Figure(figsize=(9.0, 6.0), layout="constrained")
    axes = figure.subplots()
    for name in dict.fromkeys(item.policy for item in found):
        mine = [item for item in found if item.policy == name]
        strong = name in ("AutoBandit", "CalibratedOPKB", "AdaOPKB", "GPUCB", "Uniform")
        axes.loglog(
            [item.arms for item in mine],
            [1e6 * item.median for item in mine],
            color=COLOURS.get(name),
            marker="o" if strong else ".",
            linewidth=2.0 if strong else 0.8,
            label=name,
        )
    axes.set_xlabel("number of arms")
    axes.set_ylabel("median microseconds per round")
    axes.grid(which="major", alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def run(*, quick: bool = False, names: Sequence[str] = (), sizes: Sequence[int] = SIZES) -> None:
    """Print the table and draw the figure; `quick` up to 1,000 arms, without the figure."""
    print("\n## A round over the number of arms, unit square, RBF(0.2), one thread\n")
    print("| policy | arms | start | us per round, median | GPUCB rounds | worst round | state | rounds |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    found: list[Measured] = []
    chosen = names or [name for name in db.POLICIES if name not in NEURAL]
    every = [square(size) for size in sizes if not quick or size <= 1_000]
    for name in chosen:
        for arms in every:
            found.append(measure(name, arms))
            print(row(found[-1]), flush=True)
    print("\nMedian microseconds; worst round, start and state with the most arms:\n")
    print("\n".join(summary(found)))
    if not quick and not names:
        draw(found, FIGURE)
        print(f"\nFigure: {FIGURE}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="policies; all but neural ones where none is named")
    run(names=parser.parse_args().names)
