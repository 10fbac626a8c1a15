"""The factor beta of the widths: how many posterior standard deviations an index lies above the mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from driftbandits.checks import check_positive, check_word

CONFIDENCE_RULES = ("ridge", "igp", "paper")
WEIGHTED_RULES = (*CONFIDENCE_RULES, "authors")
DRIFT_RULES = ("finite", "practical")


def confidence_factor(
    rule: str | float, *, gain: float, ridge: float, noise: float, bound: float, failure_probability: float
) -> float:
    """The factor beta in mean + beta sd, from the information gain `gain` (half convention) of the data behind them.

    ridge   B + (R / sqrt(lambda)) sqrt(2 g + 2 log(1 / delta))     any lambda, ||r||_H <= B, R-sub-Gaussian noise
    igp     B + R sqrt(2 (g + 1 + log(1 / delta)))                  Chowdhury and Gopalan, lambda = 1 + 2/T
    paper   1 + sqrt(2 (2 g + 1 + log(1 / delta)))                  the paper's GPUCB; its gain has no factor 1/2
    authors B + R sqrt(2 (G + log(1 / delta)))                      the authors' WGPUCB: no 1 / sqrt(lambda), and the
                                                                    caller's `gain` is G, the largest of all rounds
    number  that number
    """
    if not isinstance(rule, str):
        return float(rule)
    log_term = math.log(1.0 / failure_probability)
    if rule == "ridge":
        return bound + noise / math.sqrt(ridge) * math.sqrt(2.0 * gain + 2.0 * log_term)
    if rule == "igp":
        return bound + noise * math.sqrt(2.0 * (gain + 1.0 + log_term))
    if rule == "authors":
        return bound + noise * math.sqrt(2.0 * (gain + log_term))
    return 1.0 + math.sqrt(2.0 * (2.0 * gain + 1.0 + log_term))


def drift_factor(rule: str | float, *, arms: int, rounds: int, failure_probability: float) -> float:
    """The factor of the sd in round number `rounds` (from 1): the square root of Bogunovic et al.'s beta_t.

    finite      beta_t = 2 log(N pi^2 t^2 / (6 delta))      their theorem on finite domains
    practical   beta_t = 0.8 log(4 t)                       as public re-implementations have it
    number      that number is the factor itself, as in `GPUCB`

    >>> round(drift_factor("practical", arms=100, rounds=1000, failure_probability=0.01), 3)
    2.576
    """
    if not isinstance(rule, str):
        return float(rule)
    if rule == "finite":
        return math.sqrt(2.0 * math.log(arms * math.pi**2 * rounds**2 / (6.0 * failure_probability)))
    return math.sqrt(0.8 * math.log(4.0 * rounds))


def check_beta(beta: Any, rules: Sequence[str]) -> str | float:
    """Give `beta` back if it is one of the `rules` or a number of at least 0.

    >>> check_beta("igp", CONFIDENCE_RULES), check_beta(2, CONFIDENCE_RULES)
    ('igp', 2.0)
    """
    if isinstance(beta, str):
        return check_word("beta", beta, rules, cure="or give the factor itself, a number")
    return check_positive("beta", beta, zero=True)
