"""`driftbandits reproduce` without ids, on small passes in place of the paper's."""

import dataclasses
import json

import pytest

from driftbandits.cli import run_folder
from driftbandits.experiments import playing
from driftbandits.experiments.groups import passes as passes_module
from driftbandits.experiments.groups.judgements import Judgements
from driftbandits.experiments.groups.passes import Pass
from driftbandits.experiments.judging.checks import Check, Claim
from driftbandits.experiments.judging.claims_judgement import ClaimsJudgement
from driftbandits.experiments.playing import PassDone
from driftbandits.experiments.running.runner import RunInterruptedError
from tests.cli.conftest import SMALL


def first(seeds):
    return dataclasses.replace(SMALL, seeds=SMALL.seeds[:seeds])


PASSES = (Pass("a taste", (first(1),)), Pass("more seeds", (first(2),)), Pass("all seeds", (SMALL,)))
COMMAND = ("reproduce", "--jobs", 1, "--out")


def check(verdict):
    return Check("X", ("plain",), "a < b", -1.0, -2.0, 1.0, "regret", 2, 50, verdict, "")


JUDGED = Judgements(
    (
        ClaimsJudgement(
            (),
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
    monkeypatch.setattr(run_folder, "write_report", write_about)
    monkeypatch.setattr(passes_module, "standard_passes", lambda: PASSES)
    monkeypatch.setattr(run_folder, "judge", lambda results: JUDGED)
    return cli


def record_of(folder):
    return json.loads((folder / "run.json").read_text())


def test_the_report_is_written_after_every_pass_and_a_line_says_where_it_stands(small, tmp_path, monkeypatch):
    seen, write = [], run_folder.write_outputs
    monkeypatch.setattr(
        run_folder,
        "write_outputs",
        lambda record, results, out: seen.append(len(results.cells)) or write(record, results, out),
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


def test_the_line_of_the_last_pass_names_no_next():
    done = PassDone(2, 5, (), None, PASSES[1], 540.0)
    line = run_folder.pass_line(done, JUDGED, seconds=840.0)
    assert line == "pass 2 of 5 done, 14 minutes; claims decided so far: 1 of 3; next: more seeds, about 9 minutes"
    last = run_folder.pass_line(dataclasses.replace(done, number=5, following=None), Judgements(), seconds=60.0)
    assert last == "pass 5 of 5 done, 1 minute"
