"""`driftbandits reproduce` without ids, on small passes in place of the paper's."""

import dataclasses
import errno
import json
from pathlib import Path

import pandas as pd
import pytest

from driftbandits.cli import run_folder
from driftbandits.errors import InputError
from driftbandits.experiments import playing
from driftbandits.experiments.results import collect
from driftbandits.experiments.run_files import read_tuned
from driftbandits.experiments.runner import RunInterruptedError
from driftbandits.experiments.seeds import EVALUATION
from driftbandits.experiments.specs import cells_of
from driftbandits.experiments.stores import DamagedPartWarning
from reproduction import commands, passes
from reproduction.claims import Check, Claim
from reproduction.commands import choose, tuned_guests
from reproduction.comparison import COMPARISON
from reproduction.groups import default_groups, group_names, standard_passes
from reproduction.growth import GROWTH
from reproduction.linear import LINEAR, LINEAR_GROWTH
from reproduction.paper import BEST_SIZES, FIVE_MATRICES, PAPER, ClaimsJudgement
from reproduction.passes import Pass, PassDone
from reproduction.topic import Judgements
from tests.cli.conftest import SMALL

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
    assert taste == list(standard_passes()[0].experiments)
    whole = choose([], quick=False, full=True, seeds=None)
    assert {experiment.id for experiment in whole} == {*(e.id for e in plain), *FIVE_MATRICES}
    assert all(policy.seeds is None for experiment in whole for policy in experiment.policies)


def test_seeds_are_the_first_so_many():
    (experiment,) = choose(["switching/1"], quick=False, full=False, seeds=3)
    assert experiment.seeds == EVALUATION.take(3)
    assert len(cells_of(experiment)) == 3 * len(experiment.policies)


