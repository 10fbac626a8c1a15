"""What live traffic costs: batches of decisions, and rewards that come late. Ratios in one run.

Each is timed in turns with what it is compared with, and the least of many turns is shown. `told` has a reward told
before every batch, so that a policy that learns has a new law to find; `asked` has none.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable

import numpy as np

import driftbandits as db

TURNS = 30
SIZE = 100  # decisions of a batch, and arms
LATE = 50  # decisions asked after the one that is told
TELLS = 100  # of a turn
ARMS = db.ArmSet(np.linspace(0, 1, SIZE)[:, None])
BATCHED: tuple[type[db.Policy], ...] = (db.Uniform, db.GPUCB, db.AutoBandit)
SINGLE: tuple[type[db.Policy], ...] = (db.Uniform, db.GPUCB)  # of others, learning hides the rest


def _played(kind: type[db.Policy], **settings: str) -> db.Policy:
    policy = kind(ARMS, seed=0, **settings)  # type: ignore[arg-type]
    for _ in range(50):
        choice = policy.ask()
        policy.tell(choice, 0.01 * choice.arm - 0.5)
    return policy


def _microseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return 1e6 * (time.perf_counter() - start)


def _batches(turns: int) -> None:
    print("\n| ask(size=100) | us per decision | times Uniform's | limit |\n|---|---:|---:|---:|")
    policies = {kind.__name__: _played(kind) for kind in BATCHED}
    for told in (False, True):
        least = dict.fromkeys(policies, np.inf)
        for _ in range(turns):
            for name, policy in policies.items():
                if told:
                    policy.tell(policy.ask(), 0.1)
                spent = _microseconds(lambda p=policy: p.ask(size=SIZE))  # type: ignore[misc]
                least[name] = min(least[name], spent / SIZE)
        for name, cost in least.items():
            label = f"{name}, {'a reward told before' if told else 'no reward told before'}"
            print(f"| {label} | {cost:.2f} | {cost / least['Uniform']:.1f} | {'' if told else 3} |")


def _tells(policy: db.Policy, waiting: collections.deque[int], late: int) -> float:
    """Mean microseconds of telling one reward, with so many decisions asked after it; asking is not counted."""
    spent = 0.0
    for _ in range(TELLS):
        waiting.append(policy.ask().id)
        if len(waiting) > late:
            ident = waiting.popleft()
            spent += _microseconds(lambda i=ident: policy.tell(i, 0.1))  # type: ignore[misc]
    return spent / TELLS


def _late(turns: int) -> None:
    print("\n| tell one reward | at once, us | late, us | difference | limit |\n|---|---:|---:|---:|---:|")
    for kind in SINGLE:
        for order in ("told", "asked"):
            at_once, delayed = _played(kind, order=order), _played(kind, order=order)
            waiting = collections.deque(delayed.ask().id for _ in range(LATE))
            prompt, late = np.inf, np.inf
            for _ in range(turns):
                prompt = min(prompt, _tells(at_once, collections.deque(), 0))
                late = min(late, _tells(delayed, waiting, LATE))
            print(f"| {kind.__name__}, order {order} | {prompt:.1f} | {late:.1f} | {late - prompt:+.1f} | 3 |")


def run(*, quick: bool) -> None:
    """Print two tables; `quick` with fewer turns."""
    print("\n## Live traffic: batches, and late rewards")
    _batches(5 if quick else 10 * TURNS)
    _late(3 if quick else TURNS)
