"""The target of an evaluation: an arm, a law, a function of the row, "uniform" or "log", as probabilities per row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits._util.checks import FLOAT_BYTES, as_floats, check_memory
from driftbandits.errors import InputError
from driftbandits.logs.log import Log
from driftbandits.policies import Policy
from driftbandits.policies.log_columns import requests_of
from driftbandits.text import shown
from driftbandits.types import Bools, Floats, Ints

Target = Any  # an arm, a law, a function of a `Row`, "best", "uniform", "log", or a learning policy
_SUM_TOLERANCE = 1e-6
_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True)
class Shares:
    """Probabilities of a target in every row, in the shortest of three forms; `name` is what texts call it.

    constant : (N,), the same in every row
    chosen : (n,), one arm per row
    matrix : (n, N)
    own : True for the policy that logged, whose law need not be known
    """

    name: str
    constant: Floats | None = None
    chosen: Ints | None = None
    matrix: Floats | None = None
    own: bool = False

    def take(self, rows: Ints | Bools | slice) -> Shares:
        """Those of some rows."""
        chosen = None if self.chosen is None else self.chosen[rows]
        matrix = None if self.matrix is None else self.matrix[rows]
        return Shares(self.name, self.constant, chosen, matrix, self.own)

    def of(self, arm: Ints) -> Floats:
        """Probability of one arm per row, shape (n,)."""
        if self.constant is not None:
            return np.asarray(self.constant[arm])
        if self.chosen is not None:
            return np.asarray(self.chosen == arm, dtype=np.float64)
        if self.matrix is not None:
            return np.asarray(self.matrix[np.arange(len(arm)), arm])
        raise InputError("the law of the policy that logged is not known; it is valued by its rewards")

    def mean_of(self, table: Floats, rows: Ints) -> Floats:
        """Expectation of row `rows[t]` of a table of values, shape (K, N), in every row t of the log; shape (n,)."""
        if self.constant is not None:
            return np.asarray((table @ self.constant)[rows])
        if self.chosen is not None:
            return np.asarray(table[rows, self.chosen])
        if self.matrix is None:
            raise InputError("the law of the policy that logged is not known; it is valued by its rewards")
        parts = [slice(k, k + _ROWS_AT_ONCE) for k in range(0, len(rows), _ROWS_AT_ONCE)]
        return np.concatenate([np.einsum("ij,ij->i", self.matrix[part], table[rows[part]]) for part in parts])

    def summed(self, group: Ints, groups: int, size: int) -> Floats:
        """Probabilities added up over the rows of every group, shape (groups, N)."""
        if self.constant is not None:
            return np.bincount(group, minlength=groups)[:, None] * self.constant
        if self.chosen is not None:
            flat = np.bincount(group * size + self.chosen, minlength=groups * size)
            return flat.reshape(groups, size).astype(np.float64)
        if self.matrix is None:
            raise InputError("the law of the policy that logged is not known; it is valued by its rewards")
        total = np.zeros((groups, size))
        np.add.at(total, group, self.matrix)
        return total


def shares_of(log: Log, target: Target) -> tuple[Shares, Bools]:
    """The probabilities of a target, and the rows in which it can be played: where its arm is offered."""
    if isinstance(target, str) and target not in log.names:
        if target == "log":
            return Shares("the policy that logged", own=True), np.ones(len(log), dtype=bool)
        if target == "uniform":
            size = len(log.names)
            return _restricted(log, "uniform", np.full(size, 1.0 / size))
    if isinstance(target, (str, int, np.integer)) and not isinstance(target, bool):
        arm = log.index(target)
        law = np.zeros(len(log.names))
        law[arm] = 1.0
        return _restricted(log, f"always {log.names[arm]}", law)
    if isinstance(target, Policy):
        return _by_policy(log, target)
    if callable(target):
        return _by_row(log, target)
    return _restricted(log, "a law", _law(target, len(log.names)))


def _law(target: Any, size: int) -> Floats:
    try:
        law = as_floats(target)
    except (TypeError, ValueError, OverflowError):
        law = np.empty(0)
    if law.shape != (size,) or not (law >= 0).all() or abs(law.sum() - 1.0) > _SUM_TOLERANCE:
        raise InputError(
            f"a target is an arm, a law of {size} probabilities that add up to 1, a function of the row, 'best', "
            f"'uniform', 'log' or a policy, got {shown(target)}"
        )
    return np.asarray(law / law.sum())


def _restricted(log: Log, name: str, law: Floats) -> tuple[Shares, Bools]:
    """A constant law; where not all arms are offered, what is left of it in every row."""
    if log.allowed is None:
        return Shares(name, constant=law), np.ones(len(log), dtype=bool)
    if law.max() == 1.0:
        return Shares(name, constant=law), log.allowed[:, int(law.argmax())]
    return _normalised(name, np.where(log.allowed, law, 0.0))


def _normalised(name: str, matrix: Floats) -> tuple[Shares, Bools]:
    total = matrix.sum(axis=1)
    possible: Bools = total > 0
    return Shares(name, matrix=matrix / np.where(possible, total, 1.0)[:, None]), possible


def _by_policy(log: Log, policy: Policy) -> tuple[Shares, Bools]:
    """Laws of a policy with contexts, as it is now, at the context of every row."""
    names = policy.arms.names or tuple(map(str, range(len(policy.arms))))
    for name in names:
        if name not in log.names:
            raise InputError(
                f"the policy's arm {shown(name)} is none of the log; pass arms= to Log.read if it could be"
            )
    columns, size = log.columns(policy.arms), len(log.names)
    requests = requests_of(policy.contexts, columns)  # type: ignore[arg-type]
    check_memory(FLOAT_BYTES * len(log) * size, f"{len(log):,} laws of {size:,} arms", cure="evaluate fewer rows")
    matrix, masks = np.zeros((len(log), size)), columns.get("allowed")
    places = [log.index(name) for name in names]
    for row, context in enumerate(requests):
        matrix[row, places] = policy.law(None if masks is None else masks[row], context=context)
    return _normalised(f"{type(policy).__name__.removeprefix('Contextual')} as it is now", matrix)


def _by_row(log: Log, function: Callable[[Any], Any]) -> tuple[Shares, Bools]:
    """Call the function row by row: the only loop over rows, and it runs the caller's code."""
    name = getattr(function, "__name__", "a function")
    answers = [function(log.row(place)) for place in range(len(log))]
    if all(isinstance(answer, (str, int, np.integer)) for answer in answers):
        place = {name: k for k, name in enumerate(log.names)}
        chosen = np.array([place[a] if a in place else log.index(a) for a in answers], dtype=np.int64)
        possible = np.ones(len(log), dtype=bool)
        if log.allowed is not None:
            possible = log.allowed[np.arange(len(log)), chosen]
        return Shares(name, chosen=chosen), possible
    size = len(log.names)
    check_memory(FLOAT_BYTES * len(log) * size, f"{len(log):,} laws of {size:,} arms", cure="let it answer with arms")
    matrix = np.array([_law(answer, size) for answer in answers])
    if log.allowed is not None:
        matrix = np.where(log.allowed, matrix, 0.0)
    return _normalised(name, matrix)
