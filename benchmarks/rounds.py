"""What a round of several policies on the same arms costs: ratios of processor time, and of wall time.

All play in turns, a tenth of their rounds at a time, so that what else the machine does meets them alike; rewards
change their sign halfway. Processor time does not mind the rest of the machine much; wall time is what a user waits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg.blas
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits._util.seeding import stream
from driftbandits.policies import Policy
from driftbandits.types import Floats

TURNS = 10
Makers = dict[str, Callable[[], Policy]]


@dataclass
class Player:
    """A policy with the time it has taken: to be built and to give its first law, and for its rounds."""

    name: str
    policy: Policy
    begun: float
    rounds: int = 0
    wall: float = 0.0
    processor: list[float] = field(default_factory=list)  # seconds per round, one entry per turn

    @classmethod
    def build(cls, name: str, make: Callable[[], Policy]) -> Player:
        start = time.process_time()
        policy = make()
        policy.law()
        return cls(name, policy, time.process_time() - start)

    def play(self, means: Floats, noise: Floats) -> None:
        """As many rounds as there is noise."""
        policy = self.policy
        wall, processor = time.perf_counter(), time.process_time()
        for error in noise.tolist():
            choice = policy.ask()
            policy.tell(choice.id, min(max(float(means[choice.arm]) + error, -1.0), 1.0))
        self.processor.append((time.process_time() - processor) / len(noise))
        self.wall += time.perf_counter() - wall
        self.rounds += len(noise)

    @property
    def round_seconds(self) -> float:
        """Processor seconds per round."""
        return float(np.mean(self.processor))


def product_seconds(repeats: int = 200) -> float:
    """Processor seconds of one product of 100 x 100 matrices."""
    matrix = np.random.default_rng(0).standard_normal((100, 100))
    out = np.empty_like(matrix)
    start = time.process_time()
    for _ in range(repeats):
        np.matmul(matrix, matrix, out=out)
    return (time.process_time() - start) / repeats


def sphere(size: int, dimension: int) -> db.ArmSet:
    points = np.random.default_rng(0).standard_normal((size, dimension))
    return db.ArmSet(points / np.linalg.norm(points, axis=1, keepdims=True), RBF(0.2))


def square(size: int) -> db.ArmSet:
    return db.ArmSet(np.random.default_rng(0).random((size, 2)), RBF(0.2))


def reward_function(arms: db.ArmSet) -> Floats:
    """Means that the kernel may have, largest 0.8."""
    means = arms.features @ np.random.default_rng(1).standard_normal(arms.rank)
    return np.asarray(means * (0.8 / np.abs(means).max()))


def measure(label: str, arms: db.ArmSet, makers: Makers, rounds: int) -> None:
    """Print a row for every policy; the first is what the others are compared with."""
    players = [Player.build(name, make) for name, make in makers.items()]
    means, rng = reward_function(arms), np.random.default_rng(2)
    products = []
    for turn in range(TURNS):
        noise = 0.1 * rng.standard_normal(rounds // TURNS)
        for player in players:
            products.append(product_seconds())
            player.play(means if turn < TURNS // 2 else -means, noise)
    product, first = float(np.median(products)), players[0]
    for player in players:
        ratios = [mine / other for mine, other in zip(player.processor, first.processor, strict=True)]
        print(
            f"| {label} | {player.name} | {player.rounds:,} | {player.begun:.2f} s "
            f"| {1e6 * player.wall / player.rounds:,.0f} | {1e6 * player.round_seconds:,.0f} "
            f"| {player.round_seconds / first.round_seconds:.1f} | {min(ratios):.1f} to {max(ratios):.1f} "
            f"| {player.round_seconds / product:.1f} |",
            flush=True,
        )


def lean_gpucb(arms: db.ArmSet, means: Floats, noise: list[float]) -> list[int]:
    """GPUCB's law and nothing else: the arms it plays with seed 0 and its defaults, by a loop over arrays.

    No guard, no checks, no pending decisions, no history, no monitor of rewards, no records.
    """
    policy = db.GPUCB(arms, seed=0)
    ridge, factor, draws = policy.ridge, float(policy.beta), stream(0, "draws")
    covariance = np.asfortranarray(arms.features @ arms.features.T)
    mean, variance, gain, played = np.zeros(len(arms)), covariance.diagonal().copy(), 0.0, []
    for error in noise:
        index = mean + factor * np.sqrt(np.maximum(variance, 0.0))
        top = index.item(index.argmax())
        best = index >= top - 1e-10 * max(1.0, abs(top))
        ties, uniform = int(np.count_nonzero(best)), draws.random()
        arm = int(best.argmax()) if ties == 1 else int(np.flatnonzero(best)[min(int(uniform * ties), ties - 1)])
        reward = min(max(float(means[arm]) + error, -1.0), 1.0)
        column = covariance[:, arm].copy()
        own = column.item(arm)
        step = 1.0 / (ridge + own)
        gain += 0.5 * math.log1p(own / ridge)
        mean += (step * (reward - mean.item(arm))) * column
        variance -= step * (column * column)
        scipy.linalg.blas.dger(-step, column, column, a=covariance, overwrite_a=1)
        played.append(arm)
    return played


def played_by_gpucb(arms: db.ArmSet, means: Floats, noise: list[float]) -> list[int]:
    """The arms that GPUCB itself plays."""
    policy, played = db.GPUCB(arms, seed=0), []
    policy.law()
    for error in noise:
        choice = policy.ask()
        policy.tell(choice.id, min(max(float(means[choice.arm]) + error, -1.0), 1.0))
        played.append(choice.arm)
    return played


def bookkeeping(*, rounds: int) -> None:
    """Print what GPUCB takes beside the lean loop, in turns: the difference is guard, checks, records and history."""
    arms = sphere(100, 10)
    means, noise = reward_function(arms), (0.1 * np.random.default_rng(2).standard_normal(rounds)).tolist()
    spent: dict[str, list[float]] = {"GPUCB": [], "lean": []}
    for _ in range(TURNS):
        for name, play in (("GPUCB", played_by_gpucb), ("lean", lean_gpucb)):
            start = time.process_time()
            play(arms, means, noise)
            spent[name].append((time.process_time() - start) / rounds)
    whole, lean = (1e6 * min(times) for times in spent.values())
    print(f"\nA round of GPUCB {whole:.1f} us, of a lean loop with the same law {lean:.1f} us: {whole / lean:.2f}.")


def measure_on_spheres(makers_of: Callable[[db.ArmSet], Makers], rounds: int) -> None:
    """The same on 100 arms of the spheres in 10 and in 2 dimensions."""
    for dimension in (10, 2):
        arms = sphere(100, dimension)
        measure(f"N = 100, sphere, d = {dimension}", arms, makers_of(arms), rounds)


def heading(title: str) -> None:
    """Print the reference and the head of the table that `measure` fills."""
    products = [product_seconds() for _ in range(20)]
    print(f"\n## {title}\n")
    print(
        f"Reference: one 100 x 100 matrix product, {1e6 * float(np.median(products)):.0f} us "
        f"({1e6 * min(products):.0f} to {1e6 * max(products):.0f}); anew for each case. Ratios are of processor time.\n"
    )
    print(
        "| arms | policy | rounds | start | us per round, wall | processor | GPUCB rounds | in ten turns | products |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
