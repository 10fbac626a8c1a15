import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandits.design import information_gain
from driftbandits.experiments.building import build_policy, build_world
from driftbandits.experiments.results import collect
from driftbandits.experiments.runner import run_cell
from driftbandits.experiments.seeds import EVALUATION
from driftbandits.experiments.specs import Experiment, cells_of
from reproduction.growth import GROWTH_POLICIES, QUICK_SWEEPS, STEADY_POLICIES, SWEEPS
from reproduction.sweeps import (
    PowerLaw,
    Sweep,
    WorldSize,
    allowed_slope,
    information_gain_of,
    log_slopes,
    measure_growth,
)
from tests.reproduction.made_up_results import claim, noise, played

SEGMENTS = SWEEPS[2]


def power_law(sweep, slope, spread=0.0, seeds=20):
    experiments = [dataclasses.replace(e, seeds=tuple(range(seeds))) for e in sweep.experiments]
    value = {e.id: v for v, e in zip(sweep.values, sweep.experiments, strict=True)}
    return played(
        experiments,
        lambda name, _, seed: (100 + seed) * value[name] ** (slope + spread * noise("slope", seed)),
    )


@settings(max_examples=20, deadline=None)
@given(st.floats(-1, 2))
def test_power_laws_are_recovered(slope):
    growth = measure_growth(power_law(SEGMENTS, slope, seeds=3).cells, SEGMENTS, "ADA-OPKB")
    for value in (growth.slope.estimate, growth.slope.low, growth.slope.high, growth.late):
        assert value == pytest.approx(slope, abs=1e-9)
    assert growth.allowed == pytest.approx(SEGMENTS.rate)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 8))
def test_slopes_are_those_of_polyfit(seed, points):
    rng = np.random.default_rng(seed)
    values = np.cumsum(rng.uniform(0.1, 5, size=points))
    regrets = rng.lognormal(size=(4, points))
    expected = [np.polyfit(np.log(values), np.log(row), 1)[0] for row in regrets]
    np.testing.assert_allclose(log_slopes(values.tolist(), regrets), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("slope", "verdict"), [(0.3, "holds"), (0.5, "undecided"), (0.8, "does not hold")])
def test_the_verdict_on_growth_flips_at_the_rate(slope, verdict):
    found = claim(power_law(SEGMENTS, slope, spread=0.05), "T1", sweeps=[SEGMENTS])
    assert [c.settings for c in found.checks] == [(policy.label,) for policy in GROWTH_POLICIES]
    assert [c.verdict for c in found.checks] == [verdict] * len(GROWTH_POLICIES)
    assert found.verdict == verdict
    check = found.checks[0]
    assert (check.unit, check.seeds, check.paper_seeds) == ("slope", 20, 0)
    assert "at most 0.50" in check.statement
    assert "over the last 3 of 5 points" in check.note


def test_unfinished_sweeps():
    full = power_law(SEGMENTS, 0.4, spread=0.05)
    last = SEGMENTS.experiments[-1].id

    def left(cells):
        return measure_growth(cells, SEGMENTS, "ADA-OPKB")

    cells = full.cells
    few = cells[(cells["experiment"] != last) | (cells["seed"] < 3)]
    assert (left(few).values, left(few).slope.seeds) == ((1, 2, 4, 8), 20)  # the point goes, not the seeds
    most = cells[(cells["experiment"] != last) | (cells["seed"] < 15)]
    assert (left(most).values, left(most).slope.seeds) == ((1, 2, 4, 8, 16), 15)  # the seeds go, not the point
    reduced = dataclasses.replace(full, cells=few)
    note = claim(reduced, "T1", sweeps=[SEGMENTS]).checks[0].note
    assert "over the last 2 of 4 points; the sweep has 5 points" in note
    two = cells[cells["experiment"].isin([e.id for e in SEGMENTS.experiments[:2]])]
    assert left(two) is None
    zero = cells.assign(regret=cells["regret"].where(cells["seed"] != 0, 0.0))
    assert left(zero).slope.seeds == 19


def test_quick_sweeps_are_checked_as_far_as_they_go():
    sweeps = QUICK_SWEEPS
    found = claim(power_law(sweeps[0], 0.4, seeds=2), "T1", sweeps=sweeps)
    changing = [sweep for sweep in sweeps if GROWTH_POLICIES[0].label in sweep.labels]
    verdicts = [(c.verdict, c.seeds) for c in found.checks[: len(changing)]]
    assert verdicts[0] == ("undecided", 2)
    assert set(verdicts[1:]) == {("not run", 0)}
    assert len(found.checks) == len(changing) * len(GROWTH_POLICIES)


@pytest.mark.parametrize("policy", GROWTH_POLICIES, ids=lambda p: p.label)
def test_gain_is_the_one_the_policy_works_with(policy):
    experiment = SWEEPS[0].experiments[0]
    world = build_world(experiment.environment, experiment.settings, experiment.seeds[0])
    player = build_policy(policy, world, experiment.seeds[0])
    player.ask()
    assert information_gain_of(experiment, policy) == pytest.approx(player._levels.gamma, rel=1e-5)


@pytest.mark.parametrize(("sweep", "power"), [(SWEEPS[0], 1 / 2), (SWEEPS[1], 1 / 3)], ids=["segments", "drift"])
def test_allowed_slope_in_rounds_is_that_of_the_bound(sweep, power):
    values = sweep.values[:4]
    gains = np.array([information_gain_of(e, GROWTH_POLICIES[0]) for e in sweep.experiments[:4]])
    bound = gains**power * np.array(values) ** (1 - power)
    expected = np.polyfit(np.log(values), np.log(bound), 1)[0]
    assert allowed_slope(sweep, "ADA-OPKB", values) == pytest.approx(expected)
    assert sweep.rate < expected < 1


