"""Worlds of other papers and kinds of change: what their names promise."""

from itertools import pairwise

import numpy as np
import pytest

from driftbandits import ArmSet
from driftbandits.environments import significant_shifts
from driftbandits.environments.drifting import Trending
from driftbandits.environments.registry import create
from driftbandits.environments.switching import PROBLEMS, SMPyBanditsProblem, SwitchingKernel
from driftbandits.errors import InputError


def segments(world):
    return [world.means(start)[0] for start in (0, *world.change_rounds)]


def test_three_regimes_come_back():
    first, second, third, *again = segments(create("recurring", seed=2, size=12, dimension=2))
    for known, later in zip((first, second, third), again, strict=True):
        assert (known == later).all()
    assert np.abs(first - second).max() > 0.1
    assert np.abs(second - third).max() > 0.1


def test_a_bump_moves_and_all_else_pays_nothing_more():
    world = create("bumps", seed=1, size=30, dimension=2)
    tops = []
    for row in segments(world):
        top = int(row.argmax())
        kernel = world.arms.features @ world.arms.features[top]
        assert row == pytest.approx(0.8 * np.maximum(kernel, 0.0) / kernel[top])
        tops.append(top)
    assert len(set(tops)) > 1


def test_the_worst_becomes_the_best_and_the_rest_stays():
    world = create("adversarial", seed=1, size=9, dimension=2)
    rows = segments(world)
    assert len(rows) == 6
    for before, after in pairwise(rows):
        assert after.argmax() == before.argmin()
        assert after.argmin() == before.argmax()
        moved = np.flatnonzero(before != after)
        assert set(moved) == {before.argmax(), before.argmin()}


@pytest.mark.parametrize(("name", "sign"), [("rotting", -1), ("rising", 1)])
def test_arms_go_one_way(name, sign):
    world = create(name, seed=4, size=10, dimension=2, horizon=500)
    assert world.name == name
    table = world.means(0, 500)
    assert (sign * np.diff(table, axis=0) >= 0).all()
    assert np.allclose(np.diff(table, 2, axis=0), 0.0, atol=1e-12)  # straight lines
    assert np.abs(table[-1] - table[0]).max() == pytest.approx(0.4)
    chosen = np.arange(500) % 10
    assert (world.means_of(0, chosen) == table[np.arange(500), chosen]).all()
    assert (world.means(100, 50) == table[100:150]).all()
    with pytest.raises(InputError, match="kind"):
        Trending.sample(kind="sideways")
    assert len(Trending.sample(horizon=1).means(0)) == 1


def test_problems_are_those_of_their_tables():
    for number, (_, values) in PROBLEMS.items():
        world = create(f"smpybandits/{number}", horizon=18_000)
        assert np.array(segments(world)) == pytest.approx(np.array(values))
        assert set(world.rewards(0, np.zeros(50, dtype=int), seed=1)) <= {0.0, 1.0}
    assert create("smpybandits/4", horizon=2000).change_rounds.tolist() == [1000, 1250, 1500, 1750]
    with pytest.raises(InputError, match="problem must be one of 0, 1, 2, 3, 4, 5, got 7"):
        SMPyBanditsProblem(7)
    with pytest.raises(InputError, match="horizon"):
        SMPyBanditsProblem(5, horizon=8)


def slow_shifts(means, width):
    """By the definition, all stretches of all arms."""
    rounds, size = means.shape
    gaps = (means.max(axis=1, keepdims=True) - means) / width
    shifts, start = [], 0
    while True:
        for end in range(start, rounds):
            stretches = [(first, last) for last in range(start, end + 1) for first in range(start, last + 1)]
            lengths = {stretch: np.sqrt(size * (stretch[1] + 1 - stretch[0])) - 1e-12 for stretch in stretches}
            costly = [
                any(gaps[first : last + 1, arm].sum() >= root for (first, last), root in lengths.items())
                for arm in range(size)
            ]
            if all(costly):
                shifts.append(end)
                start = end
                break
        else:
            return shifts


@pytest.mark.parametrize("seed", range(6))
def test_significant_shifts_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    means = np.repeat(rng.random((4, 3)), 12, axis=0)
    assert significant_shifts(means, width=0.5).tolist() == slow_shifts(means, 0.5)


def test_a_change_that_costs_nothing_is_no_significant_shift():
    arms = ArmSet([[0.0], [0.5], [1.0]])
    world = SwitchingKernel(arms, horizon=2_000, switches=(1_000,), kind="level", seed=0)
    assert len(world.change_rounds) == 1
    assert len(significant_shifts(world.means(0, 2_000), width=2.0)) == 0
    flipped = SwitchingKernel(arms, horizon=2_000, switches=(1_000,), kind="flip", seed=0)
    found = significant_shifts(flipped.means(0, 2_000), width=2.0)
    assert len(found) == 1
    assert found[0] > 1_000
