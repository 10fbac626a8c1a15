import dataclasses
from dataclasses import dataclass

import pandas as pd
import pytest

from driftbandits.errors import InputError
from driftbandits.experiments.building import build_policy, build_world
from driftbandits.experiments.results import collect
from driftbandits.experiments.seeds import EVALUATION
from driftbandits.experiments.specs import Experiment, PolicySpec, cells_of
from reproduction import groups as module
from reproduction import page
from reproduction.calibrated import CalibratedOPKBJudgement
from reproduction.claims import Claim, Judgement, TargetVerdict
from reproduction.groups import (
    EXPERIMENTS,
    FIRST_SEEDS,
    GROUPS,
    OWN,
    Step,
    default_groups,
    find_experiments,
    group_names,
    group_of,
    judge,
    make_passes,
    standard_passes,
)
from reproduction.growth import GROWTH, GROWTH_ROUNDS, QUICK_SWEEPS
from reproduction.linear import LINEAR, LINEAR_GROWTH
from reproduction.page import write_report
from reproduction.paper import BEST_SIZES, FIVE_MATRICES, PAPER, STATEMENTS, ClaimsJudgement
from reproduction.passes import Pass, first_to_play, left_to_play
from reproduction.real_data import is_real
from reproduction.topic import Group, Judgements
from tests.reproduction.made_up import own_experiment, results_of, small

SYNTHETIC = {name: e for name, e in EXPERIMENTS.items() if not is_real(e)}
NEURAL = {"AdaOPNN", "OPNN", "NeuralUCB", "SlidingWindowNeuralUCB"}


def narrow(policy):
    """The policy with a network that is built at once."""
    if policy.name not in NEURAL or policy.settings.get("width") == "infinite":
        return policy
    return dataclasses.replace(policy, settings={**policy.settings, "width": 8})


@pytest.mark.parametrize("name", SYNTHETIC)
def test_every_experiment_can_be_built(name):
    experiment = SYNTHETIC[name]
    world = build_world(experiment.environment, experiment.settings, experiment.seeds[0])
    assert world.horizon == experiment.settings["horizon"]
    labels = [policy.label for policy in experiment.policies]
    assert len(set(labels)) == len(labels)
    for cell in cells_of(experiment)[: len(labels)]:
        policy = build_policy(narrow(cell.policy), world, cell.seed)
        low, high = policy.reward_range
        least, most = world.reward_range
        assert policy.out_of_range == "clip" or (low <= least and most <= high)


def test_no_experiment_is_in_two_groups():
    assert len(EXPERIMENTS) == sum(len(group.experiments) for group in GROUPS)
    for group in GROUPS:
        assert all(group_of(experiment.id) is group for experiment in group.experiments)


def test_an_experiment_of_ones_own_is_in_a_group_only_where_all_ids_begin_so():
    assert group_of("suite/mine").name == "suite"
    assert all(
        group_of(name) is OWN for name in ("mine", "paper/mine", "paper/d3/mine", "five/mine", "suite", "suitely/x")
    )


def test_names_and_anchors_differ():
    assert len({group.name for group in GROUPS}) == len({group.anchor for group in (*GROUPS, OWN)}) - 1 == len(GROUPS)
    assert Group("mine", "Mine", "", ()).anchor == "mine"


@pytest.mark.parametrize("group", [*GROUPS, OWN], ids=lambda group: group.name)
def test_every_chapter_can_be_made(group):
    assert callable(group.blocks)
    assert group.title


def test_experiments_are_found_by_id_group_and_beginning():
    assert [e.id for e in find_experiments(["switching/2", "switching/2"])] == ["switching/2"]
    names = [e.id for e in find_experiments(["switching"])]
    assert names == [f"switching/{k}{d}" for d in ("", "/d3", "/d2") for k in (1, 2)]
    assert [e.id for e in find_experiments(["switching/1/five"])] == ["switching/1/five"]
    assert len(find_experiments(["growth/rounds"])) == len(GROWTH_ROUNDS)
    assert [e.id for e in find_experiments(["paper"])] == [*PAPER, *BEST_SIZES]
    assert {e.settings["dimension"] for e in find_experiments(["paper/d3"])} == {3}
    with pytest.raises(InputError, match=r"did you mean 'switching/1'.*groups: paper, growth") as caught:
        find_experiments(["switchin/1"])
    assert "--" not in str(caught.value)


def test_what_is_played_when_nothing_is_named():
    linear = [*LINEAR, *LINEAR_GROWTH]
    assert default_groups() == ["paper", "growth", "linear"]
    assert [e.id for e in find_experiments(default_groups())] == [*PAPER, *BEST_SIZES, *GROWTH, *linear]
    assert set(default_groups(full=True)) == {"paper", "growth", "linear", "five"}
    everything = {*PAPER, *BEST_SIZES, *GROWTH, *linear, *FIVE_MATRICES}
    assert {e.id for e in find_experiments(default_groups(full=True))} == everything
    assert set(group_names()) > {"paper", "growth", "five"}


def test_a_short_of_a_group_is_its_own():
    point, cut = GROWTH["growth/rounds/2000"], GROWTH["growth/rounds/128000"]
    assert group_of(point.id).quick(point) == QUICK_SWEEPS[0].experiments[0]
    assert group_of(cut.id).quick(cut) is None
    short = group_of("switching/1").quick(PAPER["switching/1"])
    assert short is not None
    assert len(short.seeds) == 2


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
    monkeypatch.setattr("reproduction.paper.check_claims", again)
    monkeypatch.setattr("reproduction.autobandit.judge_autobandit", again)
    monkeypatch.setattr("reproduction.calibrated.judge_calibrated_opkb", again)
    assert write_report(results, judged, out=tmp_path / "handed").read_text(encoding="utf-8") == alone


