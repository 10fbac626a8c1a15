"""What this machine has: the fingerprint of its arithmetic, and optional packages.

Where two fingerprints are equal, results are equal bit for bit.

Processors differ in the last digits: a BLAS chooses its kernels by the processor, NumPy its vector instructions, and
both change with their versions. What that means for results is said in `docs/machines.md`.
"""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Any

import numpy as np

from driftbandits._util.guard import blas_libraries
from driftbandits.errors import MissingExtraError


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of those of these packages that are installed, by name; nothing is imported.

    >>> list(installed_versions(["numpy", "no-such-package"]))
    ['numpy']
    """
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def data_frame(columns: Mapping[str, Any], *, purpose: str) -> Any:
    """A DataFrame with these columns; MissingExtraError says what to install where there is no pandas.

    >>> data_frame({"arm": [0, 1]}, purpose="an example").shape
    (2, 1)
    """
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("pandas", extra="experiments", purpose=purpose) from None
    return pandas.DataFrame(dict(columns))


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
