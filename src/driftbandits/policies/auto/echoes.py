"""What is transient and what lasts: three models of what a reward has beside its arm's lasting worth.

Part of a bad hour lies over the next hour too. Where noise is taken to be independent from reward to reward, such
spells look like changes that fade, and everything is explored again and again. So hypotheses differ in this, too:

- white: independent noise alone.
- mood: a level common to all arms that comes and goes, beside white noise. It fades by rho per round towards 0, about
  which it has c times the variance of the noise. Rewards are f(a) + z + noise; decisions care about f alone, as z is
  the same for all.
- own: noise of each arm that fades by itself by rho per round.

symbol  name       shape  meaning
z       mood       (n,)   expected; its variance is `mood_variance`, its covariance with coordinates `with_mood`, (n, R)
y, t                      a reward of an arm, and its round; y', t' the last one of the same arm before it
q       echo       (n,)   rho^(t - t') for own noise: the share of that reward's noise that is left in this one; 0
                          otherwise, and where t' lies before the birth of the hypothesis
b                         variance of the noise; y - q y' is (1 - q) f(a) and fresh noise of variance b (1 - q^2)

Both are exact where f stands still between rewards; likelihoods are densities of y whatever the model, so comparable.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftbandits.state.declared import Declared, array
from driftbandits.types import Floats, Ints


class Model(NamedTuple):
    """A model of the noise: what is left after a round, the variance of the mood over that of the noise, and the weight
    of the model at first.
    """

    rho: float = 0.0
    mood: float = 0.0
    weight: float = 1.0


WHITE = 0
MODELS = (
    Model(weight=0.7),
    *(Model(rho, mood=ratio, weight=0.05) for rho, ratio in ((0.85, 0.25), (0.6, 4.0), (0.9, 4.0))),
    *(Model(rho, weight=0.05) for rho in (0.6, 0.95)),
)
OWN = next(number for number, model in enumerate(MODELS) if model.rho and not model.mood)  # the first of own noise
MOODS = np.array([model.mood for model in MODELS])
NEW_MOODS = np.array([model.mood * (1.0 - model.rho**2) for model in MODELS])  # what comes to them in a round
FADES = np.array([model.rho if model.mood else 0.0 for model in MODELS])  # of moods
_RHOS = np.array([0.0 if model.mood else model.rho for model in MODELS])  # of own noise
NEVER = -1  # round of a reward that there was not


class Before(NamedTuple):
    """The round of a reward, and the last reward of its arm before it."""

    now: int
    round: int
    reward: float


NOTHING_BEFORE = Before(0, NEVER, 0.0)


def shares(models: Ints, births: Ints, befores: Before | Floats) -> Floats:
    """q for hypotheses with these models and births, (n,), of a reward, or of several: rows (k, 3), then (n, k)."""
    now, then, _ = np.atleast_2d(befores).T
    rho = np.where(then >= births[:, None], _RHOS[models][:, None], 0.0)
    return np.asarray(rho ** np.maximum(now - then, 1.0))


class Memory(Declared):
    """The last reward of every arm.

    >>> memory = Memory(2)
    >>> memory.tell(0, 5, 0.3)
    >>> memory.before(0, 7), memory.before(1, 7)
    (Before(now=7, round=5, reward=0.3), Before(now=7, round=-1, reward=0.0))
    """

    def __init__(self, arms: int) -> None:
        self._rounds: Ints = np.full(arms, NEVER)
        self._rewards: Floats = np.zeros(arms)

    def before(self, arm: int, now: int) -> Before:
        """What was told before a reward of `arm` in round `now`."""
        return Before(now, self._rounds.item(arm), self._rewards.item(arm))

    def tell(self, arm: int, now: int, reward: float) -> None:
        """Remember a reward of round `now`, unless a later one of the arm is known."""
        if now > self._rounds.item(arm):
            self._rounds[arm], self._rewards[arm] = now, reward

    def carried(self, source: Ints) -> Memory:
        """The same where arm a was source[a] before, -1 if it is new."""
        moved = Memory(len(source))
        kept = source >= 0
        moved._rounds[kept], moved._rewards[kept] = self._rounds[source[kept]], self._rewards[source[kept]]
        return moved

    saved = (array("rounds", within=(NEVER, "rounds")), array("rewards", within=(-1e6, 1e6)))
