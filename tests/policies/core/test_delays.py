"""Late, lost, batched and masked rounds, end to end in a world that changes."""

import numpy as np
import pytest

import driftbandits as db

HORIZON = 6000


@pytest.fixture(scope="module")
def world():
    return db.environments.create("switching", seed=4, size=40, dimension=2, horizon=HORIZON, switches=(2500,))


def regret(world, arms):
    return float((world.best(0, len(arms)) - world.means_of(0, arms)).sum())


def play_late(policy, world, *, delay, loss=0.0, seed=0):
    """Rewards come `delay` rounds after the decision; a share `loss` of them never comes and is forgotten."""
    rng = np.random.default_rng(seed)
    waiting, arms = [], []
    for now in range(world.horizon):
        choice = policy.ask()
        arms.append(choice.arm)
        waiting.append((choice.id, float(world.rewards(now, [choice.arm], seed)[0])))
        if len(waiting) > delay:
            ident, reward = waiting.pop(0)
            if rng.random() < loss:
                policy.forget(ident)
            else:
                policy.tell(ident, reward)
    return arms


def test_late_rewards_still_find_the_change(world):
    policy = db.AdaOPKB.published(world.arms, horizon=HORIZON, seed=0)
    arms = play_late(policy, world, delay=20)
    assert any(change.round > 2500 for change in policy.changes)
    assert policy.pending == 20
    prompt = db.simulate(db.AdaOPKB.published(world.arms, horizon=HORIZON, seed=0), world, seed=0)
    assert regret(world, arms) < 1.5 * prompt.regret.sum()


def test_five_per_cent_lost_is_fine(world):
    policy = db.AdaOPKB.published(world.arms, horizon=HORIZON, seed=0)
    play_late(policy, world, delay=3, loss=0.05)
    assert any(change.round > 2500 for change in policy.changes)


def test_half_lost_means_nothing_is_tested(world):
    policy = db.AdaOPKB.published(world.arms, horizon=HORIZON, seed=0)
    play_late(policy, world, delay=3, loss=0.5)
    assert policy.changes == ()
    assert policy.forgotten > 2000


def test_a_restart_makes_rewards_of_the_old_epoch_late(world):
    policy = db.AdaOPKB.published(world.arms, horizon=HORIZON, seed=0)
    play_late(policy, world, delay=15)
    assert policy.changes
    assert policy.late > 0


def test_batches_learn_like_single_rounds(world):
    policy = db.AdaOPKB.published(world.arms, horizon=HORIZON, seed=0)
    arms = []
    for now in range(0, HORIZON, 25):
        batch = policy.ask(size=25)
        policy.tell(batch.ids, world.rewards(now, batch.arms, 0))
        arms.extend(batch.arms.tolist())
    assert any(change.round > 2500 for change in policy.changes)
    assert regret(world, arms) < 0.6 * regret(world, np.random.default_rng(0).integers(40, size=HORIZON))


def test_masked_rounds_do_not_advance_the_block(world):
    policy = db.OPKB(world.arms, horizon=HORIZON, seed=0)
    left = policy.steady_rounds()
    allowed = np.arange(40) % 2 == 0
    estimate = policy.estimate()
    for _ in range(10):
        choice = policy.ask(allowed=allowed)
        assert choice.arm % 2 == 0
        policy.tell(choice.id, 1.0)
    assert policy.steady_rounds() == left
    assert policy.rounds == 10
    assert np.array_equal(policy.estimate(), estimate)
    unmasked = policy.ask(allowed=np.ones(40, dtype=bool))
    policy.tell(unmasked.id, 1.0)
    assert policy.steady_rounds() == left - 1
    assert not np.array_equal(policy.estimate(), estimate)


def test_masked_probability_is_that_of_the_restricted_law(world):
    policy = db.OPKB(world.arms, horizon=HORIZON, seed=0)
    allowed = [1, 5, 7]
    law = policy.law()
    choice = policy.ask(allowed=allowed)
    assert choice.probability == pytest.approx(law[choice.arm] / law[allowed].sum())


def test_names_can_be_used_for_masks_and_show_in_records():
    points = np.linspace(0, 1, 6)[:, None]
    arms = db.ArmSet(points, kernel={"name": "rbf", "length_scale": 0.1}, names=list("abcdef"))
    policy = db.AdaOPKB(arms, horizon=3000, constants=db.Constants(c0=0.3, c3=0.05), seed=0)
    assert policy.ask(allowed=["c"]).arm == 2
    level = np.where(np.arange(6) == 0, 0.9, -0.9)
    while policy.rounds < 3000:
        choice = policy.ask()
        policy.tell(choice.id, float(level[choice.arm] if choice.id < 1500 else -level[choice.arm]))
    assert policy.changes
    change = next(c for c in policy.changes if c.round > 1500)
    assert set(change.names) <= set("abcdef")
    assert "Found at round" in str(change)
    assert change.names[0] in str(change)
    assert change.statistic > change.threshold
    assert len(change.arms) == len(change.before) == len(change.after)
