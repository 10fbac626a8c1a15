import math

import pandas as pd
import pytest

from driftbandits.experiments.judging.calibrated_opkb import (
    ALARM_COLUMNS,
    DELAY_COLUMNS,
    WORLD_COLUMNS,
    calibrated_opkb_markdown,
    judge_calibrated_opkb,
)

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
