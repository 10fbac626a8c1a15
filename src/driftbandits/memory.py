"""How much memory there is, asked before work that could not be held in it.

Without this, Linux promises memory it does not have, and ends the process when it is used.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from driftbandits.errors import InputError
from driftbandits.showing import shown

FLOAT_BYTES = 8  # in double precision
NEVER_REFUSED_BYTES = 2**28  # importing the library takes nearly as much

# Of cgroups 2 and of cgroups 1.
_CONTAINER_LIMIT_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_limit() -> float:
    """Bytes this process may use: what the machine has, less if a container or `ulimit -v` says so.

    Infinite where the system does not tell.
    """
    return min(_of_the_machine(), _of_the_container(), _of_the_process())


def check_memory(needed: int, what: str, *, cure: str) -> None:
    """Refuse work that needs more than all the memory there is.

    `needed` is the least it can do with, in bytes: what may just fit is let through.
    """
    if needed <= NEVER_REFUSED_BYTES:
        return
    limit = memory_limit()
    if needed > limit:
        raise InputError(
            f"{what} would need {_in_words(needed)} of memory at least, and there are {_in_words(int(limit))}; {cure}"
        )


def _of_the_machine() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # no such question on Windows
        return math.inf


def _of_the_container() -> float:
    for place in _CONTAINER_LIMIT_FILES:
        try:
            return float(place.read_text())
        except (OSError, ValueError):  # not there, or "max"
            continue
    return math.inf


def _of_the_process() -> float:
    try:
        import resource  # Unix only
    except ImportError:
        return math.inf
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return math.inf if limit == resource.RLIM_INFINITY else limit


def _in_words(count: int) -> str:
    """Bytes for a message.

    >>> _in_words(24 << 30), _in_words(5 << 20), _in_words(10**30)
    ('24.0 GiB', '5.0 MiB', '931322574615478515625 GiB')
    """
    if count < 2**30:
        return f"{count / 2**20:.1f} MiB"
    return f"{count / 2**30:.1f} GiB" if count < 2**50 else f"{shown(count >> 30)} GiB"
