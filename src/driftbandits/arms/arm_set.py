"""The options a policy chooses from: points and a kernel in, features out.

symbol  name        shape
X       points      (N, d), one row per arm
K       kernel      (N, N), divided by `scale` so that no k(x, x) exceeds 1
Phi     features    (N, r), Phi Phi' = K up to `tolerance`
"""

from __future__ import annotations

import copy
import dataclasses
import difflib
import hashlib
import math
import numbers
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np

from driftbandits._util.checks import check_count, check_flag, check_positive, check_word
from driftbandits._util.guard import one_blas_thread
from driftbandits.arms import kernels
from driftbandits.arms.features import (
    USUAL_CORRELATION,
    Crossing,
    correlation_matrix,
    factored,
    from_function,
    from_matrix,
    mixed_weights,
    pair_features,
    pair_points,
    scale_of,
)
from driftbandits.arms.inputs import Encoding, Table, read_bounds, read_encoding, read_names, read_table, row_names
from driftbandits.arms.kernels import KernelFunction, KernelLike
from driftbandits.arms.scaling import Gauge, cell_centres, unit_points
from driftbandits.errors import InputError, KernelError
from driftbandits.text import breaking, counted, shown
from driftbandits.types import Bools, Floats, Ints, read_only

_FINEST_TOLERANCE = 1e-14  # below this the rest of a factorisation in double precision is rounding, not kernel
_NOTHING_IN_COMMON = 1e-9  # largest correlation of arms that are said to have none
_NAME_CHARACTERS_COMPARED = 100  # the time grows with their square


