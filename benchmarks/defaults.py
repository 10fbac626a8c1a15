"""What policies do with their defaults alone, as shares of the uniform law's regret.

Every policy is told the arms of its world (and with them its kernel), the horizon and a seed, and nothing else. The
worlds are the paper's and two of the suite, at d = 10 and d = 2. Networks are 256 wide, where a run takes a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import driftbandits as db
from driftbandits.environments import Environment
from reproduction.suite import SUITE_WORLDS

DIMENSIONS = (10, 2)
SEEDS = (0, 1, 2)
# Play one seed less, for their runs take longest.
SLOW = ("AutoBandit", "WeightedGPUCB", "LinearExp3", "NeuralUCB", "SlidingWindowNeuralUCB", "OPNN", "AdaOPNN")
NARROW: dict[str, Any] = {"OPNN": {"width": 256}, "AdaOPNN": {"width": 256}}
# name: (environment, its settings)
WORLDS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "stationary": SUITE_WORLDS["stationary"][1:],
    "still cosine": ("cosine/stationary", {}),
    "one switch": ("switching/1", {}),
    "two switches": ("switching/2", {}),
    "three redraws": SUITE_WORLDS["redraw-3"][1:],
    "slow drift": ("cosine/slow", {}),
}


def final_regret(policy: str, world: Environment, seed: int) -> float:
    """Regret of the whole run."""
    player = db.POLICIES[policy](world.arms, horizon=world.horizon, seed=seed, **NARROW.get(policy, {}))
    return float(db.simulate(player, world, seed=seed).cumulative_regret[-1])


def shares(policies: Sequence[str], name: str, dimension: int, seeds: Sequence[int]) -> dict[str, float]:
    """Regret of each policy over that of `Uniform` in a world of WORLDS, both summed over the seeds it plays."""
    environment, settings = WORLDS[name]
    worlds = {seed: db.environments.create(environment, **settings, dimension=dimension, seed=seed) for seed in seeds}
    uniform = {seed: final_regret("Uniform", world, seed) for seed, world in worlds.items()}
    found = {}
    for policy in policies:
        own = seeds[:2] if policy in SLOW else seeds
        found[policy] = sum(final_regret(policy, worlds[seed], seed) for seed in own) / sum(uniform[s] for s in own)
    return found


def run(*, quick: bool = False) -> None:
    """Print the table; `quick` plays one seed."""
    policies = [name for name in db.POLICIES if name != "Uniform"]
    columns = [(name, dimension) for dimension in DIMENSIONS for name in WORLDS]
    found = [shares(policies, name, dimension, SEEDS[:1] if quick else SEEDS) for name, dimension in columns]
    print("\n## Defaults alone, regret as a share of the uniform law's\n")
    print(f"| policy | {' | '.join(f'{name}, d = {dimension}' for name, dimension in columns)} |")
    print(f"|---|{'---:|' * len(columns)}")
    for policy in policies:
        print(f"| `{policy}` | {' | '.join(f'{column[policy]:.2f}' for column in found)} |", flush=True)
