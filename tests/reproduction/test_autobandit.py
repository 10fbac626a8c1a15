import dataclasses
import json
import math

import pandas as pd
import pytest

from driftbandits.experiments.building import build_world
from driftbandits.experiments.seeds import EVALUATION
from driftbandits.experiments.specs import Experiment, PolicySpec, cells_of
from reproduction.autobandit import (
    KNOWS_CHANGES_LABEL,
    WORLD_COLUMNS,
    YARDSTICK,
    autobandit_markdown,
    judge_autobandit,
    single_settings,
)
from reproduction.catalogue import AUTOBANDIT, ONE_SETTING_ENDING, TUNED_HERE_ENDING
from reproduction.claims import TargetVerdict
from reproduction.groups import EXPERIMENTS, find_experiments
from reproduction.page import write_report
from reproduction.paper import PAPER
from reproduction.real_data import REAL, is_real
from reproduction.suite import SUITE, WRONG_KERNELS
from tests.reproduction.made_up import results_of, small
from tests.reproduction.walk import Walk


def spec(experiment, label):
    return next(policy for policy in YARDSTICK[experiment].policies if policy.label == label)


def test_it_has_every_suite_world_the_papers_and_the_real_series():
    assert len(YARDSTICK) == len(SUITE) + 3 + len([name for name in REAL if name.count("/") == 1])
    assert [e.id for e in find_experiments(["yardstick"])] == list(YARDSTICK)
    for name, world in SUITE.items():
        mine = YARDSTICK[name.replace("suite/", "yardstick/")]
        assert (mine.environment, mine.settings, mine.common) == (world.environment, world.settings, world.common)
        assert mine.seeds == EVALUATION.take(10)


def test_autobandit_is_in_every_one_of_them_and_in_every_real_series():
    for experiment in (*YARDSTICK.values(), *REAL.values()):
        assert experiment.policies[0] == AUTOBANDIT


def test_baselines_are_told_kernel_and_noise():
    window = spec("yardstick/noisy/d3", f"SW-GPUCB{TUNED_HERE_ENDING}")
    assert (window.settings["noise"], window.settings["ridge"]) == (0.5, 2.5)
    master = spec("yardstick/slow/d2", f"GPUCB+MASTER{ONE_SETTING_ENDING}")
    assert (master.settings["noise"], master.settings["base_settings"]["ridge"]) == (0.1, 0.1)
    for policy in YARDSTICK["yardstick/mismatched/d2"].policies:
        assert policy == AUTOBANDIT or policy.kernel == WRONG_KERNELS["mismatched"]


def test_on_real_series_nobody_knows_the_noise():
    for policy in single_settings():
        assert policy.settings["noise"] is None
    assert spec("yardstick/real/flights", f"SW-GPUCB{ONE_SETTING_ENDING}").settings["ridge"] == 0.1
    assert is_real(YARDSTICK["yardstick/real/flights"])


def test_who_is_told_the_changes_restarts_at_them():
    for name, experiment in YARDSTICK.items():
        told = [policy for policy in experiment.policies if policy.label == KNOWS_CHANGES_LABEL]
        assert len(told) == bool(experiment.settings.get("switches"))
        if told:
            period = told[0].settings["period"]
            world = build_world(experiment.environment, experiment.settings, 0)
            rounds = list(range(period, world.horizon - 1, period))
            assert rounds == [int(t) for t in world.change_rounds], name


def test_ada_opkb_on_the_papers_worlds_is_what_its_figures_play():
    figures = {cell.key for name in ("switching/1", "switching/2", "cosine/slow") for cell in cells_of(PAPER[name])}
    mine = [cell for e in YARDSTICK.values() if "/paper/" in e.id for cell in cells_of(e) if cell.policy != AUTOBANDIT]
    assert {cell.key for cell in mine} <= figures
    assert len(mine) == 3 * 2 * 10


BASE = {"SW-GPUCB (tuned here)": 100.0, "WGPUCB (tuned here)": 80.0, "GPUCB (tuned here)": 50.0}
SINGLES = {"TV-GP-UCB (one setting)": 200.0, "R-GPUCB (one setting)": 400.0}


def runs(experiment, regrets, *, seeds=(0, 1), alarms=0, spread=0.0):
    return pd.DataFrame(
        [
            {"experiment": experiment, "policy": policy, "seed": s, "regret": r + spread * s, "false_alarms": alarms}
            for policy, r in regrets.items()
            for s in seeds
        ]
    )


def world(name, own, **changes):
    return runs(f"yardstick/{name}", {"AutoBandit": own, **BASE, **SINGLES}, **changes)


def found(judgement):
    return {verdict.target: verdict for verdict in judgement.verdicts}


