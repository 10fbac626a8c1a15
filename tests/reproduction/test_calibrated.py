import dataclasses
import json
import math

import numpy as np
import pandas as pd
import pytest

from driftbandits import information_gain
from driftbandits.experiments.building import build_policy, build_world, check_experiment
from driftbandits.experiments.specs import Experiment, PolicySpec, cells_of
from reproduction.autobandit import YARDSTICK
from reproduction.calibrated import (
    ALARM_COLUMNS,
    CALIBRATED_ALARMS_PREFIX,
    CALIBRATED_DELAYS_PREFIX,
    CALIBRATED_GROUP,
    CALIBRATED_PAPER_PREFIX,
    DELAY_COLUMNS,
    STATIONARY_CONDITIONS,
    WORLD_COLUMNS,
    calibrated_opkb_markdown,
    judge_calibrated_opkb,
)
from reproduction.catalogue import ADA_OPKB_THEORY, AUTOBANDIT, CALIBRATED_OPKB, CALIBRATED_OPKB_THEORY
from reproduction.groups import EXPERIMENTS, find_experiments
from reproduction.page import write_report
from reproduction.paper import PAPER as FIGURES
from reproduction.suite import SUITE, WRONG_KERNELS
from tests.reproduction.made_up import results_of, small
from tests.reproduction.walk import Walk


def part(prefix):
    return {name: e for name, e in CALIBRATED_GROUP.items() if name.startswith(prefix)}


def keys(experiments, label):
    return {cell.key for e in experiments for cell in cells_of(e) if cell.policy.label == label}


def test_it_has_every_suite_world_the_papers_alarms_and_delays():
    assert [e.id for e in find_experiments(["calibrated"])] == list(CALIBRATED_GROUP)
    assert len(CALIBRATED_GROUP) == len(SUITE) + 3 + 2 * len(STATIONARY_CONDITIONS) + 2 * 4 + 3
    for name, world in SUITE.items():
        mine = CALIBRATED_GROUP[name.replace("suite/", "calibrated/")]
        assert (mine.environment, mine.settings, mine.common) == (world.environment, world.settings, world.common)
        assert mine.seeds == world.seeds
        assert len(mine.policies) == 6


@pytest.mark.parametrize("label", ["ADA-OPKB", "AutoBandit"])
def test_runs_of_the_yardstick_are_used_again(label):
    worlds = {
        name: e
        for name, e in CALIBRATED_GROUP.items()
        if not name.startswith((CALIBRATED_PAPER_PREFIX, CALIBRATED_ALARMS_PREFIX, CALIBRATED_DELAYS_PREFIX))
    }
    yardstick = {name.replace("calibrated/", "yardstick/"): e for name, e in worlds.items()}
    assert keys(worlds.values(), label) == keys([YARDSTICK[name] for name in yardstick], label)
    in_paper = [YARDSTICK[name] for name in YARDSTICK if name.startswith("yardstick/paper/")]
    assert keys(in_paper, label) < keys(part(CALIBRATED_PAPER_PREFIX).values(), label)


def test_ada_opkb_on_the_papers_worlds_is_what_its_figures_play():
    figures = [FIGURES[name] for name in ("switching/1", "switching/2", "cosine/slow")]
    for label in ("ADA-OPKB", "ADA-OPKB (published)"):
        assert keys(part(CALIBRATED_PAPER_PREFIX).values(), label) == keys(figures, label)


def test_all_but_autobandit_are_told_the_kernel_of_the_suite():
    for policy in CALIBRATED_GROUP["calibrated/mismatched/d2"].policies:
        assert policy == AUTOBANDIT or policy.kernel == WRONG_KERNELS["mismatched"]


@pytest.mark.parametrize("dimension", [2, 3, 10])
def test_the_constants_of_the_proofs_have_no_third_block(dimension):
    experiment = CALIBRATED_GROUP[f"calibrated/flip-1/d{dimension}"]
    world = build_world(experiment.environment, experiment.settings, 0)
    policy = build_policy(ADA_OPKB_THEORY, world, 0)
    assert policy.constants.scale == pytest.approx(3.3)
    gain = information_gain(world.arms.features, horizon=world.horizon, sigma=policy.constants.sigma)
    first = policy.constants.levels(gamma=gain, horizon=world.horizon, arms=len(world.arms)).block_size
    assert 4_000 < first < world.horizon < first + 2 * first


def test_nothing_changes_where_alarms_are_false():
    for name, experiment in part(CALIBRATED_ALARMS_PREFIX).items():
        world = build_world(experiment.environment, experiment.settings, 0)
        assert len(world.change_rounds) == 0
        assert (world.horizon, len(experiment.seeds)) == (10_000, 200)
        assert [p.label for p in experiment.policies] == [
            "CalibratedOPKB",
            *([CALIBRATED_OPKB_THEORY.label] if name == "calibrated/alarms/gaussian/d2" else []),
        ]


