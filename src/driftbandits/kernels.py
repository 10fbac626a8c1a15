"""Kernels by name, for configuration files; in Python, any scikit-learn kernel will do.

{"name": "rbf", "length_scale": 0.2}
{"name": "sum", "terms": [{"name": "rbf", "length_scale": 0.2}, {"name": "constant", "value": 0.5}]}
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as sk

from driftbandits.errors import InputError, KernelError
from driftbandits.types import Floats

KernelLike = sk.Kernel | Callable[[Floats, Floats], Floats] | Mapping[str, Any] | Floats

NAMED: dict[str, Callable[..., sk.Kernel]] = {
    "rbf": lambda length_scale=1.0: sk.RBF(length_scale),
    "matern": lambda length_scale=1.0, nu=1.5: sk.Matern(length_scale, nu=nu),
    "rational_quadratic": lambda length_scale=1.0, alpha=1.0: sk.RationalQuadratic(length_scale, alpha=alpha),
    "periodic": lambda length_scale=1.0, periodicity=1.0: sk.ExpSineSquared(length_scale, periodicity),
    "linear": lambda offset=0.0: sk.DotProduct(sigma_0=offset),
    "constant": lambda value=1.0: sk.ConstantKernel(value),
}
COMBINED = {"sum": add, "product": mul}


def kernel_from_config(config: Mapping[str, Any]) -> sk.Kernel:
    """Build a scikit-learn kernel from plain values.

    Raises InputError for an unknown name or setting, with the nearest valid one.

    >>> kernel_from_config({"name": "rbf", "length_scale": 0.2})
    RBF(length_scale=0.2)
    >>> kernel_from_config({"name": "product", "terms": [{"name": "constant", "value": 0.5}, {"name": "linear"}]})
    0.707**2 * DotProduct(sigma_0=0)
    """
    settings = dict(config)
    name = settings.pop("name", None)
    if name in COMBINED:
        terms = settings.pop("terms", None)
        if settings or not isinstance(terms, (list, tuple)) or not terms:
            raise InputError(f"a {name} of kernels wants exactly 'terms', a list of kernels, got {dict(config)!r}")
        return reduce(COMBINED[name], [kernel_from_config(term) for term in terms])
    if name not in NAMED:
        raise InputError(f"unknown kernel {name!r}; {_did_you_mean(str(name), [*NAMED, *COMBINED])}")
    known = list(inspect.signature(NAMED[name]).parameters)
    for key in settings:
        if key not in known:
            raise InputError(f"kernel {name!r} has no setting {key!r}; {_did_you_mean(key, known)}")
    return NAMED[name](**{key: _number(value, f"{name}.{key}") for key, value in settings.items()})


def _number(value: Any, what: str) -> Any:
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all() or (array < 0).any():
        raise InputError(f"{what} must be a non-negative number or a list of them, got {value!r}")
    return value if array.ndim == 0 else array.astype(np.float64)


def _did_you_mean(name: str, valid: list[str]) -> str:
    near = difflib.get_close_matches(name, valid, n=1)
    return (f"did you mean {near[0]!r}? " if near else "") + f"valid: {', '.join(valid)}"


def as_function(kernel: KernelLike) -> Callable[[Floats, Floats], Floats]:
    """Give a kernel of any accepted kind (but a matrix) as a checked function k(X, Y) -> (len(X), len(Y))."""
    source = kernel_from_config(kernel) if isinstance(kernel, Mapping) else kernel
    if not callable(source):
        raise InputError(f"kernel must be a scikit-learn kernel, a function k(X, Y) or a matrix, got {kernel!r}")

    def evaluate(left: Floats, right: Floats) -> Floats:
        values = np.asarray(source(left, right), dtype=np.float64)
        if values.shape != (len(left), len(right)):
            raise KernelError(
                f"kernel gave shape {values.shape} for {len(left)} x {len(right)} points; "
                f"it must give one value a pair, shape {(len(left), len(right))}"
            )
        return values

    return evaluate


def diagonal(kernel: KernelLike, points: Floats) -> Floats:
    """k(x, x) of every point, without the full matrix."""
    source = kernel_from_config(kernel) if isinstance(kernel, Mapping) else kernel
    if isinstance(source, sk.Kernel):
        return np.asarray(source.diag(points), dtype=np.float64)
    function = as_function(source)
    return np.array([function(row[None, :], row[None, :])[0, 0] for row in points])
