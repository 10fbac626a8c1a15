"""How MASTER and BOB find a base by its name.

Exp3 and Exp3.P over a few options, against exact arithmetic.
"""

from decimal import Decimal, getcontext

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import InputError
from driftbandits.policies.optimistic import OptimisticPolicy
from driftbandits.policies.rivals.nested import Exp3, find_base


def mine(name, *parents):
    return type(name, parents, {})


@pytest.mark.parametrize("name", db.POLICIES)
def test_every_policy_of_the_library_is_found(name):
    assert find_base(name, db.Policy) is db.POLICIES[name]


def test_a_policy_of_the_library_comes_before_one_of_yours():
    other = mine("GPUCB", db.GPUCB)
    assert find_base("GPUCB", OptimisticPolicy) is db.GPUCB
    assert find_base(other, OptimisticPolicy) is other


def test_of_two_of_your_own_the_later_is_found():
    classes = [mine("TwiceDefined", db.GPUCB) for _ in range(2)]
    assert find_base("TwiceDefined", OptimisticPolicy) is classes[1]


def test_a_policy_of_another_kind_is_refused():
    for base in ("OPKB", db.OPKB):
        with pytest.raises(InputError, match="a class of OptimisticPolicy or its name"):
            find_base(base, OptimisticPolicy)


def exact_run(size, rounds, choices, rewards, *, cautious, failure_probability="0.01"):
    """Exp3 and Exp3.P with plain weights, as printed, in sixty digits; the laws before every round."""
    getcontext().prec = 60
    m, n, e = Decimal(size), Decimal(rounds), Decimal(1).exp()
    if cautious:
        gamma = min(Decimal("0.6"), 2 * (Decimal("0.6") * m * m.ln() / n).sqrt())
        alpha = 2 * (m * n / Decimal(failure_probability)).ln().sqrt()
        weights = [(alpha * gamma / 3 * (n / m).sqrt()).exp()] * size
    else:
        gamma = min(Decimal(1), (m * m.ln() / ((e - 1) * n)).sqrt())
        weights = [Decimal(1)] * size
    for chosen, reward in zip(choices, rewards, strict=True):
        law = [(1 - gamma) * w / sum(weights) + gamma / m for w in weights]
        yield law
        x = [Decimal(reward) / law[j] if j == chosen else Decimal(0) for j in range(size)]
        if cautious:
            step = [gamma / (3 * m) * (x[j] + alpha / (law[j] * (m * n).sqrt())) for j in range(size)]
        else:
            step = [gamma * x[j] / m for j in range(size)]
        weights = [w * s.exp() for w, s in zip(weights, step, strict=True)]


@pytest.mark.parametrize("learner", ["exp3", "exp3p"])
def test_weights_agree_with_sixty_digits(learner):
    rng = np.random.default_rng(0)
    size, rounds = 5, 400
    choices, rewards = rng.integers(0, size, rounds).tolist(), rng.random(rounds).tolist()
    mine = Exp3(size, rounds=rounds, learner=learner)
    exact = exact_run(size, rounds, choices, rewards, cautious=learner == "exp3p")
    for law, chosen, reward in zip(exact, choices, rewards, strict=True):
        assert np.abs(mine.probabilities - np.array([float(p) for p in law])).max() < 1e-13
        mine.update(chosen, reward)


def test_a_constant_added_to_all_log_weights_changes_nothing():
    learner = Exp3(4, rounds=100)
    learner.update(2, 0.7)
    law = learner.probabilities
    learner.log_weights += 300.0
    assert np.abs(learner.probabilities - law).max() < 1e-13
    learner.update(1, 0.0)
    assert learner.log_weights.max() == 0.0


@pytest.mark.parametrize("learner", ["exp3", "exp3p"])
def test_weights_do_not_overflow(learner):
    mine = Exp3(3, rounds=20, learner=learner)
    for _ in range(20_000):
        mine.update(0, 1.0)
    assert np.isfinite(mine.log_weights).all()
    assert mine.probabilities.sum() == pytest.approx(1.0)


def test_a_single_option_is_certain():
    learner = Exp3(1, rounds=10)
    learner.update(0, 1.0)
    assert learner.probabilities.tolist() == [1.0]