def test_rewards_of_every_condition_fit_the_range_or_are_clipped():
    for experiment in part(CALIBRATED_ALARMS_PREFIX).values():
        check_experiment(experiment)
    bernoulli = CALIBRATED_GROUP["calibrated/alarms/bernoulli/d2"]
    world = build_world(bernoulli.environment, bernoulli.settings, 0)
    assert world.reward_range == (0.0, 1.0)
    assert np.abs(world.means(0) - 0.5).max() == pytest.approx(0.4)
    assert cells_of(bernoulli)[0].policy.settings["reward_range"] == [0.0, 1.0]


def test_a_wrong_length_scale_is_believed():
    for name, told in (("too-long", 0.8), ("too-short", 0.05)):
        for dimension in (2, 10):
            (policy,) = CALIBRATED_GROUP[f"calibrated/alarms/{name}/d{dimension}"].policies
            assert policy.kernel == {"name": "rbf", "length_scale": told}
            assert policy.settings == {**CALIBRATED_OPKB.settings, "kernel": "given"}


def test_changes_have_the_size_their_name_says():
    for name, experiment in part(CALIBRATED_DELAYS_PREFIX).items():
        world = build_world(experiment.environment, experiment.settings, 0)
        assert world.change_rounds.tolist() == [3000]
        assert world.horizon == 6000
        kind, _, size = name.removeprefix(CALIBRATED_DELAYS_PREFIX).partition("-")
        moved = np.abs(world.means(3000) - world.means(2999))
        if kind == "flip":
            assert moved.max() == pytest.approx(float(size))
        elif kind == "level":
            np.testing.assert_allclose(moved, float(size))
        else:
            assert not size
            assert moved.max() > 0.1


RIVALS = {"ADA-OPKB": 100.0, "ADA-OPKB (published)": 80.0, "AutoBandit": 20.0}


def runs(experiment, regrets, *, seeds=(0, 1), spread=0.0, alarms=(0, 0), delays=((), ())):
    return pd.DataFrame(
        [
            {
                "experiment": f"calibrated/{experiment}",
                "policy": policy,
                "seed": seed,
                "regret": regret + spread * seed,
                "false_alarms": alarms[seed],
                "delays": list(delays[seed]),
            }
            for policy, regret in regrets.items()
            for seed in seeds
        ]
    )


def world(name, own, **changes):
    return runs(name, {"CalibratedOPKB": own, **RIVALS}, **changes)


def still(name, alarmed, of, policy="CalibratedOPKB"):
    counts = [2] * alarmed + [0] * (of - alarmed)  # twice in a run is one run
    return runs(f"alarms/{name}", {policy: 1.0}, seeds=range(of), alarms=counts, delays=[()] * of)


def change(name, delays, policy="CalibratedOPKB"):
    found = [() if delay is None else (delay,) for delay in delays]
    return runs(f"delays/{name}", {policy: 1.0}, seeds=range(len(found)), alarms=[0] * len(found), delays=found)


def found(judgement):
    return {verdict.target: verdict for verdict in judgement.verdicts}


def test_one_row_a_world_with_the_worst_over_ada_opkb_first():
    table = judge_calibrated_opkb(pd.concat([world("slow/d2", 40.0), world("flip-1/d2", 60.0)])).worlds
    assert list(table.columns) == list(WORLD_COLUMNS)
    assert list(table["world"]) == ["flip-1/d2", "slow/d2"]
    assert list(table["over_ada_opkb"]) == [0.6, 0.4]
    assert list(table["over_published"]) == [0.75, 0.5]
    assert list(table["over_auto"]) == [3.0, 2.0]
    assert table["theory_mode"].isna().all()
    assert list(table["seeds"]) == [2, 2]


def test_worlds_with_changes_have_a_limit_and_stationary_ones_are_reported():
    cells = pd.concat([world("stationary/d2", 90.0), world("flip-1/d2", 40.0), world("paper/slow", 50.0)])
    verdicts = found(judge_calibrated_opkb(cells))
    changing = verdicts["worst world with changes, over ADA-OPKB"]
    assert (changing.value, changing.limit, changing.status) == (0.5, 0.5, "met")
    assert changing.note == "paper/slow, of 2"
    assert verdicts["worst stationary world, over ADA-OPKB"].value == 0.9
    assert verdicts["worst stationary world, over ADA-OPKB"].status == "reported"
    typical = verdicts["over AutoBandit"]
    assert typical.value == pytest.approx((4.5 * 2.0 * 2.5) ** (1 / 3))
    assert typical.note == "geometric mean over 3 worlds"
    assert verdicts["over CalibratedOPKB (theory mode)"].status == "not played"


