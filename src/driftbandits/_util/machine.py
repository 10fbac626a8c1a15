"""The fingerprint of this machine's arithmetic: where two are equal, results are equal bit for bit.

Processors differ in the last digits: a BLAS chooses its kernels by the processor, NumPy its vector instructions, and
both change with their versions. What that means for results is said in `docs/machines.md`.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from driftbandits._util.packages import installed_versions


@functools.cache
def fingerprint() -> str:
    """Processor, vector instructions, BLAS kernels and threads, and versions, as one line of text.

    It is compared as a whole, and read by people: a later version may word it otherwise.

    >>> fingerprint().split("; ")[-1].startswith("scikit-learn ")
    True
    """
    versions = installed_versions(["numpy", "scipy", "scikit-learn"])
    found = np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", [])
    libc = "".join(platform.libc_ver()) or sys.platform
    return "; ".join(
        [
            " ".join([platform.machine(), *found]),
            ", ".join(_blas()) or "BLAS of an unknown kind",
            "1 BLAS thread",  # while a policy computes, whatever the process has otherwise: see `blas_threads`
            libc,
            f"python {sys.version_info.major}.{sys.version_info.minor}",
            *(f"{name} {version}" for name, version in versions.items()),
        ]
    )


def _blas() -> list[str]:
    """Kind, version and kernels of every BLAS in use."""
    return sorted({_described(one.info()) for one in blas_libraries()})


def _described(library: dict[str, Any]) -> str:
    facts = (library.get(name) for name in ("internal_api", "version", "architecture"))
    return " ".join(str(fact) for fact in facts if fact)


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
