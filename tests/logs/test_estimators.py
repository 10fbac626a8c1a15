import math

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import InputError
from driftbandits.logs import Log, estimators, evaluate
from driftbandits.logs.estimators import ESTIMATORS, effective_size, local_variance
from driftbandits.logs.targets import shares_of
from tests.logs.making import logged, moving_means

KINDS = ["still", "switch", "drift"]


@pytest.fixture(scope="module")
def log():
    return logged(moving_means("switch", 1_500, 4), seed=0)


def test_ips_and_snips_are_their_definitions(log):
    law = np.array([0.1, 0.2, 0.3, 0.4])
    weights = law[log.arm] / log.probability
    assert evaluate(log, law, estimator="ips").value == pytest.approx(np.mean(weights * log.reward), rel=1e-12)
    snips = np.sum(weights * log.reward) / np.sum(weights)
    assert evaluate(log, law, estimator="snips").value == pytest.approx(snips, rel=1e-12)
    assert evaluate(log, law).effective_sample_size == pytest.approx(weights.sum() ** 2 / np.sum(weights**2))


def coba_rows(log):
    return [
        {"action": int(a), "actions": [0, 1, 2, 3], "reward": float(r), "probability": float(p), "context": None}
        for a, r, p in zip(log.arm, log.reward, log.probability, strict=True)
    ]


def test_ips_is_cobas(log):
    """coba's `OpeRewards("IPS")` turns a logged row into rewards of all actions; ours is the mean over rows."""
    pytest.importorskip("coba", reason="coba is not installed: pip install coba==8.1.0")
    from coba.environments.filters import OpeRewards

    rows = coba_rows(log)
    values = [row["rewards"](2) for row in OpeRewards("IPS").filter(rows)]
    ours = evaluate(log, 2, estimator="ips")
    assert ours.value == pytest.approx(np.mean(values), rel=1e-12)
    law = [0.1, 0.2, 0.3, 0.4]
    of_law = [
        sum(share * row["rewards"](arm) for arm, share in enumerate(law)) for row in OpeRewards("IPS").filter(rows)
    ]
    assert evaluate(log, law, estimator="ips").value == pytest.approx(np.mean(of_law), rel=1e-12)
    assert evaluate(log, law, estimator="ips", against=2).value == pytest.approx(np.mean(of_law) - np.mean(values))
    weights = np.array(law)[log.arm] / log.probability
    snips = evaluate(log, law, estimator="snips").value
    assert snips == pytest.approx(np.mean(of_law) / weights.mean(), rel=1e-12)


def test_dr_is_cobas_on_cobas_predictions(log):
    """coba learns predictions with Vowpal Wabbit; what `dr` makes of them must be what coba does."""
    pytest.importorskip("coba", reason="coba is not installed: pip install coba==8.1.0")
    pytest.importorskip("vowpalwabbit", reason="vowpalwabbit is not installed: pip install vowpalwabbit==9.11.9")
    from coba.environments.filters import OpeRewards

    law = np.array([0.1, 0.2, 0.3, 0.4])
    predicted, corrected = (
        np.array([[row["rewards"](arm) for arm in range(4)] for row in OpeRewards(kind).filter(coba_rows(log))])
        for kind in ("DM", "DR")
    )
    terms = estimators.terms_of(log, shares_of(log, law)[0], "dr", predicted)
    assert terms.values == pytest.approx(corrected @ law, abs=1e-5)  # Vowpal Wabbit counts in single precision
    assert terms.values != pytest.approx(predicted @ law, abs=0.1)


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")  # of obp's own text
def test_estimators_are_those_of_open_bandit_pipeline(log):
    pytest.importorskip("obp", reason="obp is not installed: pip install obp==0.4.1")
    from obp import ope

    law, size = np.array([0.1, 0.2, 0.3, 0.4]), len(log)
    predicted = estimators.predict(estimators.bin_rewards(log)).mean
    given = {
        "reward": log.reward,
        "action": log.arm,
        "pscore": log.probability,
        "action_dist": np.broadcast_to(law[:, None], (size, 4, 1)),
        "position": np.zeros(size, dtype=int),
        "estimated_rewards_by_reg_model": predicted[:, :, None],
    }
    theirs = {
        "ips": ope.InverseProbabilityWeighting(),
        "snips": ope.SelfNormalizedInverseProbabilityWeighting(),
        "dr": ope.DoublyRobust(),
    }
    for name, other in theirs.items():
        assert evaluate(log, law, estimator=name).value == pytest.approx(other.estimate_policy_value(**given), rel=1e-9)


