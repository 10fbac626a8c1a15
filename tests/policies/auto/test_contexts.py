"""AutoBandit with contexts: exact through every interruption, and right by second computations."""

import copy
import pickle

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import driftbandits as db
from driftbandits.arms.contexts import standardised
from driftbandits.policies.auto.relevance import RequestFeatures, Smoothness, _evidence, _sums, choose
from driftbandits.policies.auto.remembered import Remembered

CONTEXTS = db.Contexts(hour=db.cyclic(24), device=["mobile", "desktop", "other"], basket=float)
ARMS = db.ArmSet([[0.0], [1.0], [2.0]], names=["a", "b", "c"])


def context(now):
    rng = np.random.default_rng(now)
    device = ["mobile", "desktop", "tv"][rng.integers(3)]
    return {"hour": float(rng.uniform(0, 24)), "device": device, "basket": float(rng.lognormal())}


def reward(arm, now):
    best = 0 if context(now)["device"] == "mobile" else 1
    return 0.3 * (arm == best) + 0.05 * float(np.random.default_rng(10**6 + now).standard_normal())


def play(policy, first, last, *, late=0):
    """Ask and tell; rewards come `late` rounds later, in another order."""
    open_, found = [], []
    for now in range(first, last):
        choice = policy.ask(context=context(now))
        found.append((choice.arm, choice.probability))
        open_.append((choice, reward(choice.arm, now)))
        if len(open_) > late:
            policy.tell(*open_.pop(now % len(open_)))
    for choice, value in open_:
        policy.tell(choice, value)
    return found


def bandit(**settings):
    return db.AutoBandit(ARMS, contexts=CONTEXTS, seed=1, **settings)


@pytest.fixture(scope="module")
def played():
    policy = bandit()
    play(policy, 0, 200, late=5)
    return policy


def same_future(one, other):
    return play(copy.copy(one), 300, 420, late=3) == play(other, 300, 420, late=3)


def test_copies_and_files_go_on_bit_for_bit(played, tmp_path):
    played.save(tmp_path / "policy")
    pickled = pickle.loads(pickle.dumps(played))  # noqa: S301  # of this test
    for twin in (copy.copy(played), pickled, db.AutoBandit.load(ARMS, tmp_path / "policy")):
        assert same_future(played, twin)


def test_open_decisions_keep_their_contexts_when_saved(played):
    policy = copy.copy(played)
    choices = [policy.ask(context=context(now)) for now in range(200, 230)]
    twin = copy.copy(policy)
    for each in (policy, twin):
        for now, choice in reversed(list(enumerate(choices, start=200))):
            each.tell(choice, reward(choice.arm, now))
    assert same_future(policy, twin)


def test_batches_decide_as_single_requests(played):
    one, many = copy.copy(played), copy.copy(played)
    contexts = [context(now) for now in range(40)]
    assert [one.ask(context=each) for each in contexts] == list(many.ask(contexts=contexts))
    assert one.law(context=contexts[0]).tolist() == many.law(context=contexts[0]).tolist()


def test_recorded_rounds_can_be_imposed_and_their_laws_are_equal():
    first = bandit()
    rounds = play(first, 0, 150)
    twin = bandit()
    for now, (arm, probability) in enumerate(rounds):
        imposed = twin.impose(arm, probability, contexts=[context(now)])
        assert imposed.differing == 0
        twin.tell(imposed.decisions, reward(arm, now))
    assert same_future(first, twin)


def test_the_law_is_pure_and_that_of_the_draw(played):
    policy = copy.copy(played)
    before = policy.state_dict()["engine"]["samples"]["values"].copy()
    law = policy.law(context=context(7))
    assert (policy.law(context=context(7)) == law).all()
    policy.estimate(context=context(8)), policy.explain(context=context(9)), policy.summary()
    choice = policy.ask(context=context(7))
    assert choice.probability == law[choice.arm]
    assert law.sum() == pytest.approx(1.0)
    assert (policy.state_dict()["engine"]["samples"]["values"] == before).all()


