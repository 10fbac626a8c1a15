"""One call of a policy at a time, and a change of its state that was begun and not finished is known.

A policy has one `Guard`. Every public method that reads or changes its state is `guarded`: other threads wait until the
call is over, and BLAS computes in one thread (`blas_threads`). A signal handler runs inside whatever call its thread is
in; a call of the same policy from there would see half a change, or change what is being read, and is refused. Where a
method changes the state it sets `changing` before and clears it after; an exception in between leaves the mark, and
every later call refuses.

The lock is given back by `with` on a lock of the interpreter itself, in one line with the call: no line of Python
stands between an exception and its release, not even for a tracer. What messages say is found out when there is one
to give, so that a call that goes well pays for the lock and for BLAS alone. BLAS is held outside the lock: nobody waits
for it who keeps others waiting.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, NoReturn, Protocol, TypeVar

from driftbandits._util.machine import hold, release
from driftbandits.errors import InterruptedPolicyError, ReentryError


class Guard:
    """The lock of one policy, and whether its state was left half changed."""

    __slots__ = ("__weakref__", "cause", "changing", "entered", "lock")

    def __init__(self) -> None:
        self.renew()
        self.changing = False  # whether the state is, or was left, half changed
        self.cause = ""  # of its being left so: the call, and what ended it
        _GUARDS.add(self)

    def renew(self) -> None:
        """An open lock, whoever held it."""
        self.lock = threading.RLock()
        # Whether this thread holds it; without a public name, but `threading.Condition` is built on it too.
        self.entered: Callable[[], bool] = self.lock._is_owned  # type: ignore[attr-defined]

    def note(self, name: str, error: BaseException) -> None:
        """`error` ended method `name`; keep that if it left the state half changed."""
        if isinstance(error, InterruptedPolicyError):  # a call refused has ended nothing
            return
        with self.lock:
            if self.changing and not self.cause:
                self.cause = f", inside {name} by {_describe(error)}"

    def refuse(self, policy: _Guarded) -> NoReturn:
        """After a change that was not finished."""
        raise InterruptedPolicyError(
            f"interrupted at round {policy.rounds}{self.cause}, with its state half changed; load the last saved "
            "state, or build the policy anew"
        )


_GUARDS: weakref.WeakSet[Guard] = weakref.WeakSet()


def _after_fork() -> None:
    """In a forked child the threads that held locks are gone; what they had half changed stays marked."""
    for guard in list(_GUARDS):
        guard.renew()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork either
    os.register_at_fork(after_in_child=_after_fork)


class _Guarded(Protocol):
    _guard: Guard
    rounds: int


Method = TypeVar("Method", bound=Callable[..., Any])


def guarded(method: Method) -> Method:
    """A method that nothing else of the same policy runs beside."""
    name = method.__name__

    @functools.wraps(method)
    def guarded_call(self: _Guarded, /, *args: Any, **settings: Any) -> Any:
        guard = self._guard
        if guard.entered():
            raise ReentryError(_reentry(self, name))
        holder = object()
        try:
            hold(holder)
            with guard.lock: result = guard.refuse(self) if guard.changing else method(self, *args, **settings)  # noqa: E701  # fmt: skip
            release(holder)
            return result
        except BaseException as error:
            guard.note(name, error)
            release(holder)
            raise

    return guarded_call  # type: ignore[return-value]  # of the same signature


def _reentry(policy: _Guarded, name: str) -> str:
    return (
        f"inside {_under_way(policy)}; {name} after it returns: a signal handler sets a flag, to be looked at between "
        f"calls of the policy, and a hook of a policy calls other hooks, such as _law()"
    )


def _under_way(policy: _Guarded) -> str:
    """Name of the outermost call of the policy on this thread's stack."""
    found, frame = "a call", inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name == "guarded_call" and frame.f_locals.get("self") is policy:
            found = str(frame.f_locals["name"])
        frame = frame.f_back
    return found


def _describe(error: BaseException) -> str:
    text: Any = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
