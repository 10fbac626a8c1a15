"""What logs say, measured in worlds that are known: intervals of changes, first sentences, recommendations, time.

Every log has a world of its own. Development used the seeds below 1,000, the numbers on pages the seeds from FIRST on.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import driftbandits as db
from driftbandits._util.intervals import share_interval
from driftbandits._util.progress import progress_bar
from driftbandits.logs import Advice, Log, advise, evaluate
from driftbandits.logs.advising import diagnose, too_short
from driftbandits.logs.changes import find_changes
from driftbandits.logs.estimators import Estimator
from driftbandits.logs.twins import fixed_regret, players_of, policy_of
from driftbandits.types import Floats

FIRST = 2_040_000  # earlier versions were measured on the seeds before
LOGS_DATED, ROWS_DATED = 200, 20_000
REWARDS_DATED = ("two-values", "zeros-and-amounts", "heavy-tails", "drift-two-values", "drift-normal")
LOGS, ROUNDS, ARMS, NOISE = 100, 2_000, 5, 0.15
LOGS_STILL = 100
LOGS_RECOMMENDED, PLAYED = 8, 2  # seeds of the policies that are played in the world itself
KINDS = ("still", "switch", "drift", "rhythm", "too-short")
REWARDS = ("normal", "two-values")
SAID = ("cannot-tell", "still", "switch", "switches", "drift", "rhythm")
RIGHT = {**{kind: kind for kind in KINDS}, "too-short": "cannot-tell"}
CONTEXT_WORLDS = ("stationary", "switch", "drift", "part", "mix")
LOGS_WITH_CONTEXTS, ROWS_WITH_CONTEXTS = 80, 2_000  # logs of each of these worlds
FIRST_WITH_CONTEXTS = 2_060_000
CONTEXT_ESTIMATORS: tuple[Estimator, ...] = ("dr", "ips", "snips")
PLAYERS = tuple(player.policy for player in players_of(1).values())
WITHIN = 0.03  # of what the best choice earns


def seeds_of_logs(count: int, *, first: int = FIRST) -> tuple[int, ...]:
    """So many seeds of logs."""
    return tuple(first + number for number in range(count))


def changing(kind: str, number: int, seed: int) -> tuple[Log, list[int]]:
    """A log of a fixed law in a world with some changes, and their rows; half of the arms move at each."""
    rng = np.random.default_rng([seed, number])
    arms = int(rng.choice([2, 5, 10]))
    reach = 0.3 if number == 1 else 0.1 / (number + 1)
    share = (np.arange(number) + 1) / (number + 1) + rng.uniform(-reach, reach, number)
    rows = [int(ROWS_DATED * one) for one in share]
    part = np.searchsorted(rows, np.arange(ROWS_DATED), side="right")
    law = rng.dirichlet(np.full(arms, 3.0))
    arm = rng.choice(arms, ROWS_DATED, p=law)
    levels = [rng.uniform(0.2, 0.6, arms)]
    for _ in rows:
        new = levels[-1].copy()
        moved = rng.choice(arms, max(1, arms // 2), replace=False)
        up = np.where(new[moved] < 0.3, 1, np.where(new[moved] > 0.5, -1, rng.choice([-1, 1], len(moved))))
        new[moved] += up * rng.uniform(0.1, 0.25, len(moved))
        levels.append(np.clip(new, 0.05, 0.9))
    mean = np.array(levels)[part, arm]
    if kind.startswith("drift"):
        wave = 2 * np.pi * (np.arange(ROWS_DATED) / ROWS_DATED * rng.uniform(0.3, 1.0) + rng.uniform(0, 1, arms)[arm])
        mean = mean + 0.05 * np.sin(wave)
    if kind.endswith("two-values"):
        reward = (rng.random(ROWS_DATED) < mean).astype(np.float64)
    elif kind == "zeros-and-amounts":
        reward = np.where(rng.random(ROWS_DATED) < mean, np.exp(rng.normal(0, 1, ROWS_DATED)), 0.0)
    elif kind == "heavy-tails":
        reward = mean + 0.1 * rng.standard_t(2, ROWS_DATED)
    else:
        reward = mean + rng.normal(0, 0.3, ROWS_DATED)
    return Log(np.arange(ROWS_DATED), arm, reward, law[arm], tuple(map(str, range(arms)))), rows


def interval_numbers(number: int) -> dict[str, float]:
    """Of all intervals of changes that were named the share in which there was one, by kind of rewards."""
    numbers: dict[str, float] = {}
    all_covered = all_named = 0
    with progress_bar(len(REWARDS_DATED) * LOGS_DATED, "intervals", show=True) as advance:
        for kind in REWARDS_DATED:
            covered = named = met = 0
            widths = []
            for seed in range(FIRST, FIRST + LOGS_DATED):
                log, rows = changing(kind, number, seed)
                ends = [change.interval for change in find_changes(log).changes]
                covered += sum(any(low <= row <= high for row in rows) for low, high in ends)
                met += sum(any(low <= row <= high for low, high in ends) for row in rows)
                named += len(ends)
                widths += [high - low for low, high in ends]
                advance()
            all_covered, all_named = all_covered + covered, all_named + named
            found = share_interval(covered, named)
            numbers |= {
                f"{kind}.{name}": float(value)
                for name, value in (
                    ("named", named),
                    ("covered", found.estimate),
                    ("low", found.low),
                    ("high", found.high),
                    ("found", met / (number * LOGS_DATED)),
                    ("width", np.median(widths)),
                )
            }
    return {**numbers, "covered": all_covered / all_named, "named": float(all_named)}


def means_of(kind: str, rng: np.random.Generator) -> Floats:
    """Mean rewards (T, N) between 0.2 and 0.8, or a little beyond."""
    rounds = 200 if kind == "too-short" else ROUNDS
    first, second = rng.uniform(0.2, 0.8, (2, ARMS))
    share = np.linspace(0.0, 1.0, rounds)[:, None]
    if kind == "switch":
        share = (share > rng.uniform(0.25, 0.75)).astype(np.float64)
    elif kind != "drift":
        share = np.zeros_like(share)
    means = (1.0 - share) * first + share * second
    if kind == "rhythm":
        phase = 2.0 * np.pi * np.arange(rounds)[:, None] * 8 / rounds
        means = means + 0.12 * np.sin(phase + rng.uniform(0.0, 2.0 * np.pi, ARMS))
    return np.asarray(means)


@dataclass(frozen=True)
class Known:
    """A log, and the world that it is of."""

    log: Log
    world: db.environments.Tabular
    reward_range: tuple[float, float]


def known(kind: str, seed: int, rewards: str) -> Known:
    """The log that Exp3S left in a world."""
    arms = db.ArmSet.from_features(np.eye(ARMS))
    normal = rewards == "normal"
    noise = db.environments.TruncatedGaussianNoise(NOISE) if normal else db.environments.BernoulliNoise()
    world = db.environments.Tabular(arms, means_of(kind, np.random.default_rng(seed)), noise=noise)
    limits = (-1.0, 1.0) if normal else (0.0, 1.0)
    policy = db.Exp3S(arms, horizon=world.horizon, seed=seed, reward_range=limits)
    log = Log.read(db.simulate(policy, world, seed=seed), arms=[f"arm {k}" for k in range(ARMS)], reward_range=limits)
    return Known(log, world, limits)


def said_of(log: Log) -> str:
    """What the first sentence says."""
    if too_short(log):
        return "cannot-tell"
    return _word(diagnose(log))


def _word(found: Advice) -> str:
    if found.moves is None:
        return "cannot-tell"
    kind = "still" if found.movement is None else found.movement.kind
    if kind == "switches":
        return "switch" if len(found.changes) == 1 else "switches"
    return {"drifts": "drift"}.get(kind, kind)


def verdict_numbers() -> dict[str, float]:
    """How often the first sentence says what."""
    numbers: dict[str, float] = {}
    for rewards in REWARDS:
        for kind in KINDS:
            counts = Counter(said_of(known(kind, seed, rewards).log) for seed in range(FIRST, FIRST + LOGS))
            share = share_interval(counts[RIGHT[kind]], LOGS)
            right = {"right": share.estimate, "low": share.low, "high": share.high}
            numbers |= {f"{rewards}.{kind}.{name}": float(value) for name, value in right.items()}
            numbers |= {f"{rewards}.{kind}.said-{word}": float(counts[word]) for word in SAID}
    return numbers


def still_logs(policy: str, rates: tuple[float, float], *, normal: bool, seed: int) -> Iterator[Log]:
    """Logs in which nothing moves, of a policy that learns or not; all are played side by side."""
    rng = np.random.default_rng([seed, len(policy), int(normal)])
    means = rng.uniform(*rates, (LOGS_STILL, ARMS))
    every = np.arange(LOGS_STILL)
    plays, sums = np.zeros((2, LOGS_STILL, ARMS))
    arms, rewards = np.empty((LOGS_STILL, ROUNDS), dtype=np.int64), np.empty((LOGS_STILL, ROUNDS))
    for now in range(ROUNDS):
        mean, deviation = sums / np.maximum(plays, 1.0), 1.0 / np.sqrt(np.maximum(plays, 1.0))
        if policy == "uniform":
            arm = rng.integers(0, ARMS, LOGS_STILL)
        elif now < ARMS:
            arm = np.full(LOGS_STILL, now)
        elif policy == "ucb":
            arm = (mean + np.sqrt(0.5 * math.log(now + 1)) * deviation).argmax(axis=1)
        elif policy == "epsilon-greedy":
            arm = np.where(rng.random(LOGS_STILL) < 0.1, rng.integers(0, ARMS, LOGS_STILL), mean.argmax(axis=1))
        else:
            arm = (mean + 0.5 * deviation * rng.standard_normal((LOGS_STILL, ARMS))).argmax(axis=1)
        expected = means[every, arm]
        noisy = expected + NOISE * rng.standard_normal(LOGS_STILL)
        reward = noisy if normal else (rng.random(LOGS_STILL) < expected).astype(np.float64)
        arms[:, now], rewards[:, now] = arm, reward
        plays[every, arm] += 1.0
        sums[every, arm] += reward
    for arm, reward in zip(arms, rewards, strict=True):
        yield Log(np.arange(ROUNDS), arm, reward, np.full(ROUNDS, 0.5), tuple(map(str, range(ARMS))))


def false_alarm_numbers() -> dict[str, float]:
    """How often something is said to move where nothing does, by the policy that logged and the rewards."""
    numbers: dict[str, float] = {}
    for policy in ("uniform", "ucb", "epsilon-greedy", "thompson"):
        for rewards, rates in (("often", (0.2, 0.8)), ("rare", (0.02, 0.1)), ("normal", (0.2, 0.8))):
            logs = still_logs(policy, rates, normal=rewards == "normal", seed=FIRST)
            numbers[f"{policy}.{rewards}"] = float(
                np.mean([find_changes(log).movement.kind != "still" for log in logs])
            )
    shares = list(numbers.values())
    return {**numbers, "all": float(np.mean(shares)), "worst": max(shares), "logs": float(LOGS_STILL)}


def earned(found: Known, seed: int) -> Iterator[tuple[str, float]]:
    """What every player earns per round in the world itself, by name; arms by theirs."""
    best = float(found.world.best(0, found.world.horizon).mean())
    for arm, name in enumerate(found.log.names):
        order = np.array([arm, *(k for k in range(ARMS) if k != arm)])
        yield name, best - fixed_regret(found.world, order)
    for window in (100, 400, 1_600):
        for player in players_of(window).values():
            if window != 100 and player.policy != "SlidingWindowGPUCB":
                continue
            regrets = [
                db.simulate(policy_of(player, found.world.arms, found.reward_range, own), found.world, seed=own).regret
                for own in range(seed, seed + PLAYED)
            ]
            yield f"{player.policy}{dict(player.settings)}", best - float(np.mean(regrets))


def recommendation_numbers() -> dict[str, float]:
    """How often what is recommended earns nearly what the best choice earns, in the world itself."""
    numbers: dict[str, float] = {}
    within = 0
    with progress_bar(len(REWARDS) * 4 * LOGS_RECOMMENDED, "recommendations", show=True) as advance:
        for rewards in REWARDS:
            for kind in KINDS[:4]:
                shares = []
                for seed in range(FIRST, FIRST + LOGS_RECOMMENDED):
                    found = known(kind, seed, rewards)
                    chosen = advise(found.log).recommendation
                    table = dict(earned(found, seed))
                    if chosen is None:
                        shares.append(0.0)
                    else:
                        own = chosen.fixed_arm or f"{chosen.policy}{dict(chosen.settings)}"
                        shares.append(table[own] / max(table.values()))
                    advance()
                good = int(np.sum(np.array(shares) >= 1.0 - WITHIN))
                within += good
                numbers |= {f"{rewards}.{kind}.within": good / len(shares), f"{rewards}.{kind}.worst": min(shares)}
    return {**numbers, "within": within / (len(REWARDS) * 4 * LOGS_RECOMMENDED), "logs": float(LOGS_RECOMMENDED)}


def logged_requests(kind: str, seed: int) -> tuple[Log, db.Policy, Floats]:
    """A log whose law depends on the requests, a policy that learned from another log, and the mean of each arm.

    Every fifth policy is an AutoBandit, the others are linear; rewards of every second log are 0 or 1.
    """
    world = db.environments.create(
        f"requests/{kind}", seed=seed, horizon=ROWS_WITH_CONTEXTS, columns=4, size=ARMS, clicks=seed % 2 == 1
    )
    rng = np.random.default_rng(seed)
    lots = np.array(world.requests(0, world.horizon)) @ rng.normal(size=(4, ARMS))
    law = np.exp(lots - lots.max(axis=1, keepdims=True))
    law = 0.25 / ARMS + 0.75 * law / law.sum(axis=1, keepdims=True)
    means = world.means(0, world.horizon)
    logs = []
    for number in range(2):
        own = np.random.default_rng([seed, number])
        arm = np.minimum((own.random((len(law), 1)) > law.cumsum(axis=1)).sum(axis=1), ARMS - 1)
        every = np.arange(len(law))
        columns = {
            "round": every,
            "arm": arm,
            "reward": world.rewards(0, arm, 2 * seed + number),
            "probability": law[every, arm],
        }
        requests = {f"context.{k}": column for k, column in enumerate(np.array(world.requests(0, len(law))).T)}
        logs.append(Log.read({**columns, **requests}, arms=world.arms))
    kind_of = db.AutoBandit if seed % 5 == 0 else db.DisjointLinThompson
    limits = (0.0, 1.0) if seed % 2 == 1 else (-1.0, 1.0)
    policy = kind_of(world.arms, contexts=world.contexts, seed=seed, reward_range=limits)
    policy.learn(logs[1].take(slice(0, 400)))
    return logs[0], policy, means


def context_numbers(first: int = FIRST_WITH_CONTEXTS, each: int = LOGS_WITH_CONTEXTS) -> dict[str, float]:
    """How often intervals have the value of a policy with contexts in them, by estimator and world, and their widths.

    The value is that on the requests of the log.
    """
    numbers: dict[str, float] = {}
    covered: Counter[str] = Counter()
    told: Counter[str] = Counter()
    widths: dict[str, list[float]] = {estimator: [] for estimator in CONTEXT_ESTIMATORS}
    with progress_bar(len(CONTEXT_WORLDS) * each, "contexts", show=True) as advance:
        for place, kind in enumerate(CONTEXT_WORLDS):
            for seed in range(first + place * each, first + (place + 1) * each):
                log, policy, means = logged_requests(kind, seed)
                laws = [policy.law(context=context) for context in log.requests]
                value = float((np.array(laws) * means).sum(axis=1).mean())
                for estimator in CONTEXT_ESTIMATORS:
                    found = evaluate(log, lambda row, own=laws: own[row.place], estimator=estimator)
                    for name in (estimator, f"{estimator}.{kind}"):
                        told[name] += not found.verdict
                        covered[name] += found.low < value < found.high
                    widths[estimator].append(found.high - found.low)
                advance()
            for estimator in CONTEXT_ESTIMATORS:
                name = f"{estimator}.{kind}"
                numbers[f"{name}.covered"] = covered[name] / max(told[name], 1)
    for estimator in CONTEXT_ESTIMATORS:
        share = share_interval(covered[estimator], told[estimator])
        numbers |= {
            f"{estimator}.told": float(told[estimator]),
            f"{estimator}.covered": share.estimate,
            f"{estimator}.low": share.low,
            f"{estimator}.high": share.high,
            f"{estimator}.width": float(np.nanmedian(np.array(widths[estimator]) / np.array(widths["ips"]))),
        }
    return {**numbers, "logs": float(len(CONTEXT_WORLDS) * each)}


def wide_log(rows: int, arms: int = 100) -> Log:
    """A log of a fixed law in a world of three stretches."""
    rng = np.random.default_rng(FIRST)
    law = 0.5 * rng.dirichlet(np.ones(arms)) + 0.5 / arms
    means = rng.uniform(0.2, 0.8, (3, arms))
    arm = rng.choice(arms, size=rows, p=law)
    reward = np.clip(means[np.arange(rows) * 3 // rows, arm] + rng.normal(0, 0.1, rows), 0, 1)
    columns = {"round": np.arange(rows), "arm": arm, "reward": reward, "probability": law[arm]}
    return Log.read(columns, reward_range=(0, 1))


def time_numbers() -> dict[str, float]:
    """Seconds to the first answer and to the whole advice, and processor seconds, by rows; 100 arms."""

    numbers: dict[str, float] = {}
    for rows in (200_000, 1_000_000):
        log = wide_log(rows)
        begun, used = time.perf_counter(), time.process_time()
        first: list[float] = []
        advise(log, first=lambda _, own=first, since=begun: own.append(time.perf_counter() - since))  # type: ignore[misc]
        numbers |= {
            f"{rows}.first": first[0],
            f"{rows}.seconds": time.perf_counter() - begun,
            f"{rows}.processor": time.process_time() - used,
        }
    return numbers
