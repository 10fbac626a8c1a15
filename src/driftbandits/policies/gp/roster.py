"""Whom the data of a regression speak of: the arms on offer, and behind them those that are gone.

An arm that is no longer offered has taught something of its neighbours. Where the past enters through counts and sums
per arm, its rewards stay in use, and leave with a window or fade as those of other arms do. So a policy whose arms have
come and gone believes what one would that had all of them from the start.

symbol  name      shape
B       basis     (N + G, r), B B' the kernel of the N arms on offer and the G retired ones behind them
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.arms import ArmSet
from driftbandits.policies.core.arms_change import ArmsChange, match_places
from driftbandits.types import Bools, Floats, Ints

_SAME_KERNEL = 1e-6
_LEAST_SINGULAR = 1e-8  # share of the largest


@dataclass(frozen=True)
class Roster:
    """The retired arms, by points (G, d) and names, and the basis of all."""

    points: Floats
    names: tuple[str, ...] | None
    basis: Floats

    def export(self) -> dict[str, Any]:
        """As JSON values and arrays."""
        names = None if self.names is None else list(self.names)
        return {"points": self.points.copy(), "names": names, "basis": self.basis.copy()}

    @classmethod
    def load(cls, state: states.Reader, arms: ArmSet, own: Floats) -> Roster:
        """Inverse of `export`, for arms whose own basis is `own`."""
        points = state.array("points", np.float64, (None, arms.dimension))
        basis = state.array("basis", np.float64, (len(arms) + len(points), None))
        names = state.raw("names")
        listed = isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names)
        states.check(names is None or (listed and len(names) == len(points)), "names of retired arms")
        states.check(bool(len(points)), "number of retired arms")
        offered = basis[: len(arms)]
        probe = np.cos(np.arange(len(arms), dtype=np.float64))
        off = np.abs(offered @ (offered.T @ probe) - own @ (own.T @ probe)).max()
        states.check(bool(off <= _SAME_KERNEL * max(1.0, float(np.square(own).sum()))), "basis of retired arms")
        return cls(points, None if names is None else tuple(names), basis)


def carry_roster(old: Roster | None, change: ArmsChange, in_use: Bools, *, linear: bool) -> tuple[Roster | None, Ints]:
    """The roster after a change of arms, and the new place of everyone on the old one (-1: nowhere).

    `in_use` says of whom on the old roster there are rewards. A retired arm that is offered again takes its place.
    """
    retired = np.zeros((0, change.old.dimension)) if old is None else old.points
    names = None if change.old.names is None else (*change.old.names, *((old.names or ()) if old else ()))
    points = np.vstack([change.old.points, retired])
    target = np.concatenate([change.target, _returning(old, change)])
    staying = np.flatnonzero((target < 0) & in_use)
    target[staying] = len(change.new) + np.arange(len(staying))
    if not len(staying):
        return None, target
    known = None if names is None or len(names) != len(points) else tuple(names[place] for place in staying)
    if linear:
        basis = np.vstack([change.new.points, points[staying]])
    elif change.new.kernel is not None:
        basis = change.new.with_points(np.vstack([change.new.points, points[staying]])).features
    else:
        basis = _joined(change, change.old.features if old is None else old.basis, staying)
    return Roster(points[staying], known, np.ascontiguousarray(basis)), target


def _returning(old: Roster | None, change: ArmsChange) -> Ints:
    """For every retired arm its number among the arms that come, -1 if it does not come back."""
    target = np.full(0 if old is None else len(old.points), -1, dtype=np.int64)
    if old is not None and len(change.added):
        found = match_places(old.points, old.names, change.new.points[change.added], _names(change))
        target[found[found >= 0]] = change.added[found >= 0]
    return target


def _names(change: ArmsChange) -> tuple[str, ...] | None:
    names = change.new.names
    return None if names is None else tuple(names[arm] for arm in change.added)


def _joined(change: ArmsChange, old_basis: Floats, staying: Ints) -> Floats:
    """The basis without a kernel to ask: features in the same coordinates, or else by what the kept arms say.

    Of a new arm and a retired one a kernel matrix says nothing: the covariance is then what the kept arms explain.
    """
    new = change.new.features
    known, kept = old_basis[change.source[change.kept]], change.kept
    rows = old_basis[staying]
    if new.shape[1] == old_basis.shape[1] and np.allclose(new[kept], known, rtol=0.0, atol=1e-12):
        return np.vstack([new, rows])
    inside = np.linalg.lstsq(new[kept], known @ rows.T, rcond=_LEAST_SINGULAR)[0].T
    values, vectors = np.linalg.eigh(rows @ rows.T - inside @ inside.T)
    rest = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.block([[new, np.zeros((len(new), len(rows)))], [inside, rest]])
