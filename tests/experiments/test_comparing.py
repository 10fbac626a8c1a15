"""What is played, and what comes back."""

import io
import subprocess
import sys
import threading

import matplotlib.figure
import numpy as np
import pandas as pd
import pytest

import driftbandits as db
from driftbandits.errors import InputError
from driftbandits.experiments.contestants import read_policies, read_seeds, read_worlds
from driftbandits.experiments.runner import CellError
from tests.experiments.small import SMALL, Greedy, Shifting, small_world

POLICIES = {"greedy": Greedy, "bold": (Greedy, {"rate": 0.4}), "ADA-OPKB": "AdaOPKB"}


@pytest.fixture(scope="module")
def found():
    return db.compare(POLICIES, {"one switch": ("switching/1", SMALL), "shifting": Shifting}, seeds=[0, 1, 5], jobs=1)


def rows_of(table, world, seed):
    return table[(table["world"] == world) & (table["policy"] == "bold") & (table["seed"] == seed)]


def test_runs_are_those_of_simulate(found):
    for seed in (0, 1, 5):
        for label, world in (("one switch", small_world(seed)), ("shifting", Shifting(seed=seed))):
            trace = db.simulate(Greedy(world.arms, horizon=world.horizon, seed=seed, rate=0.4), world, seed=seed)
            row = rows_of(found.runs, label, seed)
            assert row["regret"].item() == pytest.approx(trace.regret.sum(), rel=1e-12)
            curve = rows_of(found.curves, label, seed)
            played = curve["round"].to_numpy()
            assert curve["regret"].to_numpy() == pytest.approx(trace.cumulative_regret[played - 1], rel=1e-12)


def test_the_summary_has_a_row_per_world_and_policy_with_paired_differences(found):
    assert found.summary[["world", "policy"]].values.tolist() == [
        [world, policy] for world in ("one switch", "shifting") for policy in POLICIES
    ]
    for world, group in found.summary.groupby("world"):
        best = group.loc[group["behind"].idxmin()]
        assert best["behind"] == 0
        assert best["regret"] == group["regret"].min()
        table = found.runs[found.runs["world"] == world].pivot_table(index="seed", columns="policy", values="regret")
        for _, row in group.iterrows():
            differences = table[row["policy"]] - table[best["policy"]]
            assert row["regret"] == pytest.approx(table[row["policy"]].mean())
            assert row["standard_error"] == pytest.approx(table[row["policy"]].std(ddof=1) / np.sqrt(3))
            assert row["behind"] == pytest.approx(differences.mean())
            half = 4.302652729911275 * differences.std(ddof=1) / np.sqrt(3)  # Student's t, two degrees of freedom
            assert row["behind_high"] - row["behind"] == pytest.approx(half)


def test_a_world_object_is_met_again_under_other_noise():
    world = Shifting(seed=0)
    runs = db.compare(Greedy, world, seeds=4, jobs=1).runs
    assert runs["regret"].nunique() > 1
    again = db.compare({"a": Greedy, "b": Greedy}, world, seeds=4, jobs=1).runs
    for label in "ab":
        assert again[again["policy"] == label]["regret"].tolist() == runs["regret"].tolist()


def test_processes_give_what_one_gives(found):
    worlds = {"one switch": ("switching/1", SMALL), "shifting": Shifting}
    many = db.compare(POLICIES, worlds, seeds=[0, 1, 5], jobs=2)
    assert many.runs.drop(columns="seconds").equals(found.runs.drop(columns="seconds"))
    assert many.curves.equals(found.curves)


def test_true_changes_are_known_where_seeds_agree(found):
    assert found.true_changes == {"one switch": [100], "shifting": []}  # seeds 0 and 5 draw the same, 1 does not
    assert db.compare(Greedy, Shifting, seeds=[0, 5, 10], jobs=1).true_changes == {"Shifting": [40]}
    assert db.compare(Greedy, Shifting, seeds=2, jobs=1).true_changes == {"Shifting": []}
    assert found.reporting == {"ADA-OPKB"}