def test_claims_are_written_and_printed_where_there_are_any(cli, tmp_path, monkeypatch):
    check = Check("X", "plain", "a < b", -1.0, float("nan"), 1.0, "regret", 2, 50, "undecided", "few")
    claims = (Claim("X", "1", "a is less", (check,)), Claim("Y", "2", "nobody has played this", ()))
    judged = Judgements((ClaimsJudgement("claims.md", claims=claims),))
    monkeypatch.setattr(commands, "judge", lambda results: judged)
    result = cli("reproduce", "small", "--seeds", 1, "--jobs", 1, "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.stderr
    (claim,) = json.loads(result.stdout)["claims"]
    assert claim["verdict"] == "undecided"
    assert claim["checks"][0]["low"] is None
    assert "a is less" in (tmp_path / "claims.md").read_text()
    assert "a is less" in (tmp_path / "report.html").read_text()  # handed on, not judged again


def test_tables_of_other_experiments_are_deleted_and_nothing_else_is(cli, tmp_path, monkeypatch):
    check = Check("X", "plain", "a < b", -1.0, -2.0, 1.0, "regret", 2, 50, "undecided", "few")
    judged = Judgements((ClaimsJudgement("claims.md", claims=(Claim("X", "1", "a is less", (check,)),)),))
    monkeypatch.setattr(commands, "judge", lambda results: judged)
    cli("reproduce", "small", "--seeds", 1, "--jobs", 1, "--out", tmp_path / "out")
    notes, beside = tmp_path / "out" / "notes.md", tmp_path / "beside.md"
    for path in (notes, beside):
        path.write_text("mine")
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert "claims.md" in record["files"]
    strange = ["../beside.md", "report.html", "cells", "..", "\0.md"]
    (tmp_path / "out" / "run.json").write_text(json.dumps({**record, "files": [*record["files"], *strange]}))
    monkeypatch.setattr(commands, "judge", lambda results: Judgements())
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

    monkeypatch.setattr(commands, "write_report", full)
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


def first(seeds):
    return dataclasses.replace(SMALL, seeds=SMALL.seeds[:seeds])


PASSES = (Pass("a taste", (first(1),)), Pass("more seeds", (first(2),)), Pass("all seeds", (SMALL,)))
COMMAND = ("reproduce", "--jobs", 1, "--out")


def check(verdict):
    return Check("X", ("plain",), "a < b", -1.0, -2.0, 1.0, "regret", 2, 50, verdict, "")


JUDGED = Judgements(
    (
        ClaimsJudgement(
            "claims.md",
            claims=(
                Claim("X", "1", "a is less", (check("holds"),)),
                Claim("Y", "2", "b is less", (check("undecided"),)),
                Claim("Z", "3", "not played", ()),
            ),
        ),
    )
)


def write_about(results, judgements, *, out, title, about):
    """In place of a page with figures, which takes seconds."""
    (out / "report.html").write_text(json.dumps(about))
    return out / "report.html"


@pytest.fixture
def small(cli, monkeypatch):
    monkeypatch.setattr(commands, "write_report", write_about)
    monkeypatch.setattr(commands, "standard_passes", lambda: PASSES)
    monkeypatch.setattr(commands, "judge", lambda results: JUDGED)
    return cli


def record_of(folder):
    return json.loads((folder / "run.json").read_text())


def test_the_report_is_written_after_every_pass_and_a_line_says_where_it_stands(small, tmp_path, monkeypatch):
    seen, write = [], run_folder.write_outputs
    monkeypatch.setattr(
        run_folder,
        "write_outputs",
        lambda record, found, out: seen.append(len(found.results.cells)) or write(record, found, out),
    )
    result = small(*COMMAND, tmp_path)
    assert result.exit_code == 0, result.stderr
    assert seen == [2, 4, 6]
    lines = [line for line in result.stderr.splitlines() if " done, " in line]
    assert lines == [
        "pass 1 of 3 done, 1 minute; claims decided so far: 1 of 3; next: more seeds, about 1 minute",
        "pass 2 of 3 done, 1 minute; claims decided so far: 1 of 3; next: all seeds, about 1 minute",
        "pass 3 of 3 done, 1 minute; claims decided so far: 1 of 3",
    ]
    assert "pass 3 of 3: 6/6" in result.stderr
    record = record_of(tmp_path)
    assert (record["mode"], record["pass"]) == ("standard", "3 of 3")
    assert record["experiments"][0]["seeds"] == [0, 1, 2]


def test_what_is_printed_is_short_and_names_the_page(small, tmp_path):
    result = small(*COMMAND, tmp_path)
    assert "3 claims: 1 holds, 1 is undecided and 1 was not played" in result.stdout
    assert "  holds: X\n  undecided: Y\n  not run: Z" in result.stdout
    assert len(result.stdout.splitlines()) <= 10
    assert str(tmp_path / "report.html") in result.stderr.splitlines()[-1]


def test_minutes_end_it_after_a_pass_and_resuming_goes_on(small, tmp_path):
    result = small(*COMMAND, tmp_path, "--minutes", 1e-6)
    assert result.exit_code == 0, result.stderr
    assert "ended here, as 1e-06 minutes have passed; --resume goes on" in result.stderr
    assert (record_of(tmp_path)["pass"], len(list((tmp_path / "cells").iterdir()))) == ("1 of 3", 2)
    result = small(*COMMAND, tmp_path, "--resume")
    assert result.exit_code == 0, result.stderr
    assert record_of(tmp_path)["pass"] == "3 of 3"


@pytest.mark.parametrize("options", [["small"], ["--quick"], ["--full"]])
def test_minutes_need_passes(small, tmp_path, options):
    result = small("reproduce", *options, "--minutes", 5, "--out", tmp_path)
    assert result.exit_code == 2
    assert "--minutes" in result.stderr


@pytest.mark.parametrize("minutes", ["0", "-3", "nan", "inf", "soon"])
def test_minutes_are_a_number_above_0(small, tmp_path, minutes):
    assert small("reproduce", f"--minutes={minutes}", "--out", tmp_path).exit_code == 2


def test_an_interruption_keeps_the_last_report_and_its_record(small, tmp_path, monkeypatch):
    real = playing.run_cells

    def interrupted(cells, **settings):
        if len(cells) > 2:
            real(cells[:3], **settings)
            raise RunInterruptedError("interrupted")
        return real(cells, **settings)

    monkeypatch.setattr(playing, "run_cells", interrupted)
    result = small(*COMMAND, tmp_path)
    assert result.exit_code != 0
    assert "--resume" in result.stderr
    record, about = record_of(tmp_path), json.loads((tmp_path / "report.html").read_text())
    assert (record["pass"], record["experiments"][0]["seeds"]) == ("1 of 3", [0])
    assert record["wall_seconds"] > 0
    assert about["pass"] == "1 of 3"
    assert len(list((tmp_path / "cells").iterdir())) == 3
    monkeypatch.setattr(playing, "run_cells", real)
    result = small(*COMMAND, tmp_path, "--resume")
    assert result.exit_code == 0, result.stderr
    assert (record_of(tmp_path)["pass"], len(list((tmp_path / "cells").iterdir()))) == ("3 of 3", 6)


def test_the_line_of_the_last_pass_names_no_next(monkeypatch):
    done = PassDone(2, 5, (), None, PASSES[1], 540.0)
    monkeypatch.setattr(commands, "judge", lambda results: JUDGED if results is None else Judgements())
    line = passes.pass_line(done, commands.StudyFindings(None), seconds=840.0)
    assert line == "pass 2 of 5 done, 14 minutes; claims decided so far: 1 of 3; next: more seeds, about 9 minutes"
    ended = dataclasses.replace(done, number=5, following=None)
    last = passes.pass_line(ended, commands.StudyFindings(collect([], [])), seconds=60.0)
    assert last == "pass 5 of 5 done, 1 minute"


def entry(window):
    settings = {"window": window}
    return {"policy": "SlidingWindowUCB", "settings": settings, "origin": "search", "regret_on_tuning_seeds": 12.5}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tuned-mine.json"
    path.write_text(json.dumps({"how": "by hand", "d=10": {"mine": entry(500)}, "d=2": {"mine": entry(100)}}))
    return path


def test_each_experiment_gets_the_settings_of_its_dimension(file):
    found = tuned_guests([file], list(COMPARISON.values()))
    assert list(found) == list(COMPARISON)
    windows = {name: [(spec.label, spec.settings["window"]) for spec in specs] for name, specs in found.items()}
    assert windows["comparison/switching/1/d10"] == windows["comparison/cosine/slow/d10"] == [("mine", 500)]
    assert windows["comparison/switching/2/d2"] == [("mine", 100)]
    # the dimension is that of the world, also where the experiment does not say it
    ((spec,),) = tuned_guests([file], [PAPER["cosine/slow"]]).values()
    assert spec.settings["window"] == 500


def test_an_experiment_is_played_where_every_file_has_its_dimension(tmp_path, file):
    other = tmp_path / "tuned-other.json"
    other.write_text(json.dumps({"how": "by hand", "d=10": {}, "d=2": {"other": entry(50)}}))
    found = tuned_guests([file, other], list(COMPARISON.values()))
    assert set(found) == {name for name in COMPARISON if name.endswith("/d2")}
    assert [spec.label for spec in found["comparison/switching/1/d2"]] == ["mine", "other"]


def test_nothing_was_searched_in_any_of_the_dimensions(tmp_path, file):
    empty = tmp_path / "tuned-empty.json"
    empty.write_text('{"how": "by hand"}')
    with pytest.raises(InputError) as caught:
        tuned_guests([file, empty], [PAPER["cosine/slow/d3"], COMPARISON["comparison/switching/1/d2"]])
    assert str(caught.value) == (
        f"no settings were found for these experiments, which need d = 2, d = 3: {file} has d = 10, d = 2; "
        f"{empty} has none; search there too"
    )


def test_a_file_that_is_none(tmp_path, file):
    for text, message in [
        ('{"d=2": {}}', "how is missing"),
        ('{"how": "x", "d=2": {"mine": {"polcy": "X"}}}', "polcy"),
        ('{"how": "x", "d=2": 3}', "d=2"),
    ]:
        file.write_text(text)
        with pytest.raises(InputError, match=message):
            read_tuned(file)
    with pytest.raises(InputError, match="there is no file"):
        read_tuned(tmp_path / "none.json")
