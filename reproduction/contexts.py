"""Requests with contexts: AutoBandit beside segments and discounted linear bandits, alarms, and useless columns.

Rivals are told more than AutoBandit: segments are cut along the two columns that matter, three cells each, and the
discount and width of the linear bandits are chosen for every world by their regret on tuning seeds.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import driftbandits as db
from driftbandits._util.files import write_whole
from driftbandits._util.progress import progress_bar
from driftbandits.arms.contexts import rows_of
from driftbandits.environments import Environment, uniforms
from driftbandits.environments.requests import PART_ABOVE
from driftbandits.experiments.seeds import EVALUATION, TUNING
from driftbandits.types import Floats

KINDS = ("stationary", "switch", "drift", "part", "mix", "rhythm")
SIZES = ("columns-2", "columns-4", "columns-32", "arms-4", "arms-100", "clicks")
WORLDS = tuple(f"requests/{name}" for name in (*KINDS, *SIZES))
USELESS = "requests/useless"
ROUNDS = 10_000
TUNED_ON, PLAYED_ON, MIXED_ON = TUNING.take(2), EVALUATION.take(10), EVALUATION.take(20)
RIVALS = ("DisjointLinUCB", "DisjointLinThompson")
DISCOUNTS = (1.0, 0.9995, 0.999, 0.997)
WIDTHS = (0.1, 0.3)
OURS, SEGMENTS, BLIND = "AutoBandit", "AutoBandit on segments", "AutoBandit without contexts"
CELL_EDGES = (-0.4307, 0.4307)  # thirds of a standard normal number
KEPT = Path("results/contexts")


@dataclass(frozen=True)
class Run:
    """One run: a world, a policy by its label, its settings, and the seed."""

    world: str
    policy: str
    settings: tuple[tuple[str, float], ...]
    seed: int
    rounds: int = ROUNDS

    @property
    def path(self) -> Path:
        """Where its result is kept."""
        settings = "".join(f",{name}={value:g}" for name, value in self.settings)
        behaviour = db.policies.POLICIES[kind_of(self.policy)].behaviour
        name = f"{self.world.replace('/', '-')},{self.policy.replace(' ', '-')}{settings},{self.seed},{self.rounds}"
        return KEPT / f"{name},{behaviour}.json"


def kind_of(policy: str) -> str:
    """The class of a label."""
    return policy.partition(" ")[0]


def played(run: Run) -> dict[str, Any]:
    """Regret, and the changes recorded; from the file that was kept, if there is one."""
    if run.path.exists():
        return dict(json.loads(run.path.read_text()))
    world = db.environments.create(run.world, seed=run.seed, horizon=run.rounds)
    low, high = (0.0, 1.0) if run.world.endswith("clicks") else (-1.0, 1.0)
    settings: dict[str, Any] = {"seed": run.seed, "reward_range": (low, high), "out_of_range": "clip"}
    if run.policy == SEGMENTS:
        regret, changes = _on_segments(world, settings, run.seed)
    else:
        contexts = None if run.policy == BLIND else world.contexts
        policy = db.create_policy(kind_of(run.policy), world.arms, contexts=contexts, **settings, **dict(run.settings))
        trace = db.simulate(policy, world, seed=run.seed)
        regret, changes = float(trace.regret.sum()), trace.changes
    found = {"regret": regret, "changes": [[*change.interval, change.part] for change in changes]}
    KEPT.mkdir(parents=True, exist_ok=True)
    write_whole(run.path, json.dumps(found).encode())
    return found


def _on_segments(world: Environment, settings: dict[str, Any], seed: int) -> tuple[float, Sequence[db.Change]]:
    """AutoBandit on arms crossed with nine cells of the two numbers that matter."""
    names = [f"cell {k}" for k in range(9)]
    arms = db.ArmSet.crossed(world.arms, names, kernel=0.5)
    masks = [arms.of(name) for name in names]
    policy = db.AutoBandit(arms, **settings)
    cells = _cells(world)
    means, noise, options = world.means(0, world.horizon), uniforms(seed, 0, world.horizon), len(world.arms)
    regret = 0.0
    for now, cell in enumerate(cells.tolist()):
        choice = policy.ask(allowed=masks[cell])
        arm = choice.arm % options
        mean = means[now : now + 1, arm]
        policy.tell(choice, float(world.observe(now, np.array([arm]), mean, noise[now : now + 1])[0]))
        regret += float(means[now].max() - mean[0])
    return regret, policy.changes


def _cells(world: Environment) -> Floats:
    rows = rows_of(world.requests(0, world.horizon))
    if isinstance(rows[0], dict):  # the hour: the two numbers are those of its circle
        angle = 2.0 * math.pi * np.array([row["hour"] for row in rows]) / 24.0
        numbers = np.sqrt(2.0) * np.column_stack([np.cos(angle), np.sin(angle)])
    else:
        numbers = np.asarray(rows)[:, :2]
    first, second = (np.digitize(numbers[:, k], CELL_EDGES) for k in range(2))
    return np.asarray(3 * first + second)


def all_played(runs: Sequence[Run], title: str) -> list[dict[str, Any]]:
    """The runs in two processes, with a progress bar."""
    with ProcessPoolExecutor(2) as pool, progress_bar(len(runs), title) as advance:
        found = []
        for result in pool.map(played, runs):
            found.append(result)
            advance(1)
    return found


def tuned(worlds: Sequence[str] = WORLDS) -> dict[tuple[str, str], tuple[tuple[str, float], ...]]:
    """Discount and width of each rival in each world with the least regret on tuning seeds."""
    grid = [(("discount", d), ("beta", b)) for d, b in itertools.product(DISCOUNTS, WIDTHS)]
    keys = list(itertools.product(worlds, RIVALS, grid))
    runs = [Run(world, rival, settings, seed) for world, rival, settings in keys for seed in TUNED_ON]
    regrets = np.array([found["regret"] for found in all_played(runs, "tuning")]).reshape(len(keys), -1).mean(axis=1)
    best: dict[tuple[str, str], tuple[tuple[str, float], ...]] = {}
    least: dict[tuple[str, str], float] = {}
    for (world, rival, settings), regret in zip(keys, regrets.tolist(), strict=True):
        if regret < least.get((world, rival), math.inf):
            least[world, rival], best[world, rival] = regret, settings
    return best


@dataclass(frozen=True)
class Found:
    """Mean regret by world and policy, (worlds, policies), and the numbers of a measurement."""

    worlds: tuple[str, ...]
    policies: tuple[str, ...]
    regrets: Floats
    errors: Floats
    numbers: dict[str, float]


def compared() -> Found:
    """AutoBandit and its rivals on evaluation seeds."""
    settings = tuned()
    policies = (OURS, SEGMENTS, *RIVALS)
    runs = [
        Run(world, policy, settings.get((world, policy), ()), seed)
        for world in WORLDS
        for policy in policies
        for seed in PLAYED_ON
    ]
    regrets = np.array([found["regret"] for found in all_played(runs, "twelve worlds")])
    regrets = regrets.reshape(len(WORLDS), len(policies), -1)
    means = regrets.mean(axis=2)
    numbers: dict[str, float] = {}
    for place, rival in enumerate(policies[1:], start=1):
        ratios = np.log(means[:, 0] / means[:, place])
        numbers[f"over.{rival}"] = float(np.exp(ratios.mean()))
    numbers["worst-over-best"] = float((means[:, 0] / means[:, 1:].min(axis=1)).max())
    return Found(WORLDS, policies, means, regrets.std(axis=2, ddof=1) / math.sqrt(len(PLAYED_ON)), numbers)


def alarm_numbers() -> dict[str, float]:
    """Alarms where the mix moves alone; changes of a part: how many are recorded in time, and named by their column."""
    mix = [Run("requests/mix", OURS, (), seed) for seed in MIXED_ON]
    part = [Run("requests/part", OURS, (), seed) for seed in PLAYED_ON]
    moved = all_played(mix, "a moving mix")
    found = all_played(part, "a change of a part")
    in_time = named = 0
    for run, result in zip(part, found, strict=True):
        world = db.environments.create(run.world, seed=run.seed, horizon=run.rounds)
        after = np.asarray(world.requests(0, run.rounds))[:, 0] > PART_ABOVE
        after[: run.rounds // 2] = False
        last = int(np.flatnonzero(np.cumsum(after) >= 1_000)[:1].sum()) or run.rounds
        right = [change for change in result["changes"] if run.rounds // 2 <= change[1] <= last]
        in_time += bool(right)
        named += bool(right) and "column 0 =" in right[0][2]
    return {
        "mix.runs": len(MIXED_ON),
        "mix.alarms": sum(len(result["changes"]) for result in moved),
        "part.runs": len(PLAYED_ON),
        "part.recorded": in_time,
        "part.named": named,
    }


def useless_numbers() -> dict[str, float]:
    """What eight useless columns cost."""
    runs = [Run(USELESS, policy, (), seed) for policy in (OURS, BLIND) for seed in PLAYED_ON]
    regrets = np.array([found["regret"] for found in all_played(runs, "useless columns")]).reshape(2, -1)
    with_, without = regrets.mean(axis=1)
    return {"useless.with": float(with_), "useless.without": float(without), "useless.ratio": float(with_ / without)}


def table(found: Found, markdown: Callable[[Sequence[str], Sequence[Sequence[str]]], list[str]]) -> list[str]:
    """Regret by world, the worst for us first."""
    over = found.regrets[:, 0] / found.regrets[:, 1:].min(axis=1)
    rows = []
    for place in np.argsort(-over).tolist():
        entries = [
            f"{mean:,.0f} ± {error:,.0f}" for mean, error in zip(found.regrets[place], found.errors[place], strict=True)
        ]
        rows.append([found.worlds[place], f"{over[place]:.2f}", *entries])
    return markdown(["world", "over the best rival", *found.policies], rows)
