"""What blocks of the engine come to on average: their estimates, and how much of them is replayed."""

from __future__ import annotations

import numpy as np

from driftbandits.design.blocks import law_factor, replay_probability
from driftbandits.types import Floats


def expected_estimate(features: Floats, law: Floats, regulariser: float, rewards: Floats) -> Floats:
    """Mean of the IPS estimate when arms are drawn from `law` and have mean `rewards`: Phi S(P)^-1 Phi' diag(P) r.

    As lambda goes to 0 this becomes r on the span of the played arms; otherwise it is shrunk.

    >>> expected_estimate(np.eye(2), np.array([0.5, 0.5]), 0.5, np.array([1.0, -1.0])).tolist()
    [0.5, -0.5]
    """
    solved = law_factor(features, law, regulariser).solve(features.T @ (law * rewards))
    return np.asarray(features @ solved)


def replayed_share(block: int, *, lowest: int = 0) -> float:
    """Expected share of a block's rounds that follow an earlier law: 1 - prod_{m < j} (1 - 2^((m - j) / 2)).

    >>> [round(replayed_share(j), 3) for j in (3, 6, 9)]
    [0.905, 0.949, 0.958]
    """
    chances: Floats = np.array([replay_probability(index, block) for index in range(lowest, block)])
    return float(1.0 - np.prod(1.0 - chances))
