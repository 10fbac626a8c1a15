import errno
import json
from pathlib import Path

import pandas as pd
import pytest

from driftbandits.cli import run_folder
from driftbandits.cli.reproduce import choose
from driftbandits.errors import InputError
from driftbandits.experiments.definitions.best_sizes import BEST_SIZES
from driftbandits.experiments.definitions.growth import GROWTH
from driftbandits.experiments.definitions.linear import LINEAR
from driftbandits.experiments.definitions.linear_growth import LINEAR_GROWTH
from driftbandits.experiments.definitions.paper import FIVE_MATRICES, PAPER
from driftbandits.experiments.definitions.specs import cells_of
from driftbandits.experiments.files.store import DamagedPartWarning
from driftbandits.experiments.groups import default_groups, group_names
from driftbandits.experiments.groups.judgements import Judgements
from driftbandits.experiments.groups.passes import standard_passes
from driftbandits.experiments.judging.checks import Check, Claim
from driftbandits.experiments.judging.claims_judgement import ClaimsJudgement

ROOT = Path(__file__).parents[2]
FILES = {"report.html", "summary.md", "summary.csv", "cells.parquet", "curves.parquet", "run.json"}


def parts(folder):
    return {path.name: path.stat().st_mtime_ns for path in (folder / "cells").iterdir()}


def test_it_writes_tables_figures_and_report_and_prints_the_summary(finished):
    folder, result = finished
    assert result.exit_code == 0, result.stderr
    assert {path.name for path in folder.iterdir()} == {*FILES, "cells", "figures"}
    assert len(parts(folder)) == 4
    assert "| small | ADA-OPKB | 2 |" in result.stdout
    assert result.stdout == (folder / "summary.md").read_text()  # progress and messages are beside it
    assert "runs: 4/4" in result.stderr
    assert str(folder / "report.html") in result.stderr
    assert len(pd.read_parquet(folder / "cells.parquet")) == 4


def test_the_record_says_what_was_played_and_with_what(finished):
    record = json.loads((finished[0] / "run.json").read_text())
    assert record["experiments"][0]["environment"]["settings"]["horizon"] == 300
    assert record["experiments"][0]["seeds"] == [0, 1]
    assert record["command"].split()[0] == "driftbandits"
    assert record["wall_seconds"] > 0
    assert set(record) >= {"version", "commit", "python", "platform", "packages", "date", "jobs", "engine", "mode"}


def test_a_finished_folder_is_never_overwritten(cli, played):
    before = {path: path.stat().st_mtime_ns for path in played.rglob("*")}
    result = cli("reproduce", "small", "--seeds", 2, "--out", played)
    assert result.exit_code == 1
    assert "4 finished runs; add --resume" in result.stderr
    assert "--out" in result.stderr
    assert {path: path.stat().st_mtime_ns for path in played.rglob("*")} == before


def test_resume_with_everything_finished_writes_the_report_again(cli, played):
    before = parts(played)
    (played / "report.html").unlink()
    result = cli("reproduce", "small", "--seeds", 2, "--jobs", 1, "--out", played, "--resume")
    assert result.exit_code == 0, result.stderr
    assert parts(played) == before
    assert (played / "report.html").exists()


def test_resume_plays_what_is_missing_and_gives_the_same_table(cli, played):
    kept = sorted(parts(played))[1:]
    table = pd.read_parquet(played / "cells.parquet")
    next((played / "cells").glob(f"{sorted(parts(played))[0]}")).unlink()
    times = {name: parts(played)[name] for name in kept}
    result = cli("reproduce", "small", "--seeds", 2, "--jobs", 1, "--out", played, "--resume", "--json")
    assert result.exit_code == 0, result.stderr
    assert {name: parts(played)[name] for name in kept} == times
    again = pd.read_parquet(played / "cells.parquet")
    assert again.drop(columns="seconds").equals(table.drop(columns="seconds"))
    printed = json.loads(result.stdout)
    assert printed["runs"] == 4
    assert [row["policy"] for row in printed["summary"]] == ["ADA-OPKB", "chance"]
    assert printed["summary"][1]["median_delay"] is None
    assert set(printed["files"]) == FILES
    assert "--resume" not in json.loads((played / "run.json").read_text())["command"]


