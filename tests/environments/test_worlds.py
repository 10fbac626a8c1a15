"""What is particular to each world: tables, stretches, kinds of switch, phases."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from driftbandits.arms.arm_set import ArmSet
from driftbandits.environments import SLOW_DRIFT, Piecewise, Tabular
from driftbandits.environments.drifting import ForgettingDrift
from driftbandits.environments.noise import BernoulliNoise, GaussianNoise, TruncatedGaussianNoise
from driftbandits.environments.reward_functions import CosineBandit
from driftbandits.environments.switching import SwitchingKernel
from driftbandits.errors import InputError

SEEDS = range(30)


def test_a_table_is_copied_and_frozen(arms) -> None:
    table = np.zeros((5, 12))
    world = Tabular(arms, table)
    table[0, 0] = 9.0
    assert world.means(0)[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        world.means(0)[0, 0] = 1.0


@pytest.mark.parametrize("shape", [(12,), (5, 11), (0, 12), (5, 12, 1)])
def test_a_table_of_the_wrong_shape_is_refused(arms, shape) -> None:
    with pytest.raises(InputError, match="shape"):
        Tabular(arms, np.zeros(shape))


def test_bad_tables_are_refused(arms) -> None:
    table = np.zeros((5, 12))
    table[2, 3] = np.nan
    with pytest.raises(InputError, match=r"means\[2, 3\] is nan"):
        Tabular(arms, table)
    with pytest.raises(InputError, match="rows of equal length"):
        Tabular(arms, [[0.0], [0.0, 1.0]])
    with pytest.raises(InputError, match="cannot serve means"):
        Tabular(arms, np.full((5, 12), 1.5), noise=BernoulliNoise())
    with pytest.raises(InputError, match="ArmSet"):
        Tabular(np.zeros((12, 2)), np.zeros((5, 12)))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="noise must be"):
        Tabular(arms, np.zeros((5, 12)), noise=0.1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ((0,), "at least 1"),
        ((5, 5), "must rise"),
        ((7, 5), "must rise"),
        ((10,), "outside the horizon"),
        ((2.5,), "whole"),
    ],
)
def test_bad_switches_are_refused(arms, switches, message) -> None:
    with pytest.raises(InputError, match=message):
        Piecewise(arms, np.zeros((len(switches) + 1, 12)), horizon=10, switches=switches)
    with pytest.raises(InputError, match=message):
        SwitchingKernel(arms, horizon=10, switches=switches, seed=0)


@pytest.mark.parametrize("horizon", [0, -5, 2.5, None, True])
def test_bad_horizons_are_refused(arms, horizon) -> None:
    for build in (
        lambda: Piecewise(arms, np.zeros((1, 12)), horizon=horizon),
        lambda: SwitchingKernel(arms, horizon=horizon, seed=0),
        lambda: CosineBandit(arms, [1.0, 0.0], horizon=horizon),
    ):
        with pytest.raises(InputError, match="horizon"):
            build()


def test_values_need_one_row_a_segment(arms) -> None:
    with pytest.raises(InputError, match=r"shape \(2, 12\), got \(1, 12\)"):
        Piecewise(arms, np.zeros((1, 12)), horizon=10, switches=(5,))


def test_piecewise_worlds_hold_segments_not_rounds(arms) -> None:
    """T N numbers would be 960 MB; the answers asked for are 8 MB each."""
    tracemalloc.start()
    world = SwitchingKernel(arms, horizon=10_000_000, switches=(3_000_000,), seed=0)
    assert (world.segments, world.best_arm_changes) == (2, 1)
    n = 1_000_000
    world.rewards(2_500_000, np.zeros(n, dtype=np.int64), seed=0)
    world.best(2_500_000, n)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def test_rewards_are_scaled_to_the_peak(arms) -> None:
    for kind in ("flip", "redraw"):
        world = SwitchingKernel(arms, horizon=10, switches=(3, 6), kind=kind, seed=1, peak=0.6)
        np.testing.assert_allclose(np.abs(world.values).max(axis=1), 0.6, rtol=1e-15)


def test_two_flips_restore_the_rewards(arms) -> None:
    world = SwitchingKernel(arms, horizon=10, switches=(3, 6), seed=1)
    assert (world.values[1] == -world.values[0]).all()
    assert (world.values[2] == world.values[0]).all()
    assert (world.means(2)[0] == world.values[0]).all()
    assert (world.means(3)[0] == world.values[1]).all()


def test_partial_changes_a_region(arms) -> None:
    for seed in SEEDS:
        world = SwitchingKernel(arms, horizon=10, switches=(5,), kind="partial", seed=seed, share=0.25)
        before, after = world.values
        moved = np.flatnonzero(before != after)
        assert len(moved) == 3
        assert np.abs(after).max() <= 0.8
        spread = [np.sort(np.linalg.norm(arms.points - arms.points[m], axis=1))[2] for m in moved]
        width = [np.linalg.norm(arms.points[moved] - arms.points[m], axis=1).max() for m in moved]
        assert any(w <= s for w, s in zip(width, spread, strict=True))  # for the centre, the three nearest arms


def test_partial_with_share_one_is_a_redraw(arms) -> None:
    settings = {"horizon": 10, "switches": (5,), "seed": 3}
    partial = SwitchingKernel(arms, kind="partial", share=1.0, **settings)
    redraw = SwitchingKernel(arms, kind="redraw", **settings)
    assert (partial.values == redraw.values).all()


@pytest.mark.parametrize("length_scale", [0.05, 0.5, 5.0])
def test_hidden_keeps_the_best_arm_and_makes_a_far_one_better(arms, length_scale) -> None:
    smooth = ArmSet(arms.points, kernel={"name": "rbf", "length_scale": length_scale})
    for seed in SEEDS:
        world = SwitchingKernel(smooth, horizon=10, switches=(3, 5, 8), kind="hidden", seed=seed)
        for old, new in zip(world.values[:-1], world.values[1:], strict=True):
            best, winner = old.argmax(), new.argmax()
            assert new[best] == old[best]
            assert new[winner] >= old[best] + 0.8 / 6 - 1e-12
            distances = np.linalg.norm(arms.points - arms.points[best], axis=1)
            assert distances[winner] >= np.median(distances) - 1e-12
            assert (new >= old).all()
            from_winner = np.linalg.norm(arms.points - arms.points[winner], axis=1)
            assert (from_winner < distances)[new != old].all()
        assert world.best_arm_changes == 3
        assert world.values.max() == 0.8
        assert np.abs(world.values).max() <= 0.8


def test_hidden_needs_a_second_arm() -> None:
    for points in ([[0.0]], [[1.0], [1.0], [1.0]]):
        with pytest.raises(InputError, match="hidden"):
            SwitchingKernel(ArmSet(points), horizon=10, switches=(3,), kind="hidden", seed=0)


def test_duplicate_arms_move_together_in_a_hidden_change() -> None:
    points = np.repeat(np.linspace(0, 1, 6), 2)[:, None]
    arms = ArmSet(points, kernel={"name": "rbf", "length_scale": 0.2})
    for seed in SEEDS:
        values = SwitchingKernel(arms, horizon=10, switches=(3,), kind="hidden", seed=seed).values
        np.testing.assert_allclose(values[:, ::2], values[:, 1::2], atol=1e-5)


def test_every_best_arm_of_a_tie_keeps_its_value() -> None:
    # one feature, so that arms 0 and 2 always have the same reward, though they are far apart
    arms = ArmSet.from_features([[1.0], [-1.0], [1.0], [0.5]], points=[[0.0], [4.0], [5.0], [9.0]])
    for seed in SEEDS:
        old, new = SwitchingKernel(arms, horizon=10, switches=(3,), kind="hidden", seed=seed).values
        tied = old == old.max()
        assert (new[tied] == old[tied]).all()
        assert not tied[new.argmax()]


def test_segments_have_their_own_streams(arms) -> None:
    short = SwitchingKernel(arms, horizon=10, switches=(3,), kind="redraw", seed=5)
    longer = SwitchingKernel(arms, horizon=99, switches=(3, 50), kind="redraw", seed=5)
    assert (short.values == longer.values[:2]).all()


def test_offset_serves_bernoulli_noise(arms) -> None:
    world = SwitchingKernel(arms, horizon=10, switches=(5,), seed=0, offset=0.5, peak=0.4, noise=BernoulliNoise())
    assert world.reward_range == (0.0, 1.0)
    with pytest.raises(InputError, match=r"offset=0.5"):
        SwitchingKernel(arms, horizon=10, seed=0, noise=BernoulliNoise())
    with pytest.raises(InputError, match="strictly between -1 and 1"):
        SwitchingKernel(arms, horizon=10, seed=0, peak=1.0, noise=TruncatedGaussianNoise(0.1))


@pytest.mark.parametrize(
    "settings", [{"kind": "jump"}, {"peak": 0.0}, {"peak": math.nan}, {"share": 0.0}, {"share": 1.5}]
)
def test_bad_settings_of_a_switching_world_are_refused(arms, settings) -> None:
    with pytest.raises(InputError, match=next(iter(settings))):
        SwitchingKernel(arms, horizon=10, seed=0, **settings)


def test_an_unseeded_world_shows_its_seed(arms) -> None:
    world = SwitchingKernel(arms, horizon=10)
    again = SwitchingKernel(arms, horizon=10, seed=world.seed)
    assert f"seed={world.seed}" in repr(world)
    assert (world.values == again.values).all()


@pytest.mark.statistical
def test_draws_have_the_kernels_correlation(arms) -> None:
    # 4,000 draws with peak large, undoing the scale by normalising: signs of two arms agree with probability
    # 1/2 + asin(k)/pi whatever the scale; 66 pairs at 4.5 sd: false alarm below 5e-4
    values = np.array([SwitchingKernel(arms, horizon=1, seed=seed).values[0] for seed in range(4000)])
    agree = ((values[:, :, None] > 0) == (values[:, None, :] > 0)).mean(axis=0)
    gram = np.clip(arms.features @ arms.features.T, -1, 1)
    expected = 0.5 + np.arcsin(gram) / math.pi
    pairs = np.triu_indices(len(arms), 1)
    error = np.abs(agree - expected)[pairs] / np.sqrt(expected * (1 - expected) / 4000)[pairs]
    assert error.max() < 4.5


def test_cosine_means_are_the_formula(arms) -> None:
    world = CosineBandit(arms, [0.6, 0.8], horizon=7000, phase=SLOW_DRIFT)
    for t, phase in [
        (0, 0.0),
        (1000, 0.0),
        (2000, math.pi / 2),
        (3500, math.pi),
        (5000, 1.5 * math.pi),
        (6999, 2 * math.pi),
    ]:
        expected = 0.8 * np.cos(3 * arms.points @ [0.6, 0.8] + phase)
        np.testing.assert_allclose(world.means(t)[0], expected, atol=1e-12)


def test_slow_drift_changes_exactly_while_it_drifts(arms) -> None:
    world = CosineBandit(arms, [0.6, 0.8], horizon=10_000, phase=SLOW_DRIFT)
    assert world.change_rounds.tolist() == [*range(1001, 3001), *range(4001, 6001)]
    assert CosineBandit(arms, [0.6, 0.8], horizon=10_000).segments == 1
    assert CosineBandit(arms, [0.6, 0.8], horizon=2000, phase=SLOW_DRIFT).segments == 1000


@pytest.mark.parametrize("phase", [(), (3,), ((5, 0.0), (5, 1.0)), ((-1, 0.0),), ((0, math.nan),), ((0.5, 1.0),)])
def test_bad_knots_are_refused(arms, phase) -> None:
    with pytest.raises(InputError, match=r"phase|knot"):
        CosineBandit(arms, [1.0, 0.0], horizon=10, phase=phase)


def test_theta_must_fit_the_points(arms) -> None:
    with pytest.raises(InputError, match=r"theta must have shape \(2,\)"):
        CosineBandit(arms, [1.0, 0.0, 0.0], horizon=10)


def test_noise_free_rewards_are_the_means(arms) -> None:
    world = CosineBandit(arms, [1.0, 0.0], horizon=10, noise=GaussianNoise(0.0))
    assert (world.rewards(0, np.arange(10), seed=0) == world.means_of(0, np.arange(10))).all()


def test_a_level_shift_moves_all_arms_alike_and_back():
    arms = ArmSet(np.random.default_rng(0).normal(size=(12, 2)))
    world = SwitchingKernel(arms, horizon=10, switches=(3, 5, 8), kind="level", seed=2, peak=0.8)
    first, up, down, again = world.values
    assert np.abs(first).max() == pytest.approx(0.4)
    np.testing.assert_allclose(up - first, 0.4, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(down, first)
    np.testing.assert_array_equal(again, up)
    assert world.best_arm_changes == 0


@pytest.mark.parametrize("make", [SwitchingKernel.sample, CosineBandit.sample, ForgettingDrift.sample])
def test_a_world_without_a_seed_is_that_of_seed_0(make):
    assert repr(make(horizon=5_000)) == repr(make(horizon=5_000, seed=0))
    assert (make(horizon=5_000).means(0) == make(horizon=5_000, seed=0).means(0)).all()
    assert (make(horizon=5_000).means(0) != make(horizon=5_000, seed=1).means(0)).any()
