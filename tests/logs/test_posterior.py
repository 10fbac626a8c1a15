import numpy as np
import pytest

from driftbandits.logs import posterior
from driftbandits.logs.posterior import Hypothesis
from driftbandits.logs.regression import bin_rewards
from tests.logs.making import logged, moving_means


@pytest.fixture(scope="module")
def bins():
    return bin_rewards(logged(moving_means("drift", 120, 3), 0), most=12)


FEATURES = np.array([[1.0, 0.0, 0.7], [0.6, 0.8, 0.7], [0.0, 1.0, 0.7]])
KINDS = [
    Hypothesis("x", FEATURES, 0.0, 2.0),
    Hypothesis("x", FEATURES, 0.01, 0.5),
    Hypothesis("x", FEATURES, 0.0, 2.0, fresh=(4, 9)),
]


def dense(bins, hypothesis):
    """Prior covariance of f over all (bin, arm), from the definition, and the rows of it that were observed."""
    size, arms = len(bins), len(hypothesis.features)
    since = np.concatenate([[0], np.cumsum(bins.rows[:-1])])
    stretch = np.searchsorted(hypothesis.fresh, np.arange(size), side="right")
    together = (stretch[:, None] == stretch).astype(float)
    begun = np.array([since[[0, *hypothesis.fresh][k]] for k in stretch])
    walked = np.minimum(since[:, None], since) - begun[:, None]
    time = together * (hypothesis.start + hypothesis.rate * walked)
    prior = np.kron(time, hypothesis.features @ hypothesis.features.T)
    of_entry = np.repeat(np.arange(size), np.diff(bins.firsts))
    return prior, of_entry * arms + bins.cell


@pytest.mark.parametrize("hypothesis", KINDS, ids=lambda one: one.kind)
def test_filter_and_samples_agree_with_one_big_linear_system(bins, hypothesis):
    fitted = posterior.fit(bins, hypothesis)
    prior, seen = dense(bins, hypothesis)
    system = prior[np.ix_(seen, seen)] + np.diag(1 / bins.count)
    level = bins.count @ bins.mean / bins.count.sum()
    error = bins.mean - level
    within = bins.squares.sum() - (bins.count * bins.mean**2).sum()
    number = bins.count.sum()
    noise = (error @ np.linalg.solve(system, error) + within) / number
    assert fitted.noise == pytest.approx(noise, rel=1e-8)
    logs = np.linalg.slogdet(system)[1] + np.log(bins.count).sum() + number * np.log(noise)
    expected = -0.5 * logs - len(hypothesis.fresh) * np.log(len(bins))
    assert fitted.evidence == pytest.approx(expected, rel=1e-8)
    gain = prior[:, seen] @ np.linalg.inv(system)
    mean = (level + gain @ error).reshape(len(bins), -1)
    covariance = noise * (prior - gain @ prior[seen])
    drawn = posterior.sample(bins, fitted, np.random.default_rng(0), 4_000)
    deviation = np.sqrt(np.diag(covariance)).reshape(mean.shape)
    assert np.abs((drawn.mean(axis=0) - mean) / deviation).max() < 5 / np.sqrt(4_000)  # 36 values: fails 1 in 50,000
    flat = drawn.reshape(4_000, -1) - mean.ravel()
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.abs((flat.T @ flat / 4_000 - covariance) / scale).max() < 0.15


@pytest.mark.parametrize(("world", "kind"), [("still", "still"), ("switch", "switches"), ("drift", "drifts")])
def test_the_right_kind_of_world_has_the_weight(world, kind):
    log = logged(moving_means(world, 1_500, 4, seed=1), 0)
    bins = posterior.bins_of(log)
    fresh = [len(bins) // 2] if world == "switch" else []
    fitted = [posterior.fit(bins, one, keep=False) for one in posterior.hypotheses(log, fresh)]
    weights = posterior.weights_of(fitted)
    best = sum(w for w, one in zip(weights, fitted, strict=True) if one.hypothesis.kind == kind)
    assert best > 0.8