def test_a_policy_of_ones_own_joins(cli, tmp_path):
    own = ROOT / "examples" / "own_policy.py"
    assert len(own.read_text().splitlines()) < 40
    arguments = ("--policy", f"{own}:MyPolicy", "--policy", "SlidingWindowUCB,label=short,window=50")
    result = cli("reproduce", "small", "--quick", *arguments, "--jobs", 1, "--out", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.stderr
    rows = {row["policy"]: row["seeds"] for row in json.loads(result.stdout)["summary"]}
    assert rows == {"ADA-OPKB": 2, "chance": 2, "MyPolicy": 2, "short": 2}


def test_nothing_named_is_the_paper_and_table_1():
    plain = choose([], quick=False, full=False, seeds=None)
    assert plain == [*PAPER.values(), *BEST_SIZES.values(), *GROWTH.values(), *LINEAR.values(), *LINEAR_GROWTH.values()]
    taste = choose([], quick=True, full=False, seeds=None)
    assert {len(experiment.seeds) for experiment in taste} == {2}
    assert taste == list(standard_passes()[0].experiments)
    whole = choose([], quick=False, full=True, seeds=None)
    assert {experiment.id for experiment in whole} == {*(e.id for e in plain), *FIVE_MATRICES}
    assert all(policy.seeds is None for experiment in whole for policy in experiment.policies)


def test_seeds_are_the_first_so_many():
    (experiment,) = choose(["switching/1"], quick=False, full=False, seeds=3)
    assert experiment.seeds == (0, 1, 2)
    assert len(cells_of(experiment)) == 3 * len(experiment.policies)


def test_claims_are_written_and_printed_where_there_are_any(cli, tmp_path, monkeypatch):
    check = Check("X", "plain", "a < b", -1.0, float("nan"), 1.0, "regret", 2, 50, "undecided", "few")
    claims = (Claim("X", "1", "a is less", (check,)), Claim("Y", "2", "nobody has played this", ()))
    judged = Judgements((ClaimsJudgement((), claims=claims),))
    monkeypatch.setattr(run_folder, "judge", lambda results: judged)
    result = cli("reproduce", "small", "--seeds", 1, "--jobs", 1, "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.stderr
    (claim,) = json.loads(result.stdout)["claims"]
    assert claim["verdict"] == "undecided"
    assert claim["checks"][0]["low"] is None
    assert "a is less" in (tmp_path / "claims.md").read_text()
    assert "a is less" in (tmp_path / "report.html").read_text()  # handed on, not judged again


def test_tables_of_other_experiments_are_deleted_and_nothing_else_is(cli, tmp_path, monkeypatch):
    check = Check("X", "plain", "a < b", -1.0, -2.0, 1.0, "regret", 2, 50, "undecided", "few")
    judged = Judgements((ClaimsJudgement((), claims=(Claim("X", "1", "a is less", (check,)),)),))
    monkeypatch.setattr(run_folder, "judge", lambda results: judged)
    cli("reproduce", "small", "--seeds", 1, "--jobs", 1, "--out", tmp_path / "out")
    notes, beside = tmp_path / "out" / "notes.md", tmp_path / "beside.md"
    for path in (notes, beside):
        path.write_text("mine")
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert "claims.md" in record["files"]
    strange = ["../beside.md", "report.html", "cells", "..", "\0.md"]
    (tmp_path / "out" / "run.json").write_text(json.dumps({**record, "files": [*record["files"], *strange]}))
    monkeypatch.setattr(run_folder, "judge", lambda results: Judgements())
    result = cli("report", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert not (tmp_path / "out" / "claims.md").exists()
    assert notes.exists()
    assert beside.exists()
    assert (tmp_path / "out" / "report.html").exists()
    assert "claims.md" not in json.loads((tmp_path / "out" / "run.json").read_text())["files"]


def test_help_names_the_groups(cli):
    said = " ".join(cli("reproduce", "--help").stdout.split())
    assert f"groups ({', '.join(group_names())})" in said
    assert f"by default {' '.join(default_groups())}" in said
    assert said == " ".join(cli("reproduce", "--help").stdout.split())


def test_a_disk_that_fills_while_the_report_is_written_costs_no_run(cli, tmp_path, monkeypatch):
    def full(*arguments, **settings):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run_folder, "write_report", full)
    result = cli("reproduce", "small", "--seeds", 1, "--jobs", 1, "--out", tmp_path)
    assert result.exit_code == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("driftbandits: cannot write to")
    assert "No space left on device" in last
    assert f"driftbandits report {tmp_path}" in last
    monkeypatch.undo()
    assert cli("report", tmp_path).exit_code == 0


def test_a_disk_that_fills_leaves_the_tables_of_before(cli, played, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = {name: (played / name).read_bytes() for name in FILES}
    sorted((played / "cells").iterdir())[0].unlink()  # so that tables would be others
    monkeypatch.setattr("os.fsync", full)
    result = cli("report", played)
    assert result.exit_code == 1
    assert "No space left on device; the finished runs are safe there" in result.stderr
    assert {name: (played / name).read_bytes() for name in FILES} == before
    assert {path.name for path in played.iterdir()} == {*FILES, "cells", "figures"}


def test_a_record_is_written_whole_or_not_at_all(cli, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    result = cli("reproduce", "small", "--jobs", 1, "--out", tmp_path)
    assert result.exit_code == 1
    assert "No space left on device; name another folder" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_report_needs_nothing_played(cli, played, tmp_path):
    for name in ("report.html", "summary.md", "cells.parquet"):
        (played / name).unlink()
    before = parts(played)
    result = cli("report", played)
    assert result.exit_code == 0, result.stderr
    assert "| small | chance | 2 |" in result.stdout
    assert (played / "report.html").exists()
    assert parts(played) == before


def damage(played):
    part = sorted((played / "cells").iterdir())[0]
    whole = bytearray(part.read_bytes())
    whole[len(whole) // 2] ^= 1
    part.write_bytes(whole)
    return part


def test_report_names_a_damaged_run_and_how_to_play_it_again(cli, played):
    part = damage(played)
    result = cli("report", played, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["runs"] == 3
    first, second = result.stderr.splitlines()
    assert first.startswith(f"{part} is no finished run (it is damaged): left out; play again what is missing with: ")
    assert first.endswith(" --resume")
    assert second == "only 3 of 4 runs are finished: tables and report show those"
    assert "1 run of 4 are missing" in (played / "report.html").read_text()


def test_resuming_plays_a_damaged_run_again(cli, played):
    before = json.loads(cli("report", played, "--json").stdout)["summary"]
    part = damage(played)
    with pytest.warns(DamagedPartWarning, match=f"{part.name} is no finished run .*: its cell is played again"):
        result = cli("reproduce", "small", "--seeds", 2, "--jobs", 1, "--out", played, "--resume", "--json")
    assert result.exit_code == 0, result.stderr
    timed = "seconds_per_run"
    after = json.loads(result.stdout)["summary"]
    assert [{**row, timed: 0} for row in after] == [{**row, timed: 0} for row in before]
    assert "no finished run" not in cli("report", played).stderr


@pytest.mark.parametrize("text", ["[]", "3", '{"title": 1}', '{"title": 1, "experiments": [3]}', "[" * 100_000])
def test_a_record_of_something_else_is_refused(cli, tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    result = cli("report", tmp_path)
    assert result.exit_code == 1
    assert "run.json is not the record of a run" in result.stderr


def test_report_of_an_unfinished_run_says_so(cli, played):
    for part in sorted((played / "cells").iterdir())[1:]:
        part.unlink()
    result = cli("report", played, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["runs"] == 1
    assert "only 1 of 4 runs are finished" in result.stderr
    next((played / "cells").iterdir()).unlink()
    result = cli("report", played)
    assert result.exit_code == 1
    assert "holds none of the 4 runs" in result.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "there is no"), ("{", "is not the record"), ('{"title": "x"}', "is not the record"), ("[]", "is not the")],
)
def test_a_folder_without_a_record(cli, tmp_path, text, said):
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    result = cli("report", tmp_path)
    assert result.exit_code == 1
    assert said in result.stderr


def test_what_is_never_short_is_refused_for_a_taste():
    with pytest.raises(InputError, match="short enough"):
        choose(["growth/rounds/128000"], quick=True, full=False, seeds=None)


def test_the_time_of_a_killed_run_is_not_made_up(tmp_path):
    class Held:
        def __init__(self, *keys):
            self.finished = lambda: set(keys)

    assert run_folder.seconds_before(tmp_path, Held()) == 0.0
    assert run_folder.seconds_before(tmp_path, Held("a cell")) is None
    (tmp_path / "run.json").write_text('{"title": "t", "experiments": [], "wall_seconds": null}')
    assert run_folder.seconds_before(tmp_path, Held("a cell")) is None
    (tmp_path / "run.json").write_text('{"title": "t", "experiments": [], "wall_seconds": 12.5}')
    assert run_folder.seconds_before(tmp_path, Held("a cell")) == 12.5
