"""Batching: uninformative rewards are collected, and several are learned in one step.

A step with several rewards does to the beliefs what one reward after the other would do.

Drifting hypotheses forget between the rewards, as in `Beliefs.observe`. Only the estimate of the noise stands still
until all are in. A reward may stand for several of its arm: their mean, with the weight of their number (`exposures`).

The rewards are of few arms, often of one, so that all that happens is in two directions per arm: what was known of it
when the first came, and its prior, to which a drifting hypothesis goes back. Everything is computed in these, and read
in the coordinates at the end. And it is computed as if means did not fade: where a hypothesis has kept a share of its
mean, rewards count as larger by that share, and so does their noise, and its world as wider by what it has forgotten.

symbol  name      shape        meaning
n, k, u                        hypotheses, rewards, different arms among them
q_i     kept      (n, k)       what is left at reward i of the covariance, of the mean its root
w_i     grown     (n, k)       (1 - q_i) / q_i, the multiple of the prior by which the world has grown until then
B       basis     (n, 2u, R)   covariances of the coordinates with each arm's reward: S before all this, then the prior
x_i               (n, k)       1 less the share of earlier noise of its arm in reward i (`echoes`), which is taken off
Z                 (n, k, 2u)   x_i at the arm of reward i, and w_i x_i at its prior: Z B is how rewards covary with all
K                 (n, k, k)    covariance of the rewards: x_j (Z B)_i at the arm of j, i <= j; noise / q_i / weight_i
L       factor    (n, k, k)    K = L L'
e       scores    (n, k)       L^-1 (y / root - expected): residuals given the rewards before, in their own deviations
M       steps     (n, k, 2u)   L^-1 Z, times the root of what is left at the end
W                 (n, k, R)    M B: the mean moves by W' e, the covariance by -W' W = -(T B)' (T B) where M' M = T' T

Which rewards wait for others, and for how long:

Most rewards are of an arm that is well known, and about what was expected of it. One such reward moves nothing that
a decision would show, and taking in several at once costs hardly more than one. So a reward waits where the leading
hypothesis knows its arm and is not surprised, until those waiting would narrow what is known by a twelfth. The better
an arm is known, the more of its rewards may wait. A reward of an arm not known well is learned at once, together with
those that wait. A surprise or a reward out of turn is learned by itself, after them. And hypotheses just born are soon
to be believed or not: the more weight they have, the fewer rewards wait.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftbandits import state as states
from driftbandits.policies.auto.beliefs import LEAST_VARIANCE, Beliefs, Reference
from driftbandits.policies.auto.echoes import NOTHING_BEFORE, Before
from driftbandits.state.declared import Declared, Value, count, listed, number
from driftbandits.types import Floats, Ints

_LARGE = 1e30  # beyond the squares of all scores: rewards of at most 1e6 over deviations of at least 1e-3
FEW_DIRECTIONS = 8
_LEAST_PIVOT = 1e-13  # of a direction's square, below which others say the same


class Joint(NamedTuple):
    """What rewards did to every hypothesis; see above."""

    likelihood: Floats  # (n, k), log, of each reward given those before
    root: Floats  # (n, k), of what was left of the mean at each reward
    factor: Floats
    scores: Floats
    steps: Floats
    basis: Floats
    noise: Floats  # (n, 1 or k), the variance that was taken for that of the fresh noise
    reads: Floats  # (1 or n, k), x


def observe_all(
    beliefs: Beliefs,
    arms: Ints,
    passed: Ints,
    rewards: Floats,
    weights: Floats | None = None,
    reference: Reference | None = None,
    befores: Floats | None = None,
) -> Joint:
    """Take in the rewards of these arms; before each of them so many rounds pass. Shapes (k,).

    With `weights`, chances are learned, and each reward is a mean over so many decisions of its arm. `befores` has a
    `Before` of each, (k, 3); without them all noise is new. No hypothesis may believe in moods.
    """
    elapsed = passed.cumsum()
    kept = beliefs.kept(elapsed)
    root = np.sqrt(kept)
    noise = beliefs.noise[: beliefs.count, None].copy()
    echo = None if befores is None else beliefs.echoes(befores)
    fresh: Floats | float = 1.0
    reads, told = np.ones((1, len(arms))), rewards[None]
    if weights is not None:
        noise = noise / weights
    elif echo is not None and befores is not None:
        reads, fresh, told = 1.0 - echo, 1.0 - echo * echo, rewards - echo * befores[:, -1]
        noise = noise * fresh
    directions = _directions(beliefs, arms, reads)
    residuals = told / root - directions.expected
    factor, scores, steps = _factored(directions, kept, noise, residuals)
    deviations = np.diagonal(factor, axis1=1, axis2=2) * root
    if weights is not None and beliefs.units is not None:
        variances = np.maximum(np.square(deviations) - noise, LEAST_VARIANCE)
        likelihood = beliefs.units.evidence_of_many(rewards - deviations * scores, variances, rewards, weights)
    else:
        likelihood = _likelihood(beliefs, rewards, deviations, scores, reference)
    basis = directions.basis
    shift = np.matmul(np.matmul(scores[:, None], steps), basis)[:, 0]
    fewest = _fewest(steps) if len(arms) > basis.shape[1] else steps  # as many terms say the same
    beliefs.move_all(int(elapsed[-1]), shift, np.matmul(fewest, basis))
    if beliefs.units is None and beliefs.known_noise is None:
        beliefs.learn_noise_of_all(noise, fresh, np.square(deviations), deviations * scores)
    return Joint(likelihood, root, factor, scores, steps, basis, noise, reads)


class _Directions(NamedTuple):
    """In what directions rewards of these arms move the beliefs."""

    places: Ints  # (k,), of each reward's arm among the different ones
    reads: Floats
    basis: Floats  # B
    at_arms: Floats  # (n, 2u, u), what they say of the arms
    expected: Floats  # (n, k), of each reward, when the beliefs were last moved


def _directions(beliefs: Beliefs, arms: Ints, reads: Floats) -> _Directions:
    numbers = arms.tolist()
    distinct = list(dict.fromkeys(numbers))
    places = np.array([distinct.index(arm) for arm in numbers])
    kind, mean, rows = beliefs.kind[: beliefs.count], beliefs.mean[: beliefs.count], beliefs.priors.rows
    u = len(distinct)
    basis = np.empty((len(kind), 2 * u, mean.shape[1]))
    for place, arm in enumerate(distinct):
        if rows is None or u <= FEW_DIRECTIONS:
            basis[:, place] = beliefs.column(arm)
        basis[:, u + place] = beliefs.priors.prior[kind, arm] if rows is None else rows.one(kind, arm)
    if rows is not None and u > FEW_DIRECTIONS:  # in one product of matrices, which is faster
        basis[:, :u] = beliefs.columns(basis[:, u:])
    if rows is None:
        return _Directions(places, reads, basis, basis[:, :, distinct], reads * mean[:, arms])
    reading = basis[:, u:].swapaxes(1, 2)  # their prior is the identity
    means = np.matmul(mean[:, None], reading)[:, 0, places]
    return _Directions(places, reads, basis, np.matmul(basis, reading), reads * means)


def _factored(directions: _Directions, kept: Floats, noise: Floats, residuals: Floats) -> tuple[Floats, Floats, Floats]:
    """L, e and M in one go: where K is bordered by r' and Z', the factor has (L^-1 r)' and (L^-1 Z)' below L.

    What stands in the last corner does not touch them; it only has to be large enough for a factor. The upper half is
    not read.
    """
    places, reads, at_arms = directions.places, directions.reads, directions.at_arms
    n, k = kept.shape
    u = at_arms.shape[2]
    grown = (1.0 - kept) / kept
    size = k + 1 + 2 * u
    matrix = np.zeros((n, size, size))
    if u == 1:
        matrix[:, :k, :k] = at_arms[:, :1] + at_arms[:, 1:] * grown[:, None]
    else:
        pairs = at_arms[:, :, places]  # (n, 2u, k)
        matrix[:, :k, :k] = (pairs[:, places] + pairs[:, u + places] * grown[:, :, None]).swapaxes(1, 2)
    matrix[:, :k, :k] *= reads[:, :, None] * reads[:, None]
    matrix[:, k, :k] = residuals
    steps = (places == np.arange(u)[:, None]) * reads[:, None] * np.sqrt(kept[:, -1])[:, None, None]
    matrix[:, k + 1 : k + 1 + u, :k] = steps
    matrix[:, k + 1 + u :, :k] = steps * grown[:, None]
    diagonal = matrix.reshape(n, -1)[:, :: size + 1]
    diagonal[:, :k] = np.maximum(diagonal[:, :k], LEAST_VARIANCE) + noise / kept
    diagonal[:, k:] = _LARGE
    whole = np.linalg.cholesky(matrix)
    return whole[:, :k, :k], whole[:, k, :k], whole[:, k + 1 :, :k].swapaxes(1, 2)


def _fewest(steps: Floats) -> Floats:
    """T, (n, 2u, 2u), upper triangular, with T' T = M' M: a Cholesky factor, where directions may say the same."""
    left: Floats = np.matmul(steps.swapaxes(1, 2), steps)
    factor: Floats = np.zeros_like(left)
    least = _LEAST_PIVOT * np.diagonal(left, axis1=1, axis2=2)
    for j in range(left.shape[1]):
        pivot = left[:, j, j]
        row = left[:, j, j:] * (1.0 / np.sqrt(np.where(pivot > least[:, j], pivot, np.inf)))[:, None]
        factor[:, j, j:] = row
        left[:, j + 1 :, j + 1 :] -= row[:, 1:, None] * row[:, None, 1:]
    return factor


def _likelihood(
    beliefs: Beliefs, rewards: Floats, deviations: Floats, scores: Floats, reference: Reference | None
) -> Floats:
    """Log density of each reward given those before, as `Beliefs.observe` has it."""
    if beliefs.units is not None:
        return beliefs.units.evidence(rewards - deviations * scores, rewards)
    totals = np.square(deviations)
    squares = np.square(scores) if reference is None else reference.squares(deviations * scores, totals)
    return beliefs.likelihood(squares, totals, beliefs.freedom(len(rewards)))


MOST_WAITING = 32  # rewards
MOST_DOUBTED = 0.15  # weight of hypotheses that are to be believed or not, times the rewards that wait meanwhile
LONGEST_GAP = 64  # rounds before a reward of which nothing was told, for it to wait
MOST_SAID = 0.08  # by all that wait: variances of what is expected of their arms, over that of the noise
NOISE_SAID = 1.0  # over the rewards behind the estimate of the noise, at least, by each: that stands still meanwhile
LARGEST_COORDINATE = 1e6  # of a reward, in whatever units are learned in


def read_befores(state: states.Reader, key: str, *_: Any) -> list[Before]:
    """What was told before every reward that waits; states of behaviour 8 and before do not have it."""
    rows = state.array(key, np.float64, (None, len(NOTHING_BEFORE))).tolist() if state.has(key) else []
    return [Before(int(now), int(then), reward) for now, then, reward in rows]


class RewardBatch(Declared):
    """Rewards that wait, in the order in which they will be learned."""

    def __init__(self) -> None:
        self._arms: list[int] = []
        self._passed: list[int] = []
        self._rewards: list[float] = []
        self._befores: list[Before] = []
        self._said = 0.0
        self._most = MOST_WAITING

    def allow(self, doubt: float) -> None:
        """Let at most so many wait from now on that hypotheses of weight `doubt` are weighed soon."""
        self._most = max(min(int(MOST_DOUBTED / max(doubt, 1e-9)), MOST_WAITING), 1)

    def __len__(self) -> int:
        return len(self._arms)

    def add(self, arm: int, passed: int, reward: float, said: float, before: Before = NOTHING_BEFORE) -> None:
        """Let a reward wait, before which `passed` rounds pass."""
        self._arms.append(arm)
        self._passed.append(passed)
        self._rewards.append(reward)
        self._befores.append(before)
        self._said += said

    @property
    def enough(self) -> bool:
        """Whether those waiting are to be learned now."""
        return self._said > MOST_SAID or len(self._arms) >= self._most

    def take(self) -> tuple[Ints, Ints, Floats, list[Before]]:
        """Arms, rounds passed before each, rewards, and what was told before; none waits any more."""
        taken = np.array(self._arms), np.array(self._passed), np.array(self._rewards), self._befores
        self._arms, self._passed, self._rewards, self._befores, self._said = [], [], [], [], 0.0
        return taken

    def renumbered(self, target: Ints) -> RewardBatch:
        """The same where arm a has the number target[a] now; rewards of arms that are gone, -1, are left out.

        Their rounds pass before the next; those after the last are few, and lost.
        """
        kept = RewardBatch()
        kept._said, kept._most = self._said, self._most
        between = 0
        for arm, passed, reward, before in zip(
            target[self._arms].tolist(), self._passed, self._rewards, self._befores, strict=True
        ):
            between += passed
            if arm >= 0:
                kept.add(arm, between, reward, 0.0, before)
                between = 0
        return kept

    # --- state --------------------------------------------------------------------------------------------------

    saved = (
        listed("arms", np.int64, None, within=(0, None)),
        listed("passed", np.int64, "arms", within=(1, MOST_WAITING * LONGEST_GAP)),
        listed("rewards", np.float64, "arms", within=(-LARGEST_COORDINATE, LARGEST_COORDINATE)),
        Value(
            "befores",
            lambda befores: np.array(befores, dtype=np.float64).reshape(-1, len(NOTHING_BEFORE)),
            read_befores,
        ),
        number("said", within=(0.0, MOST_SAID)),
        count("most", low=1, high=MOST_WAITING),
    )

    def _check_state(self, *, offered: int = 0, **known: Any) -> None:
        states.check(len(self._arms) < self._most and max(self._arms, default=0) < offered, "arms")
        if not self._befores:  # states of behaviour 8 and before
            self._befores = [NOTHING_BEFORE] * len(self._arms)
        states.check(len(self._befores) == len(self._arms), "befores")
