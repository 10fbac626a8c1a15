"""What policies do with their defaults alone, as shares of the regret of the uniform law: `python -m benchmarks defaults`.

Every policy is told the arms of its world (and with them its kernel), the horizon and a seed, and nothing else. The
worlds are the paper's and two of the suite, at d = 10 and d = 2. Networks are 256 wide, where a run takes a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import driftbandits as db
from driftbandits.experiments.definitions.suite import SUITE_WORLDS

DIMENSIONS = (10, 2)
SEEDS = (0, 1, 2)
NARROW = {"OPNN": {"width": 256}, "AdaOPNN": {"width": 256}}
# name: (environment, its settings)
WORLDS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "stationary": SUITE_WORLDS["stationary"][1:],
    "still cosine": ("cosine/stationary", {}),
    "one switch": ("switching/1", {}),
    "two switches": ("switching/2", {}),
    "three redraws": SUITE_WORLDS["redraw-3"][1:],
    "slow drift": ("cosine/slow", {}),
}


def final_regret(policy: type[db.Policy], world: db.environments.Environment, seed: int, **settings: Any) -> float:
    """Regret of the whole run."""
    player = policy(world.arms, horizon=world.horizon, seed=seed, **settings)
    return float(db.simulate(player, world, seed=seed).cumulative_regret[-1])


def shares(
    policies: Mapping[str, type[db.Policy]], name: str, dimension: int, seeds: Sequence[int]
) -> dict[str, float]:
    """Regret of every policy over that of `Uniform` in a world of WORLDS, both summed over the seeds."""
    environment, settings = WORLDS[name]
    worlds = [db.environments.create(environment, **settings, dimension=dimension, seed=seed) for seed in seeds]
    runs = list(zip(worlds, seeds, strict=True))
    uniform = sum(final_regret(db.Uniform, world, seed) for world, seed in runs)
    return {
        label: sum(final_regret(policy, world, seed, **NARROW.get(label, {})) for world, seed in runs) / uniform
        for label, policy in policies.items()
    }


def run(*, quick: bool = False) -> None:
    """Print the table; `quick` plays one seed."""
    policies = {name: policy for name, policy in db.POLICIES.items() if policy is not db.Uniform}
    columns = [(name, dimension) for dimension in DIMENSIONS for name in WORLDS]
    found = [shares(policies, name, dimension, SEEDS[:1] if quick else SEEDS) for name, dimension in columns]
    print("\n## Defaults alone, regret as a share of the uniform law's\n")
    print(f"| policy | {' | '.join(f'{name}, d = {dimension}' for name, dimension in columns)} |")
    print(f"|---|{'---:|' * len(columns)}")
    for label in policies:
        row = np.array([column[label] for column in found])
        print(f"| `{label}` | {' | '.join(f'{share:.2f}' for share in row)} |", flush=True)