def test_one_row_a_world_with_the_worst_first():
    table = judge_autobandit(
        pd.concat([world("slow/d2", 50.0), world("flip-1/d2", 120.0), world("flip-3/d2", 90.0)])
    ).worlds
    assert list(table.columns) == list(WORLD_COLUMNS)
    assert list(table["world"]) == ["flip-1/d2", "flip-3/d2", "slow/d2"]
    assert list(table["over_window"]) == [1.2, 0.9, 0.5]
    assert list(table["over_discount"]) == [1.5, 1.125, 0.625]
    assert list(table["single"]) == [200.0] * 3
    assert list(table["seeds"]) == [2] * 3


def test_standard_errors_are_over_seeds():
    table = judge_autobandit(world("slow/d2", 50.0, seeds=(0, 1, 2), spread=10.0)).worlds
    assert table["regret"][0] == 60.0
    assert table["standard_error"][0] == pytest.approx(10.0 / math.sqrt(3))


def test_geometric_means_are_over_worlds():
    verdicts = found(judge_autobandit(pd.concat([world("slow/d2", 40.0), world("flip-1/d2", 90.0)])))
    assert verdicts["over the window tuned in each world"].value == pytest.approx(0.6)
    assert verdicts["over the window tuned in each world"].status == "met"
    assert verdicts["over the discount tuned in each world"].value == pytest.approx(0.75)
    single = verdicts["over the best single setting of any baseline"]
    assert single.value == pytest.approx(0.3)
    assert "TV-GP-UCB (one setting)" in single.note


def test_the_best_single_setting_is_best_over_all_worlds_not_in_each():
    odd = runs("yardstick/flip-1/d2", {"AutoBandit": 10.0, **BASE, **SINGLES, "R-GPUCB (one setting)": 150.0})
    judgement = judge_autobandit(pd.concat([world("slow/d2", 10.0), odd]))
    assert judgement.single == "TV-GP-UCB (one setting)"
    assert list(judgement.worlds["single"]) == [200.0, 200.0]


def test_stationary_worlds_are_judged_by_gpucb_and_others_by_the_window():
    verdicts = found(judge_autobandit(pd.concat([world("stationary/d2", 160.0), world("flip-1/d2", 140.0)])))
    changing = verdicts["worst world with changes, over the tuned window"]
    assert (changing.value, changing.status) == (pytest.approx(1.4), "met")
    assert changing.note == "flip-1/d2, of 1"
    still = verdicts["worst stationary world, over GP-UCB tuned there"]
    assert (still.value, still.status) == (pytest.approx(3.2), "not met")


def test_false_alarms_are_those_of_stationary_worlds():
    cells = pd.concat(
        [world("stationary/d2", 1.0), world("stationary/d3", 1.0, alarms=1), world("slow/d2", 1, alarms=9)]
    )
    verdict = found(judge_autobandit(cells))["false alarms in 10,000 stationary rounds"]
    assert (verdict.value, verdict.status, verdict.note) == (0.5, "not met", "4 runs")


def test_the_papers_worlds_are_judged_by_ada_opkb_alone():
    paper = {"AutoBandit": 30.0, "ADA-OPKB": 200.0, "ADA-OPKB (published)": 100.0}
    cells = pd.concat(
        [runs("yardstick/paper/slow", paper), runs("yardstick/paper/one-switch", {**paper, "AutoBandit": 10.0})]
    )
    verdicts = found(judge_autobandit(cells))
    verdict = verdicts["worst environment of the paper, over ADA-OPKB"]
    assert (verdict.value, verdict.status, verdict.note) == (0.15, "met", "slow, of 2")
    assert verdicts["worst environment of the paper, over ADA-OPKB (published)"].status == "reported"
    assert verdicts["over the window tuned in each world"].status == "not played"


def test_real_series_are_judged_by_the_best_baseline_and_reported_against_the_best_fixed_arm():
    cells = runs("yardstick/real/digits", {"AutoBandit": 90.0, "A": 100.0, "B": 80.0})
    references = pd.DataFrame(
        [
            {"experiment": "yardstick/real/digits", "seed": seed, "reference": name, "shortfall": value}
            for seed in (0, 1)
            for name, value in (("fixed", 120.0), ("1 switch", 40.0))
        ]
    )
    verdicts = found(judge_autobandit(cells, references=references))
    best = verdicts["digits: regret over the best baseline"]
    assert (best.value, best.status, best.note) == (1.125, "not met", "B")
    assert verdicts["digits: regret against the best fixed arm"].value == -30.0
    assert "digits: regret against the best fixed arm" not in found(judge_autobandit(cells))


def test_only_seeds_that_all_have_played_count():
    cells = world("slow/d2", 50.0, spread=100.0)
    late = (cells["policy"] == "WGPUCB (tuned here)") & (cells["seed"] == 1)
    table = judge_autobandit(cells[~late]).worlds
    assert (table["seeds"][0], table["regret"][0], table["window"][0]) == (1, 50.0, 100.0)


