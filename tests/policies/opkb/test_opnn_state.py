"""OPNN and ADA-OPNN: saved state, and rewards that come late, in batches, under masks or never."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from driftbandits import OPNN, AdaOPNN, Variant
from driftbandits.errors import StateError
from tests.policies.opkb.slow_network import SlowNetwork
from tests.policies.opkb.small_networks import (
    ARMS,
    CALM,
    FIRES,
    POINTS,
    QUICK,
    SMALL,
    assert_same,
    assert_weights,
    quiet_seed,
    reward,
    source,
    stretch,
    weights_of,
)

# --- state -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", [None, "cpu"], ids=["numpy", "torch"])
def test_restored_anywhere_it_goes_on_bit_for_bit(device, tmp_path):
    """In blocks, after trainings, after restarts, between ask and tell, through a file."""
    policy = AdaOPNN(ARMS, horizon=400, seed=1, constants=QUICK, device=device, **SMALL)
    kinds = set()
    for t in range(330):
        sign = (-1) ** (t // 90)
        if t % 11 == 5:
            policy.ask()  # never told
        if t % 7 == 3:
            if t % 3:
                again = AdaOPNN.restore(ARMS, policy.state_dict())
            else:
                policy.save(tmp_path / "policy")
                again = AdaOPNN.load(ARMS, tmp_path / "policy")
            assert_same(again.state_dict(), policy.state_dict())
            assert_weights(again.network, weights_of(policy.network))
            np.testing.assert_array_equal(again.network.outputs(POINTS), policy.network.outputs(POINTS))
            kinds.add((len(policy.changes) > 0, bool(source(policy)["weights"])))
            policy, other = again, policy  # the restored one goes on, the old one beside it for one round
            choice = other.ask()
            other.tell(choice.id, float(reward(choice.arm, sign)))
        choice = policy.ask()
        policy.tell(choice.id, float(reward(choice.arm, sign)))
        if t % 7 == 3:
            assert_same(policy.state_dict(), other.state_dict())
    assert kinds == {(False, False), (False, True), (True, False), (True, True)}


def test_restored_in_a_trained_block_it_restarts_and_estimates_as_before():
    """Block 0 of the next epoch is judged by phi^(0), not by the features at the time of the restore."""
    policy = AdaOPNN(ARMS, horizon=600, seed=0, constants=FIRES, **SMALL)
    stretch(policy)
    assert source(policy)["weights"]
    again = AdaOPNN.restore(ARMS, policy.state_dict())
    for each in (policy, again):
        while not each.changes:
            stretch(each, sign=-1)
        choice = each.ask()
        each.tell(choice.id, 0.7)
    assert policy.estimate().any()
    np.testing.assert_array_equal(policy.estimate(), again.estimate())


def test_restored_in_the_first_block_after_a_restart_it_has_the_features_that_were_kept():
    """Trained weights beside nothing seen yet: what follows is the same."""
    kept = dataclasses.replace(Variant.paper(), after_restart="kept_features")
    policy = AdaOPNN(ARMS, horizon=600, seed=0, constants=FIRES, variant=kept, **SMALL)
    back = AdaOPNN(ARMS, horizon=600, seed=0, constants=FIRES, **SMALL)
    for each in (policy, back):
        stretch(each)
        while not each.changes:
            stretch(each, sign=-1)
        each.ask()  # the next epoch has begun
    assert source(policy)["weights"]
    assert not source(policy)["counts"].any()
    assert not source(back)["weights"]
    again = AdaOPNN.restore(ARMS, policy.state_dict())
    assert again.variant == kept
    for each in (policy, again):
        while each.rounds < 500:
            stretch(each)
    np.testing.assert_array_equal(policy.estimate(), again.estimate())
    assert_same(policy.state_dict(), again.state_dict())


def test_settings_survive_the_state():
    given = {
        **SMALL,
        "learning_rate": 1e-6,
        "train": False,
        "symmetric": True,
        "normalise": False,
        "device": "cpu",
        "variant": Variant(share=0.3),
    }
    policy = AdaOPNN(ARMS, horizon=100, constants=QUICK, **given)
    policy.ask()
    again = AdaOPNN.restore(ARMS, policy.state_dict())
    assert repr(again) == repr(policy)
    for name in ("width=16", "depth=3", "steps=5", "learning_rate=1e-06", "weight_decay=0.5", "train=False"):
        assert name in repr(again)
    assert "symmetric=True" in repr(again)
    assert "normalise=False" in repr(again)
    assert "device='cpu'" in repr(again)
    assert again.train is False


def without(name):
    return lambda kept: kept.pop(name)


def with_value(name, value):
    return lambda kept: kept.update({name: value(kept[name]) if callable(value) else value})


def with_layer(change):
    return lambda kept: kept["weights"][1].update(layer=change(kept["weights"][1]["layer"]))


def spoilt(values, where=0):
    copy = values.copy()
    copy.flat[where] = np.nan
    return copy


DAMAGE = {
    "no weights": without("weights"),
    "weights not a list": with_value("weights", 3),
    "a layer less": with_value("weights", lambda layers: layers[:-1]),
    "a layer without its values": with_value("weights", lambda layers: [{}, *layers[1:]]),
    "a layer of another shape": with_layer(lambda w: w[:-1]),
    "a layer in double precision": with_layer(lambda w: w.astype(np.float64)),
    "a weight that is not finite": with_layer(spoilt),
    "no features": without("first"),
    "features of other arms": with_value("first", lambda f: f[:-1]),
    "features that are not finite": with_value("first", spoilt),
    "no present features": with_value("present", None),
    "present features of other arms": with_value("present", lambda f: f[1:]),
    "present features that are not finite": with_value("present", spoilt),
    "no number of trainings": without("trainings"),
    "a negative number of trainings": with_value("trainings", -1),
    "no counts": without("counts"),
    "negative counts": with_value("counts", lambda n: -n),
    "counts of other arms": with_value("counts", lambda n: n[1:]),
    "counts that are not finite": with_value("counts", spoilt),
    "no sums": without("sums"),
    "sums that are not finite": with_value("sums", spoilt),
}


def damaged(policy, change):
    state = policy.state_dict()
    change(state["engine"]["features"])
    return state


@pytest.fixture(scope="module")
def trained():
    policy = AdaOPNN(ARMS, horizon=400, seed=1, constants=CALM, **SMALL)
    for _ in range(4):
        stretch(policy)
    assert policy.trainings
    AdaOPNN.restore(ARMS, policy.state_dict())
    return policy


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_state_is_refused(damage, trained):
    with pytest.raises(StateError):
        AdaOPNN.restore(ARMS, damaged(trained, damage))


def test_a_state_with_trained_features_and_no_layer_is_refused(trained):
    with pytest.raises(StateError):
        AdaOPNN.restore(ARMS, damaged(trained, with_value("weights", [])))


@pytest.mark.parametrize("never", [{"width": "infinite"}, {**SMALL, "train": False}], ids=["infinite", "untrained"])
def test_a_state_with_weights_where_nothing_is_trained_is_refused(never, trained):
    policy = AdaOPNN(ARMS, horizon=400, constants=CALM, **never)
    policy.ask()
    kept = source(trained)
    with pytest.raises(StateError):
        AdaOPNN.restore(ARMS, damaged(policy, lambda s: s.update(weights=kept["weights"], present=kept["present"])))


@pytest.mark.parametrize("wrong", [{"width": 0}, {"width": 32}, {"steps": None}, {"train": "yes"}, {"pace": 3}])
def test_a_state_with_unusable_settings_is_refused(wrong, trained):
    state = trained.state_dict()
    with pytest.raises(StateError):
        AdaOPNN.restore(ARMS, {**state, "settings": {**state["settings"], **wrong}})


def test_looking_at_the_end_of_a_block_changes_nothing():
    """All of block 0 is pending: law and estimate are those of a copy that moves on; the late rewards still count."""
    looking, blind = (AdaOPNN(ARMS, horizon=400, seed=2, constants=QUICK, **SMALL) for _ in range(2))
    size = looking.steady_rounds()
    for number in range(6):
        batches = [policy.ask(size=size if number == 0 else 31) for policy in (looking, blind)]
        looking.tell(batches[0].ids[:2], reward(batches[0].arms[:2]))
        blind.tell(batches[1].ids[:2], reward(batches[1].arms[:2]))
        before = looking.state_dict()
        for _ in range(2):
            looking.law(), looking.estimate(), looking.steady_rounds(), looking.trainings, repr(looking)
        assert_same(looking.state_dict(), before)
        for policy, batch in zip((looking, blind), batches, strict=True):
            policy.tell(batch.ids[2:], reward(batch.arms[2:]))
        assert_same(looking.state_dict(), blind.state_dict())
    assert looking.trainings >= 2


def test_the_law_ahead_of_a_training_is_the_one_played():
    policy = OPNN(ARMS, horizon=400, seed=2, constants=QUICK, **SMALL)
    batch = policy.ask(size=policy.steady_rounds())
    policy.tell(batch.ids[1:], reward(batch.arms[1:]))
    assert policy.trainings == 0
    ahead, known = np.array(policy.law()), np.array(policy.estimate())
    choice = policy.ask()
    assert policy.trainings == 1
    assert choice.probability == ahead[choice.arm]
    np.testing.assert_array_equal(policy.law(), ahead)
    np.testing.assert_array_equal(policy.estimate(), known)


# --- late, lost, batched and masked rewards --------------------------------------------------------------------------


def test_a_reward_told_late_enters_the_next_training_and_not_the_present_features():
    seed = quiet_seed()
    policy = AdaOPNN(ARMS, horizon=400, seed=seed, constants=CALM, **SMALL)
    slow = SlowNetwork(POINTS, width=16, seed=seed)
    size = policy.steady_rounds()
    old = policy.ask(size=size)
    policy.tell(old.ids[2:], reward(old.arms[2:]))
    new = policy.ask(size=2 * size)
    first = slow.trained(old.arms[2:], reward(old.arms[2:]), steps=5, decay=0.5)
    assert_weights(policy.network, first, atol=1e-5)
    policy.tell(old.ids[:2], [0.9, -0.9])
    assert_weights(policy.network, first, atol=1e-5)
    policy.tell(new.ids[1:], reward(new.arms[1:]))
    policy.forget(new.ids[0])
    assert policy.trainings == 2
    arms = np.concatenate([old.arms, new.arms[1:]])
    rewards = np.concatenate([[0.9, -0.9], reward(arms[2:])])
    assert_weights(policy.network, slow.trained(arms, rewards, steps=5, decay=0.5), atol=1e-5)


def test_sums_are_those_of_the_rounds_told_since_the_restart():
    """Rewards late, lost, one by one and in batches, masks, units of the user and a scale of the theory."""
    constants = dataclasses.replace(QUICK, c0=0.3, scale=4.0)
    policy = AdaOPNN(ARMS, horizon=700, seed=0, constants=constants, reward_range=(0.0, 10.0), **SMALL)
    rng = np.random.default_rng(0)
    open_rounds, told, ignored = [], [], 0
    while policy.rounds < 600:
        law = np.array(policy.law())
        mask = np.ones(8, dtype=bool)
        if rng.random() < 0.2:
            mask[rng.integers(8, size=3)] = False
        size = int(rng.integers(1, 6))
        if not mask.all():
            asked = [policy.ask(allowed=mask)]
        else:
            asked = [policy.ask()] if size == 1 else list(policy.ask(size=size))
        counted = mask.all() or not law[~mask].any()
        open_rounds += [(choice.id, choice.arm, counted) for choice in asked]
        if len(asked) == 1 and rng.random() < 0.5:
            now = [open_rounds.pop()]  # at once
        else:
            rng.shuffle(open_rounds)
            leave = int(rng.integers(0, 12))
            now, open_rounds = open_rounds[leave:], open_rounds[:leave]
        if now and rng.random() < 0.1:
            policy.forget(now.pop()[0])
        start = policy.changes[-1].round if policy.changes else 0
        values = [float(5 + 4 * np.sin(a + (i >= 300) * 3 + 0.1 * i)) for i, a, _ in now]
        told += [(i, a, y) for (i, a, c), y in zip(now, values, strict=True) if c]
        ignored += sum(i < start and c for i, _, c in now)
        if len(now) == 1:
            policy.tell(now[0][0], values[0])
        else:
            policy.tell([i for i, _, _ in now], values)
        start = policy.changes[-1].round if policy.changes else 0
        live = [(a, (y - 5) / 4) for i, a, y in told if i >= start]
        kept = source(policy)
        np.testing.assert_array_equal(kept["counts"], np.bincount([a for a, _ in live], minlength=8))
        np.testing.assert_allclose(kept["sums"], np.bincount([a for a, _ in live], [y for _, y in live], 8), atol=1e-12)
    assert len(policy.changes) >= 3
    assert policy.late == ignored >= 5


def test_a_reward_of_a_closed_epoch_does_not_train():
    policy = AdaOPNN(ARMS, horizon=400, seed=quiet_seed(), constants=FIRES, **SMALL)
    held = policy.ask()
    batch = policy.ask(size=policy.steady_rounds())
    policy.tell(batch.ids, reward(batch.arms))
    batch = policy.ask(size=policy.steady_rounds())
    policy.tell(batch.ids, reward(batch.arms, -1))
    batch = policy.ask(size=2)
    assert len(policy.changes) == 1
    policy.tell(batch.ids, [0.1, 0.2])
    before = policy.state_dict()["engine"]
    policy.tell(held.id, 1.0)
    assert policy.late == 1
    assert_same(policy.state_dict()["engine"], before)
    assert before["features"]["counts"].sum() == 2
