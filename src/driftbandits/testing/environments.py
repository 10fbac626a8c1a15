"""What every world must do, as plain functions that raise AssertionError.

Each takes a factory: a world's class, or any function that gives a world for `seed=...`. Of long worlds only the first
LOOKED_AT rounds are checked, so a short horizon is faster and checks as much.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from driftbandits.environments import Environment
from driftbandits.errors import InputError
from driftbandits.policies import Uniform
from driftbandits.simulation import simulate
from driftbandits.testing.helpers import raises, require
from driftbandits.types import Bools, Floats, Ints

EnvironmentFactory = Callable[..., Environment]
LOOKED_AT = 1_000
ROUNDING = 1e-9  # of the size of the numbers
SEEDS = range(5)  # for what may hold of one draw and not of another


def _rounds(world: Environment) -> int:
    return min(world.horizon, LOOKED_AT)


def _means(world: Environment, start: int, size: int) -> Floats:
    """The means of these rounds, which must be a table of floats."""
    means = world.means(start, size)
    is_array = isinstance(means, np.ndarray)
    shape = (size, len(world.arms))
    require(
        is_array and np.issubdtype(means.dtype, np.floating) and means.shape == shape,
        f"means({start}, {size}) must give a float array of shape (size, N) = {shape}, got "
        + (f"{means.dtype} of shape {means.shape}" if is_array else f"a {type(means).__name__}"),
    )
    return means


def _made(make: EnvironmentFactory, seed: int = 0) -> Environment:
    """A world whose means are arrays, without which nothing else can be checked."""
    world = make(seed=seed)
    _means(world, 0, 1)
    return world


def _offered(world: Environment) -> Bools:
    """Which arms the rounds offer, also where all are."""
    mask = world.allowed(0, _rounds(world))
    return np.ones((_rounds(world), len(world.arms)), dtype=bool) if mask is None else mask


def _visible(world: Environment) -> Floats:
    """The means of the arms offered, NaN elsewhere."""
    return np.where(_offered(world), _means(world, 0, _rounds(world)), np.nan)


def _choices(world: Environment) -> Ints:
    """An arm that is offered in every round, different ones."""
    scores = np.random.default_rng(0).random((_rounds(world), len(world.arms)))
    return np.asarray(np.argmax(np.where(_offered(world), scores, -1.0), axis=1), dtype=np.int64)


def _parts(rounds: int) -> list[tuple[int, int]]:
    """Stretches in no order that overlap: (first, size)."""
    starts = np.random.default_rng(1).integers(rounds, size=20)
    return [(int(start), 1 + int(start * 7 % (rounds - start))) for start in starts]


def means_are_a_table_of_numbers(make: EnvironmentFactory) -> None:
    """One row per round and one column per arm, finite where the arm is offered, within `mean_range`."""
    for seed in SEEDS:
        world = _made(make, seed)
        here = _means(world, 0, _rounds(world))[_offered(world)]
        require(np.isfinite(here).all(), "the mean of an arm that is offered is not a finite number")
        low, high = world.mean_range
        slack = ROUNDING * max(1.0, abs(low), abs(high))
        inside = low - slack <= here.min() and here.max() <= high + slack
        require(inside, f"a mean lies outside mean_range, with seed {seed}")


def means_do_not_depend_on_the_order_of_calls(make: EnvironmentFactory) -> None:
    """Rounds one by one from the end, and stretches in any order, give what the whole gives."""
    whole = _visible(_made(make))
    backwards, jumping = make(seed=0), make(seed=0)
    offered = _offered(make(seed=0))
    for t in range(len(whole) - 1, -1, -7):
        same = np.array_equal(np.where(offered[t], backwards.means(t)[0], np.nan), whole[t], equal_nan=True)
        require(same, f"the means of round {t} depend on what was asked before")
    for start, size in _parts(len(whole)):
        here = slice(start, start + size)
        found = np.where(offered[here], jumping.means(start, size), np.nan)
        require(np.array_equal(found, whole[here], equal_nan=True), "means depend on how many rounds are asked for")


def the_same_seed_is_the_same_world(make: EnvironmentFactory) -> None:
    """Two worlds of one seed have the same arms, means and repr."""
    one, two = _made(make, 3), _made(make, 3)
    require(np.array_equal(one.arms.points, two.arms.points), "two worlds of one seed have other arms")
    require(np.array_equal(_visible(one), _visible(two), equal_nan=True), "two worlds of one seed have other means")
    require(repr(one) == repr(two), "two worlds of one seed have other reprs")


def every_round_offers_an_arm(make: EnvironmentFactory) -> None:
    """`allowed` is None always, or a table with an arm in every row, whatever rounds are asked for."""
    world = _made(make)
    mask = world.allowed(0, _rounds(world))
    for start, size in _parts(_rounds(world)):
        here = world.allowed(start, size)
        require((here is None) == (mask is None), "allowed is None for some rounds and not for others")
        if mask is not None and here is not None:
            require(
                np.array_equal(here, mask[start : start + size]), "allowed depends on how many rounds are asked for"
            )
    if mask is not None:
        require(mask.dtype == np.bool_ and mask.any(axis=1).all(), "a round offers no arm, or allowed is not boolean")


def means_of_are_entries_of_means(make: EnvironmentFactory) -> None:
    """The means of chosen arms are those of the table, in the whole and in parts."""
    world = _made(make)
    chosen = _choices(world)
    wanted = world.means(0, len(chosen))[np.arange(len(chosen)), chosen]
    require(np.array_equal(world.means_of(0, chosen), wanted), "means_of differs from means")
    for start, size in _parts(len(chosen)):
        here = slice(start, start + size)
        require(np.array_equal(world.means_of(start, chosen[here]), wanted[here]), "means_of differs from means")


def best_is_the_largest_mean_offered(make: EnvironmentFactory) -> None:
    """The best of a round is its largest mean among the arms offered, so regret is never negative."""
    world = _made(make)
    wanted = np.nanmax(_visible(world), axis=1)
    require(np.array_equal(world.best(0, len(wanted)), wanted), "best differs from the largest mean")
    for start, size in _parts(len(wanted)):
        require(np.array_equal(world.best(start, size), wanted[start : start + size]), "best differs in parts")


def rewards_do_not_depend_on_who_plays(make: EnvironmentFactory) -> None:
    """A reward follows from seed, round and arm: not from batches, their order, or what was played before."""
    chosen = _choices(_made(make))
    whole = make(seed=0).rewards(0, chosen, 9)
    require(np.array_equal(make(seed=0).rewards(0, chosen, 9), whole), "one seed of the noise gives two rewards")
    backwards = make(seed=0)
    for t in range(len(chosen) - 1, -1, -7):
        require(backwards.rewards(t, chosen[t : t + 1], 9)[0] == whole[t], f"the reward of round {t} depends on others")
    jumping = make(seed=0)
    for start, size in _parts(len(chosen)):
        here = slice(start, start + size)
        require(np.array_equal(jumping.rewards(start, chosen[here], 9), whole[here]), "rewards depend on batches")


def rewards_lie_in_the_reward_range(make: EnvironmentFactory) -> None:
    """Every reward is a finite number within `reward_range`."""
    for seed in SEEDS:
        world = _made(make, seed)
        low, high = world.reward_range
        slack = ROUNDING * max(1.0, *(abs(end) for end in (low, high) if np.isfinite(end)), 0.0)
        rewards = world.rewards(0, _choices(world), seed)
        require(np.isfinite(rewards).all(), "a reward is not a finite number")
        inside = low - slack <= rewards.min() and rewards.max() <= high + slack
        require(inside, f"a reward lies outside reward_range, with seed {seed}")


def changes_are_where_means_change(make: EnvironmentFactory) -> None:
    """`change_rounds` are the rounds whose means differ from those before, at arms offered in both.

    Not in worlds of requests, whose means differ from request to request.
    """
    world = _made(make)
    if world.contexts is not None:
        require(bool(((world.change_rounds > 0) & (world.change_rounds < world.horizon)).all()), "change_rounds")
        return
    steps = np.nan_to_num(np.abs(np.diff(_visible(world), axis=0)))
    wanted = 1 + np.flatnonzero((steps > 0).any(axis=1))
    found = world.change_rounds
    require(np.array_equal(found[found < _rounds(world)], wanted), "change_rounds are not where means change")
    require(world.segments == 1 + len(found), "segments are not one more than the changes")
    if world.horizon == _rounds(world):
        variation = float(steps.max(axis=1).sum())
        require(
            abs(world.variation - variation) <= ROUNDING * max(1.0, variation), "variation is not that of the means"
        )


def rounds_and_arms_that_do_not_exist_are_refused(make: EnvironmentFactory) -> None:
    """InputError for rounds before the first and after the last, and for arms there are not."""
    world = _made(make)
    for start, size in ((-1, 1), (world.horizon, 1), (world.horizon - 1, 2)):
        with raises(InputError):
            world.means(start, size)
        with raises(InputError):
            world.best(start, size)
    for arm in (-1, len(world.arms)):
        with raises(InputError):
            world.rewards(0, [arm], 0)
    with raises(InputError):
        world.rewards(world.horizon, [0], 0)


def what_it_gives_cannot_change_it(make: EnvironmentFactory) -> None:
    """Arrays it gives are read-only, or copies."""
    world = _made(make)
    before = world.means(0, _rounds(world)).copy()
    for given in (world.means(0, _rounds(world)), world.best(0, _rounds(world)), world.means_of(0, _choices(world))):
        if given.flags.writeable:
            given[:] = 0.5
    require(np.array_equal(world.means(0, _rounds(world)), before, equal_nan=True), "writing into means changed it")


def a_copy_is_the_same_world(make: EnvironmentFactory) -> None:
    """A deep copy gives the same numbers; workers play copies."""
    world = _made(make)
    again = copy.deepcopy(world)
    require(np.array_equal(_visible(again), _visible(world), equal_nan=True), "a copy has other means")
    chosen = _choices(world)
    require(np.array_equal(again.rewards(0, chosen, 1), world.rewards(0, chosen, 1)), "a copy has other rewards")


def repr_names_it(make: EnvironmentFactory) -> None:
    """The repr is one line that begins with the class, and the name is not empty."""
    world = _made(make)
    text = repr(world)
    require(text.startswith(type(world).__name__ + "(") and "\n" not in text, f"repr is {text!r}")
    require(world.name, "the name is empty")


def a_policy_can_play_it(make: EnvironmentFactory) -> None:
    """A policy that chooses at random plays it, with regret that is never negative, and the same again."""
    first, second = (
        simulate(
            Uniform(world.arms, seed=0, reward_range=(-1.0, 1.0), out_of_range="clip"),
            world,
            seed=1,
            rounds=min(world.horizon, 50),
        )
        for world in (_made(make), _made(make))
    )
    require((first.regret >= 0).all(), "regret is negative: an arm that was played has more than the best")
    require(np.array_equal(first.reward, second.reward), "the same policy met other rewards the second time")


ENVIRONMENT_CHECKS: tuple[Callable[[EnvironmentFactory], None], ...] = (
    means_are_a_table_of_numbers,
    means_do_not_depend_on_the_order_of_calls,
    the_same_seed_is_the_same_world,
    every_round_offers_an_arm,
    means_of_are_entries_of_means,
    best_is_the_largest_mean_offered,
    rewards_do_not_depend_on_who_plays,
    rewards_lie_in_the_reward_range,
    changes_are_where_means_change,
    rounds_and_arms_that_do_not_exist_are_refused,
    what_it_gives_cannot_change_it,
    a_copy_is_the_same_world,
    repr_names_it,
    a_policy_can_play_it,
)
