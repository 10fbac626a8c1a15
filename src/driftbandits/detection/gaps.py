"""Change tests: two estimates and a level in, a Verdict out.

symbol    name                                        shape
R_I       recent: estimated reward over an interval   (N,)
R_C(k)    reference: the same over blocks 0..k        (N,)
Delta     gaps: max R - R                             (N,)
"""

from __future__ import annotations

import numpy as np

from driftbandits.types import Floats, Verdict


def gaps(rewards: Floats) -> Floats:
    """Estimated distance of every arm from the best: max R - R, shape (N,).

    >>> gaps(np.array([0.5, 1.0])).tolist()
    [0.5, 0.0]
    """
    return np.asarray(rewards.max() - rewards)


def gap_test(recent: Floats, reference: Floats, threshold: float) -> Verdict:
    """The paper's test: an arm's gap grew or shrank by more than a factor of 4 plus `threshold`.

    Fires for arm x if Delta_I(x) - 4 Delta_C(x) > threshold or Delta_C(x) - 4 Delta_I(x) > threshold, with
    `threshold` = 4 c0 mu_{min(m, k)} in the paper (box of ADA-OPKB).

    >>> gap_test(np.array([0.0, 1.0]), np.array([1.0, 0.9]), 0.5).arms
    (0,)
    """
    now, then = gaps(recent), gaps(reference)
    statistics = np.maximum(now - 4.0 * then, then - 4.0 * now)
    moved = tuple(int(arm) for arm in np.flatnonzero(statistics > threshold))
    return Verdict(statistic=float(statistics.max()), threshold=float(threshold), arms=moved)
