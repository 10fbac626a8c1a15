"""Noise with a memory, against dense Gaussian conditioning of all rewards at once."""

import numpy as np
import pytest

from driftbandits import AutoBandit
from driftbandits.policies.auto import hypotheses as priors_module
from driftbandits.policies.auto.batching import observe_all
from driftbandits.policies.auto.beliefs import Beliefs
from driftbandits.policies.auto.echoes import MODELS, OWN, WHITE, Before, Memory, shares
from driftbandits.policies.auto.samples import Samples
from tests.policies.auto.reference import covariance_of, exact, given, line, plane, some_rewards

NOISE = 0.04
RATES = (0.0, 0.02)
OWN_MODELS = range(OWN, len(MODELS))


def rows_of(priors, models, *, births=0, noise=NOISE):
    """Beliefs with known noise: one row per model and rate."""
    beliefs = Beliefs(priors, len(models) * len(RATES), known_noise=noise)
    for row in range(len(beliefs.mean)):
        model, rate = models[row // len(RATES)], RATES[row % len(RATES)]
        beliefs.write(row, kind=0, birth=births, rate=rate, noise=noise, model=model)
    return beliefs


def befores_of(arms, told):
    """What was told before every reward."""
    memory, befores = Memory(arms), []
    for item in told:
        befores.append(memory.before(item.arm, item.round))
        memory.tell(item.arm, item.round, item.reward)
    return befores


def play_in(beliefs, told, befores, samples=None):
    """Take in all rewards one by one; the sum of the log likelihoods, (n,)."""
    now, found = -1, np.zeros(beliefs.count)
    for item, before in zip(told, befores, strict=True):
        beliefs.pass_time(item.round - now)
        if samples is not None:
            samples.pass_time(item.round - now)
        now = item.round
        step = beliefs.observe(beliefs.forecast(item.arm, before), item.reward)
        if samples is not None:
            samples.follow(step)
        found += step.likelihood
    return found


def covariance_of_noise(model, told, *, noise=NOISE):
    rounds, arms = np.array([item.round for item in told]), np.array([item.arm for item in told])
    fading = model.rho ** np.abs(rounds[:, None] - rounds) if model.rho else np.eye(len(told))
    if model.mood:
        return noise * (np.eye(len(told)) + model.mood * fading)
    return noise * fading * (arms[:, None] == arms)


def regression(kernel, model, told, *, rate, noise=NOISE):
    """Mean and covariance of all arms at the last reward, and log evidence of all, by one solve each."""
    rounds, arms = np.array([item.round for item in told]), [item.arm for item in told]
    rewards = np.array([item.reward for item in told])
    fading = (1.0 - rate) ** (np.abs(rounds[:, None] - rounds) / 2.0)
    whole = kernel[np.ix_(arms, arms)] * fading + covariance_of_noise(model, told, noise=noise)
    cross = kernel[arms] * fading[-1][:, None]
    solved = np.linalg.solve(whole, cross)
    evidence = -0.5 * (rewards @ np.linalg.solve(whole, rewards) + np.linalg.slogdet(whole)[1])
    return solved.T @ rewards, kernel - cross.T @ solved, evidence


@pytest.mark.parametrize("arms", [line(6), plane()], ids=["arms", "features"])
def test_beliefs_are_those_of_one_gaussian_regression(arms):
    """White noise and moods with and without drift; own noise where nothing drifts, for which it is exact."""
    priors, told = given(arms), some_rewards(len(arms), 60, seed=2)
    beliefs = rows_of(priors, range(len(MODELS)))
    evidence = play_in(beliefs, told, befores_of(len(arms), told))
    for row in range(beliefs.count):
        model, rate = MODELS[beliefs.model[row]], float(beliefs.rate[row])
        if beliefs.model[row] >= OWN and rate:
            continue
        mean, covariance, density = regression(covariance_of(priors, 0), model, told, rate=rate)
        read, variance = beliefs.reading(row)
        np.testing.assert_allclose(read, mean, atol=1e-7)
        np.testing.assert_allclose(variance, covariance.diagonal(), atol=1e-7)
        assert evidence[row] == pytest.approx(density, abs=1e-6)


def test_a_forecast_is_the_conditional_law_of_the_next_reward():
    priors, told = given(line(6)), some_rewards(6, 30, seed=3)
    befores = befores_of(6, told)
    beliefs = rows_of(priors, range(len(MODELS)))
    play_in(beliefs, told[:-1], befores[:-1])
    beliefs.pass_time(told[-1].round - told[-2].round)
    forecast, kernel = beliefs.forecast(told[-1].arm, befores[-1]), covariance_of(priors, 0)
    arms, rewards = [item.arm for item in told], np.array([item.reward for item in told])
    for row in range(0, beliefs.count, len(RATES)):  # those that do not drift
        whole = kernel[np.ix_(arms, arms)] + covariance_of_noise(MODELS[beliefs.model[row]], told)
        solved = np.linalg.solve(whole[:-1, :-1], whole[:-1, -1])
        assert forecast.mean[row] == pytest.approx(solved @ rewards[:-1], abs=1e-7)
        fresh = 1.0 if forecast.echo is None else 1.0 - forecast.echo[row] ** 2
        total = forecast.variance[row] + fresh * NOISE
        assert total == pytest.approx(whole[-1, -1] - solved @ whole[:-1, -1], abs=1e-7)
        mean, variance, noise = beliefs.predicts(row, told[-1].arm, befores[-1])
        assert (mean, variance + noise) == pytest.approx((forecast.mean[row], total), abs=1e-9)


@pytest.mark.parametrize("arms", [line(6), plane()], ids=["arms", "features"])
def test_a_batch_does_what_its_rewards_do_one_by_one(arms):
    """With own noise, whose rows need what was told before; moods are not batched."""
    priors, told = given(arms), some_rewards(len(arms), 36, seed=4)
    befores = befores_of(len(arms), told)
    one, other = (rows_of(priors, [WHITE, *OWN_MODELS]) for _ in range(2))
    for beliefs in (one, other):
        play_in(beliefs, told[:20], befores[:20])
    rest, passed = told[20:], np.diff([item.round for item in told[19:]])
    expected = np.zeros(one.count)
    for item, gap, before in zip(rest, passed.tolist(), befores[20:], strict=True):
        one.pass_time(gap)
        expected += one.observe(one.forecast(item.arm, before), item.reward).likelihood
    joint = observe_all(
        other,
        np.array([item.arm for item in rest]),
        passed,
        np.array([item.reward for item in rest]),
        befores=np.array(befores[20:], dtype=np.float64),
    )
    np.testing.assert_allclose(joint.likelihood.sum(axis=1), expected, atol=1e-7)
    np.testing.assert_allclose(other.mean[: other.count], one.mean[: one.count], atol=1e-8)
    for row in range(one.count):
        np.testing.assert_allclose(other.covariance(row), one.covariance(row), atol=1e-8)


def test_samples_have_the_moments_of_the_posterior():
    """Moved by every reward, of moods and of own noise; 4,000 samples, bounds of five standard errors, seed fixed."""
    priors, told = given(line(5)), some_rewards(5, 25, seed=5)
    for model in range(1, len(MODELS)):
        beliefs = Beliefs(priors, 1, known_noise=NOISE)
        beliefs.write(0, kind=0, birth=0, noise=NOISE, model=model)
        samples = Samples(beliefs, 4_000, np.random.default_rng(model))
        samples.choose(np.ones(1), anew=True)
        play_in(beliefs, told, befores_of(5, told), samples)
        mean, covariance, _ = regression(covariance_of(priors, 0), MODELS[model], told, rate=0.0)
        drawn = samples.values[0]
        np.testing.assert_allclose(drawn[0], mean, atol=1e-9)
        spread = np.sqrt(covariance.diagonal())
        assert (np.abs(drawn[1:].mean(axis=0) - mean) < 5 * spread / np.sqrt(4_000)).all()
        errors = np.sqrt((np.outer(spread, spread) ** 2 + covariance**2) / 4_000)
        assert (np.abs(np.cov(drawn[1:].T) - covariance) < 5 * errors).all()


def test_a_hypothesis_knows_no_noise_from_before_its_birth():
    befores = np.array([Before(20, 9, 0.5), Before(20, 10, 0.5), Before(20, -1, 0.0)], dtype=np.float64)
    found = shares(np.array([OWN, OWN, WHITE, 1]), np.array([0, 10, 0, 0]), befores)
    rho = MODELS[OWN].rho
    np.testing.assert_allclose(found, [[rho**11, rho**10, 0], [0, rho**10, 0], [0, 0, 0], [0, 0, 0]])


def test_a_late_reward_says_nothing_of_the_mood_of_now():
    """It is that of a round whose mood is unknown: independent noise as large."""
    priors = given(line(4))
    kind = next(number for number, model in enumerate(MODELS) if model.mood)
    late, plain = (
        Beliefs(priors, 1, known_noise=NOISE),
        Beliefs(priors, 1, known_noise=NOISE * (1.0 + MODELS[kind].mood)),
    )
    late.write(0, kind=0, birth=0, noise=NOISE, model=kind)
    plain.write(0, kind=0, birth=0, noise=plain.known_noise)
    for beliefs in (late, plain):
        beliefs.observe(beliefs.forecast(2), 0.7, np.array([True]))
    np.testing.assert_allclose(late.mean, plain.mean)
    np.testing.assert_allclose(late.covariance(0), plain.covariance(0))
    assert (late.mood[0], late.mood_variance[0]) == (0.0, NOISE * MODELS[kind].mood)


def test_memory_keeps_the_last_reward_of_every_arm():
    memory = Memory(3)
    for arm, now, reward in ((0, 4, 0.1), (1, 6, 0.2), (0, 3, 0.9)):
        memory.tell(arm, now, reward)
    assert memory.before(0, 8) == Before(8, 4, 0.1)
    moved = memory.carried(np.array([1, -1]))
    assert (moved.before(0, 8), moved.before(1, 8)) == (Before(8, 6, 0.2), Before(8, -1, 0.0))


def noisy(model, rounds, arms, rng, *, deviation=0.2):
    """Noise of this model with this deviation, (rounds, arms)."""
    size = 1 if model.mood else arms
    noise = np.zeros((rounds, size))
    steps = deviation * rng.standard_normal((rounds, size))
    for now in range(rounds):
        before = noise[now - 1] if now else 0.0
        noise[now] = model.rho * before + np.sqrt(1.0 - model.rho**2) * steps[now]
    return np.broadcast_to(noise, (rounds, arms)) + 0.05 * rng.standard_normal((rounds, arms))


@pytest.mark.parametrize("number", [OWN - 1, OWN])
def test_spells_are_told_from_changes(number):
    """Nothing changes for 1,500 rounds: the noise is recognised, and at most one change found, in each of three."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        worth, noise = np.array([0.0, 0.1, 0.2, 0.4]), noisy(MODELS[number], 1_500, 4, rng)
        policy = AutoBandit(line(4), seed=seed, reward_range=(-2, 2))
        for now in range(1_500):
            choice = policy.ask()
            policy.tell(choice.id, float(np.clip(worth[choice.arm] + noise[now, choice.arm], -2, 2)))
        found = policy.explain()
        assert sum(found.spells.values()) > 0.9  # while one arm is played, its own noise looks like a mood
        assert "; in spells " in str(found)
        assert found.changes <= 1
        assert found.best[0].arm == 3


def test_chances_have_moods_but_no_noise_of_their_own(monkeypatch):
    monkeypatch.setattr(priors_module, "SIGNAL_VARIANCES", (0.1,))
    policy = AutoBandit(line(4), kernel="given", seed=0, reward_range=(0, 1))
    rng = np.random.default_rng(1)
    for _ in range(60):
        choice = policy.ask()
        policy.tell(choice.id, float(rng.random() < 0.3 + 0.1 * choice.arm))
    models = policy._beliefs.model[: policy._beliefs.count]
    assert (models < OWN).all()
    assert (models > WHITE).any()


def test_groups_with_next_to_no_weight_are_dropped():
    beliefs, mixture = exact(given(line(4)), (0.0, 1e-3), noise=NOISE, models=MODELS)
    groups = mixture._weights_of_groups()
    assert groups.sum() == pytest.approx(1.0)
    assert groups[WHITE] == pytest.approx(MODELS[WHITE].weight / sum(m.weight for m in MODELS) / beliefs.priors.count)
    mixture.log_weight[: beliefs.count][beliefs.model[: beliefs.count] == OWN] -= 30.0
    mixture._forget_weights()
    mixture.prune()
    assert sorted(set(beliefs.model[: beliefs.count].tolist())) == [m for m in range(len(MODELS)) if m != OWN]