class ArmSet:
    """A finite set of arms with features such that <phi(x), phi(y)> = k(x, y).

    Features come from a pivoted Cholesky factorisation stopped at `tolerance`, so duplicate arms, a linear kernel with
    more arms than dimensions or a very smooth kernel have a low `rank`. A kernel with k(x, x) > 1 is divided by
    its largest value, kept as `scale`; ridges, bounds and regularisers of the policies refer to the rescaled kernel.

    Parameters
    ----------
    points : array or DataFrame, shape (N, d)
        One row per arm. A DataFrame's column names become `feature_names`; an index other than 0, 1, 2, ... names the
        arms. Not needed with a kernel matrix (of graphs or strings, say): points are then 0, 1, 2, ..., which mean
        nothing, and policies that learn from points (the linear and the neural ones) cannot learn from them.
    kernel : scikit-learn kernel, function k(X, Y), configuration mapping, or (N, N) positive semi-definite matrix
        By default a guess, which the repr shows: RBF, its length scale a quarter of the median distance between the
        points (`kernels.usual_kernel`).
    names : N distinct strings without line breaks or other control codes, optional
    tolerance : largest entry of K - Phi Phi' that may be left out, as a share of the largest k(x, x); at least 1e-14

    Attributes
    ----------
    features : (N, r) array, read-only as all arrays here; `points` are the (N, d) given
    residual : largest entry of K - Phi Phi' that was left out
    pivots : the r arms whose columns of K the features give exactly (none if the features were given)
    kernel : the kernel as an object; None if it was given as a matrix or as features
    crossing : which options in which segments, if the arms are such pairs (`crossed`)
    encoding : how the columns of a DataFrame became points, if they did (`from_frame`)

    Raises
    ------
    InputError
        For points that are not finite numbers, and for unusable names.
    KernelError
        For a kernel that is not positive semi-definite or not finite.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> arms = ArmSet([[0.0], [0.5], [0.5]], kernel=RBF(0.2), names=["low", "mid", "mid again"])
    >>> len(arms), arms.rank, arms.dimension
    (3, 2, 1)
    >>> arms.index("mid")
    1
    """

    points: Floats
    features: Floats
    pivots: Ints
    kernel: KernelFunction | None
    names: tuple[str, ...] | None
    feature_names: tuple[str, ...] | None
    tolerance: float
    scale: float
    residual: float
    crossing: Crossing[ArmSet] | None = None
    encoding: Encoding | None = None
    _signature: float
    _own_scale: float  # what the kernel would be divided by if these were the first arms
    _guessed: bool  # whether nobody gave the kernel
    _given_gauge: Gauge | None  # that of other arms, which came first

    @one_blas_thread
    def __init__(
        self,
        points: Any = None,
        kernel: KernelLike | None = None,
        names: Sequence[str] | None = None,
        *,
        tolerance: float = 1e-10,
    ) -> None:
        if not isinstance(tolerance, numbers.Real) or not _FINEST_TOLERANCE <= tolerance < 1:
            raise InputError(f"tolerance must be at least {_FINEST_TOLERANCE} and below 1, got {shown(tolerance)}")
        table = read_table(_numbers_of(kernel) if points is None else points, "points")
        self._name(table, names)
        self.tolerance = float(tolerance)
        self._guessed, self._given_gauge = kernel is None, None
        if kernel is None:
            kernel = kernels.usual_kernel(self.points)
        if callable(kernel) or isinstance(kernel, (Mapping, str)):
            self.kernel = kernels.as_function(kernel)
            own, entries, whole = from_function(self.points, self.kernel)
        else:
            self.kernel = None
            own, entries, whole = from_matrix(kernel, len(self.points), self.names)
        try:
            factor, self.scale, self._signature = factored(own, entries, self.tolerance, whole=whole)
        except KernelError as error:
            name = shown(self.kernel)
            if self.kernel is None or name in str(error):  # a kernel that fails is named already
                raise
            raise KernelError(f"{error} (the kernel is {name})") from None
        self._own_scale = self.scale
        self.features = read_only(factor.features)
        self.pivots = read_only(factor.pivots)
        self.residual = factor.residual

    def _name(self, table: Table, names: Sequence[str] | None) -> None:
        self.points = read_only(table.values)
        self.feature_names = table.columns
        self.names = read_names(table.rows if names is None else names, len(table.values))
        _check_labels(self.names or ())

    @classmethod
    @one_blas_thread
    def from_features(cls, features: Any, *, names: Sequence[str] | None = None, points: Any | None = None) -> ArmSet:
        """Arms given by explicit feature vectors phi(x), with the kernel <phi(x), phi(y)>.

        The features are kept as they are, except that they are divided by sqrt(scale).

        Parameters
        ----------
        features : array or DataFrame, shape (N, r)
            One row per arm. For arms that have nothing in common there is `separate`.
        names : N distinct strings, optional
        points : array or DataFrame, shape (N, d), optional
            What policies use that are linear in the points; without them, these are the features themselves.

        Returns
        -------
        ArmSet

        Raises
        ------
        InputError
            For numbers that are not finite, unusable names, or another number of points than of features.

        >>> ArmSet.from_features([[1.0, 0.0], [0.0, 1.0]]).rank
        2
        """
        given = read_table(features, "features")
        table = given if points is None else read_table(points, "points")
        size = len(given.values)
        if len(table.values) != size:
            found = f"{counted(len(table.values), 'point')} for {counted(size, 'feature vector')}"
            raise InputError(f"got {found}; give one row per arm to each")
        arms = cls.__new__(cls)
        arms._name(table, given.rows if names is None and table.rows is None else names)
        arms.kernel = None
        arms._guessed, arms._given_gauge = False, None
        arms.tolerance = arms.residual = 0.0
        arms.pivots = read_only(np.empty(0, dtype=np.int64))
        own = np.einsum("ij,ij->i", given.values, given.values)
        arms.scale = arms._own_scale = scale_of(own)
        arms.features = read_only(given.values / math.sqrt(arms.scale))
        weights = mixed_weights(size)
        projected = weights @ arms.features
        arms._signature = float(projected @ projected) / float(np.square(np.abs(weights) @ np.sqrt(own / arms.scale)))
        return arms

    @classmethod
    def separate(cls, names: Sequence[str]) -> ArmSet:
        """Arms of which only the names are known: each is learned independently.

        Their points are 0, 1, 2, ..., which mean nothing: policies that learn from points (the linear and the neural
        ones) cannot learn from them. `extended(names=...)` adds arms, `without(...)` removes some.

        Parameters
        ----------
        names : distinct strings, one per arm

        Returns
        -------
        ArmSet

        Raises
        ------
        InputError
            For anything but a list of distinct strings.

        >>> arms = ArmSet.separate(["storm", "derby", "recipe"])
        >>> arms.without(["derby"]).extended(names=["strike"]).names
        ('storm', 'recipe', 'strike')
        """
        if isinstance(names, str) or not hasattr(names, "__len__") or not len(names):
            raise InputError(f"separate wants the names of the arms, as in ['left', 'right'], got {shown(names)}")
        return cls.from_features(np.eye(len(names)), names=names, points=np.arange(len(names))[:, None])

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        categorical: Literal["onehot", "refuse"] = "onehot",
        scale: bool = True,
        kernel: KernelLike | None = None,
        names: Sequence[str] | None = None,
        like: ArmSet | None = None,
        tolerance: float = 1e-10,
    ) -> ArmSet:
        """Arms from a DataFrame, one per row, numbers and words mixed.

        Parameters
        ----------
        frame : of pandas or polars; an index other than 0, 1, 2, ... names the arms
        categorical : "onehot" makes one column of 0 and 1 per word of a column that is not of numbers, "refuse" refuses
            such a column
        scale : whether columns of numbers get mean 0 and standard deviation 1, so that one in thousands does not hide
            one in tenths
        kernel, names, tolerance : as for `ArmSet`
        like : arms made earlier by `from_frame`: their means, deviations and words are used, so that equal rows give
            equal points

        Returns
        -------
        ArmSet

        Raises
        ------
        InputError
            For anything but a DataFrame, values that are missing, and words that `like` does not have.

        >>> import pandas as pd
        >>> frame = pd.DataFrame({"price": [5.0, 15.0], "colour": ["red", "blue"]}, index=["a", "b"])
        >>> arms = ArmSet.from_frame(frame)
        >>> arms.feature_names, arms.points.tolist(), arms.names
        (('price', 'colour=blue', 'colour=red'), [[-1.0, 0.0, 1.0], [1.0, 1.0, 0.0]], ('a', 'b'))
        """
        check_word("categorical", categorical, ("onehot", "refuse"))
        check_flag("scale", scale)
        if like is not None and (not isinstance(like, ArmSet) or like.encoding is None):
            raise InputError("like must be arms made by ArmSet.from_frame; others have no columns to encode alike")
        known = None if like is None else like.encoding
        encoding = read_encoding(frame, onehot=categorical == "onehot", scale=scale) if known is None else known
        own = cls(encoding.apply(frame), kernel, row_names(frame) if names is None else names, tolerance=tolerance)
        own.feature_names, own.encoding = encoding.feature_names, encoding
        return own

    @classmethod
    def box(
        cls,
        bounds: Sequence[tuple[float, float]],
        *,
        points: int | None = None,
        error: float | None = None,
        method: Literal["grid", "sobol"] = "grid",
        kernel: KernelLike | None = None,
        tolerance: float = 1e-10,
    ) -> ArmSet:
        """Cut the box of `bounds` into about `points` arms, or so finely that no more than an `error` is lost.

        With `points`, a grid has the largest number of steps per axis whose power does not exceed it and reaches the
        ends of the box; Sobol points fill the box evenly and number exactly `points`.

        With `error`, the rule of the paper's section 3 (after Chowdhury and Gopalan 2017): the box is cut into cubes of
        side error / d at most, with an arm in the centre of each, ceil(d (high - low) / error) per axis. A point then
        differs from its cube's arm by at most error / (2 d) in each of d coordinates, error / 2 in all, so a mean
        reward whose slope along no axis exceeds 1 (a linear one with ||theta|| <= 1 is such) is off by less than
        `error`; with slopes up to L, divide by L. The regret bounds take error = 1/T, which is not feasible beyond
        two dimensions: the number of arms grows as (d / error)^d.

        Parameters
        ----------
        bounds : one (low, high) per dimension
        points : how many arms, about; give this or `error`
        error : how much reward may be lost by the grid; give this or `points`
        method : "grid" or "sobol"
        kernel, tolerance : as for `ArmSet`

        Returns
        -------
        ArmSet

        Raises
        ------
        InputError
            For both or neither of `points` and `error`, and for an `error` with Sobol points.

        >>> ArmSet.box([(0, 1), (0, 1)], points=30)
        ArmSet(25 arms in 2 dimensions, kernel=RBF(length_scale=0.158), rank=25)
        >>> len(ArmSet.box([(0, 1), (0, 2)], error=0.5))
        32
        """
        limits = read_bounds(bounds)
        known = check_word("method", method, ("grid", "sobol"))
        if (points is None) == (error is None):
            given = "neither" if points is None else "both"
            raise InputError(f"give either points or error, got {given}; for example points=100")
        if error is None:
            unit = unit_points(len(limits), check_count("points", points), known)
        elif known == "grid":
            unit = cell_centres(limits[:, 1] - limits[:, 0], check_positive("error", error))
        else:
            raise InputError("an error is promised for a grid only; use method='grid', or points=... instead of error")
        return cls(limits[:, 0] * (1.0 - unit) + limits[:, 1] * unit, kernel, tolerance=tolerance)

    @classmethod
    def crossed(
        cls, options: Any, segments: Any, kernel: float | KernelLike | None = None, *, tolerance: float = 1e-10
    ) -> ArmSet:
        """Every option in every segment: one policy for several kinds of requests, which learn from one another.

        An arm is a pair, called "option | segment"; those of a segment are `of(segment)`, to be passed to
        `ask(allowed=...)`. Rewards of two pairs have the correlation of their options times that of their segments.

        Parameters
        ----------
        options : an ArmSet, points as for one, or names of options that have nothing in common
        segments : names, or an ArmSet with names
        kernel : how alike segments are: a number from 0 (each is learned by itself) to 1 (they are the same) for
            any two, a matrix, or a kernel on the points of `segments`. Without one that of `segments`, and for mere
            names 0.5
        tolerance : as for `ArmSet`

        Arm s O + o is option o in segment s, with the coordinates of the option and then those of the segment (for
        names one per segment, 0 or 1).

        Returns
        -------
        ArmSet

        Raises
        ------
        InputError
            For names that are taken twice, and a kernel that does not fit the segments.

        >>> arms = ArmSet.crossed(["red", "blue"], ["mobile", "desktop"], kernel=0.5)
        >>> arms.names
        ('red | mobile', 'blue | mobile', 'red | desktop', 'blue | desktop')
        >>> arms.of("desktop").tolist(), arms.pair(3)
        ([False, False, True, True], ('blue', 'desktop'))
        >>> (arms.features @ arms.features.T)[0].round(3).tolist()
        [1.0, 0.0, 0.5, 0.0]
        """
        inner, outer = _read_options(options, tolerance), _read_segments(segments, kernel, tolerance)
        names = outer.names or tuple(str(number) for number in range(len(outer)))
        own = inner.names or tuple(str(number) for number in range(len(inner)))
        arms = cls.from_features(
            pair_features(inner.features, outer.features),
            names=[f"{option} | {segment}" for segment in names for option in own],
            points=pair_points(inner.points, outer.points),
        )
        arms.residual = inner.residual + outer.residual + inner.residual * outer.residual
        arms.crossing = Crossing(inner, outer, len(inner), names)
        return arms

    def of(self, segment: str) -> Bools:
        """Mask of the arms of a segment, for `ask(allowed=...)`.

        Parameters
        ----------
        segment : its name

        Returns
        -------
        boolean array, shape (N,)

        Raises
        ------
        InputError
            For an unknown segment, and for arms not made by `crossed`.

        >>> ArmSet.crossed(["red", "blue"], ["mobile", "desktop"]).of("mobile").tolist()
        [True, True, False, False]
        """
        return self._crossing().mask(self._crossing().number_of(segment))

    def pair(self, arm: int) -> tuple[str, str]:
        """Names of the option and of the segment that an arm is made of.

        Parameters
        ----------
        arm : its number

        Returns
        -------
        (option, segment); an option without a name has its number

        Raises
        ------
        InputError
            For a number out of range, and for arms not made by `crossed`.

        >>> ArmSet.crossed(["red", "blue"], ["mobile", "desktop"]).pair(2)
        ('red', 'desktop')
        """
        crossing, number = self._crossing(), self._number(arm)
        option, own = number % crossing.size, crossing.options.names
        return (str(option) if own is None else own[option]), crossing.names[crossing.segment_of(number)]

    def _crossing(self) -> Crossing[ArmSet]:
        if self.crossing is None:
            raise InputError("these arms have no segments; build them with ArmSet.crossed(options, segments)")
        return self.crossing

    # --- other arms, measured as these ---------------------------------------------------------------------------

    @cached_property
    def gauge(self) -> Gauge:
        """The scale of these arms: that of their own points, or that of an earlier arm set."""
        if self._given_gauge is not None:
            return self._given_gauge
        length = float(self.kernel.length_scale) if self._guessed else None  # type: ignore[union-attr]
        return Gauge.of(self.points, scale=self.scale, length_scale=length)

    def gauged(self, gauge: Gauge) -> ArmSet:
        """The same arms on the scale of an earlier arm set.

        Parameters
        ----------
        gauge : `other.gauge`

        Returns
        -------
        ArmSet

        >>> first, later = ArmSet([[0.0], [1.0]]), ArmSet([[0.0], [9.0]])
        >>> later.gauged(first.gauge).kernel == first.kernel
        True
        """
        if gauge == self.gauge:
            return self
        arms = self
        if self._guessed and gauge.length_scale is not None:
            arms = self._made(self.points, kernels.SquaredExponential(gauge.length_scale))
            arms._guessed = True
        arms = copy.copy(arms)
        arms.__dict__.pop("gauge", None)
        arms._given_gauge, factor = gauge, arms.scale / gauge.scale
        arms.scale = gauge.scale
        if factor != 1.0:
            arms.features = read_only(arms.features * math.sqrt(factor))
            arms.residual *= factor
        return arms

    def options_gauged(self, gauge: Gauge) -> ArmSet:
        """The same pairs, their options on the scale of an earlier arm set.

        Parameters
        ----------
        gauge : of the earlier arm set

        Returns
        -------
        ArmSet
        """
        crossing = self._crossing()
        arms = copy.copy(self)
        arms.crossing = dataclasses.replace(crossing, options=crossing.options.gauged(gauge))
        return arms

    def _made(
        self, points: Any, kernel: KernelLike, names: Sequence[str] | None = None, tolerance: float | None = None
    ) -> ArmSet:
        """A set with these points, and all else as here."""
        known = self.names if points is self.points else names
        arms = ArmSet(points, kernel, known, tolerance=self.tolerance if tolerance is None else tolerance)
        arms.feature_names = self.feature_names if arms.feature_names is None else arms.feature_names
        arms.encoding = self.encoding
        return arms

    @property
    def guessed(self) -> bool:
        """Whether the kernel is a guess, because none was given."""
        return self._guessed

    @property
    def follows(self) -> bool:
        """Whether they are on the scale of an earlier arm set."""
        return self._given_gauge is not None

    def with_points(self, points: Any, names: Sequence[str] | None = None, *, tolerance: float | None = None) -> ArmSet:
        """Other arms with the kernel of these, the same length scale and the same `scale`: for `Policy.with_arms`.

        Parameters
        ----------
        points, names : as for `ArmSet`
        tolerance : as for `ArmSet`; by default that of these arms

        Returns
        -------
        ArmSet

        Raises
        ------
        InputError
            For arms made from a kernel matrix or from features, which say nothing of other points: build a set from the
            larger matrix, or from all features, and hand that to `Policy.with_arms`.

        >>> arms = ArmSet([[0.0], [0.5], [1.0]], names=["low", "mid", "high"])
        >>> arms.with_points([[0.0], [0.5], [4.0]], names=["low", "mid", "top"]).kernel == arms.kernel
        True
        """
        kernel = self._known_kernel()
        table = read_table(points, "points")
        self.check_columns(table.values.shape[1], table.columns)
        arms = self._made(points, kernel, names, tolerance)
        arms._guessed = self._guessed
        return arms.gauged(self.gauge.extended(np.vstack([arms.points, self.points])))

    def _known_kernel(self) -> KernelFunction:
        """The kernel, which says what other points have in common with these; InputError where there is none."""
        if self.kernel is not None:
            return self.kernel
        cure = "build ArmSet(points, kernel=<the larger matrix>) or ArmSet.from_features(<all features>) instead"
        if self.independent:
            cure = "these have nothing in common, so add others with extended(names=[...]), without points"
        raise InputError(
            f"these arms were made from a kernel matrix or from features, which say nothing of other points; {cure}"
        )

    def extended(self, points: Any | None = None, names: Sequence[str] | None = None) -> ArmSet:
        """These arms and new ones at the end, on the same scale.

        Parameters
        ----------
        points : of the new arms; None for arms that have nothing in common (`separate`), where names are enough
        names : of the new arms, where the old ones have names

        Returns
        -------
        ArmSet

        Raises
        ------
        InputError
            As `with_points`, and where some arms would have names and others not.

        >>> ArmSet([[0.0], [0.5]], names=["low", "mid"]).extended([[1.0]], names=["high"]).names
        ('low', 'mid', 'high')
        >>> ArmSet.separate(["storm", "derby"]).extended(names=["strike"]).names
        ('storm', 'derby', 'strike')
        """
        if points is None:
            return self._with_names(names)
        self._known_kernel()
        table = read_table(points, "points")
        self.check_columns(table.values.shape[1], table.columns)
        added = read_names(table.rows if names is None else names, len(table.values))
        if (added is None) != (self.names is None):
            wanted = "have names: give the new ones names=..." if added is None else "have no names: give none"
            raise InputError(f"the arms so far {wanted}")
        together = np.vstack([self.points, table.values])
        return self.with_points(together, None if added is None else [*(self.names or ()), *added])

    def _with_names(self, names: Sequence[str] | None) -> ArmSet:
        """These arms, which have nothing in common, and more that have nothing in common with any."""
        if not self.independent:
            raise InputError(
                "extended wants the points of the new arms; names alone are enough only for arms that have nothing in "
                "common, made by ArmSet.separate(names)"
            )
        if self.names is None or names is None:
            which = "the new arms" if self.names is not None else "these arms too, with ArmSet.separate(names)"
            raise InputError(f"arms without points are told apart by their names: give names to {which}")
        if isinstance(names, str) or not hasattr(names, "__len__"):
            raise InputError(f"names must be a list of strings, got {shown(names)}; use [{shown(names)}]")
        first = math.floor(self.points.max()) + 1  # the point says nothing, but two arms have two
        places = np.tile(np.arange(first, first + len(names), dtype=np.float64)[:, None], (1, self.dimension))
        own = math.sqrt(self.scale * float(self.features[0] @ self.features[0]))
        arms = ArmSet.from_features(
            own * np.eye(len(self) + len(names)),
            names=[*self.names, *names],
            points=np.vstack([self.points, places]),
        )
        arms.feature_names = self.feature_names
        return arms.gauged(self.gauge.extended(arms.points))

    @cached_property
    @one_blas_thread
    def independent(self) -> bool:
        """Whether arms are known to have nothing in common, as those made by `separate`."""
        if self.kernel is not None or self.crossing is not None or self.rank < len(self):
            return False
        gram = self.features @ self.features.T
        return bool(np.abs(gram - gram[0, 0] * np.eye(len(gram))).max() <= _NOTHING_IN_COMMON * gram[0, 0])

    def without(self, arms: Sequence[str] | Sequence[int]) -> ArmSet:
        """These arms without some of them, on the same scale.

        Parameters
        ----------
        arms : a list of names or numbers

        Returns
        -------
        ArmSet

        Raises
        ------
        InputError
            For unknown arms, and if none would be left.

        >>> ArmSet([[0.0], [0.5], [1.0]], names=["low", "mid", "high"]).without(["mid"]).names
        ('low', 'high')
        """
        if isinstance(arms, (str, bytes)) or not hasattr(arms, "__len__"):
            raise InputError(f"without wants a list of names or numbers, got {shown(arms)}; use [{shown(arms)}]")
        gone = {self.index(arm) if isinstance(arm, str) else self._number(arm) for arm in arms}
        kept = np.array([arm for arm in range(len(self)) if arm not in gone], dtype=np.int64)
        if not len(kept):
            raise InputError(f"no arm is left of {counted(len(self), 'arm')}; keep at least one")
        names = None if self.names is None else [self.names[arm] for arm in kept]
        if self.kernel is not None:
            return self.with_points(self.points[kept], names)
        part = ArmSet.from_features(self.features[kept] * math.sqrt(self.scale), names=names, points=self.points[kept])
        part.feature_names, part.encoding = self.feature_names, self.encoding
        return part.gauged(self.gauge)

    def _number(self, arm: Any) -> int:
        number = check_count("an arm's number", arm, least=0)
        if number >= len(self):
            raise InputError(f"no arm has the number {number}; they run from 0 to {len(self) - 1}")
        return number

    def check_columns(self, dimension: int, columns: Sequence[str] | None) -> None:
        """Refuse arms that are described by other columns.

        Parameters
        ----------
        dimension : how many numbers describe an arm
        columns : their names, or None

        Raises
        ------
        InputError
            If these arms have others.
        """
        if dimension != self.dimension:
            cure = "describe all by the same numbers"
            if self.independent:
                cure = "these have nothing in common, so add others to the old arms with extended(names=[...])"
            raise InputError(
                f"the new arms have {counted(dimension, 'dimension')}, the arms so far {self.dimension}; {cure}"
            )
        if columns is not None and self.feature_names is not None and tuple(columns) != self.feature_names:
            raise InputError(
                f"the new arms have the columns {shown(tuple(columns))}, the arms so far {shown(self.feature_names)}; "
                f"give the same in the same order"
            )

    def __len__(self) -> int:
        return len(self.features)

    @property
    def rank(self) -> int:
        """Number of features."""
        return int(self.features.shape[1])

    @property
    def dimension(self) -> int:
        """Number of coordinates of a point."""
        return int(self.points.shape[1])

    def index(self, name: str) -> int:
        """Position of an arm.

        Parameters
        ----------
        name : of an arm

        Returns
        -------
        int

        Raises
        ------
        InputError
            If no arm is called so, or arms have no names.
        """
        if self.names is None:
            raise InputError(f"these arms have no names, so {shown(name)} cannot be found; pass names=... to ArmSet")
        try:
            return self.names.index(name)
        except ValueError:
            wanted = str(name)[:_NAME_CHARACTERS_COMPARED]
            near = difflib.get_close_matches(
                wanted, [own[:_NAME_CHARACTERS_COMPARED] for own in self.names[:10_000]], n=1
            )
            hint = f"; did you mean {shown(near[0])}?" if near else ""
            raise InputError(f"no arm is called {shown(name)}{hint}") from None

    def fingerprint(self) -> str:
        """Digest of points, names, tolerance and kernel, by which a saved state knows its arms.

        The same points and kernel give the same digest on another machine or with other BLAS threads: points enter bit
        by bit, the kernel through its scale and a weighted mean of its values, to nine digits (over all pairs of a
        matrix and of up to 1,024 arms; beyond, of all arms with 16). Rank and features do not enter, since rounding
        decides between equally good pivots.

        Returns
        -------
        str
            64 hexadecimal digits.
        """
        digest = hashlib.sha256()
        # the shift by 1/pi keeps the numbers that data are made of away from where rounding would flip a digit
        digits = [math.floor(value * 1e9 + 1 / math.pi) for value in (self._signature, math.log(self._own_scale))]
        digest.update(repr((self.points.shape, self.names, self.tolerance, digits)).encode())
        digest.update((self.points + 0.0).tobytes())  # + 0.0: minus zero is zero
        if self.crossing is not None:
            parts = (self.crossing.options.fingerprint(), self.crossing.segments.fingerprint())
            digest.update(repr(parts).encode())
        return digest.hexdigest()

    def __repr__(self) -> str:
        kernel = "given" if self.kernel is None else repr(self.kernel)
        if self.crossing is not None:
            options, segments = self.crossing.size, counted(len(self.crossing.names), "segment")
            return f"ArmSet({counted(len(self), 'arm')}: {counted(options, 'option')} in {segments}, rank={self.rank})"
        size = f"{counted(len(self), 'arm')} in {counted(self.dimension, 'dimension')}"
        return f"ArmSet({size}, kernel={kernel}, rank={self.rank})"


