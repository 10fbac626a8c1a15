"""AutoBandit on options in segments: what it tries, what an arm is compared with, what separate policies believe."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.policies.auto.hypotheses import LEVEL_VARIANCE, SIGNAL_VARIANCES
from driftbandits.testing.helpers import require_equal

OPTIONS = db.ArmSet(np.linspace(0, 1, 6)[:, None], RBF(0.3))
NAMES = ("a", "b", "c")
LEFT_OUT = 1e-4  # of the variance, by the features of a kernel that is tried


def crossed(kernel=0.5):
    return db.ArmSet.crossed(OPTIONS, NAMES, kernel=kernel)


def play(policy, rounds, means, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    for now in range(rounds):
        choice = policy.ask(allowed=policy.arms.of(NAMES[now % 3]))
        policy.tell(choice, float(np.clip(means[choice.arm] + noise * rng.standard_normal(), -1, 1)))


def test_priors_are_products_of_option_kernels_and_correlations():
    policy = db.AutoBandit(crossed(0.25), seed=0)
    policy.law()
    priors = policy._beliefs.priors
    assert set(priors.correlations) == {None, 0.0, 0.5, 1.0}
    spread = OPTIONS.points.std()
    for kind in range(priors.count):
        rho, scale = priors.correlations[kind], priors.length_scales[kind]
        segments = (0.75 * np.eye(3) + 0.25) if rho is None else (1 - rho) * np.eye(3) + rho
        options = np.eye(6) if scale == 0.0 else RBF(scale)(OPTIONS.points / spread)
        signal = SIGNAL_VARIANCES[kind * len(SIGNAL_VARIANCES) // priors.count]
        expected = signal * np.kron(segments, options) + LEVEL_VARIANCE
        assert priors.prior[kind, :-1, :-1] == pytest.approx(expected, abs=2e-4)


def test_given_is_the_product_and_nothing_else():
    policy = db.AutoBandit(crossed(0.25), kernel="given", seed=0)
    policy.law()
    assert policy._beliefs.priors.count == len(SIGNAL_VARIANCES)
    product = np.kron(0.75 * np.eye(3) + 0.25, RBF(0.3)(OPTIONS.points))
    prior = policy._beliefs.priors.prior[0, :-1, :-1]  # the last coordinate is the level
    assert prior == pytest.approx(SIGNAL_VARIANCES[0] * product + LEVEL_VARIANCE, abs=1e-6)


def test_without_correlation_segments_are_separate_policies():
    """Two roads: GP-UCB believes of pairs what one policy per segment believes, and decides alike."""
    together = db.GPUCB(crossed(0), seed=0)
    apart = {name: db.GPUCB(OPTIONS, seed=0) for name in NAMES}
    means = np.random.default_rng(0).uniform(-0.5, 0.5, 18)
    together.law()  # it begins
    for now in range(60):
        name = NAMES[now % 3]
        mask, own = together.arms.of(name), apart[name]
        law = together._law_within(mask)[0][mask]
        assert law == pytest.approx(own.law())
        arm = int(law.argmax())
        first = int(np.flatnonzero(mask)[0])
        together.tell(together.ask(allowed=[first + arm]), means[first + arm])
        own.tell(own.ask(allowed=[arm]), means[first + arm])
    low, high = together.interval()
    for number, name in enumerate(NAMES):
        here = slice(6 * number, 6 * number + 6)
        assert together.estimate()[here] == pytest.approx(apart[name].estimate(), abs=1e-9)
        assert low[here] == pytest.approx(apart[name].interval()[0], abs=1e-9)
        assert high[here] == pytest.approx(apart[name].interval()[1], abs=1e-9)


def test_alike_segments_learn_from_one_another():
    means = np.tile([0.1, 0.2, 0.6, 0.2, 0.0, -0.3], 3)
    policy = db.AutoBandit(crossed(), seed=0)
    rng = np.random.default_rng(0)
    for now in range(240):  # never c
        choice = policy.ask(allowed=policy.arms.of("ab"[now % 2]))
        policy.tell(choice, means[choice.arm] + 0.05 * rng.standard_normal())
    assert policy.ask(allowed=policy.arms.of("c")).arm - 12 == 2
    weights = policy.explain().correlations
    assert weights[1.0] + weights[0.5] > 0.9
    assert "segments      correlation" in str(policy.explain())


def test_an_arm_is_compared_with_the_best_allowed_in_its_round():
    """The best of a poor segment is no reason to look again, and its record outlives the decision."""
    means = np.concatenate([np.full(6, 0.8), np.linspace(-0.9, -0.5, 6), np.zeros(6)])
    policy = db.AutoBandit(crossed(0), seed=0)
    play(policy, 150, means)
    mask = policy.arms.of("b")
    best = int(np.where(mask, policy.estimate(), -np.inf).argmax())
    choice = policy.ask(allowed=mask)
    assert policy._pending.rows()["tag"].tolist() == [1 + best]
    state = policy.state_dict()
    require_equal(db.AutoBandit.restore(policy.arms, state).state_dict(), state)
    compared = []
    verify = policy._probing.verify
    policy._probing.verify = lambda *row: (compared.append(row[1]), verify(*row))
    policy.ask(allowed=policy.arms.of("a"))  # asked later, of another segment
    policy.tell(choice, -0.5)
    assert compared == ([] if choice.arm == best else [best])


def test_a_round_of_another_segment_leaves_a_doubt():
    policy = db.AutoBandit(crossed(0), seed=0)
    play(policy, 60, np.zeros(18))
    probing = policy._probing
    probing.doubted = 3
    probing.trust(8)
    expected = np.where(np.arange(18) == 8, 0.5, 0.0)
    probing.verify(9, 8, 0.0, expected, 0.1, 60)
    assert probing.doubted == 3
    probing.verify(9, 8, 0.9, expected, 0.1, 60)  # a surprise is
    assert probing.doubted == 9
    probing.trust(8)
    assert probing.doubted == -1


def test_unmasked_rounds_have_no_tag():
    policy = db.AutoBandit(OPTIONS, seed=0)
    policy.ask(size=3)
    assert policy._pending.rows()["tag"].tolist() == [0, 0, 0]


def test_tags_that_cannot_be_are_refused():
    policy = db.AutoBandit(crossed(), seed=0)
    policy.ask(allowed=policy.arms.of("a"))
    state = policy.state_dict()
    state["pending"]["tag"] = 19
    with pytest.raises(db.errors.StateError, match="best allowed arms"):
        db.AutoBandit.restore(policy.arms, state)


def test_probabilities_shown_are_those_of_each_segment():
    policy = db.AutoBandit(crossed(), seed=0)
    play(policy, 90, np.tile([0.0, 0.5, 0.0], 6))
    summary = policy.summary()
    order = np.argsort(summary.arms)
    assert summary.probability[order].reshape(3, 6).sum(axis=1) == pytest.approx(np.ones(3))
    assert policy.history.law[-1].sum() == pytest.approx(3.0)


@pytest.mark.parametrize("kind", [db.OPKB, db.AdaOPKB, db.CalibratedOPKB])
def test_the_opkb_family_says_why_it_refuses(kind):
    with pytest.raises(db.errors.InputError, match=f"{kind.__name__} learns nothing in rounds with a mask"):
        kind(crossed(), horizon=100)


def test_many_pairs_are_cut_to_the_rank():
    arms = db.ArmSet.crossed(db.ArmSet(np.linspace(0, 1, 30)[:, None], RBF(0.3)), [f"s{k}" for k in range(4)])
    policy = db.AutoBandit(arms, rank=20, seed=0)
    for now in range(30):
        policy.tell(policy.ask(allowed=arms.of(f"s{now % 4}")), 0.1)
    assert policy._beliefs.priors.width <= 21


# --- options that come and go ---------------------------------------------------------------------------------------


def replay(policy, log, width):
    """Let a policy with `width` options per segment have played the same rounds."""
    for option, segment, reward in log:
        arm = NAMES.index(segment) * width + option
        given = policy.impose(arm, float(policy.law(policy.arms.of(segment))[arm]), policy.arms.of(segment))
        policy.tell(given.decisions.ids, [reward])


def test_an_option_that_comes_is_believed_as_if_it_had_been_there():
    more = OPTIONS.extended([[1.2]])
    wide = db.ArmSet.crossed(more, NAMES, kernel=0.25)
    rng, means = np.random.default_rng(0), np.tile([0.1, 0.5, 0.3, 0.0, -0.2, -0.4], (3, 1))
    rounds = [(int(rng.integers(6)), NAMES[now % 3]) for now in range(75)]
    log = [(o, s, float(means[NAMES.index(s), o] + 0.05 * rng.standard_normal())) for o, s in rounds]
    narrow, whole = db.AutoBandit(crossed(0.25), seed=0), db.AutoBandit(wide, seed=0)
    replay(narrow, log, 6)
    replay(whole, log, 7)
    found = narrow.with_arms(wide)
    np.testing.assert_allclose(found.estimate(), whole.estimate(), atol=LEFT_OUT)
    np.testing.assert_allclose(found.interval(), whole.interval(), atol=LEFT_OUT)


def test_options_come_and_go_and_the_state_goes_on_bit_for_bit():
    policy = db.AutoBandit(crossed(), seed=0)
    play(policy, 60, np.tile([0.1, 0.5, 0.3, 0.0, -0.2, -0.4], 3))
    more = OPTIONS.extended([[1.5]])
    wider = policy.with_arms(db.ArmSet.crossed(more, NAMES, kernel=0.5))
    play(wider, 30, np.tile([0.1, 0.5, 0.3, 0.0, -0.2, -0.4, 0.9], 3))
    again = db.AutoBandit.restore(db.ArmSet.crossed(more, NAMES, kernel=0.5), wider.state_dict())
    require_equal(again.state_dict(), wider.state_dict())
    np.testing.assert_array_equal(again.law(again.arms.of("b")), wider.law(wider.arms.of("b")))
    fewer = wider.with_arms(db.ArmSet.crossed(more.without([6]), NAMES, kernel=0.5))
    kept = [place for place in range(21) if place % 7 < 6]
    np.testing.assert_allclose(fewer.estimate(), wider.estimate()[kept], atol=2 * LEFT_OUT)


def test_options_built_anew_are_measured_as_before():
    """With a kernel given, ArmSets built in any way are the same arms; length scales tried are those of the first."""
    policy = db.AutoBandit(crossed(), seed=0)
    play(policy, 30, np.tile([0.1, 0.5, 0.3, 0.0, -0.2, -0.4], 3))
    anew = db.ArmSet(np.vstack([OPTIONS.points, [[9.0]]]), RBF(0.3))
    wider = policy.with_arms(db.ArmSet.crossed(anew, NAMES, kernel=0.5))
    assert wider._beliefs.priors.length_scales == policy._beliefs.priors.length_scales
    again = db.AutoBandit.restore(db.ArmSet.crossed(anew, NAMES, kernel=0.5), wider.state_dict())
    require_equal(again.state_dict(), wider.state_dict())


def test_other_segments_are_refused():
    points = db.ArmSet([[0.0], [1.0], [2.0]], RBF(1.0), names=["x", "y", "z"])
    policy = db.AutoBandit(db.ArmSet.crossed(OPTIONS, points), seed=0)
    policy.ask(allowed=policy.arms.of("x"))
    before = policy.state_dict()
    fewer = db.ArmSet.crossed(OPTIONS, points.without(["z"]))
    with pytest.raises(db.errors.InputError, match="the same segments"):
        policy.with_arms(fewer)
    require_equal(policy.state_dict(), before)