def test_other_experiments_and_worlds_it_has_not_played_are_left_out():
    cells = pd.concat([world("slow/d2", 50.0), world("slow/d2", 50.0).assign(experiment="suite/slow/d2")])
    lacking = runs("yardstick/flip-1/d2", BASE)
    assert list(judge_autobandit(pd.concat([cells, lacking])).worlds["world"]) == ["slow/d2"]
    nothing = judge_autobandit(lacking)
    assert nothing.worlds.empty
    assert nothing.single == ""
    assert {verdict.status for verdict in nothing.verdicts} <= {"not played"}


def test_any_policy_can_be_judged():
    assert judge_autobandit(runs("yardstick/slow/d2", {"mine": 7.0, **BASE}), subject="mine").worlds["regret"][0] == 7.0


def test_a_verdict_on_the_limit_is_met():
    assert TargetVerdict("x", 0.7, 0.7, "").status == "met"
    assert TargetVerdict("x", 0.7, math.nan, "").status == "reported"
    assert TargetVerdict("x", math.nan, 0.7, "").status == "not played"


def test_markdown_has_a_line_for_every_target_and_world():
    text = autobandit_markdown(judge_autobandit(pd.concat([world("slow/d2", 50.0), world("flip-1/d2", 1200.0)])))
    assert "| over the window tuned in each world | 2.45 | 0.70 | **not met** | geometric mean over 2 worlds |" in text
    assert "| flip-1/d2 | 1,200 ± 0 | 100 | 80 | 200 | 50 | 12.00 | 15.00 | 6.00 | 24.00 |" in text
    assert text.index("flip-1/d2 | 1,200") < text.index("slow/d2 | 50")


MINE = PolicySpec("AutoBandit", "Uniform")  # stands for it: nothing is played


def with_mine(name):
    experiment = small(YARDSTICK[name], 2)
    others = tuple(p for p in experiment.policies if p.label != MINE.label)
    return dataclasses.replace(experiment, policies=(MINE, *others))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    out = tmp_path_factory.mktemp("yardstick")
    names = ("yardstick/slow/d2", "yardstick/stationary/d3", "yardstick/paper/one-switch")
    path = write_report(results_of([with_mine(name) for name in names]), out=out)
    return path.read_text(encoding="utf-8"), out


def test_the_page_has_targets_worlds_and_the_figure(page):
    text, out = page
    walk = Walk(text)
    assert walk.faults == []
    assert len(walk.ids) == len(set(walk.ids))
    assert "AutoBandit and its yardstick" in text
    assert "geometric mean over 2 worlds" in text
    assert (out / "figures" / "yardstick.png").exists()


def test_without_it_there_are_the_baselines_alone(tmp_path):
    experiment = small(YARDSTICK["yardstick/slow/d2"], 2)
    others = dataclasses.replace(experiment, policies=tuple(p for p in experiment.policies if p.label != MINE.label))
    text = write_report(results_of([others]), out=tmp_path).read_text(encoding="utf-8")
    assert "SW-GPUCB (tuned here)" in text
    assert "yardstick-judged" not in text
    assert not (tmp_path / "figures" / "yardstick.png").exists()


TINY = Experiment(
    id="yardstick/tiny/d2",
    title="Tiny",
    environment="switching",
    settings={"horizon": 200, "switches": [100], "size": 10, "dimension": 2},
    policies=(
        PolicySpec("AutoBandit", "GPUCB", {"beta": 0.7}),  # stands for it
        PolicySpec("SW-GPUCB (tuned here)", "SlidingWindowGPUCB", {"window": 50}),
        PolicySpec("WGPUCB (tuned here)", "Uniform"),
        PolicySpec("GPUCB (tuned here)", "GPUCB"),
        PolicySpec("GPUCB (one setting)", "GPUCB"),
    ),
    seeds=(0, 1),
)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, TINY.id, TINY)


@pytest.mark.usefixtures("tiny")
def test_it_writes_and_prints_verdicts_and_worlds(cli, tmp_path):
    result = cli("reproduce", TINY.id, "--jobs", 1, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    written = (tmp_path / "out" / "yardstick.md").read_text()
    assert "targets: " in result.stdout
    assert "| over the window tuned in each world |" in written
    assert list(pd.read_csv(tmp_path / "out" / "yardstick.csv")["world"]) == ["tiny/d2"]
    assert (tmp_path / "out" / "figures" / "yardstick.png").exists()


@pytest.mark.usefixtures("tiny")
def test_targets_are_for_programs_too(cli, tmp_path):
    result = cli("reproduce", TINY.id, "--jobs", 1, "--out", tmp_path / "out", "--json")
    targets = {row["target"]: row for row in json.loads(result.stdout)["targets"]}
    assert targets["over the window tuned in each world"]["limit"] == 0.7
    assert targets["worst stationary world, over GP-UCB tuned there"]["status"] == "not played"