def test_one_world_above_the_limit_is_enough_to_miss_it():
    cells = pd.concat([world("slow/d2", 1.0), world("flip-1/d2", 51.0)])
    assert found(judge_calibrated_opkb(cells))["worst world with changes, over ADA-OPKB"].status == "not met"


def test_only_seeds_that_all_have_played_count():
    cells = world("slow/d2", 50.0, spread=100.0)
    late = (cells["policy"] == "AutoBandit") & (cells["seed"] == 1)
    table = judge_calibrated_opkb(cells[~late]).worlds
    assert (table["seeds"][0], table["regret"][0], table["ada_opkb"][0]) == (1, 50.0, 100.0)


def test_runs_with_alarms_are_counted_once_by_condition_and_policy():
    theory = "CalibratedOPKB (theory mode)"
    cells = pd.concat([still("gaussian/d2", 3, 20), still("gaussian/d2", 0, 20, theory), still("student-t/d10", 2, 20)])
    judgement = judge_calibrated_opkb(cells)
    assert list(judgement.alarms.columns) == list(ALARM_COLUMNS)
    assert list(judgement.alarms["with_alarm"]) == [3, 0, 2]
    assert list(judgement.alarms["share"]) == [0.15, 0.0, 0.1]
    verdicts = found(judgement)
    status = {
        target.removeprefix("share of runs with a false alarm, "): verdict.status
        for target, verdict in verdicts.items()
        if "false alarm" in target
    }
    assert status == {
        "gaussian/d2, CalibratedOPKB": "not met",
        f"gaussian/d2, {theory}": "met",
        "student-t/d10, CalibratedOPKB": "met",
    }
    note = verdicts["share of runs with a false alarm, gaussian/d2, CalibratedOPKB"].note
    assert note == "3 of 20 runs; 95 % interval 0.032 to 0.379"


def test_delays_are_of_the_runs_that_found_the_change():
    cells = pd.concat(
        [
            change("flip-1.6", [10, 30, None, 20]),
            change("flip-1.6", [None] * 4, "ADA-OPKB"),
            change("level-0.05", [5, 7]),
            change("hidden", [100]),
        ]
    )
    table = judge_calibrated_opkb(cells).delays
    assert list(table.columns) == list(DELAY_COLUMNS)
    assert list(table["change"]) == ["flip by 1.6", "flip by 1.6", "level by 0.05", "hidden"]
    assert list(table["kind"]) == ["flip", "flip", "level", "hidden"]
    assert table["size"].tolist()[:3] == [1.6, 1.6, 0.05]
    assert math.isnan(table["size"][3])
    assert list(table["found"]) == [3, 0, 2, 1]
    assert list(table["share_found"]) == [0.75, 0.0, 1.0, 1.0]
    assert table["median"].tolist()[0] == 20.0
    assert (table["lower_quartile"][0], table["upper_quartile"][0]) == (15.0, 25.0)
    assert math.isnan(table["median"][1])


def test_other_experiments_and_worlds_it_has_not_played_are_left_out():
    yardstick = world("slow/d2", 50.0).assign(experiment="yardstick/slow/d2")
    lacking = runs("flip-1/d2", RIVALS)
    nothing = judge_calibrated_opkb(pd.concat([yardstick, lacking]))
    assert nothing.empty
    assert {verdict.status for verdict in nothing.verdicts} == {"not played"}
    assert not judge_calibrated_opkb(world("slow/d2", 50.0)).empty
    assert not judge_calibrated_opkb(still("gaussian/d2", 0, 2)).empty


def test_alarms_and_delays_are_no_worlds():
    cells = pd.concat([still("gaussian/d2", 0, 2), change("hidden", [3])])
    assert judge_calibrated_opkb(cells).worlds.empty


def test_markdown_has_a_line_for_every_target_change_and_world():
    cells = pd.concat(
        [
            world("slow/d2", 50.0),
            world("flip-1/d2", 1200.0),
            still("gaussian/d2", 1, 20),
            change("hidden", [4, 6, None]),
            change("hidden", [None], "ADA-OPKB"),
        ]
    )
    text = calibrated_opkb_markdown(judge_calibrated_opkb(cells))
    assert "| worst world with changes, over ADA-OPKB | 12.00 | 0.50 | **not met** | flip-1/d2, of 2 |" in text
    assert "| hidden | CalibratedOPKB | 2 of 3 | 5 | 4 to 6 |" in text
    assert "| hidden | ADA-OPKB | 0 of 1 | – | – |" in text
    assert "| flip-1/d2 | 1,200 ± 0 | 100 (12.00) | 80 (15.00) | 20 (60.00) | – | – |" in text
    assert text.index("flip-1/d2 | 1,200") < text.index("slow/d2 | 50")
    assert "| change |" not in calibrated_opkb_markdown(judge_calibrated_opkb(world("slow/d2", 50.0)))


