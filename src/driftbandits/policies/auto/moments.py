"""Mean and spread of what the mixture believes of every arm, without the covariances between arms."""

from __future__ import annotations

import numpy as np

from driftbandits.policies.auto.beliefs import Beliefs
from driftbandits.policies.auto.priors import LEVEL_VARIANCE
from driftbandits.types import Floats, Ints

_LEAST_WEIGHT_COUNTED = 1e-3  # of a hypothesis


def moments(beliefs: Beliefs, weights: Floats, arms: Ints | slice = slice(None)) -> tuple[Floats, Floats]:
    """Mean and standard deviation of these arms' rewards under the mixture, each (M,); by default of all."""
    rows = np.flatnonzero(weights >= _LEAST_WEIGHT_COUNTED)
    share = weights[rows] / weights[rows].sum()
    if beliefs.priors.rows is None:
        means, variances = beliefs.mean[rows, :-1][:, arms], _own_variances(beliefs, rows)[:, arms]
        if beliefs.units is not None:
            units = beliefs.units.of(arms)
            means, variances = units.rewards(means), units.variances(means, variances)
    else:
        readings = [beliefs.reading(int(row), arms) for row in rows]
        means, variances = (np.array(column) for column in zip(*readings, strict=True))
    mean = share @ means
    return mean, np.sqrt(share @ (variances + np.square(means - mean)))


def _own_variances(beliefs: Beliefs, rows: Ints) -> Floats:
    """Diagonals of the covariances of these rows where arms are their own coordinates: (n, N) without (n, N, N)."""
    learned = np.diagonal(beliefs.learned, axis1=1, axis2=2)[rows]
    recent = beliefs.recent[rows, : beliefs.gathered]
    explained = learned + np.einsum("nka,nka->na", recent, recent)
    prior = np.diagonal(beliefs.priors.prior, axis1=1, axis2=2)[beliefs.kind[rows]]
    wide = beliefs.breadth[rows, None] * prior + LEVEL_VARIANCE * beliefs.level[rows, None]
    return np.asarray(np.maximum(wide - beliefs.fade[rows, None] * explained, 0.0)[:, :-1])  # without the level
