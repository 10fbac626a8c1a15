"""Which arms of a new set are which of the old: what `Policy.with_arms` decides before anything is carried over.

Arms are the same if their names are; where there are no names, if their points are. The new set is measured as the old
one (`gauge`), so that what is known of the kept arms keeps its meaning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.scaling import Gauge
from driftbandits.errors import InputError
from driftbandits.text import counted, shown
from driftbandits.types import Floats, Ints

_KERNEL_DIFFERENCE = 1e-6  # share of the largest k(x, x): two kernels that differ by less are one
_ARMS_COMPARED = 1024  # with more, kernels are compared on a sample of columns
_COLUMNS_COMPARED = 16


@dataclass(frozen=True)
class ArmsChange:
    """The old arms, the new ones, and who is who.

    source : (N,) for every new arm its number among the old ones, -1 where it was not there
    target : (M,) for every old arm its number among the new ones, -1 where it is gone
    """

    old: ArmSet
    new: ArmSet
    source: Ints
    target: Ints

    @property
    def same(self) -> bool:
        """Whether nothing changes."""
        return self.old.fingerprint() == self.new.fingerprint() and _gauges(self.old) == _gauges(self.new)

    @cached_property
    def kept(self) -> Ints:
        """Numbers of the new arms that were there."""
        return np.flatnonzero(self.source >= 0)

    @cached_property
    def added(self) -> Ints:
        """Numbers of the new arms that were not."""
        return np.flatnonzero(self.source < 0)

    @cached_property
    def dropped(self) -> Ints:
        """Numbers of the old arms that are gone."""
        return np.flatnonzero(self.target < 0)

    def carry(self, values: Any, new: float) -> Any:
        """One value per arm, last axis: those of kept arms, and `new` for the others.

        >>> arms = ArmSet([[0.0], [1.0]])
        >>> match_arms(arms, arms.extended([[2.0]])).carry(np.array([0.3, 0.4]), new=0.0).tolist()
        [0.3, 0.4, 0.0]
        """
        carried = np.full((*values.shape[:-1], len(self.source)), new, dtype=values.dtype)
        carried[..., self.kept] = values[..., self.source[self.kept]]
        return carried

    def renumbered_rows(self, rows: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
        """Decisions with the new numbers of their arms; an arm that was gone before stays so."""
        renumbered = rows.copy()
        offered = rows["arm"] >= 0
        renumbered["arm"][offered] = self.target[rows["arm"][offered]]
        return renumbered

    def renumbered_sample(self, rows: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
        """`renumbered_rows`, but arms that are gone get numbers of their own below 0: their rewards stay together."""
        renumbered = self.renumbered_rows(rows)
        gone = (rows["arm"] >= 0) & (renumbered["arm"] < 0)
        lowest = min(int(rows["arm"].min(initial=0)), 0)
        renumbered["arm"][gone] = lowest - 1 - np.unique(rows["arm"][gone], return_inverse=True)[1]
        return renumbered

    def renumber(self, arms: Sequence[int]) -> list[int]:
        """Old numbers as new ones; those of arms that are gone are left out."""
        return [int(self.target[arm]) for arm in arms if self.target[arm] >= 0]


def match_arms(old: ArmSet, new: Any) -> ArmsChange:
    """Find the old arms among the new ones; InputError says what does not fit."""
    if not isinstance(new, ArmSet):
        raise InputError(f"with_arms wants an ArmSet, got {type(new).__name__}; build one with ArmSet(points, kernel)")
    _check_pairs(old, new)
    old.check_columns(new.dimension, new.feature_names)
    by_name = old.names is not None and new.names is not None
    source = match_places(old.points, old.names, new.points, new.names)
    target = np.full(len(old), -1, dtype=np.int64)
    kept = np.flatnonzero(source >= 0)
    target[source[kept]] = kept
    if not len(kept):
        cure = "build a new policy for them" if by_name else "build a new policy for them, or give the arms names"
        raise InputError(
            f"none of the {counted(len(new), 'new arm')} is among the {counted(len(old), 'arm')} of this policy, so "
            f"nothing can go on; {cure}"
        )
    if by_name:
        _check_points(old, new, source)
    return ArmsChange(old, _options_measured(old, _measured(old, new, source)), source, target)


def _gauges(arms: ArmSet) -> tuple[Gauge, ...]:
    return (arms.gauge,) if arms.crossing is None else (arms.gauge, arms.crossing.options.gauge)


def _check_pairs(old: ArmSet, new: ArmSet) -> None:
    """Refuse pairs whose options or segments are mere names, and other ones than before."""
    if old.crossing is not None and new.dimension != old.dimension:
        raise InputError(
            f"the new arms have {counted(new.dimension, 'dimension')}, the options in segments so far {old.dimension}: "
            f"of options or segments that are mere names each is a dimension of its own, so none can come or go; give "
            f"points to those that may, as ArmSet(points, names=...), or leave out pairs with without([...])"
        )


def match_places(
    old_points: Floats, old_names: Sequence[str] | None, points: Floats, names: Sequence[str] | None
) -> Ints:
    """Place of every new arm among the old ones, -1 for none: by name, or by point where one side has no names."""
    if old_names is not None and names is not None:
        return _places(old_names, names)
    return _places(_labels(old_points), _labels(points))


def _labels(points: Floats) -> list[bytes]:
    return [row.tobytes() for row in points + 0.0]  # + 0.0: minus zero is zero


def _places(old: Sequence[Hashable], new: Sequence[Hashable]) -> Ints:
    """Place of every new label among the old ones, -1 for none; equal labels are matched in their order."""
    places: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place in reversed(range(len(old))):
        places[old[place]].append(place)
    return np.array([places[label].pop() if places.get(label) else -1 for label in new], dtype=np.int64)


def _check_points(old: ArmSet, new: ArmSet, source: Ints) -> None:
    """Refuse a name that stood for another point."""
    kept = np.flatnonzero(source >= 0)
    moved = (old.points[source[kept]] != new.points[kept]).any(axis=1)
    if moved.any():
        arm = int(kept[moved.argmax()])
        name = (new.names or ())[arm]
        cure = "give it another name, or its old point"
        if old.independent:
            cure = "make the arms from the old ones, with extended(names=[...]) and without([...])"
        raise InputError(
            f"arm {shown(name)} has the point {_shown(new.points[arm])} now and had "
            f"{_shown(old.points[source[arm]])}: what is known of it would not hold; {cure}"
        )


def _shown(point: Floats) -> str:
    numbers = ", ".join(f"{value:.6g}" for value in point[:5])
    return f"[{numbers}{', ...' if len(point) > 5 else ''}]"


def _measured(old: ArmSet, new: ArmSet, source: Ints) -> ArmSet:
    """The new arms with the kernel of the old ones, and measured as they are."""
    if old.kernel is not None:
        if new.guessed:
            return old.with_points(new.points, new.names, tolerance=new.tolerance)
        if new.kernel is None or new.kernel != old.kernel:
            _check_kernel(old.with_points(new.points, new.names, tolerance=new.tolerance), new, np.arange(len(new)))
    else:
        kept = np.flatnonzero(source >= 0)
        _check_kernel(old, new, kept, source[kept])
    return new.gauged(old.gauge.extended(np.vstack([new.points, old.points])))


def _options_measured(old: ArmSet, new: ArmSet) -> ArmSet:
    """The new pairs with their options measured as the old ones, where both are pairs."""
    if old.crossing is None or new.crossing is None:
        return new
    before, now = old.crossing.options, new.crossing.options
    return new.options_gauged(before.gauge.extended(np.vstack([now.points, before.points])))


def _check_kernel(meant: ArmSet, given: ArmSet, rows: Ints, meant_rows: Ints | None = None) -> None:
    """Refuse arms `given` whose kernel on `rows` is another than that of the arms `meant`."""
    known = rows if meant_rows is None else meant_rows
    some = np.arange(len(rows))
    if len(rows) > _ARMS_COMPARED:
        some = np.unique(np.linspace(0, len(rows) - 1, _COLUMNS_COMPARED).astype(np.int64))
    wanted = meant.scale * meant.features[known] @ meant.features[known[some]].T
    found = given.scale * given.features[rows] @ given.features[rows[some]].T
    off = np.abs(wanted - found)
    if off.max() > _KERNEL_DIFFERENCE * max(meant.scale, float(np.abs(wanted).max())):
        row, column = np.unravel_index(int(off.argmax()), off.shape)
        cure = "them with the old arms' with_points(...), extended(...) or without(...)"
        if meant.crossing is not None:
            cure = "the options with the old options' extended(...) or without(...) and cross them as before"
        raise InputError(
            f"the new arms have another kernel: k(x, y) of arms {int(rows[row])} and {int(rows[some[column]])} is "
            f"{found[row, column]:.4g} and was {wanted[row, column]:.4g}; what is known would change its meaning. Make "
            f"{cure}, or give the same kernel"
        )


def old_features(change: ArmsChange) -> Floats:
    """The new arms in the features of the old set, shape (N, r): what the old arms' kernel knows of them.

    Kept arms have their own features. Those of a new arm are the projection on what the old ones span: by the kernel
    itself at the old set's pivots, or for a set without a kernel, by the features given or through the kept arms.
    """
    old, new = change.old, change.new
    features = np.zeros((len(new), old.rank))
    features[change.kept] = old.features[change.source[change.kept]]
    if len(change.added):
        features[change.added] = _projected(change)
    return features


def _projected(change: ArmsChange) -> Floats:
    old, new, added = change.old, change.new, change.added
    if old.kernel is not None:
        cross = old.kernel(old.points[old.pivots], new.points[added]) / old.scale
        return np.asarray(scipy.linalg.solve_triangular(old.features[old.pivots], cross, lower=True).T)
    known = old.features[change.source[change.kept]]
    if new.rank == old.rank and np.allclose(new.features[change.kept], known, rtol=0.0, atol=1e-12):
        return np.asarray(new.features[added])  # features as given, in the same coordinates
    cross = new.features[change.kept] @ new.features[added].T
    return np.asarray(np.linalg.lstsq(known, cross, rcond=1e-8)[0].T)


def unexplained(change: ArmsChange, features: Floats) -> Floats:
    """Covariance of the new arms' rewards given those of all old ones, before any reward, shape (N, N).

    `features` are those of `old_features`. Kept arms have none, up to rounding.
    """
    rest = np.zeros((len(change.new), len(change.new)))
    added = change.added
    own = change.new.features[added]
    rest[np.ix_(added, added)] = own @ own.T - features[added] @ features[added].T
    return rest
