"""Contexts: AutoBandit beside bayesianbandits and Vowpal Wabbit on one job and two streams, and what a round costs.

    python -m benchmarks contexts            # all; without the peers installed, their rows are left out
    python -m benchmarks contexts --quick    # two runs each, short

The peers' packages are `bayesianbandits` and `vowpalwabbit`. The job: requests with eight numbers are routed to six
models, of which one degrades in the middle. The streams: scikit-learn's handwritten digits and its breast cancer
samples, one class per arm, reward 1 for the right one; in the middle of each, the labels are permuted.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Sequence

import numpy as np

import driftbandits as db
from driftbandits.types import Floats, Ints

FIRST, RUNS = 2_000_100, 10
COST_ROUNDS = 2_000
Player = tuple[Callable[[Floats], int], Callable[[int, Floats, float], None]]  # ask, and tell


def routing(seed: int) -> tuple[Floats, Callable[[int, int], float], int, Floats]:
    """Requests, the reward of an arm in a round, the number of arms, and mean rewards (rounds, arms)."""
    rng = np.random.default_rng([seed, 0])
    rounds, arms = 6_000, 6
    requests = rng.standard_normal((rounds, 8))
    weights, level = rng.normal(0.0, 0.12, (8, arms)), rng.uniform(0.3, 0.6, arms)
    means = level + requests @ weights + 0.15 * np.tanh(requests[:, :1] * rng.normal(0.0, 1.0, arms))
    favourite = int(np.bincount(means.argmax(axis=1)).argmax())
    means[rounds // 2 :, favourite] -= 0.4
    noise = 0.1 * rng.standard_normal(rounds)
    return requests, lambda now, arm: float(np.clip(means[now, arm] + noise[now], 0.0, 1.0)), arms, np.clip(means, 0, 1)


def stream(name: str, seed: int) -> tuple[Floats, Callable[[int, int], float], int, Floats]:
    """The same of a classification stream."""
    from sklearn import datasets

    samples = {"digits": datasets.load_digits, "breast cancer": datasets.load_breast_cancer}[name]()
    rng = np.random.default_rng([seed, 1])
    numbers, labels = np.asarray(samples.data, dtype=np.float64), np.asarray(samples.target)
    numbers = (numbers - numbers.mean(axis=0)) / np.maximum(numbers.std(axis=0), 1e-9)
    axes = np.linalg.svd(numbers, full_matrices=False)[2][:16]
    numbers = numbers @ axes.T / (numbers @ axes.T).std(axis=0)
    copies = 4 if name == "digits" else 8
    order = np.concatenate([rng.permutation(len(labels)) for _ in range(copies)])
    arms = int(labels.max()) + 1
    wanted = labels[order]
    wanted[len(order) // 2 :] = (wanted[len(order) // 2 :] + 1) % arms
    means = (np.arange(arms) == wanted[:, None]).astype(np.float64)
    return numbers[order], lambda now, arm: float(arm == wanted[now]), arms, means


def ours(arms: int, width: int, seed: int) -> Player:
    """AutoBandit with nothing set."""
    policy = db.AutoBandit(
        db.ArmSet.separate([f"arm {k}" for k in range(arms)]),
        contexts=db.Contexts(width),
        reward_range=(0, 1),
        seed=seed,
    )
    last: list[db.Decision] = []

    def ask(request: Floats) -> int:
        last[:] = [policy.ask(context=request)]
        return last[0].arm

    def tell(_arm: int, _request: Floats, reward: float) -> None:
        policy.tell(last[0], reward)

    return ask, tell


def peer(decay: float) -> Callable[[int, int, int], Player]:
    """A contextual agent of bayesianbandits: Thompson sampling, one normal regression per arm."""

    def make(arms: int, _width: int, seed: int) -> Player:
        import bayesianbandits as bb

        learners = [bb.Arm(k, learner=bb.NormalInverseGammaRegressor()) for k in range(arms)]
        agent = bb.ContextualAgent(learners, bb.ThompsonSampling(), random_seed=seed)

        def ask(request: Floats) -> int:
            return int(agent.pull(np.append(1.0, request)[None])[0])

        def tell(arm: int, request: Floats, reward: float) -> None:
            agent.select_for_update(arm).update(np.append(1.0, request)[None], np.array([reward]))
            if decay < 1.0:
                agent.decay(decay_rate=decay)

        return ask, tell

    return make


def vowpal(arms: int, _width: int, seed: int) -> Player:
    """Vowpal Wabbit's contextual bandit with its default exploration and learning rate."""
    import vowpalwabbit

    learner = vowpalwabbit.Workspace(f"--cb_explore {arms} --epsilon 0.05 --quiet --random_seed {seed}")
    rng = np.random.default_rng([seed, 2])
    law: list[Floats] = []

    def line(request: Floats) -> str:
        return "| " + " ".join(f"x{k}:{value:.5f}" for k, value in enumerate(request))

    def ask(request: Floats) -> int:
        shares = np.maximum(np.asarray(learner.predict(line(request))), 0.0)
        law[:] = [shares / shares.sum()]
        return int(rng.choice(arms, p=law[0]))

    def tell(arm: int, request: Floats, reward: float) -> None:
        learner.learn(f"{arm + 1}:{-reward:.5f}:{law[0][arm]:.5f} {line(request)}")

    return ask, tell


