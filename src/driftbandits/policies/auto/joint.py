"""Several rewards taken in at once: what one after the other would do to the beliefs, in one step.

Drifting hypotheses forget between the rewards, and a residual beyond `shrunk_beyond` deviations is shrunk before the
next is looked at, as in `Beliefs.observe`. Only the estimate of the noise stands still until all are in.

The rewards are of few arms, often of one, so that all that happens is in few directions: what the prior, and what was
learned, say of these arms, and the level. Everything is computed in these, and read in the coordinates at the end.

symbol  name      shape        meaning
n, k, u                        hypotheses, rewards, different arms among them
p_i     elapsed   (k,)         rounds until reward i; all have passed at the end
g       root      (n,)         sqrt(1 - rate), what a round leaves of a mean
B       basis     (n, b, R)    prior and learned columns of the u arms, and that of the level: b = 2 u + 1
S_i                            covariance of the coordinates at reward i, had none of these rewards come
c_i     mixing    (n, k, b)    S_i h_i = B' c_i, covariance of the coordinates then with reward i; h_i reads its arm
K                 (n, k, k)    covariance of the rewards: g^(p_i - p_j) h_i' B' c_j for j <= i, the noise where i = j
L       factor    (n, k, k)    K = L L'
e       scores    (n, k)       L^-1 (y - expected): each residual given the rewards before, in its own deviations
M       steps     (n, k, b)    L^-1 g^(p_k - p_i) c_i
W                 (n, k, R)    M B: the mean moves by W' e, the covariance by -W' W = -(R B)' (R B) where M = Q R
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftbandits.policies.auto.beliefs import LEAST_VARIANCE, Beliefs
from driftbandits.policies.auto.priors import LEVEL_VARIANCE
from driftbandits.types import Floats, Ints

_LARGE = 1e16  # beyond the squares of all scores: rewards of at most 1e6 over noise of at least 1e-3


class Joint(NamedTuple):
    """What rewards did to every hypothesis; see above."""

    likelihood: Floats  # (n, k), log, of each reward given those before
    factor: Floats
    scores: Floats
    steps: Floats
    basis: Floats
    noise: Floats  # (n,), the variance that was taken for that of the noise


def observe_all(beliefs: Beliefs, arms: Ints, passed: Ints, rewards: Floats) -> Joint:
    """Take in the rewards of these arms; before each of them so many rounds pass. Shapes (k,)."""
    elapsed = passed.cumsum()
    left = _left(beliefs.rate[: beliefs.count], int(elapsed[-1]))
    directions = _directions(beliefs, arms)
    mixing = _mixing(beliefs, directions.places, np.square(left[:, elapsed]))
    noise = beliefs.noise[: beliefs.count].copy()
    covariance = np.matmul(directions.at_arms, mixing.swapaxes(1, 2))
    covariance *= left[:, np.abs(elapsed[:, None] - elapsed)]
    diagonal = np.einsum("nii->ni", covariance)
    diagonal[:] = np.maximum(diagonal, LEAST_VARIANCE) + noise[:, None]
    residuals = rewards - directions.expected * left[:, elapsed]
    mixing *= left[:, elapsed[-1] - elapsed][:, :, None]
    factor, solved = _factored(covariance, np.concatenate([residuals[:, :, None], mixing], axis=2))
    raw = scores = solved[:, :, 0].copy()
    steps, basis = solved[:, :, 1:], directions.basis
    if beliefs.units is None and np.abs(scores).max() > beliefs.shrunk_beyond:
        raw, scores = _shrunk(factor, residuals, beliefs.shrunk_beyond)
    deviations = np.einsum("nii->ni", factor)
    likelihood = _likelihood(beliefs, rewards, deviations, raw)
    shift = np.matmul(np.matmul(scores[:, None], steps), basis)[:, 0]
    fewest = np.linalg.qr(steps, mode="r") if len(arms) > basis.shape[1] else steps  # as many terms say the same
    beliefs.move_all(int(elapsed[-1]), shift, np.matmul(fewest, basis))
    if beliefs.units is None and beliefs.known_noise is None:
        beliefs.learn_noise_of_all(np.square(deviations), deviations * scores)
    return Joint(likelihood, factor, scores, steps, basis, noise)


def _factored(matrix: Floats, right: Floats) -> tuple[Floats, Floats]:
    """L with L L' = matrix, and L^-1 right, in one go: below L, the factor of the larger matrix has (L^-1 right)'.

    What stands in the larger one's last corner does not touch them; it only has to be large enough for a factor.
    """
    n, k, columns = right.shape
    larger = np.zeros((n, k + columns, k + columns))
    larger[:, :k, :k] = matrix
    larger[:, k:, :k] = right.swapaxes(1, 2)  # the upper half is not read
    np.einsum("nii->ni", larger)[:, k:] = _LARGE
    whole = np.linalg.cholesky(larger)
    return whole[:, :k, :k], whole[:, k:, :k].swapaxes(1, 2)


def _left(rate: Floats, rounds: int) -> Floats:
    """g^p for p = 0 to `rounds`, shape (n, rounds + 1)."""
    return np.exp(0.5 * np.log1p(-rate)[:, None] * np.arange(rounds + 1))


class _Directions(NamedTuple):
    """In what directions rewards of these arms move the beliefs."""

    places: Ints  # (k,), of each reward's arm among the different ones
    basis: Floats  # B
    at_arms: Floats  # (n, k, b), h_i' B'
    expected: Floats  # (n, k), of the arms when the beliefs were last moved


def _directions(beliefs: Beliefs, arms: Ints) -> _Directions:
    n, mean, rows = beliefs.count, beliefs.mean[: beliefs.count], beliefs.priors.rows
    kind, learned = beliefs.kind[:n], beliefs.learned[:n]
    recent = beliefs.recent[:n, : beliefs.gathered]
    distinct = list(dict.fromkeys(arms.tolist()))
    u = len(distinct)
    places = np.array([distinct.index(arm) for arm in arms.tolist()])
    basis = np.zeros((n, 2 * u + 1, beliefs.priors.width))
    if rows is None:
        basis[:, :u] = beliefs.priors.prior[kind[:, None], distinct]
        basis[:, u:-1] = learned[:, distinct] + np.matmul(recent[:, :, distinct].swapaxes(1, 2), recent)
        basis[:, -1] = LEVEL_VARIANCE
        return _Directions(places, basis, basis[:, :, arms].swapaxes(1, 2), mean[:, arms])
    read = np.stack([rows.one(kind, arm) for arm in distinct], axis=1)
    basis[:, :u] = read  # their prior is the identity
    basis[:, u:-1] = np.matmul(read, learned) + np.matmul(np.matmul(read, recent.swapaxes(1, 2)), recent)
    basis[:, -1, -1] = read[:, 0, -1]  # the same for all arms
    at_arms, expected = np.matmul(read, basis.swapaxes(1, 2)), np.matmul(read, mean[:, :, None])[:, :, 0]
    return _Directions(places, basis, at_arms[:, places], expected[:, places])


def _mixing(beliefs: Beliefs, places: Ints, kept: Floats) -> Floats:
    """c, where `kept`, shape (n, k), is left at each reward of what was known."""
    n, k, u = beliefs.count, len(places), int(places.max()) + 1
    mixing, rewards = np.zeros((n, k, 2 * u + 1)), np.arange(k)
    mixing[:, rewards, places] = beliefs.breadth[:n, None] * kept + (1.0 - kept)
    mixing[:, rewards, u + places] = -beliefs.fade[:n, None] * kept
    mixing[:, :, -1] = beliefs.level[:n, None] * kept
    return mixing


def _shrunk(factor: Floats, residuals: Floats, beyond: float) -> tuple[Floats, Floats]:
    """Scores before and after shrinking, where each is found after those before it were shrunk."""
    raw, scores = np.empty_like(residuals), np.empty_like(residuals)
    for i in range(residuals.shape[1]):
        known = np.einsum("nj,nj->n", factor[:, i, :i], scores[:, :i])
        raw[:, i] = (residuals[:, i] - known) / factor[:, i, i]
        scores[:, i] = np.clip(raw[:, i], -beyond, beyond)
    return raw, scores


def _likelihood(beliefs: Beliefs, rewards: Floats, deviations: Floats, scores: Floats) -> Floats:
    """Log density of each reward given those before, as `Beliefs.observe` has it."""
    if beliefs.units is not None:
        rates = beliefs.units.rates(rewards - deviations * scores)
        return np.where(rewards > 0.0, np.log(rates), np.log1p(-rates))
    return beliefs.likelihood(np.square(scores), np.square(deviations), beliefs.freedom(len(rewards)))
