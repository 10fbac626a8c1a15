"""Each noise: its inverse distribution function against scipy.stats, support, moments, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from driftbandits.environments import Noise
from driftbandits.environments.noise import (
    BernoulliNoise,
    GaussianNoise,
    StudentTNoise,
    TruncatedGaussianNoise,
    UniformNoise,
)
from driftbandits.errors import InputError

LEVELS = np.concatenate([[2.0**-53, 1e-12, 1e-6], np.linspace(0.001, 0.999, 41), [1 - 1e-6, 1 - 2.0**-53]])
NOISES: list[Noise] = [
    GaussianNoise(0.1),
    TruncatedGaussianNoise(0.1),
    TruncatedGaussianNoise(2.0),
    UniformNoise(0.3),
    StudentTNoise(0.1, 5),
]
MEANS = (-0.8, -0.2, 0.0, 0.5, 0.95)


def _reference(noise: Noise, mean: float) -> stats.rv_continuous:
    if isinstance(noise, GaussianNoise):
        return stats.norm(mean, noise.sd)
    if isinstance(noise, TruncatedGaussianNoise):
        bound = (1 - abs(mean)) / noise.sd
        return stats.truncnorm(-bound, bound, loc=mean, scale=noise.sd)
    if isinstance(noise, UniformNoise):
        return stats.uniform(mean - noise.half_width, 2 * noise.half_width)
    assert isinstance(noise, StudentTNoise)
    return stats.t(noise.df, loc=mean, scale=noise.scale)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_rewards_are_quantiles(noise: Noise, mean: float) -> None:
    rewards = noise.sample(np.full(len(LEVELS), mean), LEVELS)
    reference = _reference(noise, mean)
    np.testing.assert_allclose(rewards[3:-2], reference.ppf(LEVELS[3:-2]), rtol=1e-9, atol=1e-9)
    # far out a rounding of the level moves a quantile visibly, so compare the levels
    np.testing.assert_allclose(reference.cdf(rewards), LEVELS, rtol=0, atol=1e-14)
    assert (np.diff(rewards) >= 0).all()


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_mean_and_deviation_are_those_of_the_distribution(noise: Noise, mean: float) -> None:
    reference = _reference(noise, mean)
    assert reference.mean() == pytest.approx(mean, abs=1e-12)
    np.testing.assert_allclose(noise.deviation(np.array([mean])), reference.std(), rtol=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("mean", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("noise", [*NOISES, BernoulliNoise()], ids=repr)
def test_moments_of_samples(noise: Noise, mean: float) -> None:
    # fixed seed; 18 means and 18 deviations at 4.5 sd, 7e-6 each: false alarm below 3e-4 in all
    n = 100_000
    means = np.full(n, mean)
    rewards = noise.sample(means, np.random.default_rng(11).random(n))
    sd = noise.deviation(means)[0]
    assert abs(rewards.mean() - mean) < 4.5 * sd / math.sqrt(n)
    squares = (rewards - mean) ** 2
    assert abs(squares.mean() - sd**2) <= 4.5 * squares.std() / math.sqrt(n) + 1e-15


@pytest.mark.parametrize("noise", [*NOISES, BernoulliNoise()], ids=repr)
def test_extreme_uniforms_give_finite_rewards_in_range(noise: Noise) -> None:
    means = np.array([0.0, 1e-9, 0.3, 0.5, 0.9, 1 - 1e-9])
    low, high = noise.range(float(means.min()), float(means.max()))
    for level in (0.0, 2.0**-53, 0.5, 1 - 2.0**-53):
        rewards = noise.sample(means, np.full(len(means), level))
        assert np.isfinite(rewards).all()
        assert (low <= rewards).all()
        assert (rewards <= high).all()


@pytest.mark.parametrize("noise", [*NOISES, BernoulliNoise()], ids=repr)
def test_one_at_a_time_equals_many_bit_for_bit(noise: Noise) -> None:
    rng = np.random.default_rng(4)
    means, levels = rng.uniform(0, 0.99, 500), rng.random(500)
    many = noise.sample(means, levels)
    single = [noise.sample(means[i : i + 1], levels[i : i + 1])[0] for i in range(500)]
    assert (many == single).all()


@pytest.mark.parametrize("sd", [0.01, 0.1, 1.0, 100.0])
def test_truncation_is_symmetric_about_the_mean(sd: float) -> None:
    noise = TruncatedGaussianNoise(sd)
    levels = np.arange(1, 128) / 128  # exact, and so is 1 - level
    for mean in (-0.999, -0.8, 0.0, 0.3, 0.8):
        means = np.full(len(levels), mean)
        below, above = noise.sample(means, levels) - mean, noise.sample(means, 1 - levels) - mean
        np.testing.assert_allclose(below, -above, rtol=1e-12, atol=1e-14)
        assert np.abs(below).max() <= 1 - abs(mean) + 1e-15
        assert np.abs(below + mean).max() <= 1.0


def test_ranges() -> None:
    assert GaussianNoise(0.1).range(-1, 1) == (-math.inf, math.inf)
    assert GaussianNoise(0.0).range(-0.5, 0.5) == (-0.5, 0.5)
    assert StudentTNoise(0.1).range(0, 0) == (-math.inf, math.inf)
    assert TruncatedGaussianNoise(0.1).range(0.75, 0.8) == (0.5, 1.0)
    assert TruncatedGaussianNoise(0.1).range(-0.8, -0.75) == (-1.0, -0.5)
    assert BernoulliNoise().range(0.1, 0.9) == (0.0, 1.0)
    assert BernoulliNoise().range(0.0, 0.0) == (0.0, 0.0)
    assert UniformNoise(0.25).range(0.0, 0.5) == (-0.25, 0.75)


def test_certain_bernoulli_arms_never_surprise() -> None:
    levels = np.array([0.0, 0.5, 1 - 2.0**-53])
    assert (BernoulliNoise().sample(np.zeros(3), levels) == 0).all()
    assert (BernoulliNoise().sample(np.ones(3), levels) == 1).all()


def test_student_t_without_variance() -> None:
    assert StudentTNoise(0.1, df=2).deviation(np.zeros(1))[0] == math.inf


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, "0.1", None, True])
@pytest.mark.parametrize("noise", [GaussianNoise, TruncatedGaussianNoise, UniformNoise, StudentTNoise])
def test_bad_scales_are_refused(noise: type[Noise], value) -> None:
    with pytest.raises(InputError, match="number"):
        noise(value)  # type: ignore[call-arg]


def test_the_cure_is_named() -> None:
    with pytest.raises(InputError, match=r"GaussianNoise\(0.0\)"):
        TruncatedGaussianNoise(0)
    with pytest.raises(InputError, match="df must exceed 1"):
        StudentTNoise(0.1, df=1)
    with pytest.raises(InputError, match=r"from -0.5 to 0.5.*offset=0.5"):
        BernoulliNoise().check(-0.5, 0.5)
    with pytest.raises(InputError, match="scale the means down"):
        TruncatedGaussianNoise(0.1).check(-0.5, 1.0)
