"""Ctrl-C and want of memory at any line of the library, in any call.

The k-th line that a call executes inside the library raises, k uniform over the lines of that call. The policy then
goes on, from where it was before the call or after it, or says that it was interrupted.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import driftbandits
from attacks.aftermath import Outcome, count, judge_in_thread
from attacks.common import ARM_COUNT, AttackRow, Options, arm_set, by_family, generator, play, reward, same, scratch
from attacks.snapshots import Snapshot, snapshots
from driftbandits.policies import Policy
from driftbandits.types import Decision

LIBRARY = str(Path(driftbandits.__file__).parent)
ROUNDS_COMPARED = 20  # with those that the policy would have played
ERRORS: tuple[type[BaseException], ...] = (KeyboardInterrupt, MemoryError)


def run(options: Options) -> Iterator[AttackRow]:
    """All policies, by family."""
    yield from by_family("interruption", _inject, options.tries(5_000, 40), options)


# --- calls to interrupt ----------------------------------------------------------------------------------------------


def _tell_one(policy: Policy, waiting: list[Decision], _path: Path) -> None:
    policy.tell(waiting[-1].id, reward(policy, waiting[-1].id, waiting[-1].arm))


def _tell_all(policy: Policy, waiting: list[Decision], _path: Path) -> None:
    policy.tell([d.id for d in waiting], [reward(policy, d.id, d.arm) for d in waiting])


CALLS: dict[str, Callable[[Policy, list[Decision], Path], object]] = {
    "ask": lambda policy, *_: policy.ask(),
    "ask(size=5)": lambda policy, *_: policy.ask(size=5),
    "ask(allowed=...)": lambda policy, *_: policy.ask(allowed=list(range(0, ARM_COUNT, 2))),
    "tell": _tell_one,
    "tell, several": _tell_all,
    "forget": lambda policy, waiting, _: policy.forget([d.id for d in waiting]),
    "law": lambda policy, *_: policy.law(),
    "save": lambda policy, _, path: policy.save(path),
}
CALL_PROBABILITIES = np.array([4, 1, 1, 5, 2, 1, 1, 1]) / 16
CALLS_OF_OPEN_DECISIONS = ("tell", "tell, several", "forget")


# --- injection -------------------------------------------------------------------------------------------------------


class Injector:
    """A trace function that counts the lines executed inside the library and raises at one of them (0: never)."""

    def __init__(self, at: int = 0, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.at = at
        self.error = error
        self.seen = 0
        self.place = ""

    def start(self, frame: types.FrameType, event: str, _arg: object) -> Callable[..., Any] | None:
        """For every call: whether its lines are looked at."""
        return self.line if event == "call" and frame.f_code.co_filename.startswith(LIBRARY) else None

    def line(self, frame: types.FrameType, event: str, _arg: object) -> Callable[..., Any]:
        """For every line."""
        if event == "line" and frame.f_lasti not in _out_of_reach(frame.f_code):
            self.seen += 1
            if self.seen == self.at:
                self.place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                raise self.error
        return self.line


@functools.cache
def _out_of_reach(code: types.CodeType) -> frozenset[int]:
    """Lines at which nothing but a trace function can raise, so that no handler is in charge of them.

    They are where a `with` block is left, before __exit__ is called, and the `try:` itself. Python announces a line
    there, and looks for no signal.
    """
    steps = list(dis.get_instructions(code))
    names = [step.opname for step in steps]
    found = set()
    for i, step in enumerate(steps):
        calls = names[i : i + 3] == ["LOAD_CONST"] * 3 and names[i + 3] in ("PRECALL", "CALL")
        if calls and all(one.argval is None for one in steps[i : i + 3]):
            found.add(step.offset)
            if names[i - 1] in ("SWAP", "NOP", "POP_TOP"):  # a value to be returned is put aside first
                found.add(steps[i - 1].offset)
        if step.opname == "NOP" or names[i : i + 2] == ["PUSH_EXC_INFO", "WITH_EXCEPT_START"]:
            found.add(step.offset)
    return frozenset(found)


def _traced(injector: Injector, call: Callable[[], object]) -> None:
    before = sys.gettrace()
    sys.settrace(injector.start)
    try:
        call()
    except BaseException:  # the injected one, or what the library made of it
        pass
    finally:
        sys.settrace(before)


@dataclass(frozen=True)
class Target:
    """A call on a policy in some state: the number of lines it executes, and the states that are right after it."""

    base: Snapshot
    kind: str
    lines: int
    after: dict[str, Any]

    def struck(self, injector: Injector, path: Path) -> Policy:
        """The policy after the call with the injector in it; `path` holds what was saved before."""
        policy = self.base.policy()
        path.write_bytes(self.base.file)
        _traced(injector, lambda: CALLS[self.kind](policy, list(self.base.open), path))
        return policy

    def half_changed(self, policy: Policy) -> bool:
        """Whether a policy that would go on is neither where it was, nor where the whole call would have brought it."""
        try:
            state = policy.state_dict()
            if same(state, self.base.state) or same(state, self.after):
                return False
            asked = state["rounds"] - self.base.state["rounds"]
            played = play(type(policy).restore(arm_set(), state), ROUNDS_COMPARED)
        except Exception:
            return False  # it refuses or is dead, which is judged elsewhere
        # Of several asks in one call some may be done, and a law may be ready that the next ask would have made ready.
        before = self.base.policy()
        for _ in range(asked):
            CALLS["ask" if self.kind == "ask(size=5)" else self.kind](before, [], Path())
        return played not in (
            play(before, ROUNDS_COMPARED),
            play(type(policy).restore(arm_set(), self.after), ROUNDS_COMPARED),
        )


def _aim(base: Snapshot, kind: str, path: Path) -> Target:
    """Look how long the undisturbed call takes and where it leads."""
    injector = Injector()
    policy = Target(base, kind, 0, {}).struck(injector, path)
    return Target(base, kind, max(injector.seen, 1), policy.state_dict())


def _inject(name: str, tries: int, part: int, seed: int) -> AttackRow:
    rng = generator("interruptions", name, part, seed)
    row = AttackRow(name)
    targets: dict[tuple[int, str], Target] = {}
    with scratch() as folder:
        path = folder / "policy"
        bases = snapshots(name, rng, folder)
        for _ in range(tries):
            kind = str(rng.choice(list(CALLS), p=CALL_PROBABILITIES))
            number = int(
                rng.choice([i for i, base in enumerate(bases) if base.open or kind not in CALLS_OF_OPEN_DECISIONS])
            )
            if (number, kind) not in targets:
                targets[number, kind] = _aim(bases[number], kind, path)
            target = targets[number, kind]
            injector = Injector(int(rng.integers(target.lines)) + 1, ERRORS[int(rng.integers(len(ERRORS)))])
            policy = target.struck(injector, path)
            half = target.half_changed(policy)
            outcome = judge_in_thread(policy, path)
            if half and outcome.verdict == "goes on":
                outcome = Outcome("goes on half changed")
            count(row, outcome, where=f"{name}.{kind} at {injector.place}")
    return row
