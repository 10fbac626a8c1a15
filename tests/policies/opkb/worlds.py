"""Arms, rewards and a loop of ask and tell for the tests of CalibratedOPKB."""

import json

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from driftbandits import ArmSet

SIZE = 12
MEANS = 0.5 * np.sin(np.linspace(0, 5, SIZE))
MODES = ("practical", "theory")


def hidden_best(arm):
    means = MEANS.copy()
    means[arm] = 0.9
    return means


def line(size=SIZE, length_scale=0.2, **settings):
    return ArmSet(np.linspace(0, 1, size)[:, None], RBF(length_scale), **settings)


def reward_of(policy, choice, means, noise, seed):
    """A reward that depends on the round alone, so that copies of a policy meet the same world."""
    low, high = policy.reward_range
    draw = np.random.default_rng([seed, choice.id]).standard_normal()
    return float(np.clip(means[choice.arm] + noise * draw, low, high))


def play(policy, rounds, *, means=MEANS, noise=0.1, seed=0):
    """Ask and tell; gives the decisions."""
    choices = []
    for _ in range(rounds):
        choice = policy.ask()
        policy.tell(choice.id, reward_of(policy, choice, means, noise, seed))
        choices.append(choice)
    return choices


def as_text(policy, *without):
    def plain(value):
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if key not in without}
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value

    return json.dumps(plain(policy.state_dict()), sort_keys=True)


def to_look(policy):
    """Until a bad arm was played, pays 0.9 from then on, and has been played alone once; gives the arm."""
    play(policy, 300)
    for _ in range(3000):
        choice = policy.ask()
        surprises = choice.law >= 0 and MEANS[choice.arm] < 0
        policy.tell(choice.id, 0.9 if surprises else float(MEANS[choice.arm]))
        if surprises:
            play(policy, 1, means=hidden_best(choice.arm), seed=1)
            return choice.arm
    pytest.fail("no bad arm was played")


# What a policy does not show, for the tests that compare it with a slow twin or with the formulas.


def epoch_of(policy):
    return policy._epoch


def levels_of(policy):
    return policy._levels


def belief_of(policy):
    return policy._surrogate


def detector_of(policy):
    return policy._detector


def look_of(policy):
    return policy._probes.probe
