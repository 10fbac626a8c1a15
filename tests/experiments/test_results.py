import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandits.detection import Detection
from driftbandits.experiments.results import collect, summary_markdown
from driftbandits.experiments.runner import run_cell
from driftbandits.experiments.specs import Experiment, PolicySpec, cells_of
from driftbandits.experiments.stores import CellResult

WORLD = {"horizon": 300, "switches": [150], "size": 10}
ONE = Experiment("one", "One", "switching/1", WORLD, (PolicySpec("any", "Uniform"), PolicySpec("old", "OPKB")), (0, 1))
OTHER = Experiment("other", "Other", "switching/1", WORLD, (PolicySpec("blocks", "OPKB"),), (1, 2))
COLUMNS = ["experiment", "policy", "seed"]


def fake(cell, regret=(1.0, 2.0), changes=(), delays=(), missed=0, false_alarms=0):
    rounds = np.arange(1, len(regret) + 1)
    detection = Detection(tuple(delays), missed, false_alarms)
    return CellResult(cell, rounds, np.array(regret, dtype=float), tuple(changes), detection, 0.5, 0.25)


def keys(table):
    return list(table[COLUMNS].itertuples(index=False, name=None))


@pytest.fixture(scope="module")
def played():
    return {cell.key: run_cell(cell) for e in (ONE, OTHER) for cell in cells_of(e)}


def test_a_run_belongs_to_every_experiment_that_holds_it(played):
    assert len(played) == 5  # six cells, one shared
    found = collect([ONE, OTHER], list(played.values()))
    assert keys(found.cells) == [
        ("one", "any", 0),
        ("one", "any", 1),
        ("one", "old", 0),
        ("one", "old", 1),
        ("other", "blocks", 1),
        ("other", "blocks", 2),
    ]
    shared = found.cells[(found.cells["seed"] == 1) & (found.cells["policy"] != "any")]
    assert shared["regret"].nunique() == 1
    assert found.experiments == (ONE, OTHER)


def test_tables_do_not_depend_on_the_order_of_results(played):
    forth = collect([ONE, OTHER], list(played.values()))
    back = collect([ONE, OTHER], list(played.values())[::-1])
    for name in ("cells", "curves", "summary"):
        pd.testing.assert_frame_equal(getattr(forth, name), getattr(back, name))


def test_an_unfinished_experiment_shows_what_is_there_in_the_order_of_its_policies(played):
    first_missing = [r for r in played.values() if not (r.cell.seed == 0 and r.cell.policy.name == "Uniform")]
    found = collect([ONE], first_missing)
    assert keys(found.cells) == [("one", "any", 1), ("one", "old", 0), ("one", "old", 1)]
    assert found.summary["policy"].tolist() == ["any", "old"]
    assert found.summary["seeds"].tolist() == [1, 2]
    assert "nan" not in summary_markdown(found.summary)


def test_nothing_played_gives_empty_tables_with_their_columns():
    for found in (collect([], []), collect([ONE], [])):
        assert len(found.cells) == len(found.curves) == len(found.summary) == 0
        assert {"regret", "turnover", "false_alarms"} <= set(found.cells.columns)
        assert {"round", "regret"} <= set(found.curves.columns)
        assert {"seeds", "standard_error", "turnover"} <= set(found.summary.columns)
        assert len(summary_markdown(found.summary).splitlines()) == 2


def test_runs_of_no_experiment_are_left_out_and_the_later_of_two_counts():
    cell = cells_of(ONE)[0]
    stranger = dataclasses.replace(cell, seed=77)
    found = collect([ONE], [fake(cell, (1.0, 5.0)), fake(stranger), fake(cell, (1.0, 9.0))])
    assert found.cells["regret"].tolist() == [9.0]


def test_summary_is_mean_standard_error_and_detection():
    runs = [
        fake(cell, (0.0, regret), changes=[3], delays=[delay], missed=1, false_alarms=2)
        for cell, regret, delay in zip(cells_of(OTHER), (10.0, 20.0), (4, 8), strict=True)
    ]
    row = collect([OTHER], runs).summary.iloc[0]
    assert (row["regret"], row["seeds"], row["changes_found"], row["changes_missed"]) == (15.0, 2, 2, 2)
    assert row["standard_error"] == pytest.approx(np.std([10, 20], ddof=1) / np.sqrt(2))
    assert (row["median_delay"], row["false_alarms_per_run"], row["turnover"]) == (6.0, 2.0, 0.5)
    text = summary_markdown(collect([OTHER], runs).summary)
    assert "| other | blocks | 2 | 15 ± 5 | 2 / 2 | 6 | 2.00 | 0.250 |" in text


def test_a_world_that_drifts_has_no_detection_to_show():
    run = fake(cells_of(OTHER)[0], delays=[1] * 5, missed=500)
    assert "| drift | – | – |" in summary_markdown(collect([OTHER], [run]).summary)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.floats(0, 1e6), min_size=1, max_size=6), max_size=4))
def test_curves_are_the_runs_one_after_the_other(curves):
    runs = [fake(cell, regret) for cell, regret in zip(cells_of(ONE), curves, strict=False)]
    found = collect([ONE], runs)
    order = {label: place for place, label in enumerate(p.label for p in ONE.policies)}
    runs.sort(key=lambda r: (order[r.cell.policy.label], r.cell.seed))
    expected = [
        ("one", r.cell.policy.label, r.cell.seed, number, regret)
        for r in runs
        for number, regret in enumerate(r.regret, start=1)
    ]
    assert list(found.curves.itertuples(index=False, name=None)) == expected
    assert found.cells["regret"].tolist() == [r.regret[-1] for r in runs]
