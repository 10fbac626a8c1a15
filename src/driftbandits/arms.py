"""The options a policy chooses from: points and a kernel in, features out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import RBF

from driftbandits import kernels
from driftbandits.errors import InputError, KernelError
from driftbandits.kernels import KernelLike
from driftbandits.linalg import LowRank, pivoted_cholesky
from driftbandits.types import Floats, Ints, read_only

_DEFAULT_KERNEL = RBF(1.0)
_PRECOMPUTED_CHECK = 4096  # up to this many arms a given matrix is compared whole with its features


class ArmSet:
    """A finite set of arms with features such that <phi(x), phi(y)> = k(x, y).

    Features come from a pivoted Cholesky factorisation stopped at `tolerance` (relative to the largest k(x, x)), so
    duplicate arms, a linear kernel with more arms than dimensions or a very smooth kernel simply have a low `rank`.
    A kernel with k(x, x) > 1 is divided by its largest value, kept as `scale`; ridges, bounds and regularisers of the
    policies refer to the rescaled kernel.

    Parameters
    ----------
    points : array or pandas DataFrame, shape (N, d)
        One row an arm. A DataFrame's column names become `feature_names`; an index other than 0, 1, 2, ... names the
        arms.
    kernel : scikit-learn kernel, function k(X, Y), configuration mapping, or (N, N) positive semi-definite matrix
    names : N distinct strings, optional
    tolerance : largest entry of K - Phi Phi' that may be left out, with k(x, x) <= 1

    Raises InputError for points that are not finite numbers and for duplicate names, KernelError for a kernel that is
    not positive semi-definite.

    >>> arms = ArmSet([[0.0], [0.5], [0.5]], kernel=RBF(0.2), names=["low", "mid", "mid again"])
    >>> len(arms), arms.rank, arms.dimension
    (3, 2, 1)
    >>> arms.index("mid")
    1
    """

    def __init__(
        self,
        points: Any,
        kernel: KernelLike = _DEFAULT_KERNEL,
        names: Sequence[str] | None = None,
        *,
        tolerance: float = 1e-10,
    ) -> None:
        if not 0 < tolerance < 1:
            raise InputError(f"tolerance must lie in (0, 1), got {tolerance!r}")
        array, feature_names, index = _read_points(points)
        self.points: Floats = read_only(array)
        self.feature_names: tuple[str, ...] | None = feature_names
        self.kernel: KernelLike = kernel
        self.tolerance = float(tolerance)
        self.names: tuple[str, ...] | None = _read_names(index if names is None else names, len(array))
        factor, self.scale = _factor(array, kernel, tolerance)
        self._keep(factor)

    def _keep(self, factor: LowRank) -> None:
        if factor.features.shape[1] == 0:
            raise KernelError("the kernel is zero on every arm, so nothing can be learned; use another kernel")
        self.features: Floats = read_only(factor.features)
        self.pivots: Ints = read_only(factor.pivots)
        self.residual: float = factor.residual

    @classmethod
    def from_features(cls, features: Any, *, names: Sequence[str] | None = None, points: Any | None = None) -> ArmSet:
        """Arms given by explicit feature vectors phi(x), shape (N, r), with the kernel <phi(x), phi(y)>.

        >>> ArmSet.from_features([[1.0, 0.0], [0.0, 1.0]]).rank
        2
        """
        array, feature_names, index = _read_points(features)
        largest = float(np.einsum("ij,ij->i", array, array).max())
        arms = cls.__new__(cls)
        arms.points = read_only(array if points is None else _read_points(points)[0])
        if len(arms.points) != len(array):
            raise InputError(
                f"got {len(arms.points)} points for {len(array)} feature vectors; give one row an arm to each"
            )
        arms.feature_names = feature_names
        arms.kernel = {"name": "linear"}
        arms.tolerance = 0.0
        arms.names = _read_names(index if names is None else names, len(array))
        arms.scale = max(1.0, largest)
        scaled = array / np.sqrt(arms.scale)
        arms._keep(
            LowRank(features=scaled, pivots=np.arange(0, dtype=np.int64), residual=0.0)
            if largest > 0
            else LowRank(features=scaled[:, :0], pivots=np.arange(0, dtype=np.int64), residual=0.0)
        )
        return arms

    @classmethod
    def box(
        cls,
        bounds: Sequence[tuple[float, float]],
        *,
        points: int,
        method: Literal["grid", "sobol"] = "grid",
        kernel: KernelLike = _DEFAULT_KERNEL,
        tolerance: float = 1e-10,
    ) -> ArmSet:
        """Discretise the box of `bounds`, one (low, high) a dimension, into about `points` arms.

        A grid has the largest number of steps an axis whose power does not exceed `points`; Sobol points fill the box
        evenly and number exactly `points`. The paper's theory would take steps of 1/T (section 3), which is
        out of reach beyond two dimensions: the error of a coarser set is the kernel's smoothness times the step.

        >>> ArmSet.box([(0, 1), (0, 1)], points=30, kernel=RBF(0.3)).points.shape
        (25, 2)
        """
        limits = np.asarray(bounds, dtype=np.float64)
        if (
            limits.ndim != 2
            or limits.shape[1] != 2
            or not np.isfinite(limits).all()
            or (limits[:, 0] >= limits[:, 1]).any()
        ):
            raise InputError(f"bounds must be one (low, high) pair a dimension with low < high, got {bounds!r}")
        if points < 1:
            raise InputError(f"points must be at least 1, got {points!r}")
        unit = _unit_points(len(limits), int(points), method)
        return cls(limits[:, 0] + unit * (limits[:, 1] - limits[:, 0]), kernel, tolerance=tolerance)

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
        """Position of the arm called `name`."""
        if self.names is None:
            raise InputError(f"these arms have no names, so {name!r} cannot be found; pass names=... to ArmSet")
        try:
            return self.names.index(name)
        except ValueError:
            raise InputError(f"no arm is called {name!r}") from None

    def fingerprint(self) -> str:
        """Digest of points, scale and rank, by which a saved state knows its arms."""
        digest = hashlib.sha256()
        digest.update(repr((self.points.shape, self.rank, self.names, round(float(self.scale), 12))).encode())
        digest.update(np.ascontiguousarray(self.points).tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        kernel = repr(self.kernel) if callable(self.kernel) or isinstance(self.kernel, Mapping) else "<matrix>"
        return f"ArmSet({len(self)} arms in {self.dimension} dimensions, kernel={kernel}, rank={self.rank})"


def _read_points(points: Any) -> tuple[Floats, tuple[str, ...] | None, Sequence[str] | None]:
    """Points as a checked array, with column and row names if they came as a DataFrame."""
    columns = getattr(points, "columns", None)
    index = getattr(points, "index", None)
    is_frame = columns is not None and hasattr(points, "to_numpy")
    if is_frame:
        text = [
            str(c) for c, dtype in zip(columns, points.dtypes, strict=True) if getattr(dtype, "kind", "O") not in "biuf"
        ]
        if text:
            raise InputError(f"columns {text} are not numbers; encode them (for example with pandas.get_dummies) first")
    try:
        array = np.array(points.to_numpy() if is_frame else points, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(f"points must be numbers in rows of equal length: {error}") from None
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"points must have shape (arms, dimensions) with at least one of each, got {array.shape}")
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise InputError(f"points[{row}, {column}] is {array[row, column]}; fill or drop missing values first")
    if not is_frame:
        return array, None, None
    default = list(index) == list(range(len(array)))
    return array, tuple(str(c) for c in columns), None if default else [str(i) for i in index]


def _read_names(names: Sequence[str] | None, size: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    given = tuple(names)
    if len(given) != size or not all(isinstance(name, str) for name in given):
        raise InputError(f"names must be {size} strings, one an arm, got {len(given)}: {given[:5]!r}")
    if len(set(given)) != size:
        seen: set[str] = set()
        twice = next(name for name in given if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InputError(f"two arms are called {twice!r}; names must differ")
    return given


def _factor(points: Floats, kernel: KernelLike, tolerance: float) -> tuple[LowRank, float]:
    """Pivoted Cholesky of the kernel divided by its largest diagonal entry, where that exceeds 1."""
    if not callable(kernel) and not isinstance(kernel, Mapping):
        return _factor_matrix(points, _read_matrix(kernel), tolerance)
    function = kernels.as_function(kernel)
    own = kernels.diagonal(kernel, points)
    scale = _scale(own, len(points))
    factor = pivoted_cholesky(
        own / scale,
        lambda rows, columns: function(points[rows], points[columns]) / scale,
        tolerance=tolerance * min(1.0, float(own.max())),
    )
    sample = np.unique(np.linspace(0, len(points) - 1, 8).astype(np.int64))
    _check_columns(function(points, points[sample]) / scale, sample, factor, tolerance)
    return factor, scale


def _factor_matrix(points: Floats, matrix: Floats, tolerance: float) -> tuple[LowRank, float]:
    if matrix.shape != (len(points), len(points)):
        raise InputError(f"a kernel matrix for {len(points)} arms must be square of that size, got {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise KernelError("the kernel matrix is not finite; fill missing entries first")
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-10):
        raise KernelError("the kernel matrix is not symmetric; use (K + K.T) / 2 if the difference is rounding")
    given = np.asarray(matrix, dtype=np.float64)
    scale = _scale(given.diagonal(), len(points))
    tolerance_here = tolerance * min(1.0, float(given.diagonal().max()))
    factor = pivoted_cholesky(
        given.diagonal() / scale, lambda rows, columns: given[rows][:, columns] / scale, tolerance=tolerance_here
    )
    step = max(1, len(given) // _PRECOMPUTED_CHECK)
    sample = np.arange(0, len(given), step)
    _check_columns(given[:, sample] / scale, sample, factor, tolerance)
    return factor, scale


def _read_matrix(kernel: Any) -> Floats:
    try:
        return np.asarray(kernel, dtype=np.float64)
    except (TypeError, ValueError):
        wanted = "a scikit-learn kernel, a function k(X, Y) or a matrix"
        raise InputError(f"kernel must be {wanted}, got {kernel!r}") from None


def _scale(own: Floats, size: int) -> float:
    if own.shape != (size,) or not np.isfinite(own).all():
        raise KernelError("the kernel's diagonal is not finite; check the points and the kernel's parameters")
    if own.min() < 0:
        raise KernelError(f"the kernel is not positive semi-definite: k(x, x) = {own.min():.3g} at arm {own.argmin()}")
    return float(max(1.0, own.max()))


def _check_columns(columns: Floats, sample: Ints, factor: LowRank, tolerance: float) -> None:
    """A positive semi-definite rest is bounded by its diagonal; a larger entry shows that the kernel is not."""
    rest = np.abs(columns - factor.features @ factor.features[sample].T)
    if rest.max() > factor.residual + max(10 * tolerance, 1e-7):
        row, column = np.unravel_index(int(rest.argmax()), rest.shape)
        raise KernelError(
            f"the kernel is not positive semi-definite: k(x, y) of arms {row} and {int(sample[column])} is "
            f"{rest[row, column]:.3g} away from what their variances allow; use a valid covariance function, or clip "
            f"the negative eigenvalues of the matrix"
        )


def _unit_points(dimension: int, points: int, method: str) -> Floats:
    if method == "grid":
        steps = 1
        while (steps + 1) ** dimension <= points:
            steps += 1
        axis = np.linspace(0.0, 1.0, steps) if steps > 1 else np.array([0.5])
        return np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    if method == "sobol":
        sobol = qmc.Sobol(dimension, scramble=False)
        return np.asarray(sobol.random_base2(int(np.ceil(np.log2(points))) if points > 1 else 0)[:points])
    raise InputError(f"method must be 'grid' or 'sobol', got {method!r}")

