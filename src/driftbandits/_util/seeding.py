"""Named random streams, so that every use of randomness has its own and none depends on the order of calls."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandits.errors import InputError, StateError
from driftbandits.text import shown

_SEPARATOR = "\x1f"
LARGEST_SEED = 2**128  # as many as a generator has states; a longer one would only fill messages and files
_MOST_DIGITS = 39  # of a number of 128 bits


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
        raise InputError(f"seed must be a non-negative integer or None, got {shown(seed)}") from None
    if isinstance(seed, (bool, np.bool_)) or not 0 <= number < LARGEST_SEED:
        raise InputError(f"seed must be an integer from 0 to 2^128 - 1, or None, got {shown(seed)}")
    return number


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Generator of the stream called `names` under `seed`: the same names give the same numbers, in any order.

    Names are strings and integers (NumPy's included: 3 and np.int64(3) are one name, 3 and "3" are two).

    >>> bool(stream(0, "noise", 3).random() == stream(0, "noise", 3).random())
    True
    >>> bool(stream(0, "noise").random() == stream(0, "arms").random())
    False
    """
    if seed is None:
        raise InputError("a stream needs a seed, got None; draw one with check_seed(None) and record it")
    digest = hashlib.sha256(_SEPARATOR.join(_label(name) for name in names).encode()).digest()
    key = tuple(int(word) for word in np.frombuffer(digest, dtype="<u4"))
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(check_seed(seed), spawn_key=key)))


def _label(name: str | int) -> str:
    """Text that differs for different names, whatever their type."""
    if isinstance(name, str):
        if _SEPARATOR in name:
            raise InputError(f"the name of a stream may not contain {_SEPARATOR!r}, got {name!r}")
        return f"str:{name}"
    try:
        number = operator.index(name)
    except TypeError:
        number = None
    if number is None or isinstance(name, (bool, np.bool_)):
        raise InputError(f"a stream is named by strings and integers, got {name!r} of type {type(name).__name__}")
    return f"int:{number}"


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
    limits = {"state": 2**128, "inc": 2**128, "has_uint32": 2, "uinteger": 2**32}
    number = {key: _whole(state, key, limit=limit) for key, limit in limits.items()}
    if number["inc"] % 2 == 0:
        raise StateError(f"not the state of a random generator: inc is {number['inc']}, and must be odd")
    bits = np.random.PCG64(0)
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": number["state"], "inc": number["inc"]},
        "has_uint32": number["has_uint32"],
        "uinteger": number["uinteger"],
    }
    return np.random.Generator(bits)


def same_stream(generator: np.random.Generator) -> np.random.Generator:
    """A generator of its own that goes on with the same numbers."""
    return generator_from_state(generator_state(generator))


def _whole(state: Any, key: str, *, limit: int) -> int:
    """Whole number in [0, limit), also as a text of digits."""
    if not isinstance(state, Mapping) or key not in state:
        raise StateError(f"not the state of a random generator: {key} is missing")
    value = state[key]
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _MOST_DIGITS:
        value = int(value)
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not 0 <= value < limit:
        raise StateError(f"not the state of a random generator: {key} is {shown(value)}")
    return int(value)
