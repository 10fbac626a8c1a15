"""Arms that come and go: against a policy that had all of them from the start, on odd sets, and what is refused."""

import dataclasses
import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.errors import UnknownDecisionError
from driftbandits.policies.arm_migration import match_arms, old_features, unexplained
from driftbandits.testing.helpers import require_equal
from driftbandits.types import ARMS_CHANGED

POINTS = np.random.default_rng(0).random((14, 2))
WORTH = 0.5 * np.sin(5.0 * POINTS[:, 0])
OLD = 10  # arms at first; the others come
NAMES = [f"arm {number}" for number in range(14)]
EXACT = {
    "GPUCB": {},
    "LinUCB": {},
    "SlidingWindowGPUCB": {"window": 30},
    "SlidingWindowLinUCB": {"window": 30},
    "RestartGPUCB": {"period": 45},
    "WeightedGPUCB": {"discount": 0.95},
    "DiscountedLinUCB": {"discount": 0.95},
    "EventTriggeredGPUCB": {},
    "TimeVaryingGPUCB": {"rate": 0.02},
}


def arms_of(numbers, kernel=None):
    return db.ArmSet(POINTS[list(numbers)], kernel or RBF(0.4), [NAMES[arm] for arm in numbers])


def play(policies, rounds, *, arms=OLD, seed=1):
    """The same arms and rewards for all of them; the world is turned over halfway."""
    rng = np.random.default_rng(seed)
    for now in range(rounds):
        arm = int(rng.integers(arms))
        reward = float(np.clip(WORTH[arm] * (1 if 2 * now < rounds else -1) + 0.1 * rng.standard_normal(), -1, 1))
        for policy in policies:
            policy.tell(policy.ask(allowed=[NAMES[arm]]), reward)


def both(name, rounds=60, **settings):
    """A policy that gets its last arms now, and one that had them from the start."""
    kind = getattr(db, name)
    small, whole = (kind(arms_of(range(count)), seed=0, **settings) for count in (OLD, 14))
    play((small, whole), rounds)
    return small, whole


@pytest.mark.parametrize("name", EXACT)
def test_new_arms_are_believed_what_they_would_have_been(name):
    small, whole = both(name, **EXACT[name])
    wider = small.with_arms(arms_of(range(14)))
    for after in range(2):
        np.testing.assert_allclose(wider.estimate(), whole.estimate(), atol=1e-6)
        np.testing.assert_allclose(wider._index(), whole._index(), atol=1e-6)  # the variances too
        play((wider, whole), 20, arms=14, seed=2 + after)


@pytest.mark.parametrize("name", EXACT)
def test_who_goes_leaves_behind_what_it_taught(name):
    small, whole = both(name, **EXACT[name])
    kept = [13, 0, 5, 2, 7]
    fewer = small.with_arms(arms_of(kept))
    np.testing.assert_allclose(fewer.estimate(), whole.estimate()[kept], atol=1e-6)
    np.testing.assert_allclose(fewer._index(), whole._index()[kept], atol=1e-6)
    if name != "TimeVaryingGPUCB":  # whose beliefs of who is gone are gone
        back = fewer.with_arms(arms_of([0, 13])).with_arms(arms_of(range(14)))
        np.testing.assert_allclose(back.estimate(), whole.estimate(), atol=1e-6)


def test_every_hypothesis_of_autobandit_believes_of_new_arms_what_it_would_have():
    """Births by a reset, in part, of the level and of single arms among them."""
    small, whole = both("AutoBandit", rounds=80, kernel="given")
    wider = small.with_arms(arms_of(range(14)))
    ours, theirs = wider._beliefs, whole._beliefs
    assert ours.count == theirs.count
    assert set(ours.origin[: ours.count].tolist()) >= {0, 1, 2, 3, 4}
    for row in range(ours.count):
        for found, wanted in zip(ours.reading(row), theirs.reading(row), strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-6)
        np.testing.assert_allclose(ours.covariance(row), theirs.covariance(row), atol=1e-6)
    np.testing.assert_allclose(wider.estimate(), whole.estimate(), atol=1e-6)
    play((wider, whole), 20, arms=14)
    np.testing.assert_allclose(wider.estimate(), whole.estimate(), atol=1e-6)


