"""The contexts of decisions that may still be learned from."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.types import Floats, Ints


class OpenContexts:
    """Codes of the requests of open decisions, by their ids.

    >>> contexts = OpenContexts(2)
    >>> contexts.add(7, np.array([0.5, 1.0]))
    >>> contexts.take(7).tolist(), len(contexts)
    ([0.5, 1.0], 0)
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._codes: dict[int, bytes] = {}  # a third of the memory that arrays take

    def __len__(self) -> int:
        return len(self._codes)

    def add(self, ident: int, codes: Floats) -> None:
        """The codes of a decision."""
        self._codes[ident] = codes.tobytes()

    def take(self, ident: int) -> Floats:
        """The same, which are dropped here."""
        return np.frombuffer(self._codes.pop(ident), dtype=np.float64)

    def keep(self, ids: Ints) -> None:
        """Drop all others."""
        if len(ids) < len(self._codes):
            self._codes = {ident: self._codes[ident] for ident in ids.tolist()}

    def copy(self) -> OpenContexts:
        """A table of its own."""
        other = OpenContexts(self._width)
        other._codes = dict(self._codes)
        return other

    def export(self) -> dict[str, Any]:
        """What `load` needs."""
        ids = np.array(sorted(self._codes), dtype=np.int64)
        codes = np.frombuffer(b"".join(self._codes[ident] for ident in ids.tolist()), dtype=np.float64)
        return {"ids": ids, "codes": codes.reshape(len(ids), self._width).copy()}

    @classmethod
    def load(cls, state: states.Reader, width: int, *, awaited: Ints) -> OpenContexts:
        """Inverse of `export`; there is one for each decision that is awaited."""
        ids = state.array("ids", np.int64, (None,))
        codes = state.array("codes", np.float64, (len(ids), width))
        states.check(bool(np.isfinite(codes).all()), "contexts of open decisions")
        states.check(len(ids) == len(awaited) and bool((ids == np.sort(awaited)).all()), "decisions with contexts")
        table = cls(width)
        for ident, row in zip(ids.tolist(), codes, strict=True):
            table.add(ident, row)
        return table
