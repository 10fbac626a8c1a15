import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from driftbandits import environments
from driftbandits.experiments.definitions.catalogue import PAPER, quick
from driftbandits.experiments.definitions.growth import GROWTH_POLICIES, SWEEPS, Sweep, quick_sweep
from driftbandits.experiments.definitions.specs import Experiment, cells_of
from driftbandits.experiments.files.cell_result import CellResult
from driftbandits.experiments.judging.claims import ROUNDS_BEFORE_SWITCH, Check, Claim, check_claims
from driftbandits.experiments.judging.claims_markdown import claims_markdown
from driftbandits.experiments.judging.results import collect
from driftbandits.experiments.judging.slopes import allowed_slope, information_gain_of, log_slopes, measure_growth
from driftbandits.experiments.judging.statements import STATEMENTS
from driftbandits.experiments.running.build import build_policy, build_world
from driftbandits.experiments.running.cells import CURVE_POINTS, run_cell
from driftbandits.intervals import Interval, judge_at_most, judge_below, judge_within, t_interval
from driftbandits.simulation import Detection

IDS = ["F1a-1", "F1a-2", "F1b-1", "F1b-2", "F2a-1", "F2a-2", "F2b-1", "F2b-2", "T1"]
ROUNDS = np.unique(np.linspace(1, 10_000, CURVE_POINTS).astype(np.int64))
SEGMENTS = SWEEPS[2]


def fake(cell, regret):
    return CellResult(cell, ROUNDS, np.asarray(regret, dtype=float), (), Detection((), 0, 0), 0.0, 0.0)


def played(experiments, curve):
    """Results in which a policy's curve is `curve(experiment id, label, seed)`, or its final regret; None: not run."""
    runs = []
    for experiment in experiments:
        for cell in cells_of(experiment):
            value = curve(experiment.id, cell.policy.label, cell.seed)
            if value is not None:
                runs.append(fake(cell, value if np.ndim(value) else ROUNDS / ROUNDS[-1] * value))
    return collect(experiments, runs)


def all_seeds(name, seeds=None):
    experiment = PAPER[name]
    return dataclasses.replace(
        experiment,
        policies=tuple(dataclasses.replace(p, seeds=None) for p in experiment.policies),
        seeds=experiment.seeds if seeds is None else tuple(range(seeds)),
    )


def claim(results, name, sweeps=()):
    return next(c for c in check_claims(results, sweeps=sweeps) if c.id == name)


def noise(label, seed):
    """A draw that is the same for the same label and seed."""
    return float(np.random.default_rng([sum(map(ord, label)), seed]).normal())


# --- what is claimed -------------------------------------------------------------------------------------------------


def test_every_claim_of_the_notes_is_there_and_without_results_not_run():
    claims = check_claims(collect([], []))
    assert [c.id for c in claims] == IDS
    for found in claims:
        assert found.verdict == "not run"
        assert found.checks
        for check in found.checks:
            assert (check.claim, check.verdict, check.seeds) == (found.id, "not run", 0)
            assert math.isnan(check.estimate)
    assert {c.paper_seeds for c in claims[4].checks} == {50}
    assert {c.paper_seeds for c in claims[0].checks} == {25}


def test_labels_of_all_comparisons_are_in_the_catalogue():
    for statement, comparison in ((s, c) for s in STATEMENTS for c in s.comparisons):
        labels = [policy.label for policy in PAPER[comparison.experiment].policies]
        assert comparison.first in labels, statement.id
        assert comparison.second in labels, statement.id


def test_comparisons_cover_every_setting_of_every_rival():
    compared = {label: set() for label in IDS[:-1]}
    for s in STATEMENTS:
        for c in s.comparisons:
            compared[s.id] |= {c.first, c.second}
    slow = {policy.label for policy in PAPER["cosine/slow"].policies}
    assert compared["F2b-2"] == slow
    assert compared["F2b-1"] == slow - {"SW-GPUCB (window 1000)", "ADA-OPKB (published)"}
    assert compared["F2a-2"] == {
        policy.label for policy in PAPER["cosine/stationary"].policies if "0" not in policy.label
    }
    for name in ("F1a-1", "F1b-1"):
        assert {"SW-GPUCB (published)", "SW-GPUCB (tuned)", "ADA-OPKB", "ADA-OPKB (published)"} < compared[name]