def test_what_references_earn_is_computed_once(monkeypatch, tmp_path):
    asked = []

    def references(experiments):
        asked.append([experiment.id for experiment in experiments])
        return pd.DataFrame(columns=["experiment", "seed", "reference", "shortfall"])

    monkeypatch.setattr("reproduction.real_data.reference_table", references)
    names = ["real/digits", "yardstick/real/digits", "yardstick/slow/d2"]
    results = results_of([small(EXPERIMENTS[name], 2) for name in names])
    judged = judge(results)
    write_report(results, judged, out=tmp_path)
    assert asked == [names[:2]]
    assert {"references.csv", "yardstick.md", "yardstick.csv"} <= set(judged.files)


WORLD = {"horizon": 40, "switches": [20], "size": 5}
CHANCE, NETWORK = PolicySpec("chance", "Uniform"), PolicySpec("net", "OPNN", {"width": 2048}, seeds=3)


def experiment(name, *policies):
    return Experiment(name, name, "switching/1", {**WORLD, "size": 5 + len(name)}, policies, EVALUATION.take(8))


A, B, C = experiment("a", CHANCE, NETWORK), experiment("bb", CHANCE), experiment("ccc", CHANCE, NETWORK)
SMALL = [Group("first", "First", "", (A,)), Group("second", "Second", "", (B,)), Group("third", "Third", "", (C,))]
STEPS = [Step("some of two", ("second",), seeds=5), Step("one", ("first",), wide=True), Step("three", ("third",))]
FIRST = {"a": 4}


def rows(one):
    """How many seeds every policy plays, by experiment and label, and how wide networks are."""
    count = {}
    for member in one.experiments:
        for policy in member.policies:
            key = (member.id, policy.label, policy.settings.get("width"))
            count[key] = min(len(member.seeds), policy.seeds or len(member.seeds))
    return count


def test_every_pass_is_sharper_than_the_one_before():
    first, two, one, three, last = make_passes(SMALL, STEPS, FIRST)
    assert rows(first) == {("a", "chance", None): 4, ("a", "net", 256): 4}
    assert rows(two) == {**rows(first), ("bb", "chance", None): 5}
    wide = {("a", "chance", None): 8, ("a", "net", 2048): 3}
    assert rows(one) == {**wide, ("bb", "chance", None): 5}
    assert rows(three) == {**rows(one), ("ccc", "chance", None): 8, ("ccc", "net", 256): 6}
    assert last.experiments == (A, B, C)


def test_narrow_networks_are_marked_in_the_title():
    first, *_, last = make_passes(SMALL, STEPS, FIRST)
    assert [e.title for e in first.experiments] == ["a (networks 256 wide)"]
    assert [e.title for e in last.experiments] == ["a", "bb", "ccc"]


def test_what_is_finished_in_a_pass_is_not_played_in_the_next():
    passes = make_passes(SMALL, STEPS, FIRST)
    added = left_to_play(passes, set())
    assert [len(cells) for cells in added] == [4 + 4, 5, 4 + 3, 8 + 6, 3 + 3]
    assert len(set().union(*added)) == sum(map(len, added))
    held = set(added[0]) | set(added[1])
    again = left_to_play(passes, held)
    assert [len(cells) for cells in again] == [0, 0, 7, 14, 6]
    assert first_to_play(again) == 1
    assert first_to_play(left_to_play(passes, held.union(*added[2:]))) == 4
    assert left_to_play([Pass("empty", ())], set()) == [{}]


def test_the_first_pass_has_what_five_claims_and_three_figures_need():
    """On seeds fixed beforehand; what goes beyond the paper is not in it, and no network is wide."""
    first = standard_passes()[0]
    assert {e.id: len(e.seeds) for e in first.experiments} == FIRST_SEEDS
    assert all((p.seeds or len(e.seeds)) >= 3 for e in first.experiments for p in e.policies)
    labels = {e.id: {p.label for p in e.policies} for e in first.experiments}
    decided = [s for s in STATEMENTS if s.id in ("F1a-1", "F1a-3", "F1a-4", "F1b-1", "F2b-1")]
    assert len(decided) == 5
    for comparison in (c for s in decided for c in s.comparisons):
        assert {comparison.first, comparison.second} <= labels[comparison.experiment]
    assert not {"AutoBandit", "CalibratedOPKB"} & set().union(*labels.values())
    assert {p.settings["width"] for e in first.experiments for p in e.policies if p.name == "AdaOPNN"} == {256}


def test_growth_comes_before_networks_and_the_last_pass_is_the_catalogue():
    _, growth, networks, last = passes = standard_passes()
    assert list(last.experiments) == find_experiments(default_groups())
    ids = [{e.id for e in one.experiments} for one in passes]
    assert ids[0] < ids[1] < ids[2] < ids[3]
    assert ids[1] - ids[0] == {*GROWTH, *LINEAR_GROWTH}
    assert {len(e.seeds) for e in growth.experiments if e.id in GROWTH} == {6}  # all that rivals have, and enough
    whole = {e.id: e for e in last.experiments}
    assert all(e == whole[e.id] for e in networks.experiments if e.id in {**PAPER, **BEST_SIZES})
    wide = {p.label for e in networks.experiments for p in e.policies if p.settings.get("width") == 2048}
    assert {"ADA-OPNN", "ADA-OPNN (published)", "OPNN", "OPNN (published)"} <= wide
