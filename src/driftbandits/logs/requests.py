"""The contexts of a log's rows: which columns there are, and what regressions on them from earlier rows predict.

Columns that are not declared are inferred: numbers have no range, words are a category with "other" for the rare ones,
and what is missing in some rows is optional.

symbol  name      shape          meaning
z_t     codes     (n, d + 1)     1 and the codes of row t's context, on the scale of the first block
        block     (n,)           block of every row; all have equally many
beta    slopes    (blocks, N, d + 1)  ridge regressions of arms, from the blocks before

What rewards differ from what time alone predicts of them is regressed on z, for each arm by itself. A block is
predicted from earlier ones, so doubly robust estimates stay unbiased.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits._util.checks import FLOAT_BYTES, check_memory
from driftbandits.arms.contexts import OTHER, Contexts, is_missing, scale_of, standardised
from driftbandits.errors import InputError
from driftbandits.logs.log import Log
from driftbandits.logs.targets import Shares
from driftbandits.text import shown
from driftbandits.types import Floats, Ints

MOST_WORDS = 50  # of a category that was not declared; others count as "other"
RIDGE = 10.0  # rows' worth
_LEAST_BLOCK, _MOST_BLOCKS = 64, 200  # rows, and blocks


def infer_contexts(columns: Mapping[str, npt.NDArray[Any]]) -> Contexts | None:
    """Contexts with these columns, by their names without the prefix; None where none says anything.

    >>> words = np.array(["a", "b", None], dtype=object)
    >>> infer_contexts({"x": np.array([0.5, 2.0, 1.0]), "device": words})
    Contexts(x=float, device=optional(['a', 'b', 'other']))
    >>> infer_contexts({"0": np.zeros(3), "1": np.ones(3)})
    Contexts(2)
    """
    spec: dict[str, Any] = {}
    vectors: dict[str, int] = {}
    for name, values in columns.items():
        stem, _, place = name.rpartition(".")
        numbered = place.isdecimal() and stem not in columns and values.dtype.kind == "f"
        size = next(k for k in range(len(columns) + 1) if _part(stem, k) not in columns) if numbered else 0
        if numbered and int(place) < size:
            vectors[stem] = size
        elif (kind := _kind(values)) is not None:
            spec[name] = kind
    if list(vectors) == [""] and not spec:
        return Contexts(vectors[""])
    if "" in vectors:  # names that happen to be numbers
        spec |= {str(k): _kind(columns[str(k)]) for k in range(vectors.pop(""))}
    for stem, size in vectors.items():
        gaps = np.isnan(columns[_part(stem, 0)]).any()
        spec[stem] = {"optional": {"vector": size}} if gaps else {"vector": size}
    return Contexts.from_dict(spec) if spec else None


def _part(stem: str, place: int) -> str:
    return f"{stem}.{place}" if stem else str(place)


def _kind(values: npt.NDArray[Any]) -> Any:
    """What a column is, as `Contexts.from_dict` takes it; None for one that says nothing."""
    if values.ndim == 2:
        return {"vector": values.shape[1]}
    if values.dtype.kind == "f":
        missing = np.isnan(values)
        return None if missing.all() else {"optional": "number"} if missing.any() else "number"
    there = [value for value in values.tolist() if not is_missing(value)]
    if not there:
        return None
    first = there[0]
    if isinstance(first, bool):
        kind: Any = "boolean"
    elif first.startswith("["):
        kind = {"vector": first.count(",") + 1}
    else:
        words = [word for word, _ in Counter(there).most_common(MOST_WORDS)]
        if set(words) == {OTHER}:
            return None
        kind = [*sorted(set(words) - {OTHER}), OTHER]
    return kind if len(there) == len(values) else {"optional": kind}


def check_contexts(contexts: Any) -> Contexts | None:
    """Contexts as they are declared: as such, or as JSON values."""
    if contexts is None or isinstance(contexts, Contexts):
        return contexts
    if isinstance(contexts, (int, Mapping)) and not isinstance(contexts, bool):
        return Contexts.from_dict(contexts)
    raise InputError(f"contexts must be a db.Contexts, or what Contexts.from_dict takes, got {shown(contexts)}")


@dataclass(frozen=True)
class RequestModel:
    """What contexts add to the predicted reward of every arm, in every row; see the top of this file."""

    codes: Floats
    block: Ints
    slopes: Floats

    def of(self, arm: Ints) -> Floats:
        """For one arm per row, shape (n,)."""
        return np.asarray(np.einsum("ij,ij->i", self.codes, self.slopes[self.block, arm]))

    def mean_of(self, shares: Shares) -> Floats:
        """For the arms of a target, shape (n,)."""
        tables = ((rows, self.table(rows)) for rows in self.rows())
        return np.concatenate([shares.take(rows).mean_of(table, np.arange(len(table))) for rows, table in tables])

    def rows(self) -> list[slice]:
        """Those of every block."""
        ends = np.searchsorted(self.block, np.arange(len(self.slopes) + 1)).tolist()
        return [slice(*pair) for pair in pairwise(ends)]

    def table(self, rows: slice) -> Floats:
        """For all arms in the rows of one block, shape (rows, N)."""
        return np.asarray(self.codes[rows] @ self.slopes[self.block[rows.start]].T)


def regress(log: Log, scaled: npt.NDArray[np.bool_], left: Floats, *, keep: float = 1.0) -> RequestModel:
    """Regressions of what is left of the rewards, (n,), in a log all of whose rewards are known.

    `scaled` says which codes have a scale by themselves. From block to block `keep` is left of the weight of a row.
    """
    size = max(_LEAST_BLOCK, -(-len(log) // _MOST_BLOCKS))
    block = np.arange(len(log)) // size
    codes = standardised(log.codes, *scale_of(log.codes[:size], scaled))
    codes = np.column_stack([np.ones(len(log)), codes])
    arms, width, blocks = len(log.names), codes.shape[1], int(block[-1]) + 1
    cure = "use 'ips', or declare fewer columns as contexts"
    held = FLOAT_BYTES * arms * width * (width + blocks)
    check_memory(held, f"regressions of {arms:,} arms on {width:,} numbers", cure=cure)
    matrices, vectors = np.zeros((arms, width, width)), np.zeros((arms, width))
    slopes = np.zeros((blocks, arms, width))
    for number in range(1, blocks):
        rows = slice((number - 1) * size, number * size)
        slopes[number] = slopes[number - 1]
        matrices, vectors = keep * matrices, keep * vectors
        for arm in np.unique(log.arm[rows]).tolist():
            own = codes[rows][log.arm[rows] == arm]
            matrices[arm] += own.T @ own
            vectors[arm] += own.T @ left[rows][log.arm[rows] == arm]
            slopes[number, arm] = np.linalg.solve(matrices[arm] + RIDGE * np.eye(width), vectors[arm])
    return RequestModel(codes, block, slopes)