def test_the_switch_is_where_the_world_has_it():
    assert environments.create("switching/1", seed=0, size=5).change_rounds.tolist() == [ROUNDS_BEFORE_SWITCH]
    assert "horizon" in PAPER["switching/1"].settings


# --- intervals -------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40))
def test_interval_is_that_of_scipy(values):
    if np.std(values) < 1e-6:
        return
    found = t_interval(values)
    low, high = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    np.testing.assert_allclose([found.low, found.high], [low, high], rtol=1e-6, atol=1e-3)
    assert found.low <= found.estimate <= found.high
    wider = t_interval(values, level=0.99)
    assert wider.low <= found.low
    assert wider.high >= found.high


def test_interval_of_few_values():
    one = t_interval([4.0])
    assert (one.estimate, one.seeds) == (4.0, 1)
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert math.isnan(t_interval([]).estimate)
    assert t_interval([3.0, 3.0, 3.0]) == Interval(3.0, 3.0, 3.0, 3)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("draw", "least", "most"),
    [
        # 10,000 intervals: the share has a standard error of 0.0022, and four of them miss once in 16,000 times.
        (lambda rng, shape: rng.normal(size=shape), 0.941, 0.959),
        # Skewed as regrets are where some runs miss a change: it covers less, but not much less.
        (lambda rng, shape: rng.lognormal(sigma=0.5, size=shape) - math.exp(0.125), 0.91, 0.95),
    ],
    ids=["normal", "skewed"],
)
def test_how_often_the_interval_of_eight_seeds_covers_the_mean(draw, least, most):
    sample = draw(np.random.default_rng(0), (10_000, 8))
    intervals = [t_interval(row) for row in sample]
    share = np.mean([i.low <= 0.0 <= i.high for i in intervals])
    assert least <= share <= most


@given(st.floats(-10, 10), st.floats(0, 5), st.floats(-10, 10), st.floats(0.01, 10))
def test_verdicts_follow_the_interval(centre, half, bound, margin):
    interval = Interval(centre, centre - half, centre + half, seeds=10)
    below = {"holds": interval.high < bound, "does not hold": interval.low > bound}
    assert judge_below(interval, bound) == next((v for v, true in below.items() if true), "undecided")
    if interval.high != bound:
        assert judge_at_most(interval, bound) == judge_below(interval, bound)
    else:
        assert judge_at_most(interval, bound) == "holds"
    inside = abs(interval.low) <= margin and abs(interval.high) <= margin
    outside = interval.low > margin or interval.high < -margin
    assert judge_within(interval, margin) == ("holds" if inside else "does not hold" if outside else "undecided")
    few = dataclasses.replace(interval, seeds=2)
    assert {judge_below(few), judge_within(few, margin), judge_at_most(few, bound)} == {"undecided"}


