"""`driftbandits bench`: what a live round costs, one `ask` and one `tell`, of every policy."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftbandits.cli.options import Json, Policies
from driftbandits.cli.show import print_json, print_table, say

if TYPE_CHECKING:
    from driftbandits.environments import Environment
    from driftbandits.experiments.definitions.specs import PolicySpec

WORLD = {"size": 50, "dimension": 2, "switches": []}
NETWORK_WIDTH = 64  # unless told otherwise: at 2,048 a table would take minutes
REPEATS = 3
MOST_ROUNDS = 1_000_000  # their means are in memory at once: 0.4 GB


def bench(
    policy: Policies = [],  # noqa: B006  (Typer makes a new list)
    rounds: Annotated[int, typer.Option("--rounds", min=10, max=MOST_ROUNDS, help="Rounds per measurement.")] = 300,
    json: Json = False,
) -> None:
    """Measure microseconds per round of every policy on 50 arms in 2 dimensions, and the ratio to choosing by chance.

    Times depend on the machine and on what else it does; the ratio compares with Uniform measured in the same run.
    """
    from driftbandits.cli.settings import read_policy

    specs = [read_policy(text) for text in policy] or _all_policies()
    rows = measure(specs, rounds)
    if json:
        print_json(rows)
        return
    print_table(rows)
    say(f"fastest of {REPEATS} runs of {rounds} rounds; 50 arms, d = 2, one thread")


def measure(specs: Sequence[PolicySpec], rounds: int) -> list[dict[str, Any]]:
    """One row per policy: microseconds per round, and how many times that of Uniform."""
    from driftbandits.experiments.definitions.specs import PolicySpec
    from driftbandits.experiments.running.build import build_world

    world = build_world("switching", {**WORLD, "horizon": rounds}, 0)
    chance = PolicySpec("Uniform", "Uniform")
    fastest: dict[str, tuple[float, float]] = {}
    for _ in range(REPEATS):
        for spec in specs:  # Uniform right beside each: other work on the machine comes and goes
            own, unit = fastest.get(spec.label, (math.inf, math.inf))
            fastest[spec.label] = min(own, _seconds(spec, world)), min(unit, _seconds(chance, world))
    return [
        {"policy": label, "microseconds": round(own / rounds * 1e6, 1), "ratio": round(own / unit, 1)}
        for label, (own, unit) in fastest.items()
    ]


def _seconds(spec: PolicySpec, world: Environment) -> float:
    """Time of a whole run, round by round, without the world's own."""
    from driftbandits.experiments.running.build import build_policy

    policy = build_policy(spec, world, 0)
    rewards = world.means(0, world.horizon).tolist()
    begun = time.perf_counter()
    for row in rewards:
        choice = policy.ask()
        policy.tell(choice.id, row[choice.arm])
    return time.perf_counter() - begun


def _all_policies() -> list[PolicySpec]:
    from driftbandits.experiments.definitions.specs import PolicySpec
    from driftbandits.policies import POLICIES

    narrow = {"width": NETWORK_WIDTH}
    return [
        PolicySpec(f"{name} (width {NETWORK_WIDTH})", name, narrow) if kind.trains(narrow) else PolicySpec(name, name)
        for name, kind in POLICIES.items()
    ]