WORLDS = ("calibrated/slow/d2", "calibrated/stationary/d3", "calibrated/paper/one-switch")
ALARMS = ("calibrated/alarms/gaussian/d2",)
DELAYS = ("calibrated/delays/flip-0.4", "calibrated/delays/hidden")


def page_of(names, out, experiments=CALIBRATED_GROUP):
    return write_report(results_of([small(experiments[name], 2) for name in names]), out=out).read_text("utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    out = tmp_path_factory.mktemp("calibrated")
    return page_of((*WORLDS, *ALARMS, *DELAYS), out), out


def test_the_page_has_targets_worlds_delays_and_both_figures(page):
    text, out = page
    walk = Walk(text)
    assert walk.faults == []
    assert len(walk.ids) == len(set(walk.ids))
    parts = ("calibrated-judged", "calibrated-delays", "calibrated-paper-one-switch")
    assert {"calibrated", *(f"calibrated--{part}" for part in parts)} <= set(walk.ids)
    assert "geometric mean over 3 worlds" in text
    assert "share of runs with a false alarm, gaussian/d2, CalibratedOPKB (theory mode)" in text
    assert "flip by 0.4" in text
    for name in ("calibrated", "calibrated-delays"):
        assert (out / "figures" / f"{name}.png").exists()
        assert (out / "figures" / f"{name}.pdf").exists()


def test_the_figure_of_ratios_is_of_the_suite_alone(tmp_path):
    text = page_of(["calibrated/paper/one-switch"], tmp_path)
    assert "calibrated-judged" in text
    assert not (tmp_path / "figures" / "calibrated.png").exists()


def test_each_part_stands_alone(tmp_path):
    alarms = page_of(ALARMS, tmp_path / "alarms")
    assert "share of runs with a false alarm" in alarms
    assert "calibrated-delays" not in alarms
    delays = page_of(DELAYS, tmp_path / "delays")
    assert "calibrated-judged" not in delays
    assert "2 of 2" in delays
    assert "0 of 2" in delays


def test_without_the_subject_there_is_nothing_to_judge(tmp_path):
    experiment = CALIBRATED_GROUP["calibrated/slow/d2"]
    others = dataclasses.replace(experiment, policies=(PolicySpec("ADA-OPKB", "AdaOPKB"),))
    assert "calibrated-judged" not in page_of([others.id], tmp_path, {others.id: others})


WORLD = {"horizon": 200, "switches": [100], "size": 10, "dimension": 2}
POLICIES = (PolicySpec("CalibratedOPKB", "GPUCB"), PolicySpec("ADA-OPKB", "Uniform"))  # stand for them
TINY = tuple(
    Experiment(f"calibrated/{name}", "Tiny", "switching", {**WORLD, **changes}, POLICIES, seeds=(0, 1))
    for name, changes in {"tiny/d2": {}, "alarms/tiny/d2": {"switches": []}, "delays/flip-0.4": {}}.items()
)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    for experiment in TINY:
        monkeypatch.setitem(EXPERIMENTS, experiment.id, experiment)


def test_it_writes_and_prints_verdicts_worlds_alarms_and_delays(cli, tmp_path):
    out = tmp_path / "out"
    result = cli("reproduce", *(e.id for e in TINY), "--jobs", 1, "--out", out)
    assert result.exit_code == 0, result.stderr
    written = (out / "calibrated.md").read_text()
    assert "targets: " in result.stdout
    assert "| worst world with changes, over ADA-OPKB |" in written
    assert list(pd.read_csv(out / "calibrated.csv")["world"]) == ["tiny/d2"]
    assert list(pd.read_csv(out / "calibrated-alarms.csv")["condition"]) == ["tiny/d2"] * 2
    assert list(pd.read_csv(out / "calibrated-delays.csv")["change"]) == ["flip by 0.4"] * 2
    assert (out / "figures" / "calibrated.png").exists()
    assert not (out / "yardstick.md").exists()
    targets = json.loads(cli("report", out, "--json").stdout)["targets"]
    assert {"worst world with changes, over ADA-OPKB"} < {row["target"] for row in targets}


def test_only_what_was_played_has_a_table(cli, tmp_path):
    out = tmp_path / "out"
    assert cli("reproduce", TINY[1].id, "--jobs", 1, "--out", out).exit_code == 0
    assert (out / "calibrated-alarms.csv").exists()
    assert not (out / "calibrated.csv").exists()
    assert not (out / "calibrated-delays.csv").exists()
