"""AutoBandit with open decisions as data: time of a decision, size of the state, and the cost of a round.

python -m benchmarks open_decisions            some three minutes
python -m benchmarks open_decisions --quick    less than a minute

A shop of fifteen prices, of which 3 to 10 % sell; sales are told at most 1.2 million decisions later, or never, and
300,000 decisions are open. Processor time of every call by itself; the two kinds of rounds of the ratio take turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np

import driftbandits as db
from driftbandits.live.definition import define
from driftbandits.live.recovery import snapshot_of
from driftbandits.live.replica import Replica
from driftbandits.state import archive

ARMS = [f"price {number}" for number in range(15)]
CHANCES = np.linspace(0.03, 0.1, len(ARMS))
OPEN = 300_000
CLOSED = 250_000  # before measuring
AT_ONCE = 1_000
MOST_MILLISECONDS, MOST_MEGABYTES, MOST_RATIO = 5.0, 30.0, 1.5


def shop(**waits: Any) -> db.AutoBandit:
    """A policy for the fifteen prices."""
    return db.AutoBandit(db.ArmSet.separate(ARMS), seed=0, reward_range=(0, 1), **waits)


class Sales:
    """Sales that come after 1 to `slowest` decisions, each octave as likely as another."""

    def __init__(self, slowest: int) -> None:
        self._rng, self._slowest = np.random.default_rng(0), slowest
        self._due: dict[int, list[int]] = {}

    def visit(self, now: int, ident: int, arm: int) -> None:
        """A decision was made."""
        if self._rng.random() < CHANCES[arm]:
            later = now + 1 + int(self._slowest ** self._rng.random())
            self._due.setdefault(later, []).append(ident)

    def told(self, now: int) -> list[int]:
        """What is told before this decision."""
        return self._due.pop(now, [])


class Times:
    """Processor seconds of every call, by what it does."""

    def __init__(self) -> None:
        self._spent: dict[str, list[float]] = {}

    def call(self, kind: str, function: Callable[..., Any], *values: Any) -> Any:
        """Call, and note how long it took."""
        begun = time.thread_time()
        result = function(*values)
        self._spent.setdefault(kind, []).append(time.thread_time() - begun)
        return result

    def rows(self) -> Iterator[str]:
        """Number of calls, median, 99.9 % quantile and maximum in milliseconds, a row for every kind."""
        for kind, spent in self._spent.items():
            figures = (1e3 * float(np.quantile(spent, share)) for share in (0.5, 0.999, 1.0))
            yield f"| {kind} | {len(spent):,} | {' | '.join(f'{figure:.3f}' for figure in figures)} |"


def library(rounds: int) -> tuple[Times, int, float]:
    """A policy whose patience is a number of rounds: times, open decisions and megabytes of its state."""
    policy, sales, times = shop(patience=OPEN, missing=0.0), Sales(4 * OPEN), Times()
    for now in range(0, OPEN + CLOSED, AT_ONCE):
        decisions = policy.ask(size=AT_ONCE)
        for ident, arm in zip(decisions.ids.tolist(), decisions.arms.tolist(), strict=True):
            sales.visit(ident, ident, arm)
        due = [ident for past in range(now, now + AT_ONCE) for ident in sales.told(past)]
        policy.tell(due, [1.0] * len(due))
    for now in range(OPEN + CLOSED, OPEN + CLOSED + rounds):
        for ident in sales.told(now):
            late = now - ident > OPEN
            times.call("late reward" if late else "reward", policy.tell, ident, 1.0)
        choice = times.call("decision", policy.ask)
        sales.visit(now, choice.id, choice.arm)
    content = times.call("writing the state", lambda: archive.pack(policy.state_dict()))
    return times, policy.pending, len(content) / 1e6


def experiment(rounds: int) -> tuple[Times, int, float]:
    """The same of an experiment in a database, without the database: a decision a second, closed ten at a time."""
    replica = Replica(define(arms=ARMS, seed=0, patience=float(OPEN), missing=0.0))
    sales, times, filled, clock = Sales(4 * OPEN), Times(), Times(), 1_700_000_000_000_000
    now = 0
    while now < OPEN + CLOSED + rounds:
        measured = now >= OPEN + CLOSED
        noted, size = (times, 1) if measured else (filled, 100)
        clock += size * 1_000_000
        due = [(past, ident) for past in range(now, now + size) for ident in sales.told(past)]
        for past, ident in due:
            event = replica.next_event(clock, "rewarded", decision=ident, reward=1.0)
            noted.call("late reward" if past - ident > OPEN else "reward", replica.apply, event)
        upto = replica.watermark(clock, OPEN) if now % 10 == 0 else None
        if upto is not None:
            event = replica.next_event(clock, "expired", decision=upto)
            noted.call("expiry", replica.apply, event)
        for event in noted.call("decision", replica.decide, size, None, None, clock, None):
            sales.visit(now, event.seq, int(event.arm or 0))
            now += 1
    content = times.call("writing the snapshot", lambda: archive.pack(snapshot_of(replica)))
    return times, len(replica.open), len(content) / 1e6


def seconds_per_round(rounds: int, **waits: Any) -> float:
    """Of ask and tell: every reward at once, or, with patience, the sales alone, some of them late."""
    policy, sales = shop(**waits), Sales(2_000)
    rng = np.random.default_rng(0)
    begun = time.process_time()
    for now in range(rounds):
        if waits:
            for ident in sales.told(now):
                policy.tell(ident, 1.0)
        choice = policy.ask()
        if waits:
            sales.visit(now, choice.id, choice.arm)
        else:
            policy.tell(choice, 1.0 if rng.random() < CHANCES[choice.arm] else 0.0)
    return (time.process_time() - begun) / rounds


def run(*, quick: bool) -> None:
    """All of it."""
    rounds = 5_000 if quick else 50_000
    print("\n## Open decisions\n")
    for name, measure in (("library", library), ("experiment", experiment)):
        times, still_open, size = measure(rounds)
        print(f"\n{name}: {still_open:,} open, {size:.1f} MB of state (at most {MOST_MEGABYTES:g})\n")
        print(f"| call | calls | median ms | 99.9 % | longest (decisions: at most {MOST_MILLISECONDS:g}) |")
        print("|---|---:|---:|---:|---:|")
        print("\n".join(times.rows()))
    pairs = [
        (seconds_per_round(rounds // 5, patience=1_000, missing=0.0), seconds_per_round(rounds // 5)) for _ in range(5)
    ]
    delayed, plain = (1e6 * median(column) for column in zip(*pairs, strict=True))
    ratio = median(one / other for one, other in pairs)
    print(
        f"\nA round takes {delayed:.0f} us with delays and {plain:.0f} us without: {ratio:.2f} (at most {MOST_RATIO})."
    )
