"""Eight threads share one policy: nothing raises, no id is given twice, and what was told is what was learned."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from attacks.aftermath import judge
from attacks.common import ARM_COUNT, AttackRow, Options, arm_set, generator, make, said, same, scratch, spread, total
from driftbandits.policies import POLICIES, Policy
from driftbandits.types import Floats

THREADS = 8
OPERATIONS_PER_THREAD = 300
ASKED = "plays:.plays.counts"  # the one book of what was asked; the others are of what was told
HANG_SECONDS = 300.0  # for all threads together
SWITCH_SECONDS = 1e-5  # how soon Python turns to another thread


def run(options: Options) -> Iterator[AttackRow]:
    """Every policy in threads, several times."""
    tasks = [(name, trial, options.seed) for trial in range(options.tries(5, 1)) for name in POLICIES]
    yield total("eight threads, one policy", spread(attack, tasks, options))


class Worker(threading.Thread):
    """One thread that asks, tells, forgets, looks and saves, and keeps its own books."""

    def __init__(self, policy: Policy, path: Path, seed: object) -> None:
        super().__init__(daemon=True)
        self.policy = policy
        self.path = path
        self.rng = generator("worker", seed)
        self.ids: list[int] = []
        self.plays: Counter[int] = Counter()  # told
        self.asked: Counter[int] = Counter()  # told or forgotten
        self.forgotten = 0
        self.waiting: list[tuple[int, int]] = []
        self.errors: list[str] = []

    def run(self) -> None:
        """Do the operations, then tell what is left."""
        for number in range(OPERATIONS_PER_THREAD):
            try:
                self._operate(number)
            except Exception as error:  # counted; the thread goes on as a server would
                self.errors.append(said(error))
        while self.waiting:
            try:
                self._tell(self.waiting.pop())
            except Exception as error:
                self.errors.append(said(error))

    def _operate(self, number: int) -> None:
        what = self.rng.random()
        if what < 0.7:
            choice = self.policy.ask()
            self._asked((choice.id, choice.arm))
        elif what < 0.85:
            batch = self.policy.ask(size=3)
            self._asked(*zip(batch.ids.tolist(), batch.arms.tolist(), strict=True))
        elif what < 0.9 and self.waiting:
            self.policy.forget(self.waiting.pop()[0])
            self.forgotten += 1
        elif what < 0.93:
            self.policy.law()
        elif what < 0.96:
            self.policy.estimate()
        elif what < 0.99:
            self.policy.state_dict()
        else:
            self.policy.save(self.path)
        if len(self.waiting) > 4 or number % 2:
            self._tell(*self.waiting)
            self.waiting.clear()

    def _asked(self, *decisions: tuple[int, int]) -> None:
        self.ids += [number for number, _ in decisions]
        self.asked.update(arm for _, arm in decisions)
        self.waiting += decisions

    def _tell(self, *decisions: tuple[int, int]) -> None:
        if len(decisions) == 1:
            self.policy.tell(decisions[0][0], _reward(decisions[0][1]))
        elif decisions:
            self.policy.tell([number for number, _ in decisions], [_reward(arm) for _, arm in decisions])
        self.plays.update(arm for _, arm in decisions)


def _reward(arm: int) -> float:
    """Of the arm only and a multiple of 1/64: sums do not depend on the order, and nothing changes."""
    return ((7 * arm) % 33 - 16) / 64


def attack(name: str, trial: int, seed: int) -> AttackRow:
    """One policy in eight threads, then its books."""
    row = AttackRow(name)
    books = _books(name, trial)
    with scratch() as folder:
        path = folder / "policy"
        policy = make(name, horizon=None, seed=trial)
        policy.save(path)
        workers = [Worker(policy, path, (name, trial, seed, number)) for number in range(THREADS)]
        before = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_SECONDS)
        try:
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join(HANG_SECONDS / THREADS)
        finally:
            sys.setswitchinterval(before)
        row.tries = 1
        row.counts["calls"] = THREADS * OPERATIONS_PER_THREAD
        _check(row, policy, workers, books)
        if not row.broken:
            policy.save(path)
            outcome = judge(policy, path)
            if outcome.bad:
                row.note(outcome.verdict, bad=True, example=f"{name}: {outcome.detail}")
    row.counts["fine" if not row.broken else "policies broken"] += 1
    row.broken = int(row.broken > 0)  # one per policy and trial, however many errors it gave
    return row


def _check(row: AttackRow, policy: Policy, workers: list[Worker], books: dict[str, Floats]) -> None:
    ids = [number for worker in workers for number in worker.ids]
    plays = sum((worker.plays for worker in workers), Counter[int]())
    forgotten = sum(worker.forgotten for worker in workers)
    for worker in workers:
        if worker.is_alive():
            row.note("a thread hangs", bad=True, example=row.attack)
        for error in worker.errors:
            row.note("calls that raised", bad=True, example=f"{row.attack}: {error}")
    if twice := len(ids) - len(set(ids)):
        row.note("ids given twice", bad=True, example=row.attack, times=twice)
    try:
        state = policy.state_dict()
        facts = {
            "rounds are not asks": (policy.rounds, len(ids)),
            "decisions stay open": (policy.pending, 0),
            "forgotten counted wrongly": (policy.forgotten, forgotten),
            "told and forgotten are not all": (sum(plays.values()) + forgotten, policy.rounds),
            "law is no law": (bool(np.isfinite(policy.law()).all()), True),
            "state does not restore": (same(type(policy).restore(arm_set(), state).state_dict(), state), True),
        }
    except Exception as error:
        row.note("dead afterwards", bad=True, example=f"{row.attack}: {said(error)}")
        return
    for fault, (found, wanted) in facts.items():
        if found != wanted:
            row.note(fault, bad=True, example=f"{row.attack}: {found} for {wanted}")
    told, asked = _told(plays), _told(sum((worker.asked for worker in workers), Counter[int]()))
    for place in books:
        expected = (asked if place == ASKED else told)[_kind(place)]
        if not np.allclose(_arrays(state).get(place, np.zeros(0)).ravel(), expected, atol=1e-6):
            row.note("sums are not what was told", bad=True, example=f"{row.attack}: {place}")
    row.counts["sums compared"] += len(books)


# --- where a policy keeps its books: found by playing one that nothing disturbs --------------------------------------


def _books(name: str, trial: int) -> dict[str, Floats]:
    """Arrays of the state that hold the plays or the sums of rewards by arm; "plays:" or "sums:" and their place."""
    policy = make(name, horizon=None, seed=trial)
    plays: Counter[int] = Counter()
    for _ in range(int(THREADS * OPERATIONS_PER_THREAD * 1.15)):
        choice = policy.ask()
        policy.tell(choice.id, _reward(choice.arm))
        plays[choice.arm] += 1
    told = _told(plays)
    return {
        place: array
        for place, array in _arrays(policy.state_dict()).items()
        if array.size == ARM_COUNT and np.allclose(array.ravel(), told[_kind(place)], atol=1e-6)
    }


def _told(plays: Counter[int]) -> dict[str, Floats]:
    counts = np.array([plays[arm] for arm in range(ARM_COUNT)], dtype=np.float64)
    return {"plays": counts, "sums": counts * np.array([_reward(arm) for arm in range(ARM_COUNT)])}


def _kind(place: str) -> str:
    return place.partition(":")[0]


def _arrays(state: Any, place: str = "") -> dict[str, Any]:
    """Numeric arrays of a state by place, each to be tried as plays and as sums."""
    if isinstance(state, np.ndarray):
        return {f"{kind}:{place}": state for kind in ("plays", "sums")} if state.dtype.kind in "iuf" else {}
    found: dict[str, Any] = {}
    if isinstance(state, (dict, list)):
        for key, value in state.items() if isinstance(state, dict) else enumerate(state):
            found |= _arrays(value, f"{place}.{key}")
    return found
