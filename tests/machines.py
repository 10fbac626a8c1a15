"""Other kinds of machine, as far as this processor can play them: which there are, and Python on one of them.

Results differ between machines in their last digits, because of BLAS's kernels, NumPy's vector instructions and the C
library's functions, and each of these can be told by an environment variable to be of another kind. A process reads
them when it starts, so a kind is a child process.

    python -m tests.machines                         # the kinds this processor can play, one per line
    python -m tests.machines Nehalem -m pytest ...   # Python on one of them
    python -m tests.machines each -m pytest ...      # on every one, one per core at a time
    python -m tests.machines two -m pytest ...       # on two of them
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from numpy._core._multiarray_umath import __cpu_dispatch__ as _dispatched  # type: ignore[attr-defined]

ROOT = Path(__file__).resolve().parent.parent
_ALSO_CALLED = {"Prescott": "Katmai"}  # one set of kernels, and the first of its names
_AVX512 = " ".join(name for name in _dispatched if name.startswith(("AVX512", "X86_V4")))
_VECTORS = " ".join(_dispatched)
_LIBM = "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX"

# OpenBLAS's kernels, NumPy's vector instructions and the C library's functions, each in all its forms; a form more than
# one kind has is not tried alone, because every kind takes a run of its own.
KINDS: dict[str, dict[str, str]] = {
    "native": {},
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "Zen": {"OPENBLAS_CORETYPE": "Zen"},
    "SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "Sandybridge": {"OPENBLAS_CORETYPE": "Sandybridge", "NPY_DISABLE_CPU_FEATURES": _AVX512},
    "Nehalem": {"OPENBLAS_CORETYPE": "Nehalem", "GLIBC_TUNABLES": _LIBM},
    "oldest": {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": _VECTORS, "GLIBC_TUNABLES": _LIBM},
}

AS_FAR_APART_AS_ANY = ("oldest", "Haswell", "Nehalem")  # of which "two" takes the first two that can be played

_PROBE = """
import json, math
import numpy as np, scipy.linalg
from numpy._core._multiarray_umath import __cpu_features__
from threadpoolctl import threadpool_info
square = np.random.default_rng(0).random((90, 90))
scipy.linalg.cholesky(square @ square.T + np.eye(90))  # an instruction this processor does not have kills the process
np.linalg.eigh(np.exp(square + square.T))
print(json.dumps({
    "blas": sorted({str(one.get("architecture")) for one in threadpool_info() if one["user_api"] == "blas"}),
    "vectors": [name for name, has in __cpu_features__.items() if has],
    "libm": hash(tuple(function(x / 977.0) for x in range(1, 40_000) for function in (math.exp, math.sin))),
}))
"""


def run(kind: str, *arguments: str, text: str | None = None, timeout: float = 120.0, **environment: str) -> str:
    """What `python *arguments` prints on a machine of that kind, with one thread of BLAS and the root as its folder.

    Parameters
    ----------
    text : str, optional
        Its standard input.
    **environment : str
        More variables, or others.

    Raises
    ------
    RuntimeError
        It did not end with 0; the message ends with what it wrote to standard error.

    """
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**environment_of(kind), **environment},
        cwd=ROOT,
        input=text,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"Python on the machine {kind!r} ended with {done.returncode}: {done.stderr[-4000:]}")
    return done.stdout


@functools.cache
def why_not(kind: str) -> str | None:
    """Why this processor cannot play that kind of machine, or None if it can: it is tried, for OpenBLAS and NumPy
    go on with what they have when they are told to use what they do not know."""
    native = _probed("native")
    if native is None:
        return "Python does not start here"
    probed = _probed(kind)
    if probed is None:
        return f"{kind}: this processor lacks instructions it needs"
    wanted = KINDS[kind]
    core = wanted.get("OPENBLAS_CORETYPE")
    if core and not set(probed["blas"]) <= {core, _ALSO_CALLED.get(core)}:
        return f"{kind}: BLAS has no such kernels for this processor, and takes {' and '.join(probed['blas'])}"
    off = set(wanted.get("NPY_DISABLE_CPU_FEATURES", "").split())
    if off & set(probed["vectors"]):
        return f"{kind}: NumPy still uses {', '.join(sorted(off & set(probed['vectors'])))}"
    if kind != "native" and probed == native:
        return f"{kind}: that is what this machine is"
    return None


def playable() -> list[str]:
    """The kinds this processor can play, this machine as it is first."""
    return [kind for kind in KINDS if why_not(kind) is None]


@functools.cache
def _probed(kind: str) -> dict[str, Any] | None:
    try:
        probed: dict[str, Any] = json.loads(run(kind, "-c", _PROBE))
    except RuntimeError:
        return None
    return probed


def environment_of(kind: str) -> dict[str, str]:
    """The variables of a process on that kind, whatever kind this one is."""
    told = {name for variables in KINDS.values() for name in variables}
    own = {name: value for name, value in os.environ.items() if name not in told}
    return {**own, "OPENBLAS_NUM_THREADS": "1", **KINDS[kind]}


def run_each(kinds: list[str], arguments: list[str]) -> int:
    """Run Python on each of these kinds and print how each run ended; how many failed."""

    def attempt(kind: str) -> bool:
        begun = time.monotonic()
        command = [sys.executable, *arguments]
        done = subprocess.run(command, env=environment_of(kind), cwd=ROOT, capture_output=True, text=True, check=False)
        lines = (done.stdout + done.stderr).splitlines()
        shown = lines[-1:] if done.returncode == 0 else lines
        print(f"== {kind}, {time.monotonic() - begun:.0f} s", *shown, sep="\n", flush=True)
        return done.returncode == 0

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(attempt, kinds)).count(False)


if __name__ == "__main__":
    if sys.argv[1:2] == ["each"]:
        sys.exit(run_each(playable(), sys.argv[2:]))
    if sys.argv[1:2] == ["two"]:
        sys.exit(run_each([kind for kind in AS_FAR_APART_AS_ANY if why_not(kind) is None][:2], sys.argv[2:]))
    if len(sys.argv) > 1:
        os.execve(sys.executable, [sys.executable, *sys.argv[2:]], environment_of(sys.argv[1]))
    print("\n".join(playable()))