# --- comparisons -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gap", "verdict"), [(-200.0, "holds"), (200.0, "does not hold"), (0.0, "undecided")])
def test_the_verdict_flips_with_the_difference(gap, verdict):
    """Seeds differ by thousands, policies by hundreds: only pairing can tell."""

    def curve(_, label, seed):
        return 9000 * noise("world", seed) + 10 * noise(label, seed) + (gap if "OPKB" in label else 0.0) + 30_000

    results = played([all_seeds("switching/1")], curve)
    found = claim(results, "F1a-2")
    assert [c.verdict for c in found.checks] == [verdict] * 2
    assert found.verdict == verdict
    cells = results.cells.set_index(["policy", "seed"])["regret"]
    expected = stats.ttest_rel(cells["ADA-OPKB"], cells["ADA-OPNN"]).confidence_interval(0.95)
    check = found.checks[0]
    np.testing.assert_allclose([check.low, check.high], [expected.low, expected.high])
    assert (check.seeds, check.paper_seeds, check.note, check.unit) == (25, 25, "", "regret")
    assert check.statement == "ADA-OPKB minus ADA-OPNN, regret after 10,000 rounds: below 0"


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(1.0, "holds"), (1.2, "holds"), (1.25, "undecided"), (1.4, "does not hold"), (0.6, "does not hold")],
)
def test_near_is_within_a_quarter_of_the_other(share, verdict):
    def curve(_, label, seed):
        base = 4000 * (share if label.startswith("WGPUCB") else 0.5 if "OPKB" in label else 1.0)
        return base + 10 * noise(label, seed)

    found = claim(played([all_seeds("switching/2")], curve), "F1b-2")
    near = [c for c in found.checks if "within 25%" in c.statement]
    assert [c.verdict for c in near] == [verdict] * 4
    assert all("margin ±1,00" in c.note or "margin ±99" in c.note for c in near)
    assert {c.verdict for c in found.checks if c not in near} == {"holds"}
    assert found.verdict == verdict


def test_before_the_switch_is_the_last_checkpoint_before_it():
    """SW-GPUCB is better until the checkpoint before the switch and worse one checkpoint later."""
    before = ROUNDS <= ROUNDS_BEFORE_SWITCH

    def curve(_, label, seed):
        first = 1.0 if label.startswith("SW") else 2.0
        return np.where(before, first * ROUNDS, (10.0 - first) * ROUNDS) + noise(label, seed)

    found = claim(played([all_seeds("switching/1")], curve), "F1a-1")
    assert found.verdict == "holds"
    last = int(ROUNDS[before][-1])
    assert ROUNDS_BEFORE_SWITCH - last < 10_000 / CURVE_POINTS + 1
    for check in found.checks:
        assert check.estimate == pytest.approx(-last, abs=3)
        assert f"regret after {last:,} rounds" in check.statement


def test_only_seeds_both_have_played_count_and_few_are_marked():
    def curve(_, label, seed):
        if label == "ADA-OPNN" and seed not in (3, 4, 5, 6):
            return None
        return 1000.0 + (seed if label == "ADA-OPNN" else 0) + (1e6 if seed < 3 else 0)

    text, published = claim(played([all_seeds("switching/1")], curve), "F1a-2").checks
    assert (text.seeds, text.estimate, text.verdict) == (4, -4.5, "holds")
    assert text.note == "4 of the paper's 25 seeds"
    assert (published.seeds, published.verdict) == (25, "undecided")


@pytest.mark.parametrize("seeds", [1, 2])
def test_fewer_than_three_seeds_decide_nothing(seeds):
    results = played([all_seeds("switching/1", seeds)], lambda _, label, seed: 1.0 + seed if "OPKB" in label else 1e6)
    found = claim(results, "F1a-2")
    assert found.verdict == "undecided"
    assert all("fewer than 3 seeds" in c.note and c.seeds == seeds for c in found.checks)
    assert "nan" not in claims_markdown([found])


def test_other_settings_than_the_catalogue_are_named():
    results = played([quick(PAPER["switching/1"])], lambda *_: 10.0)
    notes = [c.note for c in claim(results, "F1a-2").checks]
    assert "ADA-OPNN not as in the catalogue" in notes[0]
    assert "ADA-OPKB not" not in notes[0]
    shorter = all_seeds("switching/1")
    shorter = dataclasses.replace(shorter, settings={**shorter.settings, "horizon": 500})
    check = claim(played([shorter], lambda *_: 10.0), "F1a-2").checks[0]
    assert "ADA-OPKB not as in the catalogue; ADA-OPNN not as in the catalogue" in check.note
    assert "after 500 rounds" in check.statement


