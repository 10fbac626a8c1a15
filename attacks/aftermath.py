"""What becomes of a policy after something went wrong inside it.

It may go on, or say clearly that it was interrupted; anything else is "dead without saying so".
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attacks.common import AttackRow, arm_set, law_fault, play, refuses, reward, said
from driftbandits.policies import Policy

ROUNDS_PLAYED = 40
HANG_SECONDS = 60.0  # the longest call takes a tenth of a second on an idle machine
KEPT_PROMISES = ("goes on", "refuses")


@dataclass(frozen=True)
class Outcome:
    """`verdict` is "goes on", "refuses", or what is wrong; `detail` the error or value."""

    verdict: str
    detail: str = ""

    @property
    def bad(self) -> bool:
        """Whether a promise was broken."""
        return self.verdict not in KEPT_PROMISES


def judge(policy: Policy, path: Path) -> Outcome:
    """Look at a policy whose last good state is in `path`."""
    outcome = _judge(policy, path, path.read_bytes())
    if outcome.verdict.startswith("dead") and _destroys(policy, path):
        return Outcome("dead without saying so, and save destroyed the good file", outcome.detail)
    return outcome


def judge_in_thread(policy: Policy, path: Path) -> Outcome:
    """The same from another thread, which waits for ever if the lock is still held, after one call from this one."""
    here = Outcome("goes on")
    try:
        policy.law()
    except Exception as error:  # whatever it is, it is what is counted
        if not refuses(error):
            here = Outcome(_dead("law", error), said(error))
    there = within(lambda: judge(policy, path), HANG_SECONDS)
    return here if here.bad and not there.bad else there


def within(call: Callable[[], Outcome], seconds: float) -> Outcome:
    """What a call in another thread gives, or a hang."""
    found: list[Outcome] = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(seconds)
    return found[0] if found else Outcome("hangs", f"no answer in {seconds:g} s")


def count(row: AttackRow, outcome: Outcome, *, where: str) -> None:
    """Add an outcome to a row."""
    row.add(outcome.verdict, bad=outcome.bad, example=f"{where}: {outcome.detail}")


def _judge(policy: Policy, path: Path, good: bytes) -> Outcome:
    try:
        first = policy.ask()
    except Exception as error:
        return _refused(policy, path, good) if refuses(error) else Outcome(_dead("ask", error), said(error))
    step = "tell"
    try:
        policy.tell(first.id, reward(policy, first.id, first.arm))
        step = "play"
        for _ in range(ROUNDS_PLAYED // 10):
            play(policy, 10)
            if fault := law_fault(policy.law()):
                return Outcome("law is no law", fault)
        step = "save"
        policy.save(path)
        step = "load"
        again = type(policy).load(arm_set(), path)
        step = "play on"
        if play(policy, 10) != play(again, 10):
            return Outcome("loaded policy decides differently")
    except Exception as error:
        if step == "load":
            return Outcome("saved a file that does not load", said(error))
        return Outcome("refuses only in part" if refuses(error) else _dead(step, error), f"{step}: {said(error)}")
    return Outcome("goes on")


def _refused(policy: Policy, path: Path, good: bytes) -> Outcome:
    """`ask` has refused: so must `tell` and `save`, and the file stays."""
    calls: dict[str, Callable[[], object]] = {
        "tell": lambda: policy.tell(policy.rounds - 1, 0.0),
        "save": lambda: policy.save(path),
        "ask again": policy.ask,
    }
    for name, call in calls.items():
        try:
            call()
        except Exception as error:
            if not refuses(error):
                return Outcome("refuses only in part", f"{name}: {said(error)}")
        else:
            return Outcome("refuses only in part", f"{name} went through")
    return Outcome("refuses") if path.read_bytes() == good else Outcome("refuses, but the file changed")


def _destroys(policy: Policy, path: Path) -> bool:
    """Whether `save` of a dead policy replaces its last good file by one that cannot be used."""
    with contextlib.suppress(Exception):  # what matters is the file
        policy.save(path)
    try:
        play(type(policy).load(arm_set(), path), 2)
    except Exception:
        return True
    return False


def _dead(step: str, error: BaseException) -> str:
    if type(error).__name__ == "ReentryError":
        return "says for ever that it is inside a call"
    return f"dead without saying so ({step})"
