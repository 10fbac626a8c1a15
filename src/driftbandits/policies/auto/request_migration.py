"""New arms where requests have contexts: what the hypotheses say of them, in coordinates of arms and requests.

symbol  name   shape     meaning
A       arms   (p', p)   from the old features of the arms to the new ones: a rotation, up to what is left out
c       scale            of the features of requests, old over new: the same features, perhaps fewer of them
T       turn   (R', R)   A on g, c on m, A x c on h, 1 on the level: f(c, a) of kept arms stays
"""

from __future__ import annotations

import numpy as np

from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.auto.arm_migration import MigratedHypotheses, rows_in_old_features
from driftbandits.policies.auto.beliefs import Beliefs
from driftbandits.policies.auto.mixture import Mixture
from driftbandits.policies.auto.request_priors import RequestPriors
from driftbandits.types import Floats

_LEAST_SINGULAR = 1e-10


def migrate_request_hypotheses(
    beliefs: Beliefs, mixture: Mixture, old: RequestPriors, new: RequestPriors, change: ArmsChange
) -> MigratedHypotheses | None:
    """What the hypotheses believe of the new arms; None if none of them has a prior there any more."""
    state, weights = beliefs.export(), mixture.export()
    names = {(model, scale): kind for kind, (model, scale) in enumerate(new.names)}
    kinds = np.array([names.get(name, -1) for name in old.names])
    rows = np.flatnonzero(kinds[state["kind"]] >= 0)
    steady = rows[state["rate"][rows] == 0.0]
    if not len(steady):
        return None
    turns = {k: _turn(old, new, k, int(kinds[k]), change) for k in np.unique(state["kind"][rows]).tolist()}
    moved = [_moved(beliefs, row, turns[int(state["kind"][row])]) for row in rows.tolist()]
    kept = {name: value[rows] if isinstance(value, np.ndarray) else value for name, value in state.items()}
    kept["mean"], kept["learned"] = (np.array(part) for part in zip(*moved, strict=True))
    kept["recent"], kept["with_mood"] = np.zeros((len(rows), 0, new.width)), np.zeros((len(rows), new.width))
    kept.update(kind=kinds[state["kind"][rows]], count=len(rows), gathered=0)
    log_weight = weights["log_weight"][rows]
    places = np.full(len(state["kind"]), -1, dtype=np.int64)
    places[rows] = np.arange(len(rows))
    return MigratedHypotheses(kept, {**weights, "log_weight": log_weight - log_weight.max()}, kinds, places)


def _turn(old: RequestPriors, new: RequestPriors, kind: int, new_kind: int, change: ArmsChange) -> Floats:
    features = old.features(kind)
    rows = rows_in_old_features(features, old.length_scales[kind], change, old.arm_rank)[:, : features.shape[1]]
    left, values, right = np.linalg.svd(
        np.linalg.pinv(new.features(new_kind), rcond=_LEAST_SINGULAR) @ rows, full_matrices=False
    )
    arms = (left * np.minimum(values, 1.0)) @ right
    before, after = old.requests[kind], new.requests[new_kind]
    shared = min(before.size, after.size)
    request = np.zeros((after.size, before.size))
    if shared:
        request[:shared, :shared] = np.eye(shared) * min(after.scale / before.scale, 1.0)
    p, q, r, s = arms.shape[1], arms.shape[0], before.size, after.size
    turn = np.zeros((new.width, old.width))
    turn[:q, :p] = arms
    turn[q : q + s, p : p + r] = request
    turn[q + s : q + s + q * s, p + r : p + r + p * r] = np.kron(arms, request)
    turn[-1, -1] = 1.0
    return turn


def _moved(beliefs: Beliefs, row: int, turn: Floats) -> tuple[Floats, Floats]:
    """Mean, and what was learned, of one hypothesis in the new coordinates; its recent terms are multiplied out."""
    breadth, level, fade = (float(part[row]) for part in (beliefs.breadth, beliefs.level, beliefs.fade))
    covariance = turn @ beliefs.covariance(row) @ turn.T
    covariance += breadth * (np.eye(len(turn)) - turn @ turn.T)
    prior = breadth * np.eye(len(turn))
    prior[-1, -1] += level
    return turn @ beliefs.mean[row], (prior - 0.5 * (covariance + covariance.T)) / fade