def test_dr_is_brute_force_over_rows(log):
    """Predictions of every row from a filter written anew, one reward at a time, one hypothesis after the other."""
    small = log.take(slice(0, 120))
    target = np.array([0.4, 0.3, 0.2, 0.1])
    predicted = slow_predictions(small)
    weights = target[small.arm] / small.probability
    residual = weights * (small.reward - predicted[np.arange(120), small.arm])
    expected = np.mean(predicted @ target + residual)
    assert evaluate(small, target).value == pytest.approx(expected, rel=1e-9)


def slow_predictions(log):
    grid = [(q, s) for q in estimators.RATES for s in estimators.STARTS]
    size = len(log.names)
    states = [{"errors": 0.0, "log": 0.0, "mean": {}, "var": {}, "last": {}} for _ in grid]
    out, degrees = [], 0
    for t in range(len(log)):
        past = log.reward[:t]
        level = past.mean() if t else 0.0
        logs = np.array([state["log"] for state in states])
        weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
        row = [sum(w * s["mean"].get(a, level) for w, s in zip(weights, states, strict=True)) for a in range(size)]
        out.append(row)
        a, r = int(log.arm[t]), float(log.reward[t])
        spread = past.var() if t > 1 else None
        for (q, start), state in zip(grid, states, strict=True):
            mean = state["mean"].get(a, level)
            var = state["var"].get(a, start) + q * (t - state["last"].get(a, t))
            gain, error = var + 1, r - mean
            if spread is not None:
                nu = 2 + degrees
                noise = (2 * spread + state["errors"]) / nu
                state["log"] -= 0.5 * (math.log(gain * noise) + (nu + 1) * math.log1p(error**2 / (nu * gain * noise)))
                state["errors"] += error**2 / gain
            state["mean"][a], state["var"][a], state["last"][a] = mean + var / gain * error, var / gain, t
        degrees += spread is not None
    return np.array(out)


def test_direct_is_the_closed_form_of_a_gaussian_process(log):
    """The posterior of the sum by one big linear system over all bins and arms."""
    small = log.take(slice(0, 60))
    bins = estimators.bin_rewards(small, most=20)
    rng = np.random.default_rng(0)
    weights = rng.random((20, 4))
    rate, start, noise = 0.01, 2.0, 0.09
    mean, variance = estimators.posterior_total(bins, weights, rate=rate, start=start, noise=noise)
    times = np.concatenate([[0], np.cumsum(bins.rows[:-1])])
    level = small.reward.mean()
    expected, spread = 0.0, 0.0
    for arm in range(4):
        prior = start + rate * np.minimum(times[:, None], times)
        rows = small.arm == arm
        seen = bins.of_row[rows]
        system = prior[np.ix_(seen, seen)] + np.eye(len(seen))
        gain = prior[:, seen] @ np.linalg.inv(system)
        posterior = level + gain @ (small.reward[rows] - level)
        expected += weights[:, arm] @ posterior
        spread += noise * weights[:, arm] @ (prior - gain @ prior[seen]) @ weights[:, arm]
    assert mean == pytest.approx(expected, rel=1e-9)
    assert variance == pytest.approx(spread, rel=1e-9)


def test_clipped_is_ips_where_nothing_is_clipped_and_its_interval_is_wider(log):
    ips, clipped = (evaluate(log, "b", estimator=name) for name in ("ips", "clipped"))
    middle = 0.5 * (1 - np.mean((log.arm == 1) / log.probability))
    assert clipped.value == pytest.approx(ips.value + middle)
    assert clipped.high - clipped.low > ips.high - ips.low


