"""Plain Frank-Wolfe with away steps for the log-det design: slow, short, and sharing no code with the library.

It is the independent check of the tests and the yardstick of the benchmark.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """Where Frank-Wolfe stopped."""

    probabilities: Floats
    gap: float
    objective: float
    iterations: int
    seconds: float


def objective(features: Floats, costs: Floats, regulariser: float, law: Floats) -> float:
    """`c'p - log det(Phi' diag(p) Phi + lambda I)`."""
    information = features.T @ (law[:, None] * features) + regulariser * np.eye(features.shape[1])
    return float(costs @ law - np.linalg.slogdet(information)[1])


def frank_wolfe(
    features: Floats,
    costs: Floats,
    regulariser: float,
    *,
    tolerance: float,
    seconds: float = 20.0,
    iterations: int = 1_000_000,
) -> Outcome:
    """Minimise over the simplex until the gap, the time or the number of iterations is reached.

    Each step goes towards the best vertex or away from the worst one in use, whichever promises more, by the length
    that self-concordance guarantees to descend: slope / (e (slope + e)), with e the local norm of the direction.
    """
    begun = time.perf_counter()
    count, rank = features.shape
    law = np.full(count, 1.0 / count)
    steps = 0
    while True:
        information = features.T @ (law[:, None] * features) + regulariser * np.eye(rank)
        inverse = np.linalg.inv(information)
        images = features @ inverse
        gradient = costs - np.einsum("ij,ij->i", images, features)
        mean = float(law @ gradient)
        best = int(gradient.argmin())
        gap = mean - float(gradient[best])
        if gap <= tolerance or steps == iterations or time.perf_counter() - begun > seconds:
            break
        steps += 1
        used = np.flatnonzero(law)
        worst = int(used[gradient[used].argmax()])
        away = float(gradient[worst]) - mean
        vertex, slope, longest = best, gap, 1.0
        if away > gap and law[worst] < 1.0:
            vertex, slope, longest = worst, away, float(law[worst] / (1.0 - law[worst]))
        sign = 1.0 if vertex == best and longest == 1.0 else -1.0
        # d'Hd for d = +-(e_i - p): tr((S^-1 (phi phi' - M))^2) with S^-1 M = I - lambda S^-1.
        own = float(images[vertex] @ features[vertex])
        local = own**2 - 2.0 * (own - regulariser * float(images[vertex] @ images[vertex]))
        local += rank - 2.0 * regulariser * float(np.trace(inverse)) + regulariser**2 * float((inverse**2).sum())
        norm = float(np.sqrt(max(local, 1e-300)))
        step = min(longest, slope / (norm * (slope + norm)))
        law *= 1.0 - sign * step
        law[vertex] += sign * step
        if step == longest and sign < 0:
            law[vertex] = 0.0
        law = np.maximum(law, 0.0)
        law /= law.sum()
    return Outcome(law, gap, objective(features, costs, regulariser, law), steps, time.perf_counter() - begun)
