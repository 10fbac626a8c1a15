"""The fingerprint of this machine's arithmetic: where two are equal, results are equal bit for bit.

Processors differ in the last digits: a BLAS chooses its kernels by the processor, NumPy its vector instructions, and
both change with their versions. What that means for results is said in `docs/machines.md`.
"""

from __future__ import annotations

import functools
import platform
import sys
from typing import Any

import numpy as np

from driftbandits._util.guard import blas_libraries
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
            "1 BLAS thread",  # while a policy computes, whatever the process has otherwise: see `_util/guard.py`
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