def test_clipped_holds_the_truth_where_weights_are_huge():
    """One arm is played with probability 0.0005 and then earns 1: its mean is all in weights of 2,000."""
    rng = np.random.default_rng(0)
    rare = rng.random(20_000) < 0.0005
    log = Log(
        round=np.arange(20_000),
        arm=rare.astype(int),
        reward=rare.astype(float),
        probability=np.where(rare, 0.0005, 0.9995),
        names=("a", "b"),
        reward_range=(0.0, 1.0),
    )
    found = evaluate(log, [0.2, 0.8], estimator="clipped")
    assert "cannot tell" in found.verdict
    found = evaluate(log, [0.998, 0.002], estimator="clipped")
    assert found.low <= 0.002 <= found.high


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_policy_that_logged_earned_what_it_earned(log, estimator):
    found = evaluate(log, "log", estimator=estimator)
    assert found.value == pytest.approx(log.reward.mean()) or estimator == "clipped"
    assert found.low < log.reward.mean() < found.high


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_differences_are_paired_on_the_same_rows(log, estimator):
    first, second = evaluate(log, "a", estimator=estimator), evaluate(log, "b", estimator=estimator)
    both = evaluate(log, "a", against="b", estimator=estimator)
    assert both.value == pytest.approx(first.value - second.value, rel=1e-9, abs=1e-12)
    same = evaluate(log, "a", against="a", estimator=estimator)
    assert same.value == same.low == same.high == pytest.approx(0, abs=1e-12)


def test_windows_add_up(log):
    found = evaluate(log, "c", estimator="ips", by=3)
    assert [part.rows for part in found.parts] == [500] * 3
    assert np.mean([part.value for part in found.parts]) == pytest.approx(found.value)
    ends = evaluate(log, "c", estimator="ips", by=[500, 1_000])
    assert [part.value for part in ends.parts] == [part.value for part in found.parts]
    assert list(found.table["label"]) == ["rounds 0 to 499", "rounds 500 to 999", "rounds 1000 to 1499"]


def test_stretches_between_changes_use_rows_held_out():
    means = np.repeat([[0.2, 0.8], [0.8, 0.2]], 1_000, axis=0)
    found = evaluate(logged(means, 1, learning=False), "a", by="changes")
    assert len(found.parts) == 2
    assert sum(part.rows for part in found.parts) == 1_000
    for part, truth in zip(found.parts, (0.2, 0.8), strict=True):
        assert part.low < truth < part.high
    assert "every other row" in found.notes[0]


def test_segments_are_valued_and_predicted_one_by_one():
    means = moving_means("still", 2_000, 3)
    base = logged(means, 2, learning=False)
    segment = np.random.default_rng(0).integers(0, 2, 2_000)
    shifted = np.clip(base.reward + 0.15 * segment, 0, 1)
    log = Log(base.round, base.arm, shifted, base.probability, base.names, segment=segment, segment_names=("x", "y"))
    found = evaluate(log, "b", by="segment")
    values = [part.value for part in found.parts]
    assert [part.label for part in found.parts] == ["x", "y"]
    assert values[1] - values[0] == pytest.approx(0.15, abs=0.03)
    direct = evaluate(log, "b", by="segment", estimator="direct")
    np.testing.assert_allclose([part.value for part in direct.parts], values, atol=0.03)


def test_a_log_that_cannot_tell_says_so(log):
    few = log.take(slice(0, 60))
    found = evaluate(few, "a")
    assert math.isnan(found.value)
    assert math.isnan(found.low)
    assert found.verdict.startswith("this log cannot tell: effective sample size")
    assert "cannot tell" in repr(found)


def test_the_best_arm_is_chosen_on_other_rows_than_it_is_valued_on():
    means = np.tile([0.5, 0.7, 0.4], (1_000, 1))
    found = evaluate(logged(means, 3, learning=False), "best")
    assert "the best fixed arm, b" in found.target
    assert found.whole.rows == 500
    assert found.low < 0.7 < found.high


def test_functions_of_a_row_give_arms_or_laws(log):
    by_arm = evaluate(log, lambda row: "a" if row.round < 700 else "b", estimator="ips")
    chosen = np.where(log.round < 700, 0, 1)
    assert by_arm.value == pytest.approx(np.mean((log.arm == chosen) * log.reward / log.probability))
    by_law = evaluate(log, lambda row: [0.25] * 4)
    assert by_law.value == pytest.approx(evaluate(log, "uniform").value)


