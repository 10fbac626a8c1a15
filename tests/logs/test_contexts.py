"""What contexts would have earned: unbiased, with intervals that cover, and nothing won where there is nothing."""

import math

import numpy as np
import pytest

from driftbandits.logs import Log, advise
from driftbandits.logs.contexts import context_gain


def with_contexts(seed, *, strength, rows=2_000, flips=False, moves=0.0):
    """Three arms of a policy that prefers the first; the sign of x says which of the first two is better.

    In the middle what it says may turn around, and the third arm may become better by `moves`.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    law = np.array([0.5, 0.3, 0.2])
    arm = rng.choice(3, rows, p=law)
    late = np.arange(rows) >= rows // 2
    sign = np.where(late & flips, -x, x)
    means = 0.5 + np.column_stack([strength * sign, -strength * sign, moves * late])
    reward = means[np.arange(rows), arm] + rng.normal(0, 0.3, rows)
    columns = {"round": np.arange(rows), "arm": arm, "reward": reward, "probability": law[arm]}
    return Log.read({**columns, "context.x": x, "context.device": np.where(x > 1, "phone", "desk")}), means


@pytest.mark.statistical
def test_the_gain_is_what_the_worlds_say_and_its_interval_covers():
    """The best arm by the sign of x earns 0.2 E|x| more. 60 logs at 95 %: fewer than 52 covered has p < 0.01."""
    expected = 0.2 * math.sqrt(2 / math.pi)
    found = [context_gain(with_contexts(seed, strength=0.2)[0]) for seed in range(60)]
    error = np.array([one.gain - expected for one in found])
    assert abs(error.mean()) < 0.01
    assert sum(one.low < expected < one.high for one in found) >= 52
    assert all(one.low > 0 for one in found)


def test_it_is_found_where_what_contexts_say_turns_around():
    """What was learned before is wrong then, but it is forgotten."""
    found = [context_gain(with_contexts(seed, strength=0.2, flips=True)[0]) for seed in range(10)]
    assert all(one.low > 0 for one in found)


@pytest.mark.statistical
@pytest.mark.parametrize("moves", [0.0, 0.4])
def test_where_contexts_say_nothing_nothing_is_won(moves):
    """60 logs at 95 %: more than 6 said to win have p < 0.001 at one side of 2.5 %; nor is adapting taken for it."""
    found = [context_gain(with_contexts(seed, strength=0.0, moves=moves)[0]) for seed in range(60)]
    assert sum(one.low > 0 for one in found) <= 6
    assert abs(np.mean([one.gain for one in found])) < 0.01


def test_the_advice_says_it_beside_whether_adapting_pays(tmp_path):
    log, _ = with_contexts(0, strength=0.3)
    advice = advise(log, twins=2)
    assert advice.contexts.columns == ("x", "device")
    assert advice.contexts.words in advice.sentences()
    assert "Using the contexts would have earned 0.2" in repr(advice)
    advice.save(tmp_path / "page.html")
    assert "Using the contexts would have earned" in (tmp_path / "page.html").read_text()


def test_a_log_without_contexts_or_with_few_rows_says_nothing():
    log, _ = with_contexts(0, strength=0.3, rows=300)
    assert "500 rows" in context_gain(log).words
    assert math.isnan(context_gain(log).gain)
    plain = Log.read({"round": [0], "arm": ["a"], "reward": [1], "probability": [0.5]})
    assert context_gain(plain) is None
