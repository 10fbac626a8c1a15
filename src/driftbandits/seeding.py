"""Named random streams, so that every use of randomness has its own and none depends on the order of calls."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandits.errors import InputError, StateError


def check_seed(seed: int | None) -> int:
    """Give `seed` as a non-negative int; None draws one from the operating system, to be recorded.

    >>> check_seed(7)
    7
    """
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    try:
        number = operator.index(seed)
    except TypeError:
        raise InputError(f"seed must be a non-negative integer or None, got {seed!r}") from None
    if isinstance(seed, bool) or number < 0:
        raise InputError(f"seed must be a non-negative integer or None, got {seed!r}")
    return number


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Generator of the stream called `names` under `seed`: the same names give the same numbers, in any order.

    >>> bool(stream(0, "noise", 3).random() == stream(0, "noise", 3).random())
    True
    >>> bool(stream(0, "noise").random() == stream(0, "arms").random())
    False
    """
    digest = hashlib.sha256("\x1f".join(f"{type(name).__name__}:{name}" for name in names).encode()).digest()
    key = np.frombuffer(digest, dtype=np.uint32)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=tuple(int(k) for k in key))))


def generator_state(generator: np.random.Generator) -> dict[str, Any]:
    """State of a generator as plain JSON values."""
    state = generator.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise StateError(f"only PCG64 generators can be saved, got {state['bit_generator']}; build them with stream()")
    inner = state["state"]
    return {
        "state": str(inner["state"]),  # 128 bits: beyond what other JSON readers keep exact
        "inc": str(inner["inc"]),
        "has_uint32": int(state["has_uint32"]),
        "uinteger": int(state["uinteger"]),
    }


def generator_from_state(state: Mapping[str, Any]) -> np.random.Generator:
    """Inverse of `generator_state`.

    >>> a = stream(0, "doc"); _ = a.random(5)
    >>> b = generator_from_state(generator_state(a))
    >>> bool(a.random() == b.random())
    True
    """
    bits = np.random.PCG64(0)
    try:
        bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": int(state["state"]), "inc": int(state["inc"])},
            "has_uint32": int(state["has_uint32"]),
            "uinteger": int(state["uinteger"]),
        }
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(f"not the state of a random generator: {error}") from error
    return np.random.Generator(bits)
