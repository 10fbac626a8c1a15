"""How wealth is spent on bets that begin at any number of a stream of any length."""

from __future__ import annotations

import math


def cash_after(numbers: float) -> float:
    """Wealth not yet bet after so many numbers, 1 / (1 + log(1 + t)).

    A bet begun after n numbers costs log n + 2 log log n of evidence, about the least that leaves something for every
    n.

    >>> cash_after(0), round(cash_after(1_000), 3)
    (1.0, 0.126)
    """
    return 1.0 / (1.0 + math.log1p(numbers))