def test_labels_may_hold_any_separator():
    """Joined by " / ", two pairs of a world and a policy would be one."""
    policies = {"b / c": Greedy, "c": db.Uniform}
    worlds = {"a": small_world(), "a / b": Shifting(seed=0)}
    runs = db.compare(policies, worlds, seeds=2, jobs=1).runs
    for world_label, world in worlds.items():
        for label, policy in policies.items():
            alone = db.compare({label: policy}, {world_label: world}, seeds=2, jobs=1).runs
            rows = runs[(runs["world"] == world_label) & (runs["policy"] == label)]
            assert rows["regret"].tolist() == alone["regret"].tolist()


def test_a_horizon_that_depends_on_the_seed_is_refused():
    worlds = {"odd": lambda seed: Shifting(seed=seed, horizon=120 + 40 * (seed == 1))}
    with pytest.raises(InputError, match="world 'odd' has 120 rounds on seed 0 and 160 on seed 1; give it one horizon"):
        db.compare(Greedy, worlds, seeds=3, jobs=1)  # the first and the last seed agree


class Hoarder(Greedy):
    """Writes into the list it is given."""

    def __init__(self, arms, *, notes, **common):
        super().__init__(arms, rate=0.1 * (1 + len(notes)), **common)
        self.notes = notes
        notes.append("was here")


def test_what_a_run_does_to_its_settings_no_other_sees():
    notes = []
    runs = db.compare((Hoarder, {"notes": notes}), Shifting, seeds=3, jobs=1).runs
    assert notes == []
    assert runs["regret"].tolist() == db.compare(Greedy, Shifting, seeds=3, jobs=1).runs["regret"].tolist()


def test_what_a_world_does_to_its_settings_no_other_sees():
    def world(seed, rounds):
        rounds.append(seed)
        return Shifting(seed=seed, horizon=100 + len(rounds))

    rounds = []
    curves = db.compare(Greedy, {"made": (world, {"rounds": rounds})}, seeds=3, jobs=1).curves
    assert rounds == []
    assert curves.groupby("seed")["round"].max().tolist() == [101] * 3


def test_a_setting_that_cannot_be_copied_is_named():
    with pytest.raises(InputError, match="the setting 'notes' cannot be copied for every run"):
        db.compare({"locked": (Hoarder, {"notes": threading.Lock()})}, Shifting, seeds=2, jobs=1)


@pytest.mark.parametrize("jobs", [np.int64(1), 10**9])
def test_jobs_are_any_whole_number_and_never_more_than_runs(jobs):
    assert len(db.compare(Greedy, Shifting, seeds=2, jobs=jobs).runs) == 2


def test_the_figure_has_a_panel_per_world(found):
    figure = found.plot()
    assert isinstance(figure, matplotlib.figure.Figure)
    assert figure._repr_png_().startswith(b"\x89PNG")
    titles = {axes.get_title(loc="left") for axes in figure.axes}
    assert {"one switch", "shifting"} <= titles
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts.count("bold") == 1  # one legend for both worlds


def test_many_policies_and_long_names_fit():
    policies = {f"rate {rate}": (Greedy, {"rate": rate / 20}) for rate in range(10)}
    figure = db.compare(policies, {"w" * 100: Shifting}, seeds=1, jobs=1).plot()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [title.partition("…")[2] for title in titles] == [": policies (1 of 2)", ": policies (2 of 2)"]
    assert all(len(title) == 46 for title in titles)


def test_a_failure_on_the_way_names_policy_world_and_seed_and_has_the_traceback():
    for jobs in (1, 2):
        with pytest.raises(
            CellError, match="bad on switching/1, seed 3 failed: KeyError: 'the table is empty'"
        ) as caught:
            db.compare({"bad": (Greedy, {"fails_after": 90})}, small_world(), seeds=[3], jobs=jobs)
        assert "(small.py, line " in str(caught.value)
        assert "store" not in str(caught.value)
        (note,) = caught.value.__notes__
        assert "in _law" in note
        assert "small.py" in note


