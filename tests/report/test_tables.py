import dataclasses
import math

import pandas as pd
import pytest

from driftbandits.errors import InputError
from driftbandits.experiments.judging.results import Results
from driftbandits.report.chapters import sort_experiments
from driftbandits.report.context import ReportContext
from driftbandits.report.facts import commands, facts_table
from driftbandits.report.real_series import real_series_blocks, reference_regret
from driftbandits.report.settings import settings_table
from driftbandits.report.suite import geometric_means, regret_matrix, suite_blocks
from driftbandits.report.tables import ReportTable, TableEntry, columns
from driftbandits.report.worlds import policy_table, true_changes
from tests.report.made_up import own_experiment, results_of


def texts(table):
    return [[entry.text for entry in row] for row in table.rows]


def test_policies_that_do_not_detect_have_no_detection_numbers(tmp_path):
    experiment = own_experiment(policies=("AdaOPKB", "GPUCB"))
    table = policy_table(ReportContext(results_of([experiment]), tmp_path), experiment)
    # regret (1 + place + 0.05 seed) 400^0.6 on seeds 0 and 1; alarms 10 and 20 rounds after round 200
    scale = 400**0.6
    assert texts(table) == [
        ["AdaOPKB", "2", f"{1.025 * scale:.2f} ± {0.025 * scale:.2f}", "2 of 2", "215", "0.00", "0.12 s"],
        ["GPUCB", "2", f"{2.025 * scale:.2f} ± {0.025 * scale:.2f}", "–", "–", "–", "0.12 s"],
    ]
    assert [row[2].marks for row in table.rows] == ["best", ""]


def test_a_still_world_counts_false_alarms_alone(tmp_path):
    experiment = own_experiment(policies=("AdaOPKB",), environment="cosine/stationary", settings={"horizon": 400})
    table = policy_table(ReportContext(results_of([experiment]), tmp_path), experiment, turnover=True)
    heads = [column.head for column in table.columns]
    assert heads == ["policy", "seeds", "final regret ± s.e.", "false alarms per run", "turnover", "time per run"]
    assert texts(table)[0][-2] == "25%"


def test_changes_that_differ_between_seeds_or_cannot_be_known_are_not_drawn():
    assert true_changes(own_experiment()) == [200]
    assert true_changes(own_experiment(environment="no/such")) is None
    assert true_changes(own_experiment(environment="nowhere.py:World")) is None


def test_geometric_means_are_over_whole_positive_rows():
    table = pd.DataFrame({"a": [1.0, 4.0, 100.0, 0.0], "b": [2.0, 8.0, math.nan, 5.0]})
    assert geometric_means(table).to_dict() == pytest.approx({"a": 2.0, "b": 4.0})
    assert geometric_means(table.iloc[2:]).isna().all()


def test_suite_has_the_best_policy_first_and_says_by_how_much(tmp_path):
    experiments = [own_experiment(f"suite/{name}/d2", policies=("GPUCB", "Uniform")) for name in ("one", "two")]
    context = ReportContext(results_of(experiments), tmp_path)
    matrix = regret_matrix(context.results.summary, experiments)
    assert list(matrix.columns) == ["GPUCB", "Uniform"]
    (block,) = suite_blocks(context, experiments)
    row = block.tables[0].rows[0]
    assert row[1].marks == "heat-0 best"
    assert row[1].small == ""
    assert (row[2].small, row[2].marks) == ("× 1.98", "heat-2")  # (2 + 0.025) / (1 + 0.025)
    assert block.tables[0].foot[1][2].text == "× 1.98"


def test_regret_against_a_reference_is_less_by_its_shortfall(tmp_path, monkeypatch):
    experiment = own_experiment("real/mine", policies=("GPUCB",))
    results = results_of([experiment])
    shortfall = {0: 10.0, 1: 14.0}
    references = pd.DataFrame(
        [
            {"experiment": e, "seed": s, "reference": "best fixed", "shortfall": x}
            for s, x in shortfall.items()
            for e in ("real/mine", "else")
        ]
    )
    found = reference_regret(results.cells, references)
    differences = results.cells["regret"] - results.cells["seed"].map(shortfall)
    assert found.loc[0, "regret"] == pytest.approx(differences.mean())
    assert found.loc[0, "standard_error"] == pytest.approx(differences.sem())
    monkeypatch.setattr(Results, "references", references)
    (block,) = real_series_blocks(ReportContext(results, tmp_path), [experiment])
    assert [column.head for column in block.tables[1].columns] == ["policy", "best fixed"]
    assert "turnover" in [column.head for column in block.tables[0].columns]


def test_references_without_a_column_are_refused(tmp_path):
    results = results_of([own_experiment("real/mine")])
    with pytest.raises(InputError, match="no column 'seed'"):
        reference_regret(results.cells, pd.DataFrame({"experiment": [], "reference": [], "shortfall": []}))


def test_settings_are_told_once_with_where_they_were_played():
    experiments = [own_experiment(f"e{k}", policies=("GPUCB",), common={"ridge": 0.5}) for k in range(6)]
    other = dataclasses.replace(experiments[0].policies[0], kernel={"name": "rbf", "length_scale": 1.0})
    told = dataclasses.replace(experiments[0], id="f", policies=(other,))
    table = settings_table([*experiments, told])
    assert texts(table) == [
        ["GPUCB", "GPUCB", "ridge 0.5", "the world’s", "e0, e1, e2 and 3 more"],
        ["GPUCB", "GPUCB", "ridge 0.5", "name rbf, length_scale 1", "f"],
    ]


def test_facts_show_what_is_said_and_what_is_installed():
    rows = {
        row[0]: row[1]
        for row in texts(facts_table({"wall_seconds": 3700, "jobs": 2, "my_fact": "yes", "version": "9"}))
    }
    assert (rows["time it took"], rows["processes"], rows["my fact"], rows["driftbandits"]) == (
        "1 h 1 min",
        "2",
        "yes",
        "9",
    )
    assert "numpy" in rows
    assert int(texts(facts_table({"jobs": -1}))[0][1]) >= 1  # never "-1 processes"
    assert commands({"command": "one\ntwo"}) == ["one", "two"]
    assert commands({}) == []


def test_a_table_knows_whether_it_is_wider_than_a_phone():
    def row(*words):
        return tuple(map(TableEntry, words))

    assert not ReportTable("c", columns("a", "b"), (row("ADA-OPKB", "3,721 ± 156"),)).wide
    assert ReportTable("c", columns(*"abcde"), (row("ADA-OPKB", *["3,721 ± 156"] * 4),)).wide
    assert not ReportTable("c", columns("a"), ()).wide


def test_experiments_find_their_chapters():
    names = (
        *("switching/1", "switching/2/d3", "growth/rounds/2000", "suite/x/d2", "real/y", "yardstick/x/d2"),
        "calibrated/alarms/x/d2",
        *("switching/1/five", "z/d2"),
    )
    groups = sort_experiments([own_experiment(name) for name in names])
    where = {e.id: chapter for chapter, experiments in groups.items() for e in experiments}
    assert list(where.values()) == [
        "figures",
        "d3",
        "growth",
        "suite",
        "real",
        "yardstick",
        "calibrated",
        "five",
        "own",
    ]