def _numbers_of(kernel: Any) -> Floats:
    """Points of arms that have none: their numbers, as many as the kernel matrix has rows."""
    if kernel is None or callable(kernel) or isinstance(kernel, (Mapping, str)):
        raise InputError("arms need points, one row each; only a kernel matrix says by itself what arms have in common")
    return np.arange(float(len(np.atleast_1d(np.asarray(kernel)))))[:, None]


def _read_options(options: Any, tolerance: float) -> ArmSet:
    """Options as arms: points, or names of things that have nothing in common."""
    arms = options if isinstance(options, ArmSet) else _from_names(options, None, tolerance)
    if arms is None:
        arms = ArmSet(options, tolerance=tolerance)
    if arms.crossing is not None:
        raise InputError("the options are crossed with segments already; cross the options themselves")
    return arms


def _read_segments(segments: Any, kernel: Any, tolerance: float) -> ArmSet:
    """Segments as arms, with the kernel that says what they have in common."""
    if isinstance(segments, ArmSet):
        if segments.crossing is not None:
            raise InputError("the segments are crossed themselves; give their names, or arms of their own")
        if kernel is None:
            return segments
        matrix = correlation_matrix(kernel, len(segments)) if isinstance(kernel, numbers.Real) else kernel
        return ArmSet(segments.points, matrix, segments.names, tolerance=tolerance)
    if callable(kernel) or isinstance(kernel, (Mapping, str)):
        raise InputError(
            f"kernel={shown(kernel)} needs points of the segments; give them as ArmSet(points, names=...), or a number "
            f"or a matrix for their correlation"
        )
    named = _from_names(segments, USUAL_CORRELATION if kernel is None else kernel, tolerance)
    if named is None:
        raise InputError(f"segments must be their names, or an ArmSet, got {shown(segments)}")
    return named


def _from_names(names: Any, kernel: Any, tolerance: float) -> ArmSet | None:
    """Arms of which only names are known, with this correlation (None: 0) or matrix; None if these are no names."""
    if isinstance(names, str) or not hasattr(names, "__len__") or not len(names):
        return None
    if hasattr(names, "columns") or not all(isinstance(name, str) for name in names):
        return None
    size = len(names)
    plain = kernel is None or isinstance(kernel, numbers.Real)
    matrix = correlation_matrix(0.0 if kernel is None else kernel, size) if plain else kernel
    return ArmSet(np.eye(size), matrix, [str(name) for name in names], tolerance=tolerance)


def _check_labels(names: Sequence[str]) -> None:
    """Refuse a name that would break a line of text or drive a terminal: such a name is a slip."""
    for arm, name in enumerate(names):
        wrong = breaking(name)
        if wrong is not None:
            cure = "strip()" if breaking(name.strip()) is None else f"replace({wrong!r}, ' ')"
            raise InputError(
                f"the name of arm {arm}, {shown(name)}, has {wrong!r} in it, which would garble texts that show it; "
                f"take it out, here with .{cure}"
            )