def test_a_failure_in_the_first_round_has_the_users_error_as_its_cause():
    with pytest.raises(InputError, match="policy 'bad' in world 'switching/1', seed 0: KeyError") as caught:
        db.compare({"bad": (Greedy, {"fails_after": 0})}, small_world(), seeds=2, jobs=1)
    assert isinstance(caught.value.__cause__, KeyError)


def test_progress_is_shown_when_asked_for_and_else_to_people_alone(capsys):
    db.compare(Greedy, Shifting, seeds=2, jobs=1)
    assert capsys.readouterr() == ("", "")
    db.compare(Greedy, Shifting, seeds=2, jobs=1, show=True)
    assert "runs: 2/2" in capsys.readouterr().err


SCRIPT = """
import numpy as np
import driftbandits as db

class Mine(db.SlidingWindowUCB):
    pass

class World(db.environments.Tabular):
    def __init__(self, *, seed):
        means = np.random.default_rng(seed).uniform(0, 0.9, size=(100, 3))
        noise = db.environments.TruncatedGaussianNoise(0.05)
        super().__init__(db.ArmSet(np.eye(3)), means, noise=noise, name="world")

def found(jobs):
    worlds = {"drawn": World, "told": World(seed=3), "made": lambda seed: World(seed=seed + 1)}
    return db.compare([(Mine, {"window": 20}), db.Uniform], worlds, seeds=2, jobs=jobs).runs

one, two = found(1), found(2)
print(len(one), one.drop(columns="seconds").equals(two.drop(columns="seconds")), Mine.__module__)
"""


def test_classes_of_a_notebook_play_in_other_processes(tmp_path):
    """As a kernel runs cells: code without a file, executed in __main__."""
    cells = SCRIPT.split("\n\n")
    code = f"import __main__\nfor cell in {cells!r}:\n    exec(compile(cell, '<cell>', 'exec'), vars(__main__))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["12", "True", "__main__"]


def test_what_cannot_be_sent_to_processes_can_be_played_in_this_one():
    lock = threading.Lock()
    policy = {"locked": lambda arms, **settings: (lock, db.Uniform(arms, **settings))[1]}
    with pytest.raises(db.DriftbanditsError, match="jobs=1 plays in this one"):
        db.compare(policy, Shifting, seeds=2, jobs=2)
    assert len(db.compare(policy, Shifting, seeds=2, jobs=1).runs) == 2


