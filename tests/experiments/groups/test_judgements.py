from dataclasses import dataclass

import pandas as pd
import pytest

from driftbandits.experiments.groups import EXPERIMENTS
from driftbandits.experiments.groups import judgements as module
from driftbandits.experiments.groups.group import Group
from driftbandits.experiments.groups.judgements import Judgements, judge
from driftbandits.experiments.judging.calibrated_opkb import CalibratedOPKBJudgement
from driftbandits.experiments.judging.checks import Claim
from driftbandits.experiments.judging.claims_judgement import ClaimsJudgement
from driftbandits.experiments.judging.judgement import Judgement
from driftbandits.experiments.judging.results import collect
from driftbandits.experiments.judging.verdicts import TargetVerdict
from driftbandits.report import page, write_report
from tests.report.made_up import own_experiment, results_of, small

VERDICT = TargetVerdict("a target", 1.0, 2.0, "of one world")


@dataclass(frozen=True, eq=False)
class Counted(Judgement):
    runs: int

    def markdown(self):
        return f"{self.runs} runs"

    @property
    def files(self):
        return {"runs.md": self.markdown(), "nothing.csv": ""}


def test_a_judge_that_groups_share_is_asked_once(monkeypatch):
    asked = []

    def count(results):
        asked.append(results)
        return Counted(len(results.cells), verdicts=(VERDICT,), claims=(Claim("X", "1", "more is more", ()),))

    groups = (Group("a", "A", "", (), judge=count), Group("b", "B", "", (), judge=count), Group("c", "C", "", ()))
    monkeypatch.setattr(module, "GROUPS", groups)
    results = results_of([own_experiment()])
    found = judge(results)
    assert len(asked) == 1
    assert found.of(Counted).runs == len(results.cells)
    assert found.verdicts == (VERDICT,)
    assert [claim.id for claim in found.claims] == ["X"]
    assert found.files == {"runs.md": found.markdown()}


def test_nothing_played_is_nothing_judged():
    assert judge(collect([], [])).each == ()
    assert judge(results_of([own_experiment()])).each == ()
    nothing = Judgements()
    assert (nothing.markdown(), dict(nothing.files), nothing.of(ClaimsJudgement)) == ("", {}, None)


def test_each_group_is_judged_by_its_own():
    found = judge(results_of([small(EXPERIMENTS["calibrated/slow/d2"], 2)]))
    assert [type(judgement) for judgement in found.each] == [CalibratedOPKBJudgement]
    assert set(found.files) == {"calibrated.md", "calibrated.csv"}
    assert found.verdicts


@pytest.mark.parametrize("name", ["switching/1", "calibrated/slow/d2", "yardstick/slow/d2"])
def test_a_report_is_handed_what_was_judged(name, monkeypatch, tmp_path):
    results = results_of([small(EXPERIMENTS[name], 2)])
    alone = write_report(results, out=tmp_path / "alone").read_text(encoding="utf-8")
    judged = judge(results)

    def again(results):
        raise AssertionError("judged a second time")

    monkeypatch.setattr(page, "judge", again)
    monkeypatch.setattr("driftbandits.experiments.judging.claims_judgement.check_claims", again)
    monkeypatch.setattr("driftbandits.experiments.judging.yardstick.judge_autobandit", again)
    monkeypatch.setattr("driftbandits.experiments.judging.calibrated_opkb.judge_calibrated_opkb", again)
    assert write_report(results, judged, out=tmp_path / "handed").read_text(encoding="utf-8") == alone


def test_what_references_earn_is_computed_once(monkeypatch, tmp_path):
    asked = []

    def references(experiments):
        asked.append([experiment.id for experiment in experiments])
        return pd.DataFrame(columns=["experiment", "seed", "reference", "shortfall"])

    monkeypatch.setattr("driftbandits.experiments.judging.results.reference_table", references)
    names = ["real/digits", "yardstick/real/digits", "yardstick/slow/d2"]
    results = results_of([small(EXPERIMENTS[name], 2) for name in names])
    judged = judge(results)
    write_report(results, judged, out=tmp_path)
    assert asked == [names[:2]]
    assert {"references.csv", "yardstick.md", "yardstick.csv"} <= set(judged.files)
