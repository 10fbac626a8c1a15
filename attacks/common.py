"""What the attacks share: options, rows of the table, small policies of every kind, and processes to try them in."""

from __future__ import annotations

import functools
import multiprocessing
import multiprocessing.connection
import resource
import signal
import sys
import tempfile
import time
import types
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from driftbandits import ArmSet, Constants
from driftbandits.policies import POLICIES, Policy
from driftbandits.types import Floats

ARM_COUNT = 12
HORIZON = 600
TASK_SECONDS = 1_800.0  # a task takes a minute; beyond this it hangs
MEMORY_LIMIT = 6 * 2**30  # bytes of address space where sizes may be damaged
EXAMPLES_PER_FAULT = 5
SHARED_MEMORY = Path("/dev/shm")  # files of attacks that save often and do not test the disk

_FORKING = multiprocessing.get_context("fork")  # what is imported is there at once, and what breaks is gone after
_SMALL_NETWORK = {"width": 16, "steps": 5}  # the default width of 2,048 would take hours
_EARLY_RESTARTS = Constants(sigma=1.0, failure_probability=1e-2, c0=1.3, c1=0.5, c2=0.3, c3=0.02, c4=0.5)
_SETTINGS: dict[str, dict[str, Any]] = {
    "OPKB": {"constants": _EARLY_RESTARTS},
    "AdaOPKB": {"constants": _EARLY_RESTARTS},
    "OPNN": {**_SMALL_NETWORK, "constants": _EARLY_RESTARTS},
    "AdaOPNN": {**_SMALL_NETWORK, "constants": _EARLY_RESTARTS},
    "NeuralUCB": {**_SMALL_NETWORK, "every": 20},
    "SlidingWindowNeuralUCB": {**_SMALL_NETWORK, "every": 20, "window": 30},
}
FAMILIES: dict[str, list[str]] = {
    family: [name for name, kind in POLICIES.items() if kind.family == family]
    for family in dict.fromkeys(str(kind.family) for kind in POLICIES.values())
}


@dataclass(frozen=True)
class Options:
    """How long and with which randomness the attacks run."""

    quick: bool = False
    seed: int = 0
    jobs: int = 2
    share: float = 1.0

    def tries(self, full: int, quick: int) -> int:
        """How many of something, by default and with --quick."""
        return quick if self.quick else max(1, round(full * self.share))


@dataclass
class AttackRow:
    """One line of the table: what was attacked, how often, and what happened.

    `broken` counts the outcomes that break a promise, `examples` has some of each; `details` is for the file alone.
    """

    attack: str
    tries: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    broken: int = 0
    examples: dict[str, list[str]] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)

    def add(self, outcome: str, *, bad: bool = False, example: str = "") -> None:
        """Count one try."""
        self.tries += 1
        self.note(outcome, bad=bad, example=example)

    def note(self, outcome: str, *, bad: bool = False, example: str = "", times: int = 1) -> None:
        """Count something about a try."""
        self.counts[outcome] += times
        if bad:
            self.broken += times
            self._show(outcome, [example])

    def took(self, seconds: float) -> None:
        """Keep the longest time."""
        self.details["longest seconds"] = max(self.details.get("longest seconds", 0.0), seconds)

    def join(self, other: AttackRow) -> None:
        """Add the counts of another row to this one, and keep them by its name."""
        self.tries += other.tries
        self.counts += other.counts
        self.broken += other.broken
        for outcome, examples in other.examples.items():
            self._show(outcome, examples)
        known = self.details.setdefault(other.attack, {})
        for outcome, times in [*other.counts.items(), *other.details.items()]:
            known[outcome] = known.get(outcome, 0) + times

    def _show(self, outcome: str, examples: list[str]) -> None:
        shown = self.examples.setdefault(outcome, [])
        shown += [example for example in examples if example not in shown][: EXAMPLES_PER_FAULT - len(shown)]


def generator(*labels: object) -> np.random.Generator:
    """Randomness that depends on the labels alone."""
    return np.random.default_rng([zlib.crc32(repr(label).encode()) for label in labels])


@functools.cache
def arm_set() -> ArmSet:
    """The arms of all attacks."""
    return ArmSet(np.linspace(0.0, 1.0, ARM_COUNT)[:, None], kernel=RBF(0.2))


def make(name: str, *, horizon: int | None = HORIZON, seed: int = 0, **settings: Any) -> Policy:
    """A small policy of this name."""
    return POLICIES[name](arm_set(), horizon=horizon, seed=seed, **_SETTINGS.get(name, {}), **settings)