@pytest.mark.parametrize(("rival", "power"), [("SW-GPUCB (theory)", 7 / 8), ("GPUCB+MASTER (theory)", 1.0)])
def test_rivals_have_their_own_powers_of_the_gain(rival, power):
    sweep = SWEEPS[1]  # T under drift, where V_T stays
    values = sweep.values[:4]
    spec = next(p for p in sweep.experiments[0].policies if p.label == rival)
    gains = np.array([information_gain_of(e, spec) for e in sweep.experiments[:4]])
    exponent = 3 / 4 if rival.startswith("SW") else 2 / 3
    expected = np.polyfit(np.log(values), np.log(gains**power * np.array(values) ** exponent), 1)[0]
    assert allowed_slope(sweep, rival, values) == pytest.approx(expected)
    world = build_world(sweep.experiments[0].environment, sweep.experiments[0].settings, EVALUATION.first)
    ridge = spec.settings.get("ridge") or spec.settings["base_settings"]["ridge"]
    assert gains[0] == pytest.approx(information_gain(world.arms, horizon=world.horizon, sigma=ridge))


@pytest.mark.parametrize(
    "policy", [p for p in STEADY_POLICIES if p.settings.get("width") != 256], ids=lambda p: p.label
)
def test_allowed_slope_in_log_arms_is_that_of_the_bound(policy):
    sweep = SWEEPS[6]
    values = sweep.values[:4]
    gains = np.array([information_gain_of(e, policy) for e in sweep.experiments[:4]])
    expected = np.polyfit(np.log(values), 0.5 * np.log(gains * np.array(values)), 1)[0]
    assert allowed_slope(sweep, policy.label, values) == pytest.approx(expected, rel=1e-3)  # values are rounded


def test_a_sum_is_allowed_the_slope_of_its_steepest_term():
    """d sqrt(T) rises with slope 1 where the term that leads in T has less."""
    worlds = {d: WorldSize(1_000, 1, 1.0, int(d), 10) for d in (2.0, 4.0, 8.0)}
    lead, rest = PowerLaw(rounds=2 / 3, variation=1 / 3, dimension=2 / 3), PowerLaw(rounds=1 / 2, dimension=1.0)
    for terms, slope in (((lead,), 2 / 3), ((lead, rest), 1.0), ((rest, lead), 1.0)):
        sweep = Sweep("d", "d", "d", tuple(worlds), 0.0, (), bounds={"any": terms}, sizes=worlds)
        assert allowed_slope(sweep, "any", sweep.values) == pytest.approx(slope)


def test_growth_of_the_gain_hardly_depends_on_the_seed():
    def allowed(seed):
        experiments = tuple(dataclasses.replace(e, seeds=(seed,)) for e in SWEEPS[0].experiments[:4])
        sweep = dataclasses.replace(SWEEPS[0], experiments=experiments, values=SWEEPS[0].values[:4])
        return allowed_slope(sweep, "ADA-OPKB", sweep.values)

    assert np.ptp([allowed(seed) for seed in range(4)]) < 0.01


def test_a_policy_the_bound_is_not_about_has_the_plain_rate():
    spec = dataclasses.replace(GROWTH_POLICIES[0], label="any", name="Uniform", settings={})
    experiments = tuple(dataclasses.replace(e, policies=(spec,)) for e in SWEEPS[0].experiments)
    sweep = dataclasses.replace(SWEEPS[0], experiments=experiments)
    assert allowed_slope(sweep, "any", sweep.values[:3]) == sweep.rate


def test_variation_is_proportional_to_turns():
    sweep = next(s for s in SWEEPS if s.symbol == "V_T")
    shorter = [Experiment(e.id, e.title, e.environment, _cut(e.settings, 8_000), ()) for e in sweep.experiments]
    worlds = [build_world(e.environment, e.settings, e.seeds[0]) for e in shorter]
    ratios = [world.variation / turns for world, turns in zip(worlds, sweep.values, strict=True)]
    assert np.ptp(ratios) < 0.002 * np.mean(ratios)


def _cut(settings, horizon):
    return {**settings, "horizon": horizon, "phase": [[0, 0.0], [horizon, settings["phase"][-1][1]]]}


def test_a_sweep_from_runs_to_verdict():
    rounds = (300, 600, 1200)
    experiments = tuple(
        Experiment(
            f"tiny/{t}",
            "Tiny",
            "switching",
            {"dimension": 2, "size": 10, "horizon": t, "switches": [t // 2]},
            GROWTH_POLICIES[:1],
            (0, 1, 2),
        )
        for t in rounds
    )
    sweep = Sweep("tiny", "tiny", "T", rounds, 0.5, experiments)
    results = collect(experiments, [run_cell(cell) for e in experiments for cell in cells_of(e)])
    (check,) = claim(results, "T1", sweeps=[sweep]).checks
    table = results.cells.pivot(index="seed", columns="experiment", values="regret")[[e.id for e in experiments]]
    slopes = [np.polyfit(np.log(rounds), np.log(row), 1)[0] for row in table.to_numpy()]
    assert check.estimate == pytest.approx(np.mean(slopes))
    assert check.verdict in ("holds", "does not hold", "undecided")
