"""Saved state: JSON values and arrays, nothing else. Read with checks, written to the side and renamed."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits.errors import StateError

FORMAT = 1
_MARK = "@array"


class Reader:
    """Checked access to a state mapping: every value is asked for by name, kind and range.

    A wrong or missing value is a StateError that names its place, for example `state.engine.block`.
    """

    def __init__(self, values: Any, place: str = "state") -> None:
        if not isinstance(values, Mapping):
            raise StateError(f"{place} must be a mapping, got {type(values).__name__}")
        self._values = values
        self._place = place

    def raw(self, name: str) -> Any:
        """Value as it stands."""
        if name not in self._values:
            raise StateError(f"{self._place}.{name} is missing; the state is incomplete")
        return self._values[name]

    def _wrong(self, name: str, wanted: str) -> StateError:
        text = repr(self._values[name])
        return StateError(f"{self._place}.{name} must be {wanted}, got {text if len(text) < 60 else text[:57] + '...'}")

    def integer(self, name: str, *, low: int = 0, high: int | None = None) -> int:
        """Whole number in [low, high]."""
        value = self.raw(name)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise self._wrong(name, "a whole number")
        if value < low or (high is not None and value > high):
            raise self._wrong(name, f"at least {low}" + ("" if high is None else f" and at most {high}"))
        return int(value)

    def number(self, name: str) -> float:
        """Finite number."""
        value = self.raw(name)
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not np.isfinite(value):
            raise self._wrong(name, "a finite number")
        return float(value)

    def flag(self, name: str) -> bool:
        """True or False."""
        value = self.raw(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def text(self, name: str) -> str:
        """A string."""
        value = self.raw(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def reader(self, name: str) -> Reader:
        """Mapping below `name`."""
        return Reader(self.raw(name), f"{self._place}.{name}")

    def readers(self, name: str) -> Iterator[Reader]:
        """Mappings in the list below `name`."""
        value = self.raw(name)
        if not isinstance(value, (list, tuple)):
            raise self._wrong(name, "a list")
        for position, item in enumerate(value):
            yield Reader(item, f"{self._place}.{name}[{position}]")

    def array(self, name: str, dtype: Any, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
        """Array of this type and shape (None: any length), finite if of floats; a copy."""
        value = self.raw(name)
        if not isinstance(value, np.ndarray) or value.dtype != np.dtype(dtype):
            raise self._wrong(name, f"an array of {np.dtype(dtype)}")
        if value.ndim != len(shape) or any(s is not None and s != v for s, v in zip(shape, value.shape, strict=True)):
            raise StateError(f"{self._place}.{name} must have shape {shape}, got {value.shape}")
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise StateError(f"{self._place}.{name} has values that are not finite")
        return value.copy()

    def law(self, name: str, size: int) -> npt.NDArray[np.float64]:
        """Probability vector."""
        value = self.array(name, np.float64, (size,))
        if (value < 0).any() or abs(value.sum() - 1.0) > 1e-9:
            raise StateError(f"{self._place}.{name} is not a probability vector (sum {value.sum():.6g})")
        return value


def write(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write a state to one file (a zip of state.json and .npy arrays), whole or not at all."""
    target = Path(path)
    arrays: list[npt.NDArray[Any]] = []
    text = json.dumps(_strip(state, arrays))
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as raw:
            with zipfile.ZipFile(raw, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                archive.writestr("state.json", text)
                for number, array in enumerate(arrays):
                    buffer = io.BytesIO()
                    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
                    archive.writestr(f"{number}.npy", buffer.getvalue())
            raw.flush()
            os.fsync(raw.fileno())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a state written by `write`; a damaged file is a StateError."""
    try:
        with zipfile.ZipFile(path) as archive:
            text = json.loads(archive.read("state.json"))
            state = _restore(text, archive)
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        raise StateError(f"{os.fspath(path)} is not a saved policy, or is damaged: {error}") from error
    if not isinstance(state, dict):
        raise StateError(f"{os.fspath(path)} is not a saved policy")
    return state


def _strip(value: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    """Replace arrays by references, so that the rest is JSON."""
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {_MARK: len(arrays) - 1}
    if isinstance(value, Mapping):
        return {str(key): _strip(item, arrays) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strip(item, arrays) for item in value]
    return value


def _restore(value: Any, archive: zipfile.ZipFile) -> Any:
    if isinstance(value, dict) and set(value) == {_MARK}:
        return np.lib.format.read_array(io.BytesIO(archive.read(f"{value[_MARK]}.npy")), allow_pickle=False)
    if isinstance(value, dict):
        return {key: _restore(item, archive) for key, item in value.items()}
    if isinstance(value, list):
        return [_restore(item, archive) for item in value]
    return value


def check(fine: bool, what: str) -> None:
    """Refuse a state whose `what` cannot be."""
    if not fine:
        raise StateError(f"the {what} in the state cannot be: it was damaged, or is that of another policy")
