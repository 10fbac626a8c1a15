"""Laws by optimal design, where a law that is not quite optimal will do."""

from __future__ import annotations

import warnings

from driftbandits.design import Design, solve_design
from driftbandits.errors import ConvergenceError, ConvergenceWarning
from driftbandits.types import Floats, Ints


def best_design(
    features: Floats, regulariser: float, *, costs: Floats | None = None, candidates: Ints | None = None
) -> Design:
    """What `solve_design` finds; where it stops short, its best law, which is still a valid one."""
    try:
        return solve_design(features, costs=costs, candidates=candidates, regulariser=regulariser)
    except ConvergenceError as error:
        best: Design = error.best
        warnings.warn(f"playing a law with a gap of {best.gap:.2g}: {error}", ConvergenceWarning, stacklevel=3)
        return best
