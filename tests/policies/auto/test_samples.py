"""Samples that follow the posterior have its moments; what is counted of them adds up.

Bounds are 6 standard errors of 20,000 samples: with other seeds a test would fail with probability below 1e-7.
"""

import numpy as np
import pytest

from driftbandits import ArmSet
from driftbandits.policies.auto import samples as module
from driftbandits.policies.auto.samples import REWARDS_TO_LAST, Samples
from driftbandits.seeding import stream
from tests.policies.auto.reference import exact, given, in_arm_coordinates, line, plane, some_rewards, take_in

NOISE = 0.02
MANY = 20_000


def sampled(priors, rates, *, number=8, seed=0):
    beliefs, mixture = exact(priors, rates, noise=NOISE)
    samples = Samples(beliefs, number, stream(seed, "samples"))
    samples.choose(mixture.weights(), anew=True)
    return beliefs, mixture, samples


def follow(beliefs, samples, told, now=-1):
    for item in told:
        beliefs.pass_time(item.round - now)
        samples.pass_time(item.round - now)
        now = item.round
        samples.follow(item.arm, take_in(beliefs, item.arm, item.reward))


def slot_of(samples, row=0):
    return samples.values[int(np.flatnonzero(samples.rows == row)[0])]


def few_points():
    """Nine arms at three points: told in features."""
    return ArmSet(np.tile([[0.0], [0.3], [1.0]], (3, 1)), {"name": "rbf", "length_scale": 0.3})


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("priors", [given(line(4)), given(few_points())], ids=["arms", "features"])
def test_moved_samples_have_the_moments_of_the_posterior(priors, rate, monkeypatch):
    """A large pool of drifts: 20,000 samples shall differ from each other."""
    monkeypatch.setattr(module, "_DRIFTS_PER_SAMPLE", 50)
    beliefs, _, samples = sampled(priors, (rate,), number=MANY)
    follow(beliefs, samples, some_rewards(samples.values.shape[2], 14))
    read = np.eye(priors.size, priors.width) if priors.rows is None else priors.rows.of(0)
    mean, covariance = read @ beliefs.mean[0], read @ beliefs.covariance(0) @ read.T
    own = covariance.diagonal()
    values = slot_of(samples)[1:]
    assert (np.abs(values.mean(axis=0) - mean) < 6 * np.sqrt(own / MANY)).all()
    errors = np.sqrt((np.outer(own, own) + covariance**2) / MANY)
    assert (np.abs(np.cov(values.T) - covariance) < 6 * errors + 1e-7).all()


@pytest.mark.parametrize("arms", [line(), plane()], ids=["arms", "features"])
@pytest.mark.parametrize("rate", [0.0, 0.02, 0.3])
def test_the_mean_row_is_the_mean(arms, rate):
    beliefs, _, samples = sampled(given(arms), (rate,))
    follow(beliefs, samples, some_rewards(len(arms), 150))
    np.testing.assert_allclose(slot_of(samples)[0], beliefs.reading(0)[0], atol=1e-9)


def test_the_mean_row_of_slow_drift_is_the_mean_when_drawn_anew():
    beliefs, mixture, samples = sampled(given(line()), (1e-3,))
    follow(beliefs, samples, some_rewards(10, 50))
    np.testing.assert_allclose(slot_of(samples)[0], beliefs.reading(0)[0], atol=0.05)
    samples.choose(mixture.weights(), anew=True)
    np.testing.assert_allclose(slot_of(samples)[0], beliefs.reading(0)[0], atol=1e-9)


def test_samples_drawn_anew_have_the_moments_of_the_posterior():
    beliefs, mixture, samples = sampled(given(line(4)), (1e-3,), number=MANY)
    follow(beliefs, samples, some_rewards(4, 10))
    samples.choose(mixture.weights(), anew=True)
    covariance = beliefs.covariance(0)[:-1, :-1]
    own = covariance.diagonal()
    errors = np.sqrt((np.outer(own, own) + covariance**2) / MANY)
    assert (np.abs(np.cov(slot_of(samples)[1:].T) - covariance) < 6 * errors + 1e-7).all()


def test_features_and_arms_have_the_same_mean():
    told = some_rewards(9, 60)
    means = []
    for priors in (given(few_points()), in_arm_coordinates(given(few_points()))):
        beliefs, mixture, samples = sampled(priors, (0.0, 0.1))
        follow(beliefs, samples, told)
        means.append(samples.mean(mixture.weights()))
    np.testing.assert_allclose(*means, atol=1e-9)


def test_the_mean_is_that_of_the_mixture():
    beliefs, mixture, samples = sampled(given(line()), (0.0, 0.1))
    follow(beliefs, samples, some_rewards(10, 30))
    weights = mixture.weights()
    assert len(samples.rows) == beliefs.count
    expected = sum(weight * beliefs.reading(row)[0] for row, weight in enumerate(weights))
    np.testing.assert_allclose(samples.mean(weights), expected, atol=1e-9)