def test_without_the_extra_the_cure_is_named():
    code = """
import sys
sys.modules["pandas"] = None
import driftbandits as db
try:
    db.compare(db.Uniform, "switching/1")
except db.errors.MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "compare needs pandas" in done.stdout, done.stderr
    assert "[experiments]" in done.stdout


def test_importing_the_library_loads_nothing_that_comparing_needs():
    code = "import sys, driftbandits; print([m for m in sys.modules if m.startswith('driftbandits.experiments')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]"


WORLD = small_world()


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        (db.AdaOPKB, ["ADA-OPKB"]),
        ("AdaOPKB", ["ADA-OPKB"]),
        ((db.GPUCB, {"beta": 1.0}), ["GPUCB (beta=1.0)"]),
        ((db.GPUCB, db.OPKB), ["GPUCB", "OPKB"]),
        ([Greedy, (Greedy, {"rate": 0.5})], ["Greedy", "Greedy (rate=0.5)"]),
        ({"a": Greedy, "b": ("AdaOPKB", {"constants": "published"}), "c": (Greedy, {"rate": 0.2})}, ["a", "b", "c"]),
        ({"made": lambda arms, **settings: Greedy(arms, rate=0.3, **settings)}, ["made"]),
        (("AdaOPKB", {"constants": db.Constants.published()}), None),
    ],
)
def test_forms_of_policies(given, labels):
    found = read_policies(given)
    assert labels is None or [one.label for one in found] == labels
    for one in found:
        policy = one.build(WORLD, 3, {"out_of_range": "clip"})
        assert isinstance(policy, db.Policy)
        assert (policy.horizon, policy.out_of_range) == (200, "clip")


def policy_file(folder, label):
    """A file with a class called Mine, and a function that makes one."""
    file = folder / "mine.py"
    body = f"label = {label!r}" if label is not None else "pass"
    function = "def made(arms, **settings):\n    return Mine(arms, **settings)\n"
    file.write_text(f"import driftbandits as db\n\n\nclass Mine(db.Uniform):\n    {body}\n\n\n{function}")
    return file


@pytest.mark.parametrize(("own", "label"), [(None, "Mine"), ("My policy", "My policy")])
def test_a_policy_from_a_file_has_the_label_of_its_class(tmp_path, own, label):
    (one,) = read_policies(f"{policy_file(tmp_path, own)}:Mine")
    assert one.label == label
    assert type(one.build(WORLD, 0, {})).__name__ == "Mine"
    (given,) = read_policies({"given": f"{policy_file(tmp_path, own)}:Mine"})
    assert given.label == "given"


def test_a_function_from_a_file_has_its_name(tmp_path):
    (one,) = read_policies(f"{policy_file(tmp_path, 'My policy')}:made")
    assert one.label == "made"


@pytest.mark.parametrize("name", db.policies.POLICIES)
def test_a_name_and_its_class_have_one_label(name):
    ((by_name,), (by_class,)) = read_policies(name), read_policies(db.policies.POLICIES[name])
    assert by_name.label == by_class.label


@pytest.mark.parametrize(("label", "message"), [(5, "the label of a policy is a text, got 5"), ("", "'' is blank")])
def test_labels_of_classes_that_cannot_be_shown_are_refused(tmp_path, label, message):
    odd = type("Odd", (Greedy,), {"label": label})
    for given in (odd, (odd, {"rate": 0.2}), f"{policy_file(tmp_path, label)}:Mine"):
        with pytest.raises(InputError, match=message):
            read_policies(given)


def test_a_blank_label_is_refused_rather_than_replaced():
    with pytest.raises(InputError, match="label of a policy '' is blank"):
        read_policies({"": db.Uniform})
    for world in (WORLD, "switching/1", small_world):
        with pytest.raises(InputError, match="label of a world '' is blank"):
            read_worlds({"": world})


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        (WORLD, ["switching/1"]),
        ("cosine/slow", ["cosine/slow"]),
        (("switching/1", SMALL), ["switching/1 (horizon=200, switches=[100], size=8)"]),
        ([Shifting, (Shifting, {"horizon": 90})], ["Shifting", "Shifting (horizon=90)"]),
        ({"one": WORLD, "two": small_world(1), "drawn": small_world}, ["one", "two", "drawn"]),
        ("suite/heavy-tails/d2", ["suite/heavy-tails/d2"]),
        ("real/digits", ["real/digits"]),
        ("real/digits/reversed", ["real/digits/reversed"]),
    ],
)
def test_forms_of_worlds(given, labels):
    found = read_worlds(given)
    assert [one.label for one in found] == labels
    for one in found:
        assert isinstance(one.build(1), db.environments.Environment)


def test_an_object_is_the_same_on_every_seed_and_a_name_draws_one_per_seed():
    (told,), (named,) = read_worlds(WORLD), read_worlds(("switching/1", SMALL))
    assert told.build(0) is told.build(1) is WORLD
    assert (named.build(0).means(0) == small_world(0).means(0)).all()
    assert (named.build(0).means(0) != named.build(1).means(0)).any()


def test_the_world_of_an_experiment_brings_what_policies_need_there():
    (world,) = read_worlds("suite/heavy-tails/d2")
    assert world.common == {"out_of_range": "clip"}
    assert world.build(0).arms.points.shape[1] == 2


def test_seeds():
    assert read_seeds(np.int64(2)) == read_seeds(range(2)) == read_seeds(np.arange(2)) == (0, 1)
    assert read_seeds([2**63 - 1, np.int64(3)]) == (2**63 - 1, 3)


@pytest.mark.parametrize(
    "wrong",
    [
        *(0, -1, 2.5, True, None, "12", b"ab", {"a": 1}, np.array(2), np.zeros((2, 2), dtype=int)),
        *([], [1, 1], [1, np.int64(1)], [0, None], [-1], [0.5], [[1]], [2**63]),
    ],
    ids=repr,
)
def test_what_cannot_be_seeds_is_refused(wrong):
    with pytest.raises(InputError, match="seed"):
        read_seeds(wrong)


@pytest.mark.parametrize(
    ("policies", "worlds", "message"),
    [
        (Greedy(WORLD.arms), WORLD, "give the class, not a Greedy that is built already"),
        ("GPUBC", WORLD, "did you mean 'GPUCB'"),
        ("no_such.py:Mine", WORLD, "there is no file 'no_such.py'"),
        (3, WORLD, "a policy is a class derived from driftbandits.Policy"),
        (Shifting, WORLD, "a policy is a class derived from driftbandits.Policy"),
        (lambda arms, **settings: db.Uniform(arms, **settings), WORLD, "needs a label"),
        ({"x": lambda arms, **settings: 3}, WORLD, "must give a driftbandits Policy"),
        ((db.GPUCB, {"bet": 1.0}), WORLD, "did you mean 'beta'"),
        ((db.GPUCB, {"horizon": 10}), WORLD, "set the horizon of the environment"),
        ([db.Uniform, "Uniform"], WORLD, "a policy called 'Uniform' is there twice"),
        ([], WORLD, "no policy to compare"),
        ({" ": db.Uniform}, WORLD, "blank"),
        (db.Uniform, [WORLD, WORLD], "a world called 'switching/1' is there twice"),
        (db.Uniform, {3: WORLD}, "the label of a world is a text"),
        (db.Uniform, "swiching/1", "did you mean 'switching/1'"),
        (db.Uniform, ("switching/1", {"horizn": 3}), "did you mean 'horizon'"),
        (db.Uniform, ("switching/1", {"seed": 3}), "the seeds are those of the comparison"),
        (db.Uniform, (WORLD, {"horizon": 3}), "built already"),
        (db.Uniform, 3, "a world is an environment"),
        (db.Uniform, {"x": lambda seed: 3}, "must give a driftbandits Environment"),
        (db.Uniform, "real/nothing", "no world is called 'real/nothing'"),
    ],
)
def test_misuse_is_said_with_its_cure_before_anything_is_played(policies, worlds, message):
    with pytest.raises(InputError, match=message):
        db.compare(policies, worlds, seeds=2, jobs=1)


def test_seeds_of_real_series_are_their_offsets():
    with pytest.raises(InputError, match="start offsets"):
        db.compare(db.Uniform, "real/digits", seeds=[0, 999], jobs=1)


def test_what_a_store_holds_is_not_played_again(tmp_path):
    world = {"one switch": ("switching/1", SMALL)}
    without = db.compare([db.Uniform, ("GPUCB", {"beta": 0.5})], world, seeds=2, jobs=1)
    first = db.compare([db.Uniform, ("GPUCB", {"beta": 0.5})], world, seeds=2, jobs=1, store=tmp_path)
    parts = {part: part.stat().st_mtime_ns for part in (tmp_path / "cells").iterdir()}
    assert len(parts) == 4
    more = db.compare([("GPUCB", {"beta": 0.5}), db.Uniform], world, seeds=3, jobs=1, store=tmp_path)
    after = {part: part.stat().st_mtime_ns for part in (tmp_path / "cells").iterdir()}
    assert len(after) == 6
    assert {part: after[part] for part in parts} == parts
    assert first.runs.drop(columns="seconds").equals(without.runs.drop(columns="seconds"))
    for label in ("Uniform", "GPUCB (beta=0.5)"):
        assert more.runs[more.runs["policy"] == label]["regret"].tolist()[:2] == (
            first.runs[first.runs["policy"] == label]["regret"].tolist()
        )


@pytest.mark.parametrize(
    ("policies", "worlds", "what"),
    [(Greedy, "switching/1", "policy 'Greedy'"), ("Uniform", Shifting, "world 'Shifting'")],
)
def test_what_has_no_name_is_not_kept(tmp_path, policies, worlds, what):
    with pytest.raises(InputError, match=f"{what} cannot be kept in a store, whose keys must say what was played"):
        db.compare(policies, worlds, seeds=1, jobs=1, store=tmp_path)


@pytest.fixture(scope="module")
def against_greedy():
    return db.compare(POLICIES, {"a_b": ("switching/1", SMALL)}, seeds=4, jobs=1, reference="greedy")


def test_intervals_hold_for_all_rivals_of_the_reference_at_once(against_greedy):
    table = against_greedy.runs.pivot_table(index="seed", columns="policy", values="regret")
    for _, row in against_greedy.summary.iterrows():
        differences = table[row["policy"]] - table["greedy"]
        assert row["behind"] == pytest.approx(differences.mean())
        half = 4.176534846 * differences.std(ddof=1) / 2  # Student's t at 1 - 0.05 / 2 / 2, three degrees of freedom
        assert row["behind_high"] - row["behind"] == pytest.approx(half)
    assert "behind greedy [95 % at once]" in str(against_greedy)
    with pytest.raises(InputError, match="no policy is called 'greed'; did you mean 'greedy'"):
        db.compare(POLICIES, "switching/1", seeds=1, jobs=1, reference="greed")


def test_tables_for_a_paper(against_greedy, found):
    lines = against_greedy.to_latex().splitlines()
    assert lines[:4] == [r"\begin{tabular}{lr}", r"\toprule", r" & a\_b \\", r"\midrule"]
    assert [line.partition(" & ")[0] for line in lines[4:7]] == ["greedy", "bold", "ADA-OPKB"]
    assert lines[-1] == r"\end{tabular}"
    for row, line in zip(against_greedy.summary.to_dict("records"), lines[4:7], strict=True):
        assert f"${row['regret']:,.0f} \\pm {row['standard_error']:,.0f}" in line
        assert ("^*" in line) == (row["behind_low"] > 0 or row["behind_high"] < 0)
    assert found.to_latex().count(r"\mathbf") >= 2  # the best of both worlds
    table = pd.read_csv(io.StringIO(found.to_csv()))
    assert table["regret"].tolist() == pytest.approx(found.summary["regret"].tolist())


def test_policies_that_report_no_changes_have_none_missed(found):
    silent = found.summary[found.summary["policy"] == "greedy"]
    assert silent[["changes_found", "changes_missed", "false_alarms_per_run"]].isna().all(axis=None)
    assert not found.summary[found.summary["policy"] == "ADA-OPKB"]["changes_missed"].isna().any()


def test_figures_are_as_wide_as_a_style_file_wants():
    world = db.environments.create("switching/1", seed=0, horizon=100, switches=(50,), size=5)
    found = db.compare(["Uniform", "UCB1"], {"one": world, "two": world}, seeds=1, jobs=1, show=False)
    for width, inches in (("neurips", 5.5), (4.0, 4.0), ("icml", 6.75)):
        assert found.plot(width=width).get_size_inches()[0] == pytest.approx(inches)
    with pytest.raises(InputError, match="did you mean 'icml'"):
        found.plot(width="icm")
    with pytest.raises(InputError, match="panels need more than 2 inches"):
        found.plot(width=2.0)
    with pytest.raises(InputError, match="width"):
        found.plot(width=-1)