def players() -> dict[str, Callable[[int, int, int], Player]]:
    """All that are installed."""
    found: dict[str, Callable[[int, int, int], Player]] = {"AutoBandit": ours}
    if importlib.util.find_spec("bayesianbandits") is not None:
        found |= {"bayesianbandits, decay 1": peer(1.0), "bayesianbandits, decay 0.999": peer(0.999)}
    if importlib.util.find_spec("vowpalwabbit") is not None:
        found["Vowpal Wabbit"] = vowpal
    return found


def earned(job: str, make: Callable[[int, int, int], Player], seed: int, rounds: int | None) -> tuple[float, float]:
    """Mean reward before the change, and after."""
    requests, reward, arms, means = routing(seed) if job == "routing" else stream(job, seed)
    if rounds is not None:
        middle = len(requests) // 2
        some: Ints = np.r_[middle - rounds : middle + rounds]
    else:
        some = np.arange(len(requests))
    ask, tell = make(arms, requests.shape[1], seed)
    got = []
    for now in some.tolist():
        arm = ask(requests[now])
        tell(arm, requests[now], reward(now, arm))
        got.append(means[now, arm])
    return float(np.mean(got[: len(got) // 2])), float(np.mean(got[len(got) // 2 :]))


def measured(runs: int = RUNS, rounds: int | None = None) -> tuple[Sequence[int], dict[str, list[str]]]:
    """Seeds, and tables of rewards before and after the change."""
    lines = ["| job | policy | before | after |", "| --- | --- | ---: | ---: |"]
    for job in ("routing", "digits", "breast cancer"):
        for name, make in players().items():
            found = np.array([earned(job, make, seed, rounds) for seed in range(FIRST, FIRST + runs)])
            mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / math.sqrt(runs)
            cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True)]
            lines.append(f"| {job} | {name} | {cells[0]} | {cells[1]} |")
            print(lines[-1], flush=True)
    return range(FIRST, FIRST + runs), {"peers": lines}


def costs(quick: bool) -> None:
    """CPU time of a decision and its reward, beside a bare product of two matrices of the same size."""
    for size in (10, 100):
        world = db.environments.create(
            "requests/switch", seed=0, horizon=100_000, size=size, dimension=2 if size == 100 else 0
        )
        policy = db.AutoBandit(world.arms, contexts=world.contexts, seed=0, out_of_range="clip")
        db.simulate(policy, world, seed=0, rounds=2_100)
        rounds = COST_ROUNDS // 4 if quick else COST_ROUNDS
        begun = time.process_time()
        db.simulate(policy, world, seed=0, rounds=rounds)
        each = 1e3 * (time.process_time() - begun) / rounds
        width = policy.rank
        matrix, vector = np.random.default_rng(0).standard_normal((16, width, width)), np.ones((16, width, 1))
        begun = time.process_time()
        for _ in range(200):
            np.matmul(matrix, vector)
        product = 1e3 * (time.process_time() - begun) / 200
        print(f"{size} arms: {each:.3f} ms a round; 16 products of ({width}, {width}) with a vector {product:.3f} ms")


def run(*, quick: bool = False) -> None:
    """Print both."""
    costs(quick)
    measured(2 if quick else RUNS, 500 if quick else None)
