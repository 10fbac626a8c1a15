"""One call of a policy at a time, and a change of its state that was begun and not finished is known.

A policy has one `Guard`. Every public method that reads or changes its state is `guarded`: other threads wait until the
call is over. A signal handler runs inside whatever call its thread is in; a call of the same policy from there would
see half a change, or change what is being read, and is refused. Where a method changes the state it sets `changing`
before and clears it after; an exception in between leaves the mark, and every later call refuses.

The lock and the mark of being inside are both given back by `with` on locks of the interpreter itself, each `with` in
one line with its body: no line of Python stands between an exception and their release, not even for a tracer.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from driftbandits.errors import InterruptedPolicyError, ReentryError


class Guard:
    """The lock of one policy, and what its present or last call is doing."""

    __slots__ = ("__weakref__", "call", "cause", "changing", "inside", "lock")

    def __init__(self) -> None:
        self.renew()
        self.call = ""  # the method under way, or the last one
        self.changing = False  # whether the state is, or was left, half changed
        self.cause = ""  # of its being left so
        _GUARDS.add(self)

    def renew(self) -> None:
        """Open locks, whoever held them."""
        self.lock = threading.RLock()  # one thread at a time
        self.inside = threading.Lock()  # held while a call is under way; only its own thread can find it so

    def run(
        self, name: str, method: Callable[..., Any], policy: _Guarded, args: Sequence[Any], settings: Mapping[str, Any]
    ) -> Any:
        """Call a method, with the lock held."""
        if self.changing or self.inside.locked():
            self.check(name, policy)
        self.call = name
        try:
            with self.inside: return method(policy, *args, **settings)  # noqa: E701  # fmt: skip
        except BaseException as error:
            if self.changing:
                self.cause = _describe(error)
            raise

    def check(self, name: str, policy: _Guarded) -> None:
        """Refuse a call of method `name` from inside another, or after a change that was not finished."""
        if self.inside.locked():
            raise ReentryError(
                f"inside {self.call}; {name} after it returns: in a signal handler set a flag, and look at it between "
                "calls of the policy"
            )
        if self.changing:
            raise InterruptedPolicyError(
                f"interrupted at round {policy.rounds}, inside {self.call}"
                + (f" by {self.cause}" if self.cause else "")
                + ", with its state half changed; load the last saved state, or build the policy anew"
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
    def call(self: _Guarded, /, *args: Any, **settings: Any) -> Any:
        guard = self._guard
        with guard.lock: return guard.run(name, method, self, args, settings)  # noqa: E701  # fmt: skip

    return call  # type: ignore[return-value]  # of the same signature


def _describe(error: BaseException) -> str:
    text: Any = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
