"""Samples that follow the posterior have its moments; what is counted of them adds up.

Bounds are 6 standard errors of 20,000 samples: with other seeds a test would fail with probability below 1e-7.

Very many arms: what is read in slices and of representatives is what the slow road reads of all arms.

Limits are made small here, so that a dozen arms are very many.
"""

from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from driftbandits import ArmSet, AutoBandit
from driftbandits._util.seeding import stream
from driftbandits.policies import length_scales
from driftbandits.policies.auto import hypotheses, samples
from driftbandits.policies.auto import samples as module
from driftbandits.policies.auto.hypotheses import Priors, Readings, Representatives
from driftbandits.policies.auto.samples import REWARDS_TO_LAST, ManySamples, Samples
from driftbandits.policies.auto.successes import RateUnits
from driftbandits.testing import POLICY_CHECKS
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
        samples.follow(take_in(beliefs, item.arm, item.reward))


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


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(hypotheses, "MOST_REPRESENTATIVES", 5)
    monkeypatch.setattr(samples, "LEAST_SLICE", 3)
    monkeypatch.setattr(samples, "MOST_ALLOWED_READ", 4)


ONLY_NEARLY = "kept_arms_keep_what_is_known"  # where the kernel is cut to fewer features than it has
CHECKS = [check for check in POLICY_CHECKS if check.__name__ != ONLY_NEARLY]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conformance(check, small_limits):
    check(partial(AutoBandit, rank=4))


def test_these_limits_make_a_dozen_arms_very_many(small_limits):
    policy = AutoBandit(ArmSet(np.linspace(0.0, 1.0, 12)[:, None], RBF(0.2)), rank=4)
    policy.ask()
    assert isinstance(policy._samples, ManySamples)


def test_kept_arms_keep_nearly_what_is_known(small_limits):
    policy = AutoBandit(ArmSet(np.linspace(0.0, 1.0, 60)[:, None], RBF(0.5)), rank=12, kernel="given", seed=0)
    for _ in range(100):
        choice = policy.ask()
        policy.tell(choice, float(np.sin(choice.arm / 15)) / 2)
    wider = policy.with_arms(policy.arms.extended([[1.05], [-0.02]]))
    assert isinstance(wider._samples, ManySamples)
    assert np.abs(wider.estimate()[:60] - policy.estimate()).max() < 0.01


# --- samples ----------------------------------------------------------------------------------------------------


def both_roads(units=None, number=20):
    """Samples in rewards and in coordinates, after the same rewards, and the weights."""
    roads = []
    for road in (Samples, ManySamples):
        beliefs, mixture = exact(given(plane()), (0.0, 0.1), noise=0.02)
        beliefs.units = units
        samples = road(beliefs, number, stream(0, "samples"))
        samples.choose(mixture.weights(), anew=True)
        now = -1
        for item in some_rewards(24, 40):
            beliefs.pass_time(item.round - now)
            samples.pass_time(item.round - now)
            now = item.round
            samples.follow(take_in(beliefs, item.arm, item.reward))
        samples.seek(mixture.weights())
        roads.append(samples)
    return *roads, mixture.weights()


UNITS = RateUnits(0.3, np.linspace(0.5, 2.0, 24))


@pytest.mark.parametrize("units", [None, UNITS], ids=["rewards", "chances"])
@pytest.mark.parametrize("mask", [None, np.arange(24) % 3 == 0], ids=["all", "some"])
def test_where_all_arms_are_read_both_roads_agree(units, mask):
    few, many, weights = both_roads(units)
    np.testing.assert_allclose(many.rewards(), few.values, atol=1e-9)
    np.testing.assert_allclose(many.frequencies(weights, mask), few.frequencies(weights, mask), atol=1e-12)
    np.testing.assert_allclose(many.mean(weights), few.mean(weights), atol=1e-9)
    np.testing.assert_allclose(many.expected(weights), few.expected(weights), atol=1e-9)
    assert many.best(weights, mask) == few.best(weights, mask)


def test_slices_find_the_best_arms_in_time(small_limits):
    """Nothing moves, and every seek reads three arms more: after all were read, nothing is left to find."""
    few, many, weights = both_roads()
    many._best[:] = many._top = 0
    assert many._step == 24 // 3
    for _ in range(many._step):
        many.seek(weights)
    np.testing.assert_allclose(many.frequencies(weights), few.frequencies(weights), atol=1e-12)
    assert many.best(weights) == few.best(weights)


def test_of_many_arms_allowed_some_are_read_and_the_best_found(small_limits):
    _, many, weights = both_roads()
    best = int(many._best[0, 0])
    mask = np.arange(24) != (best + 1) % 24
    allowed = many._allowed(mask)
    assert mask[allowed].all()
    assert len(allowed) < 24
    assert best in allowed
    law = many.frequencies(weights, mask)
    assert law[~mask].sum() == 0.0
    assert law.sum() == pytest.approx(1.0)


def test_the_best_arms_found_are_nearly_as_good_as_the_best():
    """3,000 arms and 150 rewards: what is found of every sample is within a tenth of its deviation over the arms."""
    points = np.random.default_rng(0).random((3000, 2))
    means = 0.8 * np.cos(4 * points[:, 0]) * np.sin(3 * points[:, 1])
    noise = np.random.default_rng(1).standard_normal(150)
    policy = AutoBandit(ArmSet(points, RBF(0.3)), rank=40, seed=0)
    for error in noise:
        choice = policy.ask()
        policy.tell(choice, float(np.clip(means[choice.arm] + 0.1 * error, -1, 1)))
    samples = policy._samples
    rewards = samples.rewards()[:, 1:]
    found = np.take_along_axis(rewards, samples._best[: len(rewards), :, None], axis=2)[:, :, 0]
    short = (rewards.max(axis=2) - found) / rewards.std(axis=2)
    assert isinstance(samples, ManySamples)
    assert short.mean() < 0.02
    assert short.max() < 0.1


