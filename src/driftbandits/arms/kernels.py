"""Kernels by name, for configuration files, and the one for points of which no kernel is known.

In Python, any scikit-learn kernel will do. scikit-learn takes a second to import, so this happens where one of its
kernels is made, not before: the kernel for points of which none is known is our own.

{"name": "rbf", "length_scale": 0.2}
{"name": "periodic", "periodicity": 24, "columns": [0]}
{"name": "sum", "terms": [{"name": "rbf", "length_scale": 0.2}, {"name": "constant", "value": 0.5}]}
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.spatial

from driftbandits._util.checks import as_floats, check_depth, check_positive
from driftbandits.errors import DriftbanditsError, InputError, KernelError, near_and_valid
from driftbandits.text import counted, shown
from driftbandits.types import Floats

if TYPE_CHECKING:
    from sklearn.gaussian_process import kernels as sk


KernelFunction = Callable[[Floats, Floats], Floats]  # scikit-learn's kernels are such functions
if TYPE_CHECKING:
    KernelLike = KernelFunction | sk.Kernel | Mapping[str, Any] | Floats
else:
    KernelLike = KernelFunction | Mapping[str, Any] | Floats

_POINTS_PER_CALL = 64  # where only the diagonal of a plain function is wanted
POINTS_SAMPLED = 400  # by which distances are judged
USUAL_LENGTH = 0.25  # of the median distance between points


@dataclass(frozen=True, repr=False)
class SquaredExponential:
    """k(x, y) = exp(-|x - y|^2 / (2 l^2)): scikit-learn's RBF to the last bit, without its import.

    >>> SquaredExponential(0.5)(np.zeros((1, 1)), np.ones((1, 1))).round(3)
    array([[0.135]])
    """

    length_scale: float

    def __call__(self, X: Floats, Y: Floats | None = None) -> Floats:
        """Its values for all pairs of rows."""
        scaled = X / self.length_scale
        if Y is None:
            values: Floats = scipy.spatial.distance.squareform(
                np.exp(-0.5 * scipy.spatial.distance.pdist(scaled, "sqeuclidean"))
            )
            np.fill_diagonal(values, 1.0)
            return values
        apart: Floats = scipy.spatial.distance.cdist(scaled, Y / self.length_scale, "sqeuclidean")
        return np.exp(-0.5 * apart)

    def diag(self, X: Floats) -> Floats:
        """k(x, x) of every point."""
        return np.ones(len(X))

    def __repr__(self) -> str:
        return f"RBF(length_scale={self.length_scale:.3g})"


def _sk() -> Any:
    from sklearn.gaussian_process import kernels

    return kernels


def _neural_tangent(depth: Any = 3) -> sk.Kernel:
    from driftbandits.arms.sklearn_kernels import NeuralTangentKernel

    return NeuralTangentKernel(check_depth(int(depth) if depth == int(depth) else depth))


NAMED: dict[str, Callable[..., sk.Kernel]] = {
    "rbf": lambda length_scale=1.0: _sk().RBF(length_scale),
    "matern": lambda length_scale=1.0, nu=1.5: _sk().Matern(length_scale, nu=nu),
    "rational_quadratic": lambda length_scale=1.0, alpha=1.0: _sk().RationalQuadratic(length_scale, alpha=alpha),
    "periodic": lambda length_scale=1.0, periodicity=1.0: _sk().ExpSineSquared(length_scale, periodicity),
    "linear": lambda offset=0.0: _sk().DotProduct(sigma_0=offset),
    "constant": lambda value=1.0: _sk().ConstantKernel(value),
    "neural_tangent": _neural_tangent,
}
COMBINED = {"sum": add, "product": mul}


def kernel_from_config(config: Mapping[str, Any]) -> sk.Kernel:
    """Build a scikit-learn kernel from plain values.

    Parameters
    ----------
    config : a mapping with the `name` of a kernel and its settings; `sum` and `product` have `terms`, a list of such.
        With `columns`, a list of their numbers from 0, a kernel sees these columns of the points alone

    Returns
    -------
    scikit-learn kernel

    Raises
    ------
    InputError
        For an unknown name or setting, with the nearest valid one.

    >>> kernel_from_config({"name": "rbf", "length_scale": 0.2})
    RBF(length_scale=0.2)
    >>> kernel_from_config({"name": "product", "terms": [{"name": "constant", "value": 0.5}, {"name": "linear"}]})
    0.707**2 * DotProduct(sigma_0=0)
    >>> hour = {"name": "periodic", "periodicity": 24, "columns": [0]}
    >>> kernel_from_config({"name": "product", "terms": [hour, {"name": "rbf", "columns": [1, 2]}]})
    ExpSineSquared(length_scale=1, periodicity=24) of columns [0] * RBF(length_scale=1) of columns [1, 2]
    """
    if not isinstance(config, Mapping):
        raise InputError(f"a kernel's configuration is a mapping with a 'name', got {shown(config)}")
    settings = dict(config)
    name = settings.pop("name", None)
    if not isinstance(name, str):
        raise InputError(f"a kernel's configuration needs a 'name', one of {_valid_names()}, got {shown(config)}")
    if "columns" in settings:
        from driftbandits.arms.sklearn_kernels import ColumnKernel, check_columns

        columns = check_columns(settings.pop("columns"))
        return ColumnKernel(kernel_from_config({"name": name, **settings}), columns)
    if name in COMBINED:
        terms = settings.pop("terms", None)
        if settings or not isinstance(terms, (list, tuple)) or not terms:
            raise InputError(f"a {name} of kernels wants exactly 'terms', a list of kernels, got {shown(dict(config))}")
        return reduce(COMBINED[name], [kernel_from_config(term) for term in terms])
    if name not in NAMED:
        raise InputError(f"unknown kernel {name!r}; {near_and_valid(name, [*NAMED, *COMBINED])}")
    known = list(inspect.signature(NAMED[name]).parameters)
    for key in settings:
        if key not in known:
            raise InputError(f"kernel {name!r} has no setting {key!r}; {near_and_valid(key, known)}")
    return NAMED[name](**{key: _number(name, key, value) for key, value in settings.items()})


def _number(name: str, key: str, value: Any) -> Any:
    listed = key == "length_scale" and name in ("rbf", "matern")  # one per dimension; the others know only one for all
    if not isinstance(value, (list, tuple, np.ndarray)) or not listed:
        described = f"{name}.{key}, or each entry of a list," if listed else f"{name}.{key}"
        return check_positive(described, value, zero=key in ("offset", "value"))
    if len(value) == 0:
        raise InputError(f"{name}.{key} must have one number per dimension, got an empty list")
    return np.array([_number(name, key, entry) for entry in value])


def usual_kernel(points: Floats) -> SquaredExponential:
    """The kernel where none is given: RBF, its length scale a quarter of the median distance between the points.

    The length has three digits, as the repr shows it, so that what is read off is the kernel itself. Where no two
    points differ, or by less than floats can say, it is 1.

    >>> usual_kernel(np.linspace(0, 1, 11)[:, None])
    RBF(length_scale=0.1)
    """
    unit = float(np.abs(points).max(initial=0.0)) or 1.0  # squares of points may be too large or small for floats
    length = USUAL_LENGTH * (typical_distance(points / unit) or 0.0) * unit
    return SquaredExponential(float(f"{length:.3g}") or 1.0)


def typical_distance(points: Floats) -> float | None:
    """Median distance between points that differ, of 400 where there are more; None if no two differ."""
    distances = scipy.spatial.distance.pdist(some_rows(points, POINTS_SAMPLED))
    apart = distances[distances > 0]
    return float(np.median(apart)) if len(apart) else None


def some_rows(rows: Floats, most: int) -> Floats:
    """At most `most` of the rows, spread at random: every tenth of a grid would all lie in a few columns."""
    return rows if len(rows) <= most else rows[np.random.default_rng(0).permutation(len(rows))[:most]]


def _valid_names() -> str:
    return ", ".join([*NAMED, *COMBINED])


def as_function(kernel: Any) -> KernelFunction:
    """Give a kernel of any accepted kind but a matrix as a function k(X, Y)."""
    if isinstance(kernel, Mapping):
        return kernel_from_config(kernel)  # type: ignore[no-any-return]
    if isinstance(kernel, str):
        raise InputError(f"a kernel by name is a mapping: write {{'name': {kernel!r}}}, got {kernel!r}")
    if isinstance(kernel, type):
        raise InputError(f"kernel is the class {kernel.__name__}; pass an instance, {kernel.__name__}(...)")
    if not callable(kernel):
        raise InputError(f"kernel must be a scikit-learn kernel, a function k(X, Y) or a matrix, got {shown(kernel)}")
    return kernel  # type: ignore[no-any-return]


def checked(kernel: KernelFunction) -> KernelFunction:
    """The same function, refusing values that are not numbers of shape (len(X), len(Y)).

    Whatever goes wrong inside it becomes a KernelError that names the kernel, with the error itself as its cause.
    """

    def evaluate(left: Floats, right: Floats) -> Floats:
        return _evaluated(kernel, kernel, (left, right), shape=(len(left), len(right)))

    return evaluate


def diagonal(kernel: KernelFunction, points: Floats) -> Floats:
    """k(x, x) of every point, without the full matrix: a plain function is evaluated on small square blocks."""
    if isinstance(kernel, SquaredExponential) or _is_of_sklearn(kernel):
        return _evaluated(kernel, kernel.diag, (points,), shape=(len(points),))  # type: ignore[attr-defined]
    function = checked(kernel)
    blocks = [points[start : start + _POINTS_PER_CALL] for start in range(0, len(points), _POINTS_PER_CALL)]
    return np.concatenate([function(block, block).diagonal() for block in blocks])


def _is_of_sklearn(kernel: KernelFunction) -> bool:
    """Whether it is a scikit-learn kernel; who has one has imported scikit-learn."""
    return "sklearn.gaussian_process.kernels" in sys.modules and isinstance(kernel, _sk().Kernel)


def _evaluated(
    kernel: KernelFunction, function: Callable[..., Any], arguments: tuple[Floats, ...], *, shape: tuple[int, ...]
) -> Floats:
    """What the kernel, or its method for the diagonal, gives for these points, as floats of this shape."""
    try:
        given = function(*arguments)
    except (DriftbanditsError, TimeoutError):  # not about the kernel: the handler of a signal may raise them
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise _failure(kernel, arguments[0], reason) from error
    try:
        values = as_floats(given)
    except (TypeError, ValueError, OverflowError) as error:
        reason = f"it gave {shown(given)}, not an array of shape {shape}: {error}"
        raise _failure(kernel, arguments[0], reason) from error
    if values.shape != shape:
        found = "None" if given is None else f"shape {values.shape}"
        raise KernelError(
            f"kernel {shown(kernel)} gave {found} for {' x '.join(str(len(part)) for part in arguments)} points; "
            f"it must give one value per {'pair' if len(shape) == 2 else 'point'}, shape {shape}"
        )
    return values


def _failure(kernel: KernelFunction, points: Floats, reason: str) -> KernelError:
    return KernelError(f"kernel {shown(kernel)} failed on points in {counted(points.shape[1], 'dimension')}: {reason}")