def test_masks_keep_to_what_is_allowed(played):
    policy = copy.copy(played)
    for now in range(20):
        choice = policy.ask(context=context(now), allowed=["b", "c"])
        assert choice.arm in (1, 2)
        policy.tell(choice, 0.1)
    assert policy.law(context=context(0), allowed=["c"]).tolist() == [0, 0, 1]


def test_it_learns_what_depends_on_the_request(played):
    mobile = {**context(0), "device": "mobile"}
    assert played.estimate(context=mobile).round(1).tolist()[:2] == [0.3, 0.0]
    assert played.law(context=mobile)[0] > 0.9
    assert played.law(context={**mobile, "device": "desktop"})[1] > 0.9
    belief = played.explain()
    assert belief.columns["device"] > 0.9
    assert belief.columns["basket"] < 0.1
    assert "Rewards depend on device." in str(belief)


def test_arms_come_and_go(played):
    wider = played.with_arms(ARMS.extended([[3.0]], names=["d"]))
    play(wider, 200, 260)
    assert wider.law(context={**context(0), "device": "mobile"})[0] > 0.5
    fewer = wider.with_arms(wider.arms.without(["a"]))
    play(fewer, 300, 320)
    assert fewer.arms.names == ("b", "c", "d")


def test_arms_without_points_keep_what_is_known_when_others_come_and_go():
    policy = db.AutoBandit(db.ArmSet.separate(["a", "b", "c"]), contexts=CONTEXTS, seed=1)
    play(policy, 0, 150)
    request = {**context(0), "device": "mobile"}
    wider = policy.with_arms(policy.arms.extended(names=["d"]))
    assert wider.estimate(context=request)[:3] == pytest.approx(policy.estimate(context=request), abs=0.03)
    fewer = policy.with_arms(policy.arms.without(["c"]))
    assert fewer.estimate(context=request) == pytest.approx(policy.estimate(context=request)[:2], abs=0.03)


@pytest.mark.parametrize("settings", [{}, {"patience": 10, "missing": 0.0}, {"pending_limit": 12}, {"order": "asked"}])
def test_contexts_of_closed_decisions_are_dropped(settings):
    policy = bandit(**settings)
    choices = []
    for now in range(80):
        choices.append(policy.ask(context=context(now)))
        if now % 3 == 0:
            policy.tell(choices[-1], 0.1)
    policy.forget([each for each in choices[70:] if each.id % 3])
    twin = copy.copy(policy)  # refused if there are fewer contexts than decisions that may be learned from, or more
    requests = twin.state_dict()["engine"]["requests"]
    assert len(requests["open"]["ids"]) == twin.pending + twin.held


def test_requests_must_come_with_their_contexts(played):
    policy, before = copy.copy(played), played.rounds
    for call in (policy.ask, lambda: policy.ask(size=2), lambda: policy.ask(context={"hour": 1})):
        with pytest.raises(db.DriftbanditsError):
            call()
    with pytest.raises(db.DriftbanditsError, match="row 1: context column 'hour'"):
        policy.ask(contexts=[context(0), {**context(0), "hour": "x"}])
    with pytest.raises(db.DriftbanditsError, match="has no contexts"):
        db.Uniform(ARMS).ask(context={})
    assert policy.rounds == before
    assert same_future(played, policy)


def test_arms_too_many_for_a_model_each_are_refused_with_the_cure():
    many = db.ArmSet.separate([f"arm {k}" for k in range(80)])
    with pytest.raises(db.DriftbanditsError, match="describe the arms by points"):
        db.AutoBandit(many, contexts=db.Contexts(2)).ask(context=[0.0, 1.0])


def test_a_damaged_state_is_refused(played):
    state = played.state_dict()
    for name, value in (("centre", np.zeros(2)), ("told", -1), ("next_choice", 0), ("spread", np.zeros(6))):
        broken = {**state, "engine": {**state["engine"], "requests": {**state["engine"]["requests"], name: value}}}
        with pytest.raises(db.errors.StateError):
            db.AutoBandit.restore(ARMS, broken)


# --- second computations -----------------------------------------------------------------------------------------


