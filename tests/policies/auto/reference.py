"""The parts of AutoBandit on small problems, and what they ought to compute, by matrices over all rewards."""

import copy
import math
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from driftbandits import ArmSet
from driftbandits.policies.auto import hypotheses as priors_module
from driftbandits.policies.auto.beliefs import TERMS_GATHERED, Beliefs
from driftbandits.policies.auto.echoes import MODELS
from driftbandits.policies.auto.hypotheses import Priors
from driftbandits.policies.auto.mixture import Mixture


class Told(NamedTuple):
    """A reward and the round it belongs to."""

    round: int
    arm: int
    reward: float


def line(size=10, scale=0.2):
    return ArmSet(np.linspace(0.0, 1.0, size)[:, None], RBF(scale))


def plane(size=4):
    """24 arms on a plane: a linear kernel, of rank 2."""
    return ArmSet(np.random.default_rng(3).uniform(-1, 1, (6 * size, 2)), {"name": "linear"})


def given(arms, rank=100):
    return Priors(arms, auto=False, rank=rank)


def in_arm_coordinates(priors):
    """The same priors with every arm its own coordinate."""
    direct = copy.copy(priors)
    level = priors_module.LEVEL_VARIANCE
    priors_of_arms = [
        np.pad(covariance_of(priors, kind), (0, 1), constant_values=level) for kind in range(priors.count)
    ]
    direct.prior = np.array(priors_of_arms)
    direct.rows, direct.direct, direct.width = None, True, direct.prior.shape[1]
    return direct


def covariance_of(priors, kind):
    """Prior covariance of all arms, from the features: signal K + level."""
    signals = np.repeat(priors_module.SIGNAL_VARIANCES, priors.count // len(priors_module.SIGNAL_VARIANCES))
    phi = priors._features[kind]
    return signals[kind] * phi @ phi.T + priors_module.LEVEL_VARIANCE


def root_of(covariance):
    """Features with this Gram matrix."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))


WHITE_ALONE = MODELS[:1]  # of the noise


def exact(priors, rates, *, noise, models=WHITE_ALONE):
    """Beliefs and mixture, one hypothesis per rate and prior, with known noise and nothing shrunk; 0 never forgets."""
    drifting, slots = tuple(rate for rate in rates if rate), int(0.0 in rates)
    rows = Mixture.capacity(priors.count, rates=drifting, slots=slots, models=models)
    beliefs = Beliefs(priors, rows, known_noise=noise)
    mixture = Mixture(beliefs, rates=drifting, slots=slots, models=models)
    mixture.start(0)
    return beliefs, mixture


def take_in(beliefs, arm, reward):
    """What a reward does, multiplied out when it must be."""
    step = beliefs.observe(beliefs.forecast(arm), reward)
    if beliefs.gathered == TERMS_GATHERED:
        beliefs.flush()
    return step


def some_rewards(arms, number, *, seed=0, gaps=True):
    """Rewards of random arms about a smooth function; rounds go on by 1 or by several."""
    rng = np.random.default_rng(seed)
    now, told = -1, []
    for _ in range(number):
        now += int(rng.choice([1, 1, 1, 2, 9])) if gaps else 1
        arm = int(rng.integers(arms))
        told.append(Told(now, arm, float(0.5 * np.sin(arm) + 0.2 * rng.standard_normal())))
    return told


def play_in(beliefs, told):
    """Take in all of `told`, each at its round; gives the steps."""
    steps, now = [], -1
    for item in told:
        beliefs.pass_time(item.round - now)
        now = item.round
        steps.append(take_in(beliefs, item.arm, item.reward))
    return steps


def covariance_of_rewards(kernel, told, *, rate, noise):
    rounds, arms = np.array([t.round for t in told]), [t.arm for t in told]
    decay = (1.0 - rate) ** (np.abs(rounds[:, None] - rounds) / 2.0)
    return kernel[np.ix_(arms, arms)] * decay + noise * np.eye(len(arms))


def regression(kernel, told, *, rate, noise):
    """Mean and covariance of all arms at the round of the last reward, by one linear solve."""
    decay = (1.0 - rate) ** ((told[-1].round - np.array([t.round for t in told])) / 2.0)
    cross = kernel[[t.arm for t in told]] * decay[:, None]
    solved = np.linalg.solve(covariance_of_rewards(kernel, told, rate=rate, noise=noise), cross)
    return solved.T @ np.array([t.reward for t in told]), kernel - cross.T @ solved


def log_evidence(kernel, told, *, rate, noise):
    """Log density of all rewards together."""
    rewards = np.array([t.reward for t in told])
    covariance = covariance_of_rewards(kernel, told, rate=rate, noise=noise)
    return -0.5 * (
        rewards @ np.linalg.solve(covariance, rewards)
        + np.linalg.slogdet(covariance)[1]
        + len(rewards) * math.log(2 * math.pi)
    )
