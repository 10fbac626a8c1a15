"""Thompson sampling that is told the law all chances were drawn from: what can be had where so little is seen.

The chances of options in segments are normal about `MEAN`, with deviation `DEVIATION` and the correlation of segments
as the world has it; rewards are taken as normal with the variance of a Bernoulli draw of chance `MEAN`. Nothing of this
is known to a policy that learns.
"""

from __future__ import annotations

import numpy as np

from driftbandits._util.seeding import stream
from driftbandits.types import Floats, Ints

ROUNDS_BETWEEN_POSTERIORS = 20


def regret(table: Floats, visits: Ints, *, correlation: float, seed: int) -> float:
    """Reward lost in a world with these chances, shape (segments, options), where segments come as `visits` say."""
    segments, options = table.shape
    mean, deviation = float(table.mean()), float(table.std())
    alike = np.full((segments, segments), correlation) + (1.0 - correlation) * np.eye(segments)
    prior = deviation**2 * np.kron(alike, np.eye(options))
    noise = mean * (1.0 - mean)
    plays, successes, lost = np.zeros(table.size), np.zeros(table.size), 0.0
    generator = stream(seed, "informed")
    root, expected = np.linalg.cholesky(prior), np.full(table.size, mean)
    for now, segment in enumerate(visits.tolist()):
        if now % ROUNDS_BETWEEN_POSTERIORS == 0:
            covariance = np.linalg.solve(np.eye(table.size) + prior * (plays / noise), prior)
            expected = mean + covariance @ (successes - mean * plays) / noise
            root = np.linalg.cholesky(0.5 * (covariance + covariance.T))
        drawn = (expected + root @ generator.standard_normal(table.size)).reshape(table.shape)
        option = int(drawn[segment].argmax())
        chance = float(table[segment, option])
        lost += float(table[segment].max()) - chance
        plays[segment * options + option] += 1.0
        successes[segment * options + option] += generator.random() < chance
    return lost