# --- what stands for all arms -----------------------------------------------------------------------------------


@pytest.mark.parametrize("features", [False, True], ids=["points", "features"])
def test_an_arm_is_represented_by_the_nearest(features):
    points = np.random.default_rng(0).random((60, 3)) * np.array([1.0, 50.0, 0.0])
    arms = ArmSet.from_features(points) if features else ArmSet(points, RBF(1.0))
    some = Representatives(arms, 10)
    where = arms.features if features else points / np.where(points.std(axis=0) > 0, points.std(axis=0), np.inf)
    distances = np.square(where[:, None] - where[some.numbers]).sum(axis=2)
    assert [some.of(arm) for arm in range(60)] == distances.argmin(axis=1).tolist()
    assert [some.of(arm) for arm in some.numbers.tolist()] == list(range(10))


def test_every_segment_has_the_same_representatives():
    arms = ArmSet.crossed(ArmSet(np.linspace(0, 1, 40)[:, None]), ["a", "b", "c"])
    some = Representatives(arms, 30)
    assert some.together == 10
    np.testing.assert_array_equal(some.numbers.reshape(3, 10) % 40, np.tile(some.numbers[:10], (3, 1)))
    assert {arm // 40 for arm in some.numbers[10:20].tolist()} == {1}
    assert [some.of(40 + arm) - 10 for arm in range(40)] == [some.of(arm) for arm in range(40)]


# --- readings ---------------------------------------------------------------------------------------------------


def test_readings_are_products_with_the_rows():
    rng = np.random.default_rng(0)
    readings = Readings([rng.random((30, 4)), rng.random((30, 2))], np.array([0.2, 0.2, 0.05, 0.05]), 0.1, 6)
    kinds, coordinates, arms = np.array([3, 0, 1, 2]), rng.standard_normal((4, 5, 6)), np.array([7, 2, 29])
    rows = np.array([readings.of(kind) for kind in range(4)])
    expected = np.einsum("kmr,kar->kma", coordinates, rows[kinds][:, arms])
    np.testing.assert_allclose(readings.rewards_of_each(kinds, coordinates, arms), expected, atol=1e-14)
    np.testing.assert_allclose(readings.rewards(3, coordinates[0], arms), expected[0], atol=1e-14)
    np.testing.assert_allclose(readings.some(arms).of(2), rows[2, arms])
    np.testing.assert_allclose(readings.one(kinds, 7), rows[kinds, 7])
    root = rng.standard_normal((6, 6))
    exact_variances = np.einsum("ar,rs,as->a", rows[1], root @ root.T, rows[1])
    np.testing.assert_allclose(readings.variances(1, root @ root.T), exact_variances, atol=1e-12)


def test_features_in_blocks_and_in_single_precision_are_the_same(monkeypatch):
    arms = ArmSet(np.random.default_rng(0).random((300, 2)), RBF(0.3))
    at_once = [phi for _, phi in length_scales.candidates(arms, 40)]
    monkeypatch.setattr(length_scales, "_POINTS_AT_A_TIME", 70)
    in_blocks = [phi for _, phi in length_scales.candidates(arms, 40)]
    monkeypatch.setattr(length_scales, "_MOST_NUMBERS_IN_DOUBLE", 1_000)
    single = [phi for _, phi in length_scales.candidates(arms, 40)]
    for whole, parts, half in zip(at_once, in_blocks, single, strict=True):
        np.testing.assert_allclose(parts, whole, atol=1e-10)
        assert half.dtype == np.float32
        np.testing.assert_allclose(half, whole, atol=1e-5)


def test_single_precision_plays(monkeypatch, small_limits):
    monkeypatch.setattr(length_scales, "_MOST_NUMBERS_IN_DOUBLE", 1)
    policy = AutoBandit(ArmSet(np.linspace(0.0, 1.0, 40)[:, None], RBF(0.2)), rank=6, seed=0)
    for _ in range(150):
        choice = policy.ask()
        policy.tell(choice, 0.5 - abs(choice.arm - 25) / 40)
    assert abs(int(policy.estimate().argmax()) - 25) <= 3


# --- what people look at ----------------------------------------------------------------------------------------


def test_a_look_at_some_arms_is_what_all_would_show(small_limits):
    policy = AutoBandit(ArmSet(np.linspace(0.0, 1.0, 200)[:, None], RBF(0.2)), rank=10, seed=0)
    for _ in range(70):
        choice = policy.ask()
        policy.tell(choice, float(np.sin(choice.arm / 30)) / 2)
    arms = policy._history.follow(policy._plays.counts).arms
    believed = policy._glimpse(arms)
    low, high = policy.interval()
    for found, whole in zip(believed, (policy.estimate(), low, high), strict=True):
        np.testing.assert_allclose(np.clip(found, -1, 1), whole[arms], atol=1e-9)
    assert len(policy.history) >= 3


def test_priors_hold_features_once_per_kernel():
    tried = Priors(ArmSet(np.random.default_rng(0).random((500, 2)), RBF(0.3)), auto=True, rank=30)
    half = tried.count // 2
    assert all(tried.features(kind) is tried.features(kind + half) for kind in range(half))
