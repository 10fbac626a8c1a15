"""Whether saved numbers can be those of a run: checks that several policies share when they read a state.

What no rewards can have led to is refused, for a policy that goes on from it fails later and less clearly. What a long
or odd run may lead to is not: every slack is far above the rounding of millions of rounds. Numbers that overflow in a
check are refused by it, silently.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.linalg.lapack

from driftbandits.state.reader import check
from driftbandits.types import Floats, Ints

FARTHEST = 2**53  # rounds, laws and other things counted one by one: no run gets there
ROUNDING = 1e-6  # relative


def check_phase(*, rounds: int, start: int, length: int, horizon: int | None, first: int | None) -> None:
    """Refuse a stretch of play, `length` rounds from round `start` on, that a policy cannot be in after `rounds`.

    Length 0 is before the first. A known `horizon` is one stretch. Where it is unknown, stretches double from `first`
    on, or (None) there is a single one without end, whose length is not checked.
    """
    if length == 0:
        fine = rounds == start == 0
    elif horizon is not None or first is None:
        fine = start == 0 and (horizon is None or length == horizon)
    else:
        fine = start == length - first and length % first == 0 and (length // first).bit_count() == 1
    check(fine and (length == 0 or rounds <= start + length), "stretch of rounds")


def told_at_most(rounds: int, pending: npt.NDArray[np.void], *, since: int = 0) -> int:
    """How many rewards of rounds from `since` on can have been told: those of open decisions have not."""
    return rounds - since - int(np.count_nonzero(pending["id"] >= since))


@np.errstate(all="ignore")
def check_whole(counts: Floats | Ints, most: int, what: str) -> None:
    """Counts of things of which there are at most `most` in all."""
    inside = bool(((counts >= 0) & (counts <= most)).all()) and bool((counts == np.floor(counts)).all())
    check(inside and counts.sum() <= most, what)


@np.errstate(all="ignore")
def check_sums(weights: Floats, sums: Floats, what: str, *, largest: float = 1.0, slack: float = 0.0) -> None:
    """Sums of numbers of at most `largest` in size with these weights; `slack` where some were taken away again."""
    inside = np.abs(sums) <= (1.0 + ROUNDING) * largest * weights + slack
    check(bool((weights >= 0.0).all() and inside.all()), what)


@np.errstate(all="ignore")
def check_covariance(covariance: Floats, *, largest: float, slack: float, what: str) -> None:
    """Covariances of things of variance `largest` at most: symmetric, and no variance below -`slack`."""
    lopsided = np.abs(covariance - covariance.T).max(initial=0.0)
    check(bool(lopsided <= ROUNDING * largest and is_positive(covariance, slack)), what)


@np.errstate(all="ignore")
def is_positive(matrix: Floats, slack: float) -> bool:
    """Whether a symmetric matrix has no eigenvalue below -`slack`, which is positive."""
    if not len(matrix):
        return True
    raised = 0.5 * (matrix + matrix.T)
    raised[np.diag_indices_from(raised)] += slack
    return int(scipy.linalg.lapack.dpotrf(raised, lower=1, overwrite_a=1)[1]) == 0
