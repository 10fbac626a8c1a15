import json

import numpy as np
import pytest

from driftbandits import POLICIES, ArmSet, create_policy
from driftbandits.cli import main
from driftbandits.errors import InputError
from driftbandits.experiments.catalogue import (
    DIMENSIONS,
    EVALUATION_SEEDS,
    EXPERIMENTS,
    TUNING_SEEDS,
    Experiment,
    PolicySpec,
    find_experiment,
)
from driftbandits.experiments.results import as_markdown, cell_table, curve_table, summary_table
from driftbandits.experiments.runner import Cell, cells_of, run_cell, run_cells
from driftbandits.plots.data import ranked_regret, regret_curves
from driftbandits.tuning.comparison import tuned_specs
from driftbandits.tuning.search import World, count_runs, search, trial_points
from driftbandits.tuning.spaces import FAMILIES, SPACES

SMALL = [
    Cell("small", "switching/1", {"horizon": 600, "switches": (300,), "size": 20}, PolicySpec(name, name), seed)
    for seed in range(2)
    for name in ("OPKB", "AdaOPKB")
]


def test_one_job_and_several_give_the_same_table():
    one = run_cells(SMALL, jobs=1)
    two = run_cells(SMALL, jobs=2)
    drop = ["seconds"]
    assert cell_table(one).drop(columns=drop).equals(cell_table(two).drop(columns=drop))
    assert curve_table(one).equals(curve_table(two))


def test_progress_is_called_once_a_cell():
    calls = []
    run_cells(SMALL[:2], jobs=1, progress=lambda: calls.append(1))
    assert len(calls) == 2
    with pytest.raises(InputError, match="jobs"):
        run_cells(SMALL, jobs=0)


def test_curve_ends_at_the_final_regret():
    result = run_cell(SMALL[0])
    assert result.rounds[0] == 1
    assert result.rounds[-1] == 600
    assert (np.diff(result.regret) >= 0).all()


def test_summary_is_mean_and_standard_error():
    results = run_cells(SMALL, jobs=1)
    summary = summary_table(cell_table(results))
    finals = [r.regret[-1] for r in results if r.cell.policy.label == "OPKB"]
    row = summary[summary["policy"] == "OPKB"].iloc[0]
    assert row["regret"] == pytest.approx(np.mean(finals))
    assert row["standard_error"] == pytest.approx(np.std(finals, ddof=1) / np.sqrt(len(finals)))
    assert "| OPKB |" in as_markdown(summary)


def test_curves_behind_the_figure():
    results = run_cells(SMALL, jobs=1)
    curves = regret_curves(curve_table(results), cell_table(results), "small")
    assert [c.policy for c in curves] == ["OPKB", "AdaOPKB"]
    assert curves[0].seeds == 2
    np.testing.assert_allclose(curves[0].mean[-1], np.mean([r.regret[-1] for r in results[::2]]))


def test_tuning_and_evaluation_seeds_are_apart():
    assert not set(TUNING_SEEDS) & set(EVALUATION_SEEDS)
    for experiment in EXPERIMENTS.values():
        assert not set(experiment.seeds) & set(TUNING_SEEDS)
        runs = [len(experiment.seeds) if p.seeds is None else p.seeds for p in experiment.policies]
        assert len(cells_of(experiment)) == sum(runs)
        assert min(runs) >= 8
        assert len(cells_of(experiment, seeds=2)) == 2 * len(experiment.policies)


@pytest.mark.parametrize("label", SPACES)
def test_trials_are_fixed_inside_their_ranges_and_usable(label):
    space = SPACES[label]
    points = trial_points(space, 32)
    assert points == trial_points(space, 32)
    assert points[0] is None
    assert len(points) == (32 if space.ranges else 1)
    arms = ArmSet(np.eye(3))
    for values in points:
        create_policy(space.policy, arms, horizon=100, seed=0, **space.settings(values or {}))
        for name, (low, high) in space.ranges.items():
            assert values is None or 0.99 * low <= values[name] <= 1.01 * high


def test_every_policy_is_in_one_family_and_every_class_in_the_comparison():
    members = [label for labels in FAMILIES.values() for label in labels]
    assert sorted(members) == sorted(SPACES)
    assert {space.policy for space in SPACES.values()} == set(POLICIES)


