"""Laws by optimal design, where a law that is not quite optimal will do."""

from __future__ import annotations

import warnings

from driftbandits.design import Design, solve_design
from driftbandits.errors import ConvergenceError, ConvergenceWarning
from driftbandits.types import Floats, Ints

MANY_ARMS = 1_000  # beyond it a round would wait seconds for digits that nobody sees
_GAP, _GAP_OF_MANY = 1e-6, 0.05  # of log det S, a sum over a hundred directions or so


def best_design(
    features: Floats,
    regulariser: float,
    *,
    costs: Floats | None = None,
    candidates: Ints | None = None,
    near: Floats | None = None,
) -> Design:
    """What `solve_design` finds; where it stops short, its best law, which is still a valid one.

    Many arms are solved loosely, to a gap of 0.05, and from the law `near`: one that solves a problem much like this.
    """
    many = len(features) > MANY_ARMS
    try:
        return solve_design(
            features,
            costs=costs,
            candidates=candidates,
            regulariser=regulariser,
            tolerance=_GAP_OF_MANY if many else _GAP,
            warm_start=near if many else None,
        )
    except ConvergenceError as error:
        best: Design = error.best
        warnings.warn(f"playing a law with a gap of {best.gap:.2g}: {error}", ConvergenceWarning, stacklevel=3)
        return best