def test_the_evidence_is_that_of_the_whole_covariance():
    rng = np.random.default_rng(0)
    n, arms, requests = 60, rng.integers(3, size=60), rng.standard_normal((60, 2))
    features = RequestFeatures(requests, np.array([3.0, 1.2]), 8)
    sizes = Smoothness((3.0, 1.2), arms=0.05, requests=0.02, joint=0.08, noise=0.01)
    psi = features(requests)
    same = arms[:, None] == arms
    inner = psi @ psi.T
    covariance = 0.1 + 0.05 * same + 0.02 * inner + 0.08 * same * inner + 0.01 * np.eye(n)
    rewards = rng.standard_normal(n)
    design = np.hstack([np.ones((n, 1)), psi])
    found = _evidence(_sums(design, [np.flatnonzero(arms == a) for a in range(3)], rewards), sizes)
    wanted = multivariate_normal(np.zeros(n), covariance).logpdf(rewards) + 0.5 * n * np.log(2 * np.pi)
    assert found == pytest.approx(wanted, rel=1e-8)


def test_features_are_those_of_the_centred_kernel():
    points = np.random.default_rng(0).standard_normal((80, 2))
    features = RequestFeatures(points, np.array([2.0, np.inf]), 60)
    psi = features(points)
    assert psi.mean(axis=0) == pytest.approx(0.0, abs=1e-9)
    assert np.square(psi).sum(axis=1).mean() == pytest.approx(1.0)
    gram = np.exp(-0.5 * np.square((points[:, None, 0] - points[:, 0]) / 2.0))
    gram -= gram.mean(axis=0) + gram.mean(axis=1)[:, None] - gram.mean()
    gram /= gram.diagonal().mean()
    assert psi @ psi.T == pytest.approx(gram, abs=0.05)


@pytest.mark.parametrize(("columns", "rewards"), [(2, 128), (8, 256), (32, 512)])
def test_the_columns_that_matter_are_found(columns, rewards):
    """By the seeds 0 to 4; a column too many in one of them would not fail it."""
    right = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        requests, arms = rng.standard_normal((rewards, columns)), rng.integers(4, size=rewards)
        values = 0.2 * np.sin(requests[:, 0] + arms) + 0.2 * requests[:, 1] * (arms - 1.5)
        told = values + 0.1 * rng.standard_normal(rewards)
        right += choose(requests, arms, told, db.Contexts(columns), everything=False).chosen == (0, 1)
    assert right >= 4


def test_useless_columns_are_left_out():
    """Rewards that depend on nothing: over 20 seeds, at most one choice takes a column in."""
    taken = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        requests, arms = rng.standard_normal((256, 8)), rng.integers(4, size=256)
        told = 0.1 * rng.standard_normal(256)
        taken += bool(choose(requests, arms, told, db.Contexts(8), everything=False).chosen)
    assert taken <= 1


def test_what_is_remembered_is_bounded():
    told = Remembered(1)
    for ident in range(20_000):
        told.add(ident, 0, 0.0, np.zeros(1))
    assert told.size <= 8192
    kept = told.since(0)
    assert told.ids[kept].tolist() == list(range(20_000 - 4096, 20_000))
    assert told.ids[told.since(19_990)].tolist() == list(range(19_990, 20_000))


def test_learning_anew_from_what_is_remembered_is_learning_one_by_one():
    """Without births and drift, the chunks of `_learn_chunk` must give the posterior of a plain regression."""
    policy = bandit()
    play(policy, 0, 40)  # chosen after 40 rewards, and learned anew from them in two chunks
    beliefs = policy._beliefs
    old = np.flatnonzero((beliefs.rate[: beliefs.count] == 0) & (beliefs.birth[: beliefs.count] == 0))
    told = policy._remembered
    for row in old.tolist():
        readings, kind = beliefs.priors.rows, int(beliefs.kind[row])
        readings.enter(standardised(told.codes[:40], policy._centre, policy._spread), told.arms[:40])
        rows = readings.of(kind)
        # the noise moves a little with every chunk: the mean is compared at its last value
        noise = beliefs.noise[row]
        precision = np.eye(rows.shape[1]) + rows.T @ rows / noise
        mean = np.linalg.solve(precision, rows.T @ told.rewards[:40] / noise)
        assert rows @ beliefs.mean[row] == pytest.approx(rows @ mean, abs=0.03)