def test_arms_that_are_not_offered_are_left_out():
    base = logged(moving_means("still", 1_000, 3), 4, learning=False)
    allowed = np.ones((1_000, 3), dtype=bool)
    allowed[::4, 1] = base.arm[::4] == 1
    log = Log(base.round, base.arm, base.reward, base.probability, base.names, allowed=allowed)
    found = evaluate(log, "b", estimator="ips")
    assert found.whole.rows == int(allowed[:, 1].sum())
    assert any("left out" in note for note in found.notes)
    share = allowed / allowed.sum(axis=1, keepdims=True)
    expected = np.mean(share[np.arange(1_000), base.arm] * base.reward / base.probability)
    assert evaluate(log, "uniform", estimator="ips").value == pytest.approx(expected)


def test_missing_rewards_are_left_out_and_said(log):
    reward = log.reward.copy()
    reward[::5] = np.nan
    some = Log(log.round, log.arm, reward, log.probability, log.names)
    found = evaluate(some, "a", estimator="ips")
    assert found.whole.rows == 1_200
    assert "300 rows without a reward" in found.notes[0]


def test_a_learning_policy_is_replayed_where_nothing_moves():
    means = np.tile([0.3, 0.6], (3_000, 1))
    log = logged(means, 5, learning=False)
    arms = db.ArmSet.from_features(np.eye(2), names=["a", "b"])
    found = evaluate(log, db.GPUCB(arms, reward_range=(0, 1)))
    assert found.effective_sample_size > 500
    assert 0.5 < found.value < 0.62
    assert "replay" in found.notes[0]
    short = evaluate(log.take(slice(0, 800)), db.GPUCB(arms, reward_range=(0, 1)))
    assert "below 500" in short.verdict
    moving = logged(np.repeat([[0.3, 0.6], [0.6, 0.3]], 1_500, axis=0), 6, learning=False)
    assert "moves" in evaluate(moving, db.GPUCB(arms, reward_range=(0, 1))).verdict


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "zz"}, "no arm of the log"),
        ({"target": [0.5, 0.5]}, "law of 4 probabilities"),
        ({"target": [0.5, 0.5, 0.5, 0.5]}, "add up to 1"),
        ({"target": 9}, "position from 0 to 3"),
        ({"target": "a", "estimator": "ols"}, "estimator must be"),
        ({"target": "a", "by": "weeks"}, "by must be"),
        ({"target": "a", "by": 0}, "by must be at least 1"),
        ({"target": "a", "by": [5, 3]}, "must rise"),
        ({"target": "a", "by": "segment"}, "needs a column 'segment'"),
        ({"target": "a", "level": 1.0}, "level"),
    ],
)
def test_bad_input_is_named(log, settings, message):
    with pytest.raises(InputError, match=message):
        evaluate(log, **settings)


def test_variance_about_a_local_mean_does_not_count_drift():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 1, 4_000)
    assert local_variance(noise) == pytest.approx(4_000, rel=0.1)
    assert local_variance(noise + np.linspace(0, 100, 4_000)) == pytest.approx(4_000, rel=0.1)
    assert effective_size(np.zeros(3)) == 0


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
def test_ips_and_dr_are_unbiased_and_intervals_cover(kind, monkeypatch):
    """400 logs of a policy that learns. Mean errors within 3 standard errors fail by chance with probability 0.003
    each, at seeds that are fixed; a coverage of 95 % lies within 93 and 98 % with 96 %."""
    monkeypatch.setattr(estimators, "MOST_BINS", 40)
    rounds, target = 400, np.array([0.1, 0.6, 0.3])
    means = moving_means(kind, rounds, 3)
    truth = float((np.clip(means, 0, 1) @ target).mean())
    found = {name: [] for name in ("ips", "dr")}
    for seed in range(400):
        log = logged(means, seed, noise=0.05)
        for name, rows in found.items():
            rows.append(evaluate(log, target, estimator=name))
    for name, rows in found.items():
        errors = np.array([row.value for row in rows]) - truth
        assert abs(errors.mean()) < 3 * errors.std() / 20, name
        assert 0.93 <= np.mean([row.low <= truth <= row.high for row in rows]) <= 0.98, name
        assert np.mean([row.whole.anytime_low <= truth <= row.whole.anytime_high for row in rows]) >= 0.95
    assert np.var([row.value for row in found["dr"]]) < 0.5 * np.var([row.value for row in found["ips"]])
