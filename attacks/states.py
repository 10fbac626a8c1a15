"""Altered states: refused with a StateError, or a policy that plays.

Whatever a policy that was restored raises in 60 rounds counts against it, but a LawError, which names the fault.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from attacks.common import (
    AttackRow,
    Hang,
    Options,
    arm_set,
    deadline,
    every_policy,
    generator,
    kind_of,
    law_fault,
    limit_memory,
    make,
    play,
    said,
)
from driftbandits.errors import HorizonError, StateError
from driftbandits.policies import Policy

ROUNDS = 60
HANG_SECONDS = 20.0
Place = tuple[str | int, ...]


def run(options: Options) -> Iterator[AttackRow]:
    """The states of every policy."""
    yield every_policy("altered state", altered, options.tries(1_500, 20), options)


# --- states ----------------------------------------------------------------------------------------------------------


def altered(name: str, tries: int, seed: int) -> AttackRow:
    """Alter one value of a state, restore it, and play."""
    rng = generator("altered", name, seed)
    row = AttackRow(name)
    limit_memory()
    policy = _played(name, rng)
    state = policy.state_dict()
    places = list(_places(state))
    for number in range(tries):
        if number % 50 == 49:
            policy = _played(name, rng)
            state = policy.state_dict()
            places = list(_places(state))
        broken = copy.deepcopy(state)
        path = places[int(rng.integers(len(places)))]
        what = _alter(broken, path, rng)
        outcome, error = _try(type(policy), broken)
        slow = outcome == "hangs" and "settings" in path  # a setting may ask for years of work, and be meant
        where = f"{name} state.{'.'.join(map(str, path))} {what}"
        fine = outcome in ("StateError", "plays", "LawError") or slow
        row.add("slow by its settings" if slow else outcome, bad=not fine, example=f"{where}: {error}")
    return row


def _try(kind: type[Policy], state: dict[str, Any]) -> tuple[str, str]:
    """What restoring and playing gives, and the error behind it."""
    step = "restore"
    try:
        with deadline(HANG_SECONDS):
            policy = kind.restore(arm_set(), state)
            step = "play"
            try:
                play(policy, ROUNDS)
            except HorizonError:
                return "plays", ""  # the altered state has fewer rounds to go
            step = "law"
            fault = law_fault(policy.law())
    except StateError as error:
        return ("StateError", "") if step == "restore" else (f"raised StateError in {step}", said(error))
    except Hang as error:
        return "hangs", f"{step}: {error}"
    except Exception as error:
        if type(error).__name__ == "LawError":
            return "LawError", ""
        return f"raised {kind_of(error)} in {step}", said(error)
    return (f"law {fault}", "") if fault else ("plays", "")


def _played(name: str, rng: np.random.Generator) -> Policy:
    policy = make(name, horizon=600 if rng.random() < 0.5 else None, seed=int(rng.integers(1000)))
    play(policy, int(rng.integers(1, 300)))
    policy.ask(size=int(rng.integers(1, 6)))
    return policy


def _places(value: Any, path: Place = ()) -> Iterator[Place]:
    """The path of every value in a state, containers among them; of long lists the first few."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _places(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value[:4]):
            yield from _places(item, (*path, number))


def _alter(state: dict[str, Any], path: Place, rng: np.random.Generator) -> str:
    """Change the value at `path` in place; what was done."""
    inside: Any = state
    for key in path[:-1]:
        inside = inside[key]
    last = path[-1]
    if rng.random() < 0.1 and isinstance(inside, dict):
        return _rearrange(inside, str(last), rng)
    value = inside[last]
    change = _ARRAYS if isinstance(value, np.ndarray) else _VALUES
    name = str(rng.choice(list(change)))
    inside[last] = change[name](value)
    return name


def _rearrange(inside: dict[str, Any], key: str, rng: np.random.Generator) -> str:
    other = str(rng.choice(list(inside)))
    if rng.random() < 0.5:
        del inside[key]
        return "removed"
    inside[key], inside[other] = inside[other], inside[key]
    return f"exchanged with {other}"


def _number(value: Any) -> float:
    return value if isinstance(value, (int, float)) else 7


def _always(value: Any) -> Callable[[Any], Any]:
    return lambda _: copy.deepcopy(value)


_INSTEAD: tuple[Any, ...] = (
    *(0, -1, 1, 1e300, 1e-300, float("nan"), float("inf"), 2**62, 10**400),
    *("text", None, True, [], {}, np.zeros(3)),
)
_VALUES: dict[str, Callable[[Any], Any]] = {
    **{f"= {value!r}"[:20]: _always(value) for value in _INSTEAD},
    "+ 1": lambda value: _number(value) + 1,
    "doubled": lambda value: 2 * _number(value),
    "negated": lambda value: -_number(value),
    "as float": lambda value: float(_number(value)),
}


def _one_entry(array: npt.NDArray[Any], entry: Any) -> npt.NDArray[Any]:
    array = array.copy()
    if array.size and array.dtype.names:
        for field in array.dtype.names:
            array[field][-1] = entry if array.dtype[field].kind == "f" else -5
    elif array.size:
        array.flat[array.size // 2] = entry if array.dtype.kind == "f" else 2**40
    return array


def _plain(array: npt.NDArray[Any], change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """The change, where the array is of plain numbers."""
    return _one_entry(array, -1.0) if array.dtype.names else change(array).astype(array.dtype)


_ARRAYS: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda array: np.zeros_like(array),
    "ones": lambda array: _plain(array, np.ones_like),
    "negated": lambda array: _plain(array, lambda a: -a if a.dtype.kind != "b" else ~a),
    "times 1e6": lambda array: _plain(array, lambda a: a * 1_000_000),
    "times 1e-6": lambda array: _plain(array, lambda a: a * 1e-6),
    "times 1e300": lambda array: _plain(array, lambda a: a * 1e300 if a.dtype.kind == "f" else a),
    "reversed": lambda array: array[::-1].copy(),
    "shortened": lambda array: array[:-1],
    "lengthened": lambda array: np.concatenate([array, array[-1:]]) if array.ndim else array,
    "empty": lambda array: array[:0],
    "another shape": lambda array: array[None],
    "flattened": lambda array: array.ravel(),
    "as float32": lambda array: array if array.dtype.names else array.astype(np.float32),
    "as objects": lambda array: array.astype(object),
    "one entry nan": lambda array: _one_entry(array, np.nan),
    "one entry inf": lambda array: _one_entry(array, np.inf),
    "one entry 1e300": lambda array: _one_entry(array, 1e300),
    "one entry -1": lambda array: _one_entry(array, -1.0),
    "as list": lambda array: array.tolist(),
    "= None": lambda _: None,
}