def test_retuned_window_must_beat_everyone():
    def curve(best):
        return lambda _, label, seed: {"SW-GPUCB (window 1000)": 50.0, best: 20.0}.get(label, 90.0) + noise(label, seed)

    slow = [all_seeds("cosine/slow")]
    assert claim(played(slow, curve("nobody")), "F2b-2").verdict == "holds"
    assert claim(played(slow, curve("WGPUCB (tuned)")), "F2b-2").verdict == "depends on the settings"
    beaten = claim(played(slow, curve("WGPUCB (tuned)")), "F2b-2").checks
    assert [c.statement.split(",")[0] for c in beaten if c.verdict == "does not hold"] == [
        "SW-GPUCB (window 1000) minus WGPUCB (tuned)"
    ]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ({"a": ["holds", "holds"], "b": ["holds"]}, "holds"),
        ({"a": ["holds", "does not hold"], "b": ["does not hold", "undecided"]}, "does not hold"),
        ({"a": ["holds"], "b": ["holds", "does not hold"]}, "depends on the settings"),
        ({"a": ["holds"], "b": ["does not hold"], "c": ["undecided"]}, "depends on the settings"),
        ({"a": ["holds"], "b": ["holds", "undecided"]}, "undecided"),
        ({"a": ["holds"], "b": ["not run"]}, "undecided"),
        ({"a": ["holds", "not run"]}, "undecided"),
        ({"a": ["does not hold"], "b": ["undecided"]}, "undecided"),
        ({"a": ["not run"], "b": ["not run"]}, "not run"),
        ({}, "not run"),
    ],
)
def test_rule_of_a_claim(verdicts, expected):
    checks = tuple(
        Check("X", variant, "", 0.0, 0.0, 0.0, "regret", 25, 25, verdict, "")
        for variant, given_verdicts in verdicts.items()
        for verdict in given_verdicts
    )
    assert Claim("X", "0", "", checks).verdict == expected


# --- growth ----------------------------------------------------------------------------------------------------------


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
    assert growth.allowed == SEGMENTS.rate


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
    assert [c.variant for c in found.checks] == [policy.label for policy in GROWTH_POLICIES]
    assert [c.verdict for c in found.checks] == [verdict] * len(GROWTH_POLICIES)
    assert found.verdict == verdict
    check = found.checks[0]
    assert (check.unit, check.seeds, check.paper_seeds) == ("slope", 20, 0)
    assert "at most 0.50 (plain exponent 0.50)" in check.statement
    assert ("above the plain exponent" in check.note) == (verdict == "does not hold")
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
    sweeps = [quick_sweep(sweep) for sweep in SWEEPS]
    found = claim(power_law(sweeps[0], 0.4, seeds=2), "T1", sweeps=sweeps)
    verdicts = [(c.verdict, c.seeds) for c in found.checks[: len(sweeps)]]
    assert verdicts[0] == ("undecided", 2)
    assert set(verdicts[1:]) == {("not run", 0)}
    assert len(found.checks) == len(sweeps) * len(GROWTH_POLICIES)


@pytest.mark.parametrize("policy", GROWTH_POLICIES, ids=lambda p: p.label)
def test_gain_is_the_one_the_policy_works_with(policy):
    experiment = SWEEPS[0].experiments[0]
    world = build_world(experiment.environment, experiment.settings, 0)
    player = build_policy(policy, world, 0)
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
    worlds = [build_world(e.environment, e.settings, 0) for e in shorter]
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


# --- reading ---------------------------------------------------------------------------------------------------------


def test_markdown_has_a_row_a_check():
    results = played(
        [all_seeds(name, 4) for name in ("switching/1", "cosine/slow")], lambda _, label, seed: 1e4 + noise(label, seed)
    )
    claims = check_claims(results)
    text = claims_markdown(claims)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4 + len(claims) + sum(len(c.checks) for c in claims)
    widths = {len(row.split("|")) for row in rows}
    assert widths == {7, 9}
    assert "nan" not in text
    assert all(f"| {name} |" in text for name in IDS)
