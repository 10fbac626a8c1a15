"""Policies on live traffic: rewards that are rare successes, late, priced, of a shop that changes.

`python -m benchmarks live` plays everything; `python -m benchmarks.live still halving` plays the rows named, and
`--seeds 3` fewer seeds. A seed of a row takes half a minute, that of segments two.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.live.rows import ROWS, Numbers

SEEDS = 10
JOBS = 2


def run(*, quick: bool = False) -> None:
    show(tuple(ROWS), seeds=2 if quick else SEEDS)


def show(names: Sequence[str], *, seeds: int, first: int = 0) -> None:
    """Play these rows and print what is asked and what was measured."""
    print(f"\n## Live traffic, seeds {first} to {first + seeds - 1}\n")
    print("| condition | asked | measured | |\n|---|---|---:|---|")
    for name in names:
        row = ROWS[name]
        tasks = (joblib.delayed(_one)(name, seed) for seed in range(first, first + seeds))
        found = joblib.Parallel(n_jobs=JOBS)(tasks)
        failed = [item for item in found if isinstance(item, str)]
        if failed:
            print(f"| {row.condition} | all | fails: {failed[0]} | no |", flush=True)
            continue
        for question in row.questions:
            value = question.measure(found)
            print(f"| {row.condition} | {question.asked} | {value:.3g} | {'yes' if question.holds(value) else 'no'} |")
        print(f"| {row.condition} | means of all numbers | {_means(found)} | |", flush=True)


def _one(name: str, seed: int) -> Numbers | str:
    """What a seed gives, or the error that ended it: the other rows are played all the same."""
    with threadpool_limits(limits=1):
        try:
            return ROWS[name].play(seed)
        except Exception as error:  # noqa: BLE001
            where = traceback.extract_tb(error.__traceback__)[-1]
            return f"{type(error).__name__} in {where.name}: {error}"


def _means(found: Sequence[Numbers]) -> str:
    return ", ".join(f"{name} {np.mean([numbers[name] for numbers in found]):.3g}" for name in found[0])