def test_frequencies_are_how_often_an_arm_is_best():
    beliefs, mixture, samples = sampled(given(line()), (0.0, 0.1), number=50)
    follow(beliefs, samples, some_rewards(10, 30))
    weights, expected = mixture.weights(), np.zeros(10)
    for row, values in zip(samples.rows, samples.values, strict=False):
        for sample in values[1:]:
            expected[sample.argmax()] += weights[row] / 50
    np.testing.assert_allclose(samples.frequencies(weights), expected, atol=1e-12)
    assert samples.frequencies(weights).sum() == pytest.approx(1.0)


def test_a_mask_leaves_nothing_outside():
    beliefs, mixture, samples = sampled(given(line()), (0.0, 0.1))
    follow(beliefs, samples, some_rewards(10, 30))
    mask = np.arange(10) % 3 == 0
    law = samples.frequencies(mixture.weights(), mask)
    assert (law[~mask] == 0).all()
    assert law.sum() == pytest.approx(1.0)


def test_a_mask_that_takes_nothing_changes_nothing():
    _, mixture, samples = sampled(given(line()), (0.0, 0.1))
    every = samples.frequencies(mixture.weights(), np.ones(10, dtype=bool))
    np.testing.assert_array_equal(every, samples.frequencies(mixture.weights()))


def rewrite(beliefs, row):
    beliefs.write(row, kind=0, birth=7, noise=NOISE)


def test_samples_already_there_are_kept():
    beliefs, mixture, samples = sampled(given(line()), (0.0, 0.1))
    before = {int(row): samples.values[slot].copy() for slot, row in enumerate(samples.rows)}
    rewrite(beliefs, int(samples.rows[0]))
    samples.choose(mixture.weights(), anew=False)
    kept = [row for row in before if np.array_equal(slot_of(samples, row), before[row])]
    assert len(kept) == len(before) - 1


def test_hypotheses_written_over_are_missed():
    beliefs, mixture, samples = sampled(given(line()), (0.0, 0.1))
    assert not samples.lacking(mixture.weights())
    rewrite(beliefs, mixture.leader())
    assert mixture.leader() not in samples.rows
    assert samples.lacking(mixture.weights())


WRITES = {
    "write": rewrite,
    "copy": lambda beliefs, row: beliefs.copy(1 - row, row, birth=7, breadth=0.3, level=0.0, origin=2),
    "doubt": lambda beliefs, row: beliefs.doubt(row, 3),
    "keep": lambda beliefs, row: beliefs.keep(np.array([1 - row])),
}
READS = {
    "rows": lambda samples, weights: samples.rows,
    "values": lambda samples, weights: samples.values,
    "frequencies": lambda samples, weights: samples.frequencies(weights),
    "mean": lambda samples, weights: samples.mean(weights),
    "lacking": lambda samples, weights: samples.lacking(weights),
    "export": lambda samples, weights: samples.export()["values"],
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_samples_of_a_row_written_over_are_never_read(write, read):
    """Whatever is read next is the same for any samples of the row before, even for none that are numbers."""
    outcomes = []
    for spoiled in (False, True):
        beliefs, mixture, samples = sampled(given(line()), (0.0, 0.1))
        row = int(samples.rows[0])
        if spoiled:
            samples.values[0] = 1e6
        write(beliefs, row)
        with np.errstate(invalid="ignore"):  # where no row is left
            outcomes.append(read(samples, mixture.weights()))
        assert row not in samples.rows
    np.testing.assert_array_equal(*outcomes)


def test_samples_of_a_row_written_over_do_not_follow():
    beliefs, _, samples = sampled(given(line()), (0.0, 0.1))
    first, *others = samples.rows.tolist()
    rewrite(beliefs, first)
    follow(beliefs, samples, some_rewards(10, 5))
    assert samples.rows.tolist() == others
    for row in others:
        np.testing.assert_allclose(slot_of(samples, row)[0], beliefs.reading(row)[0], atol=1e-9)


def drift_bias(kind, rate, rounds):
    """Mean of many samples, in deviations of the prior, after drifting; it should be 0."""
    samples = sampled(given(line()), (rate,), number=32)[2]
    total = []
    for seed in range(200):
        samples._generator = stream(seed, "samples")
        samples.values[0] = 0.0
        for _ in range(rounds):
            samples.pass_time(1)
        total.append(samples.values[0, 1:].mean(axis=0))
    return np.mean(total, axis=0) / np.sqrt(samples._beliefs.priors.prior[kind].diagonal()[:-1])


def test_drift_has_no_direction():
    """Over half the rounds until samples are drawn anew, to a tenth of a deviation; the pool's own mean made it 0.3."""
    assert np.abs(drift_bias(0, 0.1, REWARDS_TO_LAST // 2)).max() < 0.1
