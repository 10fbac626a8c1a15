"""How a call computes: with one thread of BLAS, and, of a policy, one call at a time.

A policy has one `Guard`. Every public method that reads or changes its state is `guarded`: other threads wait until the
call is over, and BLAS computes in one thread. A signal handler runs inside whatever call its thread is in; a call of
the same policy from there would see half a change, or change what is being read, and is refused. Where a method changes
the state it sets `changing` before and clears it after; an exception in between leaves the mark, and every later call
refuses.

The lock is released by `with` on a lock of the interpreter itself, in one line with the call: no line of Python stands
between an exception and its release, not even for a tracer. Messages are composed only when there is one to give, so a
call that succeeds pays for the lock and for BLAS alone. BLAS is held outside the lock, so that threads do not wait for
each other's setting.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar

from driftbandits.errors import InterruptedPolicyError, ReentryError

Function = TypeVar("Function", bound=Callable[..., Any])


class _Variable(ctypes.c_int):
    """The number of threads of a library as it keeps it, and what it was before, 0 while it is the user's."""

    __slots__ = ("before",)
    before: int


class _Controlled:
    """The number of threads of a library that threadpoolctl knows how to set."""

    __slots__ = ("_controller", "before")

    def __init__(self, controller: Any) -> None:
        self._controller = controller
        self.before = 0

    @property
    def value(self) -> int:
        return int(self._controller.get_num_threads())

    @value.setter
    def value(self, threads: int) -> None:
        self._controller.set_num_threads(threads)


class _Setting:
    """The number of threads of every BLAS of this process, and who computes with one."""

    __slots__ = ("holders", "libraries", "lock")

    def __init__(self) -> None:
        self.holders: set[object] = set()
        self.libraries: tuple[_Variable | _Controlled, ...] | None = None  # not looked for yet
        self.lock = threading.RLock()

    def hold(self, holder: object) -> None:
        """Compute with one thread from here on, until this holder is released."""
        self.holders.add(holder)
        if self.libraries is None:
            with self.lock: self._find()  # noqa: E701  # fmt: skip
        for library in self.libraries:  # type: ignore[union-attr]
            threads = library.value
            if threads != 1:
                library.before = threads
                library.value = 1

    def release(self, holder: object) -> None:
        """This holder has computed, or never began; the last one gives back what the user had set."""
        self.holders.discard(holder)
        if self.holders:
            return
        for library in self.libraries or ():
            before = library.before
            if before and not self.holders:
                if library.value == 1:
                    library.value = before
                library.before = 0

    def _find(self) -> None:
        if self.libraries is None:
            self.libraries = _found()

    def __reduce__(self) -> str:
        """By name: a class of a notebook takes along what its constructor calls when it is sent to other processes."""
        return "_SETTING"

    def renew(self) -> None:
        """In a forked child the threads that computed are gone, and with them what they held."""
        self.lock = threading.RLock()
        self.holders.clear()
        self.release(None)


def blas_libraries() -> list[Any]:
    """Controllers of every BLAS that the library computes with: NumPy's and SciPy's own, and no other."""
    import scipy.linalg.blas  # noqa: F401  # so that its library is loaded
    from threadpoolctl import ThreadpoolController

    loaded = ThreadpoolController().select(user_api="blas").lib_controllers
    ours = [one for one in loaded if any(name in Path(one.filepath).parent.name for name in ("numpy", "scipy"))]
    return ours or loaded  # where they share one, it lies elsewhere


def _found() -> tuple[_Variable | _Controlled, ...]:
    return tuple(_number(one) for one in blas_libraries() if getattr(one, "threading_layer", "") != "openmp")


def _number(controller: Any) -> _Variable | _Controlled:
    """The number of threads of one library: its own variable, where it has one that its function tells as well."""
    if controller.internal_api == "openblas":
        try:
            variable = _Variable.in_dll(ctypes.PyDLL(controller.filepath), "blas_cpu_number")
        except ValueError:  # not exported
            return _Controlled(controller)
        if variable.value == controller.get_num_threads():
            variable.before = 0
            return variable
    return _Controlled(controller)


_SETTING = _Setting()
hold, release = _SETTING.hold, _SETTING.release

if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork either
    os.register_at_fork(after_in_child=_SETTING.renew)


def one_blas_thread(function: Function) -> Function:
    """A function that computes with one thread of BLAS, whatever the user's setting.

    >>> from threadpoolctl import threadpool_info
    >>> @one_blas_thread
    ... def threads():
    ...     return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
    >>> threads()
    {1}
    """

    @functools.wraps(function)
    def alone(*args: Any, **settings: Any) -> Any:
        holder = object()
        try:
            hold(holder)
            result = function(*args, **settings)
            release(holder)
            return result
        except BaseException:
            release(holder)
            raise

    return alone  # type: ignore[return-value]  # of the same signature


class Guard:
    """The lock of a policy, and whether its state was left half changed."""

    __slots__ = ("__weakref__", "cause", "changing", "entered", "lock")

    def __init__(self) -> None:
        self.renew()
        self.changing = False  # whether the state is, or was left, half changed
        self.cause = ""  # of its being left so: the call, and what ended it
        _GUARDS.add(self)

    def renew(self) -> None:
        """A fresh lock."""
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


def guarded(method: Function) -> Function:
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
