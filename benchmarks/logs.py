"""Logs: what reading, valuing and advising cost on a million rows, and how well twins rank policies.

The twin check: worlds logged by Uniform and by AutoBandit; the regrets of five policies in the twins of the log against
their regrets in the world itself, as Spearman's rank correlation. The replays: values of random laws on real series
against what is known. `--quick`: a tenth of the rows, two worlds, five laws.
"""

from __future__ import annotations

import dataclasses
import functools
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import stats

import driftbandits as db
from driftbandits import datasets
from driftbandits.environments import Environment
from driftbandits.logs import Log
from driftbandits.logs import twins as posterior
from driftbandits.logs.changes import find_changes
from driftbandits.logs.estimators import Estimator, bin_rewards
from driftbandits.logs.twins import FIXED, Player, fixed_regret, play_twins, policy_of

Result = TypeVar("Result")
ESTIMATORS: tuple[Estimator, ...] = ("ips", "snips", "clipped", "direct", "dr")
ROWS, ARMS = 1_000_000, 100
WORLDS, ROUNDS, TWINS = 20, 2_000, 3
FIRST_WORLD = 340_000  # of the worlds below 40 some were looked at while twins were built, others were shown before
REPLAYS = ("digits", "flights", "stocks")


def columns(rows: int) -> dict[str, object]:
    """A log of a fixed law in a world of three stretches."""
    rng = np.random.default_rng(0)
    law = 0.5 * rng.dirichlet(np.ones(ARMS)) + 0.5 / ARMS
    means = rng.uniform(0.2, 0.8, (3, ARMS))
    arm = rng.choice(ARMS, size=rows, p=law)
    reward = np.clip(means[np.arange(rows) * 3 // rows, arm] + rng.normal(0, 0.1, rows), 0, 1)
    names = np.array([f"arm {k}" for k in range(ARMS)])
    return {"round": np.arange(rows), "arm": names[arm], "reward": reward, "probability": law[arm]}


def timed(what: str, call: Callable[[], Result]) -> Result:
    begun = time.perf_counter()
    result = call()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"| {what} | {time.perf_counter() - begun:.1f} s | {memory:.2f} GiB |", flush=True)
    return result


def speed(rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    print(f"\n## A log of {rows:,} rows and {ARMS} arms\n\n| what | time | most memory so far |\n|---|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        pq.write_table(pa.table(columns(rows)), path)
        log = timed("read and check, Parquet", lambda: Log.read(path, reward_range=(0, 1)))
    for estimator in ESTIMATORS:
        timed(estimator, functools.partial(db.logs.evaluate, log, "arm 3", estimator=estimator))
    timed("advise", lambda: db.logs.advise(log))


def world_of(number: int) -> Environment:
    """Switching, drifting and still worlds in turn."""
    names = ("switching/1", "cosine/slow", "switching/1")
    settings: tuple[dict[str, Any], ...] = (
        {"horizon": ROUNDS, "switches": (ROUNDS // 3, 2 * ROUNDS // 3), "size": 20, "dimension": 2},
        {"horizon": ROUNDS, "size": 20, "dimension": 2},
        {"horizon": ROUNDS, "switches": (), "size": 20, "dimension": 2},
    )
    return db.environments.create(names[number % 3], seed=number, **settings[number % 3])


def correlation(world: Environment, kind: type[db.Policy], seed: int) -> float:
    """Spearman's correlation of five policies' regrets in twins and in the world; four where masks leave one out."""
    trace = db.simulate(kind(world.arms, seed=seed, reward_range=world.reward_range), world, seed=seed)
    log = replay_log(world, trace)
    bins = bin_rewards(log, most=posterior.BINS)
    found = find_changes(log)
    fresh = sorted({int(bins.of_row[one.row]) for one in found.changes} - {0})
    tried = [posterior.fit(bins, one) for one in posterior.hypotheses(log, found.movement, fresh)]
    regrets = play_twins(log, bins, tried, posterior.weights_of(tried), twins=TWINS, seed=seed)
    in_twins = [regrets.interval(name).estimate for name in (*regrets.players, FIXED)]
    real = [_regret(player, world, seed + 1_000) for player in regrets.players.values()]
    fixed = fixed_regret(world, np.array(regrets.order))
    return float(stats.spearmanr(in_twins, [*real, fixed]).statistic)


def _regret(player: Player, world: Environment, seed: int) -> float:
    policy = policy_of(player, world.arms, world.reward_range, seed)
    return float(db.simulate(policy, world, seed=seed).regret.mean())


def twins(worlds: int) -> None:
    print(f"\n## Twins: rank correlation of five policies' regrets with those in the world, {worlds} worlds\n")
    print("| logged by | mean | least | worlds |\n|---|---:|---:|---:|")
    numbers = range(FIRST_WORLD, FIRST_WORLD + worlds)
    for kind in (db.Uniform, db.AutoBandit):
        found = [correlation(world_of(number), kind, number) for number in numbers]
        print(f"| {kind.__name__} | {np.mean(found):.2f} | {min(found):.2f} | {worlds} |", flush=True)


def real_twins() -> None:
    """The same on real series, some of which do not offer every arm in every round."""
    print("\n## Twins of real series\n\n| data | Uniform | AutoBandit |\n|---|---:|---:|")
    for data in REPLAYS:
        world = datasets.create(data, offset=0)
        found = [f"{correlation(world, kind, 0):.2f}" for kind in (db.Uniform, db.AutoBandit)]
        print(f"| {data} | {' | '.join(found)} |", flush=True)


def replay_log(world: Environment, trace: db.Trace) -> Log:
    """The log of a replay, with what was offered."""
    log = Log.read(trace, arms=world.arms, reward_range=world.reward_range)
    return dataclasses.replace(log, allowed=world.allowed(0, world.horizon))


def replays(laws: int) -> None:
    """Values of random laws on real series, where every counterfactual is known."""
    print(f"\n## Real series: {laws} random laws valued, 95 % intervals\n")
    print("| data, logged by | could be told | ips: covered | dr: covered | error of dr over ips |")
    print("|---|---:|---:|---:|---:|")
    for data in REPLAYS:
        world = datasets.create(data, offset=0)
        means, offered = world.means(0, world.horizon), world.allowed(0, world.horizon)
        for kind in (db.Uniform, db.AutoBandit):
            policy = kind(world.arms, seed=0, reward_range=world.reward_range)
            log = replay_log(world, db.simulate(policy, world, seed=0))
            print(f"| {data}, {kind.__name__} | {_valued(log, means, offered, laws)} |", flush=True)


def _valued(log: Log, means: db.Floats, offered: npt.NDArray[np.bool_] | None, laws: int) -> str:
    rng = np.random.default_rng(0)
    mask = np.ones(means.shape, dtype=bool) if offered is None else offered
    names: tuple[Estimator, ...] = ("ips", "dr")
    errors: dict[str, list[float]] = {name: [] for name in names}
    covered = dict.fromkeys(names, 0)
    for _ in range(laws):
        law = rng.dirichlet(np.full(means.shape[1], 0.3))
        share = np.where(mask, law, 0.0)
        truth = float((np.where(mask, means, 0.0) * share).sum(axis=1) @ (1.0 / share.sum(axis=1)) / len(means))
        for name in names:
            found = db.logs.evaluate(log, law, estimator=name)
            if not found.verdict:
                errors[name].append(found.value - truth)
                covered[name] += found.low <= truth <= found.high
    told = len(errors["dr"])
    if not told:
        return "0 | - | - | -"
    ratio = float(np.sqrt(np.mean(np.square(errors["dr"])) / np.mean(np.square(errors["ips"]))))
    return f"{told} | {covered['ips']} | {covered['dr']} | {ratio:.2f}"


def run(*, quick: bool = False) -> None:
    speed(ROWS // 10 if quick else ROWS)
    twins(2 if quick else WORLDS)
    real_twins()
    replays(5 if quick else 40)
