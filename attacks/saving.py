"""Saves that meet other saves, signals and kill -9. Whatever happens, the file in place loads."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from attacks.common import AttackRow, Options, arm_set, generator, make, play, said, scratch, spread, total
from driftbandits.policies import POLICIES

NAMES = ("AutoBandit", "AdaOPKB", "GPUCB", "Uniform")  # large and small files
HANG_SECONDS = 30.0  # of a child that was asked to end
PARTS_PER_ATTACK = 5  # spread over processes
HANDLER_SAVED, REFUSED, FAILED = 0, 3, 4  # how a child ends


def run(options: Options) -> Iterator[AttackRow]:
    """All ways to disturb a save."""
    attacks = {
        "SIGTERM handler that saves": (shutdowns, options.tries(600, 30)),
        "two threads save, one loads": (threads, options.tries(1_000, 100)),
        "two processes with one id save": (twins, options.tries(1_000, 100)),
        "kill -9 while saving": (kills, options.tries(600, 30)),
    }
    for label, (attack, tries) in attacks.items():
        parts = 1 if options.quick else PARTS_PER_ATTACK
        tasks = [
            (name, -(-tries // parts // len(NAMES)), options.seed + part) for part in range(parts) for name in NAMES
        ]
        yield total(label, spread(attack, tasks, options))


def shutdowns(name: str, tries: int, seed: int) -> AttackRow:
    """The main loop saves after every round; on SIGTERM a handler saves once more and leaves."""
    row = AttackRow(name)
    ends = {HANDLER_SAVED: "handler saved", REFUSED: "handler's save refused", None: "hung"}
    for path, code in _signalled("shutdowns", name, tries, seed, number=signal.SIGTERM):
        row.note(ends.get(code, "ended by an error"), bad=code is None, example=name)
        _judge(row, name, path)
    return row


def kills(name: str, tries: int, seed: int) -> AttackRow:
    """A process that saves in a loop is killed; the file loads, and the next save leaves nothing beside it."""
    row = AttackRow(name)
    for path, _ in _signalled("kills", name, tries, seed, number=signal.SIGKILL):
        _judge(row, name, path)
        if _beside(path):
            row.note("left a side file")
            make(name).save(path)
            left = _beside(path)
            outcome = "side file stays" if left else "side file gone after the next save"
            row.note(outcome, bad=bool(left), example=name)
        for leftover in _beside(path):
            leftover.unlink()
    return row


def threads(name: str, tries: int, seed: int) -> AttackRow:
    """Two threads save policies to one path, the same policy or two, while a third loads."""
    row = AttackRow(name)
    with scratch(disk=True) as folder:
        for shared in (True, False):
            path = _saved(name, folder)
            policies = [make(name, horizon=None, seed=seed)] * 2
            if not shared:
                policies[1] = make(name, horizon=None, seed=seed + 1)
            stop = threading.Event()
            errors: list[str] = []
            savers = [
                threading.Thread(target=_save_until, args=(policy.save, path, stop, errors), daemon=True)
                for policy in policies
            ]
            for saver in savers:
                saver.start()
            for _ in range(tries // 2):
                _judge(row, name, path)
            stop.set()
            for saver in savers:
                saver.join(HANG_SECONDS)
            for error in errors:
                row.note("a save raised", bad=True, example=f"{name}: {error}")
            for left in _beside(path):
                row.note("a side file stays", bad=True, example=left.name)
    return row


def twins(name: str, tries: int, _seed: int) -> AttackRow:
    """Process 1 of two containers that share a folder: two processes that save to one path under one process id."""
    row = AttackRow(name)
    with scratch(disk=True) as folder:
        path = _saved(name, folder)
        children = [_fork(functools.partial(_save_as_one, name, path)) for _ in range(2)]
        for _ in range(tries):
            _judge(row, name, path)
        for child in children:
            os.kill(child, signal.SIGTERM)
            code = _wait(child)
            row.note("a save raised" if code == FAILED else "saver ended well", bad=code == FAILED, example=name)
    return row


# --- what children do ------------------------------------------------------------------------------------------------


def _fork(action: Callable[[int], object]) -> int:
    """Start a child and wait until it has written its first byte; it ends when `action` does."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)
        return child
    code = FAILED
    try:
        os.close(reader)
        action(writer)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else FAILED
    except BaseException as error:  # the child must not go on as the attacker
        code = REFUSED if type(error).__name__ == "ReentryError" else FAILED
    os._exit(code)


def _save_for_ever(name: str, path: Path, ready: int, *, handler: bool) -> NoReturn:
    policy = make(name, horizon=None)

    def save_and_leave(_number: int, _frame: types.FrameType | None) -> None:
        policy.save(path)
        sys.exit(HANDLER_SAVED)

    if handler:
        signal.signal(signal.SIGTERM, save_and_leave)
    os.write(ready, b".")
    while True:
        play(policy, 1)
        policy.save(path)


def _save_as_one(name: str, path: Path, ready: int) -> NoReturn:
    """Save under process id 1 until told to end, whatever becomes of the single save."""
    os.getpid = lambda: 1
    ends = [HANDLER_SAVED]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ends[-1]))
    policy = make(name, horizon=None)
    os.write(ready, b".")
    while True:
        try:
            play(policy, 1)
            policy.save(path)
        except Exception:  # counted once, by the exit code
            ends.append(FAILED)


# --- what the attacker does ------------------------------------------------------------------------------------------


def _signalled(attack: str, name: str, tries: int, seed: int, *, number: int) -> Iterator[tuple[Path, int | None]]:
    """The file of a child that was sent a signal at a random moment of saving in a loop, and the child's exit code."""
    rng = generator(attack, name, seed)
    with scratch(disk=True) as folder:
        for _ in range(tries):
            path = _saved(name, folder)
            child = _fork(functools.partial(_save_for_ever, name, path, handler=number == signal.SIGTERM))
            time.sleep(float(rng.random()) * 0.03)
            os.kill(child, number)
            yield path, _wait(child, again=number)


def _saved(name: str, folder: Path) -> Path:
    path = folder / "policy.state"
    make(name).save(path)
    return path


def _save_until(save: Callable[[Path], None], path: Path, stop: threading.Event, errors: list[str]) -> None:
    while not stop.is_set():
        try:
            save(path)
        except Exception as error:  # counted
            errors.append(said(error))


def _judge(row: AttackRow, name: str, path: Path) -> None:
    """Count whether the file in place loads, and plays on."""
    try:
        play(POLICIES[name].load(arm_set(), path), 3)
    except Exception as error:
        row.add("file does not load", bad=True, example=f"{name}: {said(error)}")
    else:
        row.add("file loads")


def _beside(path: Path) -> list[Path]:
    return [other for other in path.parent.iterdir() if other != path]


def _wait(child: int, again: int | None = None) -> int | None:
    """Exit code of a child; None if it had to be killed.

    What a handler raises is lost where Python runs a finaliser, so a signal may be sent again.
    """
    end = time.monotonic() + HANG_SECONDS
    while time.monotonic() < end:
        for _ in range(2_000):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.001)
        if again is not None:
            os.kill(child, again)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