def test_search_keeps_the_better_and_counts_its_runs():
    world = World("switching/1", {"horizon": 300, "switches": (150,), "size": 15})
    rungs = ((4, 1), (2, 3))
    calls = []
    found = search(SPACES["SW-UCB (plain)"], [world], rungs, jobs=1, progress=lambda: calls.append(1))
    assert len(calls) == count_runs(rungs, worlds=1) == 4 + 2 * 2
    assert sorted(found.table["runs"]) == [1, 1, 3, 3]
    kept = found.table[found.table["runs"] == 3]
    assert found.regret == pytest.approx(kept["regret"].min())
    again = search(SPACES["SW-UCB (plain)"], [world], rungs, jobs=2)
    assert again.values == found.values


def test_unknown_experiment_is_answered_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'switching/1'"):
        find_experiment("switchin/1")


def test_reproduce_writes_table_and_figure(tmp_path, capsys, monkeypatch):
    small = Experiment(
        id="small",
        title="Small",
        environment="cosine/slow",
        settings={"horizon": 1500, "size": 15},
        policies=(
            PolicySpec("ADA-OPKB", "AdaOPKB"),
            PolicySpec("ADA-OPNN", "AdaOPNN", {"width": 16, "steps": 5}, seeds=1),
        ),
    )
    monkeypatch.setitem(EXPERIMENTS, "small", small)
    assert main(["reproduce", "small", "--seeds", "2", "--jobs", "1", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "| small | ADA-OPKB | 2 |" in printed
    assert "| small | ADA-OPNN | 1 |" in printed
    assert "| drift |" in printed
    assert "nan" not in printed
    assert str(tmp_path / "summary.md") in printed
    assert {p.name for p in tmp_path.iterdir()} == {
        "cells.parquet",
        "curves.parquet",
        "summary.md",
        "summary.csv",
        "regret.png",
        "regret.pdf",
        "run.json",
    }
    assert (tmp_path / "regret.png").stat().st_size > 20_000
    assert json.loads((tmp_path / "run.json").read_text())["experiments"] == ["small"]


def test_command_line_errors(capsys):
    assert main(["reproduce", "nothing"]) == 1
    assert "no experiment is called 'nothing'" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["fly"])


def test_compare_writes_table_and_figure(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        "driftbandits.cli.comparison",
        lambda dimension, policies: [
            Experiment(
                id=f"small, d={dimension}",
                title=f"small, d = {dimension}",
                environment="switching/1",
                settings={"dimension": dimension, "horizon": 300, "switches": (150,), "size": 15},
                policies=tuple(spec for spec in policies if spec.label in ("OPKB", "SW-UCB (plain)", "Uniform")),
            )
        ],
    )
    assert main(["compare", "--seeds", "2", "--jobs", "1", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "12 runs" in printed
    assert "| small, d=2 | Uniform |" in printed
    assert (tmp_path / "comparison.png").stat().st_size > 20_000


def test_ranking_is_by_mean_regret():
    results = run_cells(SMALL, jobs=1)
    ranked = ranked_regret(cell_table(results), "small", title="t")
    assert (np.diff(ranked.mean) >= 0).all()
    assert set(ranked.policies) == {"OPKB", "AdaOPKB"}


def test_tuning_the_comparison_writes_what_it_found(tmp_path, monkeypatch):
    monkeypatch.setattr("driftbandits.tuning.comparison.RUNGS", ((2, 1), (1, 2)))
    out = str(tmp_path)
    assert main(["tune", "comparison", "OPKB", "Uniform", "--jobs", "1", "--out", out]) == 0
    found = json.loads((tmp_path / "tuned.json").read_text())
    assert set(found["d=10"]) == set(found["d=2"]) == {"OPKB", "Uniform"}
    assert found["d=2"]["Uniform"]["values"] is None
    assert main(["tune", "comparison", "Nothing", "--out", out]) == 1


def test_committed_settings_serve_every_policy_of_the_comparison():
    for dimension in DIMENSIONS:
        specs = tuned_specs(dimension)
        assert [spec.label for spec in specs] == list(SPACES)
        for spec in specs:
            create_policy(spec.name, ArmSet(np.eye(3)), horizon=100, seed=0, **spec.settings)


@pytest.mark.parametrize("study", ["constants", "neural"])
def test_tuning_the_constants_prints_the_best(study, tmp_path, capsys, monkeypatch):
    world = World("switching/1", {"horizon": 400, "switches": (200,), "size": 15})
    monkeypatch.setattr("driftbandits.tuning.constants.RUNGS", ((4, 1), (2, 2)))
    monkeypatch.setattr("driftbandits.tuning.constants.WORLDS", (world,))
    assert main(["tune", study, "--jobs", "1", "--out", str(tmp_path)]) == 0
    assert "best of 4 points: Constants(" in capsys.readouterr().out
    assert len((tmp_path / f"{study}.csv").read_text().splitlines()) == 5
