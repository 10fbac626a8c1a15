"""What it costs AutoBandit that rewards which say little wait for others: regret beside one that learns each at once.

All worlds of the suite, tuning seeds, both policies in the same world with the same noise. `python -m
benchmarks.together --seeds 8`: an hour and a half on one core. Every pair is a line of
results/benchmarks/together.jsonl, and what stands there is not played again: delete the file where the policy has
changed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

import driftbandits as db
from benchmarks.hidden import AUTO, WORLDS
from driftbandits.configuration.models import read_settings
from driftbandits.experiments.building import build_world
from driftbandits.experiments.specs import cells_of
from driftbandits.simulation import simulate
from driftbandits.types import Floats
from reproduction.autobandit import YARDSTICK

FIRST_SEED = 1_000_000
KEPT = Path("results/benchmarks/together.jsonl")
LIMIT = 0.03
ONE_SIDED = 1.645  # standard errors


class AtOnce(db.AutoBandit):
    """The slow twin: no reward waits."""

    def _waiting(self, *_: object) -> None:
        return None


def play(name: str, seed: int) -> dict[str, Any]:
    """Final regrets and processor seconds of both."""
    experiment = YARDSTICK[f"yardstick/{name}"]
    (cell,) = (cell for cell in cells_of(experiment) if cell.policy.label == AUTO and cell.seed == experiment.seeds[0])
    pair: dict[str, Any] = {"world": name, "seed": seed}
    with threadpool_limits(limits=1):
        world = build_world(cell.environment, cell.settings, seed)
        for label, kind in (("together", db.AutoBandit), ("at_once", AtOnce)):
            start = time.process_time()
            policy = kind(world.arms, horizon=world.horizon, seed=seed, **read_settings(cell.policy.settings))
            trace = simulate(policy, world, seed=seed)
            pair[f"{label}_seconds"] = time.process_time() - start
            pair[label] = float(trace.cumulative_regret[-1])
            pair[f"{label}_changes"] = len(trace.changes)
    return pair


def collect(worlds: Iterable[str], seeds: Iterable[int], *, jobs: int) -> list[dict[str, Any]]:
    """All these pairs, those kept already and those played now."""
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    kept = {(pair["world"], pair["seed"]): pair for pair in map(json.loads, lines)}
    wanted = [(world, seed) for seed in seeds for world in worlds]
    tasks = (joblib.delayed(play)(*task) for task in wanted if task not in kept)
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    with KEPT.open("a") as file:
        for pair in joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks):
            file.write(json.dumps(pair) + "\n")
            file.flush()
            kept[pair["world"], pair["seed"]] = pair
    return [kept[task] for task in wanted]


def report(pairs: list[dict[str, Any]]) -> None:
    """Print a row per world, and all pooled: differences over the mean regret of both."""
    print("| world | pairs | together | at once | difference ± s.e. | changes found, together and at once |")
    print("|---|---:|---:|---:|---:|---:|")
    relative = []
    for world in dict.fromkeys(pair["world"] for pair in pairs):
        mine = [pair for pair in pairs if pair["world"] == world]
        together, at_once = (np.array([pair[label] for pair in mine]) for label in ("together", "at_once"))
        difference = together - at_once
        error = difference.std(ddof=1) / np.sqrt(len(mine)) if len(mine) > 1 else np.nan
        both = 0.5 * (together + at_once).mean()  # of one alone, luck in a few runs would count against the other
        relative.extend((difference / both).tolist())
        found = [np.mean([pair[f"{label}_changes"] for pair in mine]) for label in ("together", "at_once")]
        print(
            f"| {world} | {len(mine)} | {together.mean():,.0f} | {at_once.mean():,.0f} "
            f"| {difference.mean():+,.0f} ± {error:,.0f} | {found[0]:.1f}, {found[1]:.1f} |"
        )
    ratios = np.log([pair["together"] / pair["at_once"] for pair in pairs])
    seconds = [sum(pair[f"{label}_seconds"] for pair in pairs) for label in ("together", "at_once")]
    print(
        f"\nAll {len(pairs)} pairs, allowed {LIMIT:.0%}; "
        f"processor time {seconds[0] / seconds[1]:.2f} of the slow twin's."
    )
    print(f"Difference, of the mean regret in the world: {with_limit(np.array(relative))}")
    print(f"Logarithm of the ratio, as in a geometric mean: {with_limit(ratios)}")


def with_limit(values: Floats) -> str:
    """Mean, its standard error, and what it is below with 95 % confidence."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():+.2%} ± {error:.2%}, below {values.mean() + ONE_SIDED * error:+.2%} with 95 % confidence"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    report(collect(options.worlds, range(FIRST_SEED, FIRST_SEED + options.seeds), jobs=options.jobs))


if __name__ == "__main__":
    main()
