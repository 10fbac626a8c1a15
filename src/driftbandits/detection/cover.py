"""A few arms whose rewards tell of a change anywhere: a cover of the arms in the kernel's feature space."""

from __future__ import annotations

import numpy as np

from driftbandits.types import Floats, Ints

_ROUNDING_OF_TIES = 1e-9  # relative to the largest k(x, x): arms as far from the cover as this are equally far


def kernel_cover(features: Floats, size: int) -> Ints:
    """At most `size` arms, each the one of which those before it tell least, shape (n,).

    What a cover C leaves open of an arm is rest(x) = k(x, x) - k(x, C) K_CC^-1 k(C, x), its variance given the rewards
    of C without noise: a change g that leaves the rewards of all of C as they were satisfies |g(x)| <= ||g||_H
    sqrt(rest(x)). The next arm is the one with the largest rest (a pivoted Cholesky factorisation), the first of them
    where several are; when nothing is left the cover is complete, and may be shorter than `size`: d arms for a linear
    kernel in d dimensions.

    >>> kernel_cover(np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.6, 0.8]]), 3).tolist()
    [1, 2]
    """
    rest = np.einsum("ij,ij->i", features, features)
    slack = _ROUNDING_OF_TIES * float(rest.max(initial=0.0))
    most = min(size, *features.shape)
    columns = np.zeros((len(features), most))  # of the factorisation
    chosen: list[int] = []
    while len(chosen) < most and rest.max() > slack:
        arm = int(np.argmax(rest >= rest.max() - slack))
        column = features @ features[arm] - columns @ columns[arm]
        column /= np.sqrt(rest[arm])
        rest = np.maximum(rest - np.square(column), 0.0)
        columns[:, len(chosen)] = column
        chosen.append(arm)
        rest[chosen] = 0.0
    return np.array(chosen, dtype=np.int64)