def reward(policy: Policy, number: int, arm: int) -> float:
    """Reward within the policy's declared range, of round and arm only, with a change every 100 rounds."""
    low, high = policy.reward_range
    wave = np.sin(0.9 * arm + 2.0 * (number // 100)) + 0.3 * np.sin(12.9898 * number)
    share = round(float((wave / 1.3 + 1) / 2) * 64) / 64
    return min(max(low + (high - low) * share, low), high)


def play(policy: Policy, rounds: int) -> list[tuple[int, float]]:
    """Ask and tell round by round; arms and probabilities."""
    played = []
    for _ in range(rounds):
        choice = policy.ask()
        policy.tell(choice.id, reward(policy, choice.id, choice.arm))
        played.append((choice.arm, choice.probability))
    return played


def law_fault(law: Floats) -> str:
    """What is wrong with a law, or nothing."""
    if law.shape != (ARM_COUNT,):
        return f"shape {law.shape}"
    if not np.isfinite(law).all():
        return "not finite"
    if (law < 0).any():
        return "negative"
    return "" if abs(law.sum() - 1.0) <= 1e-6 else f"sum {law.sum():.6g}"


def kind_of(error: BaseException) -> str:
    """Name of an error's class, with its module where it is a library's."""
    kind = type(error)
    return (
        kind.__name__
        if kind.__module__.partition(".")[0] in ("builtins", "driftbandits")
        else f"{kind.__module__}.{kind.__name__}"
    )


def said(error: BaseException) -> str:
    """Class and first line of an error, for a table."""
    return f"{kind_of(error)}: {(str(error).splitlines() or [''])[0][:200]}"


def refuses(error: BaseException) -> bool:
    """Whether an error says that the policy was interrupted; by name, for old versions have no such class."""
    return type(error).__name__ == "InterruptedPolicyError" or "interrupted at round" in str(error)


def same(left: Any, right: Any) -> bool:
    """Whether two states are equal to the bit."""
    if isinstance(left, np.ndarray):
        return isinstance(right, np.ndarray) and left.dtype == right.dtype and left.tobytes() == right.tobytes()
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(same(value, right[key]) for key, value in left.items())
        )
    if isinstance(left, (list, tuple)):
        return (
            isinstance(right, (list, tuple))
            and len(left) == len(right)
            and all(same(a, b) for a, b in zip(left, right, strict=True))
        )
    return bool(left == right) or (left != left and right != right)


class Hang(BaseException):
    """A call took too long; a BaseException, so that nothing under attack swallows it."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise Hang in the main thread when the block takes longer."""

    def late(_number: int, _frame: types.FrameType | None) -> None:
        raise Hang(f"no answer in {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def limit_memory() -> None:
    """Let a damaged size take down this process, not the machine."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, resource.getrlimit(resource.RLIMIT_AS)[1]))


@contextmanager
def scratch(*, disk: bool = False) -> Iterator[Path]:
    """An empty folder; in memory where saving often would only test the disk."""
    home = SHARED_MEMORY if SHARED_MEMORY.is_dir() and not disk else None
    with tempfile.TemporaryDirectory(prefix="attack-", dir=home) as folder:
        yield Path(folder)


def spread(call: Callable[..., AttackRow], tasks: Sequence[tuple[Any, ...]], options: Options) -> Iterator[AttackRow]:
    """Rows of `call(*task)` as they come, each from a forked process of its own; one that dies or hangs is a fault."""
    begun = time.monotonic()
    waiting = list(reversed(tasks))
    running: dict[Any, tuple[Any, tuple[Any, ...], float]] = {}
    done = 0
    while waiting or running:
        while waiting and len(running) < options.jobs:
            task = waiting.pop()
            reader, writer = _FORKING.Pipe(duplex=False)
            process = _FORKING.Process(target=_send, args=(writer, call, task))
            process.start()
            writer.close()
            running[reader] = (process, task, time.monotonic() + TASK_SECONDS)
        ready = multiprocessing.connection.wait(list(running), timeout=1.0)
        late = [reader for reader, (_, _, end) in running.items() if time.monotonic() > end]
        for reader in [*ready, *(one for one in late if one not in ready)]:
            process, task, _ = running.pop(reader)
            row = _receive(reader, process, task, hung=reader not in ready)
            done += 1
            outcome = ", ".join(f"{count} {what}" for what, count in row.counts.most_common(4))
            print(f"  {done}/{len(tasks)}, {time.monotonic() - begun:.0f} s: {row.attack}: {outcome}", flush=True)
            yield row


def _send(writer: Any, call: Callable[..., AttackRow], task: tuple[Any, ...]) -> None:
    _quiet()
    try:
        row = call(*task)
    except Exception as error:  # one task must not end the others
        row = AttackRow(str(task[0]))
        row.add("attack failed", bad=True, example=f"{call.__name__}{task}: {said(error)}")
    writer.send(row)


def _receive(reader: Any, process: Any, task: tuple[Any, ...], *, hung: bool) -> AttackRow:
    row = AttackRow(str(task[0]))
    if hung:
        process.kill()
        row.add("process hung", bad=True, example=str(task))
    else:
        try:
            row = reader.recv()
        except EOFError:
            process.join()
            row.add("process died", bad=True, example=f"{task}: exit code {process.exitcode}")
    reader.close()
    process.join()
    return row


def total(attack: str, rows: Iterable[AttackRow]) -> AttackRow:
    """One row for all of them."""
    whole = AttackRow(attack)
    for row in rows:
        whole.join(row)
    return whole


def every_policy(attack: str, call: Callable[..., AttackRow], tries: int, options: Options) -> AttackRow:
    """One row for all policies, of `tries` tries each: `call(name, tries, seed)` attacks one policy."""
    return total(attack, spread(call, [(name, tries, options.seed) for name in POLICIES], options))


def by_family(attack: str, call: Callable[..., AttackRow], tries: int, options: Options) -> Iterator[AttackRow]:
    """One row per family of policies, of `tries` tries each: `call(name, tries, part, seed)` attacks one policy."""
    parts = 1 if options.quick else 4  # so that the processes end together
    shares = [(name, -(-tries // (parts * len(names)))) for names in FAMILIES.values() for name in names]
    shares.sort(key=lambda share: -share[1])  # the longest first
    rows = list(spread(call, [(*share, part, options.seed) for share in shares for part in range(parts)], options))
    for family, names in FAMILIES.items():
        yield total(f"{attack}, {family}", (row for row in rows if row.attack in names))


def _quiet() -> None:
    warnings.simplefilter("ignore")  # damaged states overflow; that is the point
    np.seterr(all="ignore")
    sys.unraisablehook = lambda _: None  # zip files that an exception cut short complain when they are collected