def test_the_conditional_is_that_of_the_kernel():
    """Closed form: K_no K_oo^-1, and K_nn less what it explains."""
    change = match_arms(arms_of(range(OLD)), arms_of([3, 12, 0, 13]))
    kernel = RBF(0.4)(POINTS)
    rows, news = old_features(change), [12, 13]
    inverse = np.linalg.inv(kernel[:OLD, :OLD])
    np.testing.assert_allclose(rows[change.added] @ change.old.features.T, kernel[news, :OLD], atol=1e-8)
    rest = kernel[np.ix_(news, news)] - kernel[news, :OLD] @ inverse @ kernel[:OLD, news]
    np.testing.assert_allclose(unexplained(change, rows)[np.ix_(change.added, change.added)], rest, atol=1e-6)
    assert not unexplained(change, rows)[change.kept].any()


@pytest.mark.parametrize("sizes", [(18, 26), (26, 18), (26, 30)], ids=lambda sizes: f"{sizes[0]} to {sizes[1]}")
def test_beyond_the_rank_limit_what_is_known_of_kept_arms_stays_nearly(sizes):
    """With rank 10, up to 20 arms are their own coordinates, and more are features: both ways, and among features."""
    points = np.linspace(0.0, 1.0, 30)[:, None]
    policy = db.AutoBandit(db.ArmSet(points[: sizes[0]], RBF(0.3)), rank=10, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(150):
        choice = policy.ask()
        policy.tell(choice, float(0.6 * np.sin(6.0 * points[choice.arm, 0]) + 0.05 * rng.standard_normal()))
    other = policy.with_arms(db.ArmSet(points[: sizes[1]], RBF(0.3)))
    kept = min(sizes)
    np.testing.assert_allclose(other.estimate()[:kept], policy.estimate()[:kept], atol=0.05)
    require_equal(type(other).restore(other.arms, other.state_dict()).state_dict(), other.state_dict())


@pytest.mark.parametrize("name", ["GPUCB", "TimeVaryingGPUCB", "AutoBandit"])
def test_arms_from_matrices_and_from_features(name):
    kernel = RBF(0.4)(POINTS)
    features = np.linalg.cholesky(kernel + 1e-9 * np.eye(14))
    whole = {
        "matrix": db.ArmSet(POINTS, kernel, NAMES),
        "features": db.ArmSet.from_features(features, names=NAMES, points=POINTS),
    }
    small = {
        "matrix": db.ArmSet(POINTS[:OLD], kernel[:OLD, :OLD], NAMES[:OLD]),
        "features": db.ArmSet.from_features(features[:OLD], names=NAMES[:OLD], points=POINTS[:OLD]),
    }
    settings = {"kernel": "given"} if name == "AutoBandit" else {}
    for form, arms in whole.items():
        policies = [getattr(db, name)(each, seed=0, **settings) for each in (small[form], arms)]
        play(policies, 40)
        wider = policies[0].with_arms(arms)
        np.testing.assert_allclose(wider.estimate(), policies[1].estimate(), atol=1e-6)
        fewer = wider.with_arms(arms.without(NAMES[2:5]))
        kept = [0, 1, *range(5, 14)]
        np.testing.assert_allclose(fewer.estimate(), policies[1].estimate()[kept], atol=1e-6)


def test_a_matrix_that_says_nothing_of_new_arms_and_gone_ones():
    """The kept arms speak for those gone; what is known of kept ones stays."""
    kernel = RBF(0.4)(POINTS)
    policy = db.GPUCB(db.ArmSet(POINTS[:OLD], kernel[:OLD, :OLD], NAMES[:OLD]))
    play((policy,), 40)
    chosen = list(range(4, 14))
    other = policy.with_arms(db.ArmSet(POINTS[chosen], kernel[np.ix_(chosen, chosen)], [NAMES[arm] for arm in chosen]))
    np.testing.assert_allclose(other.estimate()[:6], policy.estimate()[4:], atol=1e-6)


@pytest.mark.parametrize("name", sorted(db.policies.POLICIES.keys() - EXACT.keys() - {"AutoBandit"}))
def test_others_keep_means_or_say_that_they_begin_anew(name):
    settings = {"width": 16, "steps": 2} if db.policies.POLICIES[name].family == "neural" else {}
    policy = db.policies.POLICIES[name](arms_of(range(6)), horizon=400, seed=0, **settings)
    for _ in range(30):
        choice = policy.ask()
        policy.tell(choice, float(WORTH[choice.arm]))
    other = policy.with_arms(arms_of([5, 2, 12]))
    records = [change for change in other.changes if change.stream == ARMS_CHANGED]
    if records:
        assert str(records[-1]) == "Arms changed at round 30; forgot all it knew: 1 arm came and 4 arms went."
    else:
        np.testing.assert_allclose(other.estimate()[:2], policy.estimate()[[5, 2]], atol=1e-9)
    assert other.changes_found == policy.changes_found
    assert other.law().shape == (3,)


@pytest.mark.parametrize(
    "name", ["AutoBandit", "GPUCB", "TimeVaryingGPUCB", "CalibratedOPKB", "SlidingWindowUCB", "Exp3S"]
)
@pytest.mark.parametrize("form", ["separate", "features"])
def test_independent_options_one_added_later(name, form):
    """The documented way, arms.md: of names alone, and of `from_features(numpy.eye(5))`, which earlier pages showed."""
    names = ["storm", "derby", "recipe", "horoscope", "traffic"]
    arms = db.ArmSet.separate(names) if form == "separate" else db.ArmSet.from_features(np.eye(5), names=names)
    worth = {"storm": 0.3, "derby": -0.2, "recipe": 0.1, "horoscope": -0.5, "traffic": 0.0, "strike": 0.9}
    policy = db.policies.POLICIES[name](arms, horizon=1_000, seed=0)

    def play_on(policy, rounds):
        for _ in range(rounds):
            choice = policy.ask()
            policy.tell(choice, worth[choice.name])
        return policy

    play_on(policy, 100)
    wider = policy.with_arms(policy.arms.without(["horoscope"]).extended(names=["strike"]))
    if name in ("AutoBandit", "GPUCB", "TimeVaryingGPUCB", "SlidingWindowUCB"):  # others begin anew
        np.testing.assert_allclose(wider.estimate()[:4], policy.estimate()[[0, 1, 2, 4]], atol=1e-6)
        play_on(wider, 300)
        assert wider.arms.names[int(wider.estimate().argmax())] == "strike"
    back = wider.with_arms(wider.arms.extended(names=["horoscope"]))
    again = type(back).restore(back.arms, back.state_dict())
    assert again.ask() == play_on(back, 0).ask()


def test_separate_arms_in_another_order_are_refused_with_the_cure():
    policy = db.Uniform(db.ArmSet.separate(["a", "b", "c"]))
    with pytest.raises(db.errors.InputError, match=r"from the old ones, with extended\(names=\[...\]\) and without"):
        policy.with_arms(db.ArmSet.separate(["a", "c"]))
    with pytest.raises(db.errors.InputError, match=r"extended\(names=\[...\]\)"):
        db.Uniform(db.ArmSet.from_features(np.eye(3), names=list("abc"))).with_arms(
            db.ArmSet.from_features(np.eye(4), names=list("abcd"))
        )


def test_a_guessed_kernel_and_its_scale_stay_as_they_were():
    first = db.ArmSet([[0.0], [1.0], [2.0]], names=["a", "b", "c"])
    far = db.ArmSet([[0.0], [1.0], [80.0]], names=["a", "b", "d"])
    assert far.kernel != first.kernel
    policy = db.GPUCB(first, seed=0)
    policy.tell(policy.ask(), 0.5)
    other = policy.with_arms(far)
    assert other.arms.kernel == first.kernel
    again = db.GPUCB.restore(db.ArmSet([[0.0], [1.0], [80.0]], names=["a", "b", "d"]), other.state_dict())
    assert again.arms.kernel == first.kernel
    assert again.ask() == other.ask()
    linear = db.ArmSet([[1.0], [2.0]], {"name": "linear"})
    policy = db.GPUCB(linear, seed=0)
    policy.tell(policy.ask(), 0.5)
    wider = policy.with_arms(db.ArmSet([[1.0], [2.0], [6.0]], {"name": "linear"}))
    assert wider.arms.scale == linear.scale == 4.0
    np.testing.assert_allclose(wider.estimate()[2] / wider.estimate()[1], 3.0)
    np.testing.assert_allclose(wider.estimate()[:2], policy.estimate())


def test_autobandit_measures_new_arms_by_the_columns_of_the_first():
    points = np.random.default_rng(0).random((8, 2)) * [1.0, 100.0]
    policy = db.AutoBandit(db.ArmSet(points, names=NAMES[:8]), seed=0)
    policy.ask()
    wild = db.ArmSet([*points, [9.0, 9_000.0]], names=NAMES[:9])
    other = policy.with_arms(wild)
    assert other._beliefs.priors.length_scales == policy._beliefs.priors.length_scales
    kinds = range(policy._beliefs.priors.count)
    for kind in kinds:
        before, now = (p._beliefs.priors.prior[kind][:8, :8] for p in (policy, other))
        np.testing.assert_allclose(now, before, atol=1e-3)  # features leave out 1e-4 of a variance
    assert db.AutoBandit(wild)._ahead()._beliefs.priors.length_scales != policy._beliefs.priors.length_scales


def test_a_column_in_which_no_arm_differed_gets_its_unit_with_the_first_that_does():
    flat = db.ArmSet([[0.0, 3.0], [1.0, 3.0], [2.0, 3.0]])
    wider = flat.extended([[1.0, 5.0]])
    assert flat.gauge.spreads[1] == 0.0 < wider.gauge.spreads[1]
    assert wider.gauge.spreads[0] == flat.gauge.spreads[0]
    policy = db.AutoBandit(flat, seed=0)
    for _ in range(60):
        choice = policy.ask()
        policy.tell(choice, [0.0, 0.9, 0.0][choice.arm])
    other = policy.with_arms(wider)
    assert abs(other.estimate()[3] - other.estimate()[1]) > 0.05  # not taken for the arm at [1, 3]


def test_decisions_keep_their_arms_over_several_changes():
    policy = db.Uniform(arms_of(range(6)), seed=0)
    batch = policy.ask(size=60)
    second = policy.with_arms(arms_of([4, 3, 2, 10]))
    later = second.ask(size=20)
    third = second.with_arms(arms_of([10, 2, 11]))
    assert third.pending == 80
    third = db.Uniform.restore(arms_of([10, 2, 11]), third.state_dict())
    third.tell(batch, np.where(batch.arms == 2, 0.5, -1.0))
    third.tell(list(later), np.where(later.arms == 3, 0.25, np.where(later.arms == 2, 0.5, -1.0)))
    assert third.estimate().tolist() == [0.25, 0.5, 0.0]
    assert (third.pending, third.late) == (0, int((batch.arms != 2).sum() + (later.arms < 2).sum()))
    assert not third._renumbered.export()["changes"] or third.ask()  # nothing older is open


def test_a_decision_with_another_arm_is_refused_after_a_change_too():
    policy = db.Uniform(arms_of(range(6)), seed=0)
    choice = policy.ask()
    other = policy.with_arms(arms_of([5, 4, 3, 2, 1, 0]))
    wrong = db.Decision(id=choice.id, arm=(choice.arm + 1) % 6, probability=choice.probability, law=choice.law)
    with pytest.raises(db.errors.UnknownDecisionError, match="another decision"):
        other.tell(wrong, 0.5)
    other.tell(choice, 0.5)


def test_equal_points_without_names_are_matched_in_their_order():
    old = db.ArmSet([[0.0], [1.0], [1.0], [2.0]])
    change = match_arms(old, db.ArmSet([[1.0], [2.0], [1.0], [1.0]], old.kernel))
    assert change.source.tolist() == [1, 3, 2, -1]
    assert change.target.tolist() == [-1, 0, 2, 1]


REFUSED = {
    "another point": (lambda: db.ArmSet(POINTS[[1, 0]], RBF(0.4), NAMES[:2]), "'arm 0' has the point .* now and had"),
    "other dimensions": (lambda: db.ArmSet(POINTS[:3, :1], RBF(0.4), NAMES[:3]), "1 dimension, the arms so far 2"),
    "another kernel": (lambda: arms_of(range(5), RBF(0.5)), "another kernel: k.x, y. of arms"),
    "another matrix": (lambda: db.ArmSet(POINTS[:5], np.eye(5), NAMES[:5]), "another kernel"),
    "nobody in common": (lambda: arms_of([12, 13]), "none of the 2 new arms is among the 10 arms"),
    "no arms": (lambda: POINTS, "wants an ArmSet, got ndarray"),
    "one name twice": (lambda: db.ArmSet(POINTS[:2], RBF(0.4), ["arm 0", "arm 0"]), "two arms are called 'arm 0'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_arms_are_one_clear_error(case):
    make, message = REFUSED[case]
    policy = db.GPUCB(arms_of(range(OLD)), seed=0)
    play((policy,), 20)
    before = policy.state_dict()
    with pytest.raises(db.errors.InputError, match=message):
        policy.with_arms(make())
    require_equal(policy.state_dict(), before)


def test_columns_in_another_order_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(POINTS, columns=["x", "y"])
    policy = db.Uniform(db.ArmSet(frame, RBF(0.4)))
    with pytest.raises(db.errors.InputError, match="give the same in the same order"):
        policy.with_arms(db.ArmSet(frame[["y", "x"]], RBF(0.4)))


def test_a_state_of_first_arms_is_not_read_with_arms_that_follow_others():
    first = db.ArmSet([[0.0], [1.0], [5.0]])
    follows = first.with_points([[0.0], [1.0]])
    state = db.Uniform(db.ArmSet([[0.0], [1.0]], first.kernel)).state_dict()
    with pytest.raises(db.errors.StateError, match="arms that came first"):
        db.Uniform.restore(follows, state)


def test_before_the_first_round_arms_are_simply_others():
    policy = db.AutoBandit(arms_of(range(4)), seed=3)
    other = policy.with_arms(arms_of([1, 13]))
    assert (other.rounds, other.seed, other.changes) == (0, 3, ())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert other.law().shape == (2,)


def test_a_decision_of_an_arm_that_never_was_is_refused_where_its_own_is_gone():
    policy = db.Uniform(arms_of(range(3)), seed=0)
    choice = policy.ask(allowed=[NAMES[1]])
    fewer = policy.with_arms(arms_of([0, 2, 5, 6]))
    for arm in (-1, 0, 2, 3):
        with pytest.raises(UnknownDecisionError, match="belongs to another decision"):
            fewer.tell(dataclasses.replace(choice, arm=arm), 0.5)
    fewer.tell(choice, 0.5)
    assert fewer.late == 1


def test_options_come_to_segments_crossed_as_before_and_what_is_wrong_has_a_cure_of_its_own():
    options = db.ArmSet(POINTS[:4], names=NAMES[:4])
    policy = db.GPUCB(db.ArmSet.crossed(options, ["mobile", "desktop"]), seed=0)
    policy.tell(policy.ask(), 0.5)
    more = options.extended(POINTS[4:5] + 1.0, names=["far"])
    wider = policy.with_arms(db.ArmSet.crossed(more, ["mobile", "desktop"]))
    assert wider.ask(allowed=wider.arms.of("desktop")).name.endswith(" | desktop")
    before = policy.state_dict()
    guessed_anew = db.ArmSet.crossed(db.ArmSet(more.points, names=more.names), ["mobile", "desktop"])
    for arms, cure in (
        (guessed_anew, "the old options' extended"),
        (db.ArmSet.crossed(options, ["mobile", "desktop", "watch"]), "5 dimensions, .* so far 4.* mere names"),
    ):
        with pytest.raises(db.errors.InputError, match=cure):
            policy.with_arms(arms)
    require_equal(policy.state_dict(), before)
