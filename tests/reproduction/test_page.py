"""The sentences of the answer follow from the verdicts."""

import dataclasses
import math
import re
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pandas as pd
import pytest

from driftbandits.errors import InputError
from driftbandits.experiments import Engine, Experiment, PolicySpec, play
from driftbandits.experiments.results import collect
from driftbandits.report.blocks import ReportTable, TableEntry, columns, policy_table, true_changes
from driftbandits.report.page import commands, facts_table, html_of, settings_table
from reproduction import real_data
from reproduction.catalogue import quick
from reproduction.claims import Check, Claim
from reproduction.growth import SWEEPS
from reproduction.linear import check_linear_claims
from reproduction.page import THEMES, banner, findings, least_regret, make_answer, sort_experiments, write_report
from reproduction.paper import ENVIRONMENT_2, FIGURES, check_claims
from reproduction.real_data import real_series_blocks, reference_regret
from reproduction.suite import geometric_means, regret_matrix, suite_blocks
from reproduction.topic import Judgements, StudyContext
from tests.reproduction.made_up import own_experiment, results_of, short_sweeps, small
from tests.reproduction.made_up_results import all_seeds, noise, played
from tests.reproduction.walk import Walk


def test_page_is_well_formed_and_every_anchor_has_a_target(everything):
    walk = Walk(everything[0])
    assert walk.faults == []
    assert len(walk.ids) == len(set(walk.ids))
    assert {link for link in walk.links if not link.startswith("#")} == set()
    assert {link[1:] for link in walk.links} <= set(walk.ids)


def test_page_needs_nothing_beside_it(everything):
    page = everything[0]
    walk = Walk(page)
    assert walk.sources
    assert all(source.startswith("data:image/svg+xml;charset=utf-8,") for source in walk.sources)
    assert not {"script", "link", "iframe"} & set(walk.tags)
    assert not re.search(r"@import|url\(", page[page.index("<style>") : page.index("</style>")])
    assert len(page) < 6_000_000


def test_images_are_whole_svg_that_refers_to_itself_alone(everything):
    for source in Walk(everything[0]).sources:
        text = unquote(source.partition(",")[2])
        root = ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        links = [v for node in root.iter() for key, v in node.attrib.items() if key.endswith("href")]
        assert all(link.startswith("#") for link in [*links, *re.findall(r"url\((.*?)\)", text)])
        assert "<!DOCTYPE" not in text


def test_every_image_says_what_it_shows(everything):
    for image in Walk(everything[0]).images:
        if image["alt"]:  # the samples of a key have none: the words beside them say it
            assert re.search(r"\d", image["alt"])
            assert int(image["width"]) > 300


def test_every_claim_stands_there_with_its_verdict_in_a_word(everything):
    page, _, results = everything
    text = Walk(page).text
    for claim in check_claims(results, sweeps=short_sweeps()):
        assert html_of(claim.text) in page
        heading = re.search(rf'<h3 id="claim-{claim.id.lower()}">(.*?)</h3>', page, re.DOTALL)
        assert heading is not None
        assert claim.verdict in heading.group(1)
    assert "3 of 25 †" in text  # fewer seeds than the paper's
    assert "fewer seeds than the paper" in text


def test_chapters_come_in_a_readers_order(everything):
    wanted = [
        *("answer", "figures", "d2", "growth", "comparison", "suite", "own"),
        *("verdicts", "numbers", "settings", "about"),
    ]
    assert [name for name in Walk(everything[0]).ids if name in wanted] == wanted


def test_the_page_opens_with_the_answer_and_folds_its_tables(everything):
    page = everything[0]
    opening = Walk(page[page.index("<body>") : page.index("<nav")] + "</body>")
    assert "The paper claims that ADA-OPKB" in opening.text
    assert "Of how fast regret grows, " in opening.text
    assert "have fewer seeds than the paper’s (the fewest: 3 of 25)" in opening.text
    assert "table" not in opening.tags
    unfolded = re.sub(r"<details>.*?</details>", "", page, flags=re.DOTALL)
    captions = re.findall(r"<caption>(.*?)</caption>", unfolded)
    assert len(captions) == 2  # the suite's, which are its figure, and how the report came about
    assert all(caption.startswith(("Mean final regret, d = 2", "How this report")) for caption in captions)


def test_no_raw_symbols_are_left(everything):
    assert not re.search(r"\b(?:[LV]|gamma)_T\b", Walk(everything[0]).text)
    assert "segments L<sub>T</sub>" in everything[0]


def test_every_figure_has_one_key(everything):
    page = everything[0]
    assert page.count('<ul class="key">') == page.count("<figure>") > 3


def test_figures_are_files_too(everything):
    _, out, _ = everything
    for name in ("switching-1", "cosine-slow-d2", "growth", "growth-lines", "comparison", "mine"):
        assert (out / "figures" / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        assert (out / "figures" / f"{name}.pdf").read_bytes()[:4] == b"%PDF"


def test_run_facts_are_told(everything):
    text = Walk(everything[0]).text
    for fact in ("make reproduce", "quick", "75.0 s", "2024-05-06", "numpy", "scikit-learn", "cores"):
        assert fact in text


def test_odd_labels_and_titles_are_shown_as_they_are(tmp_path):
    odd = PolicySpec("<b>bold</b> & $x$ _", "Uniform")
    hidden = PolicySpec("_quiet", "GPUCB")
    experiment = own_experiment("a <i>b</i>/c", policies=(), title="<script>alert(1)</script>")
    formula = PolicySpec(r"$\frac{ \$ ^_ %", "LinUCB")
    experiment = dataclasses.replace(experiment, policies=(odd, hidden, formula))
    page = write_report(results_of([experiment]), out=tmp_path, title="A & B").read_text(encoding="utf-8")
    walk = Walk(page)
    assert walk.faults == []
    assert "script" not in walk.tags
    assert "b" not in walk.tags
    for words in ("<b>bold</b> & $x$ _", "_quiet", formula.label, "<script>alert(1)</script>", "A & B"):
        assert words in walk.text
    assert [file.name for file in sorted((tmp_path / "figures").iterdir())] == ["a-i-b-i-c.pdf", "a-i-b-i-c.png"]


def test_long_ids_have_files_all_the_same(tmp_path):
    experiments = [own_experiment("long" * 100), own_experiment("long" * 101)]
    write_report(results_of(experiments), out=tmp_path)
    assert len(list((tmp_path / "figures").iterdir())) == 4


def test_a_kill_leaves_the_report_of_before(tmp_path, monkeypatch):
    """Whatever is written over is written to the side first."""
    results = results_of([own_experiment()])
    before = write_report(results, out=tmp_path).read_bytes()
    figures = {file.name: file.read_bytes() for file in (tmp_path / "figures").iterdir()}

    def killed(self, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write_report(results_of([own_experiment(seeds=3)]), out=tmp_path)
    assert (tmp_path / "report.html").read_bytes() == before
    assert {file.name: file.read_bytes() for file in (tmp_path / "figures").iterdir()} == figures


def test_ids_that_look_alike_have_files_and_anchors_of_their_own(tmp_path):
    experiments = [
        own_experiment("a/b"),
        own_experiment("a b", policies=("Uniform", "LinUCB")),
        own_experiment("growth"),
    ]
    walk = Walk(write_report(results_of(experiments), out=tmp_path).read_text(encoding="utf-8"))
    assert len(walk.ids) == len(set(walk.ids))
    assert {file.stem for file in (tmp_path / "figures").iterdir()} == {"a-b", "a-b-2", "growth-2"}


def test_unfinished_experiments_say_what_is_missing(tmp_path):
    experiments = [own_experiment(), own_experiment("other", policies=("LinUCB",), seeds=1)]
    results = results_of(experiments, leave_out=1)
    text = Walk(write_report(results, out=tmp_path).read_text(encoding="utf-8")).text
    assert "2 runs of 5 are missing: mine (1) and other (1)." in text
    assert "Unfinished: 1 run of 4 missing." in text


def test_one_seed_has_no_standard_error(tmp_path):
    text = Walk(write_report(results_of([own_experiment(seeds=1)]), out=tmp_path).read_text(encoding="utf-8")).text
    assert "final regret ± s.e." in text
    assert not re.search(r"\d ± ", text)


def test_the_users_own_experiments_have_no_claims(tmp_path):
    walk = Walk(write_report(results_of([own_experiment()]), out=tmp_path).read_text(encoding="utf-8"))
    assert "verdicts" not in walk.ids
    assert "own" in walk.ids
    assert "Hong" not in walk.text


def test_nothing_played_is_a_page_that_says_so(tmp_path):
    results = collect([own_experiment()], [])
    text = Walk(write_report(results, out=tmp_path).read_text(encoding="utf-8")).text
    assert "4 runs of 4 are missing: mine (4)." in text


def test_a_single_point_of_a_sweep_stands_for_itself(tmp_path):
    point = small(SWEEPS[0].experiments[0], 1)
    walk = Walk(write_report(results_of([point]), out=tmp_path).read_text(encoding="utf-8"))
    assert walk.faults == []
    assert "growth" in walk.ids
    assert "own" not in walk.ids


@pytest.mark.parametrize("name", ["style.css", "run.html"])
def test_what_the_page_is_made_of_is_in_the_package(name):
    from importlib import resources

    assert (resources.files("driftbandits.report") / name).is_file()


def test_the_same_results_make_the_same_page(tmp_path):
    results = results_of([own_experiment()])
    one = write_report(results, out=tmp_path / "one").read_text(encoding="utf-8")
    assert write_report(results, out=tmp_path / "two").read_text(encoding="utf-8") == one


def claim(name, *verdicts, text="Something else."):
    """A claim with one check per setting."""
    checks = [
        Check(name, (f"setting {k}",), "s", -1.0, -2.0, 0.0, "regret", 3, 3, verdict, "")
        for k, verdict in enumerate(verdicts)
    ]
    return Claim(name, "1", text, tuple(checks))


def sentence(*claims):
    (found,) = findings(claims)
    return found.text


def test_a_sentence_says_what_became_of_each_claim():
    assert sentence(claim("T1", "holds"), claim("T2", "does not hold")) == (
        "Of how fast regret grows, it holds that ADA-OPKB keeps to its bound in rounds, segments, variation and "
        "dimension; "
        "it does not hold that OPKB and OPNN keep to their bound where nothing changes."
    )


def test_what_is_not_decided_is_one_line_for_all_themes():
    claims = [claim("T1", "holds"), claim("T2", "undecided"), claim("F2a-1", "undecided"), claim("LB-1", "not run")]
    first, rest = findings(claims)
    assert [mark.id for mark in first.marks] == ["T1"]
    assert rest.text == "Not decided by these runs:"
    assert [(mark.id, mark.verdict.word) for mark in rest.marks] == [
        ("T2", "undecided"),
        ("F2a-1", "undecided"),
        ("LB-1", "not run"),
    ]


def test_other_verdicts_make_other_sentences():
    seen = {sentence(claim("LB-1", first), claim("LB-2", second)) for first in DECIDED for second in DECIDED}
    assert len(seen) == len(DECIDED) ** 2


DECIDED = ("holds", "does not hold")


def test_what_depends_on_settings_names_them():
    assert "depends on the settings (yes with setting 0; no with setting 1)" in sentence(
        claim("F1a-2", "holds", "does not hold")
    )


def test_a_claim_that_no_theme_knows_is_told_in_its_own_words():
    assert sentence(claim("X", "holds", text="Bandits are fun.")) == "Besides, it holds that Bandits are fun."


def test_every_claim_has_a_theme():
    nothing = collect([], [])
    themed = [name for theme in THEMES for name in theme.clauses]
    assert sorted(themed) == sorted(c.id for c in [*check_claims(nothing), *check_linear_claims(nothing)])


@pytest.mark.parametrize(("ours", "found"), [(100.0, "it holds"), (900.0, "it does not hold")])
def test_the_answer_turns_with_the_results(ours, found):
    def regret(_, label, seed):
        return (ours if label.startswith("ADA") else 400.0) + noise(label, seed)

    results = played([all_seeds(ENVIRONMENT_2, 4)], regret)
    first, _ = findings(check_claims(results, sweeps=()))
    assert f"{found} that SW-GPUCB loses to ADA-OPKB and ADA-OPNN on environment 2" in first.text
    assert {"F1b-1"} <= {mark.id for mark in first.marks} <= {"F1b-1", "F1b-2"}


def test_the_least_regret_is_told_where_all_have_played(tmp_path):
    world = all_seeds(ENVIRONMENT_2, 3)
    best = world.policies[3].label
    whole = played([world], lambda _, label, __: 1.0 if label == best else 2.0)
    assert least_regret(StudyContext(whole, tmp_path)) == (
        f"Of all that played, the least mean regret has {best} on environment 2 (3 seeds)."
    )
    few = played([all_seeds(ENVIRONMENT_2, 2)], lambda *_: 1.0)
    assert least_regret(StudyContext(few, tmp_path)) == ""
    part = played([world], lambda _, label, __: 1.0 if label == best else None)
    assert least_regret(StudyContext(part, tmp_path)) == ""


def test_the_lead_counts_the_claims_and_without_claims_there_is_no_answer(tmp_path):
    results = results_of([own_experiment()])
    assert make_answer(StudyContext(results, tmp_path)) is None

    class Judged(Judgements):
        claims = (claim("T1", "holds"), claim("T2", "does not hold"))

    answer = make_answer(StudyContext(results, tmp_path, Judged()))
    assert answer.lead.endswith("Taken apart into 2 claims: 1 holds and 1 does not hold.")


def judged(*seeds):
    checks = tuple(Check("T", ("any",), "s", 0.0, 0.0, 0.0, "regret", n, 25, "holds", "") for n in seeds)

    class Judged(Judgements):
        claims = (Claim("T", "1", "Something.", checks),)

    return Judged()


def test_few_seeds_are_said_to_be_few(tmp_path):
    results = results_of([own_experiment()])
    assert banner(StudyContext(results, tmp_path, judged(25, 8, 2))) == (
        "2 of 3 comparisons have fewer seeds than the paper’s (the fewest: 2 of 25)."
    )
    assert banner(StudyContext(results, tmp_path, judged(25, 30))) == ""
    assert banner(StudyContext(results, tmp_path, judged(25, 0))) == ""  # not played: said elsewhere


def test_narrow_networks_are_said_to_be_narrow(tmp_path):
    figure = FIGURES["switching/1"]
    for experiment, words in ((quick(figure), "networks are 256 wide instead of 2,048."), (figure, "")):
        short = dataclasses.replace(experiment, seeds=(0,))
        assert banner(StudyContext(results_of([short]), tmp_path)) == words


def texts(table):
    return [[entry.text for entry in row] for row in table.rows]


def test_policies_that_do_not_detect_have_no_detection_numbers(tmp_path):
    experiment = own_experiment(policies=("AdaOPKB", "GPUCB"))
    table = policy_table(StudyContext(results_of([experiment]), tmp_path), experiment)
    # regret (1 + place + 0.05 seed) 400^0.6 on seeds 0 and 1; alarms 10 and 20 rounds after round 200
    scale = 400**0.6
    assert texts(table) == [
        ["AdaOPKB", "2", f"{1.025 * scale:.2f} ± {0.025 * scale:.2f}", "2 of 2", "215", "0.00", "0.12 s"],
        ["GPUCB", "2", f"{2.025 * scale:.2f} ± {0.025 * scale:.2f}", "–", "–", "–", "0.12 s"],
    ]
    assert [row[2].marks for row in table.rows] == ["best", ""]


def test_a_still_world_counts_false_alarms_alone(tmp_path):
    experiment = own_experiment(policies=("AdaOPKB",), environment="cosine/stationary", settings={"horizon": 400})
    table = policy_table(StudyContext(results_of([experiment]), tmp_path), experiment, turnover=True)
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
    context = StudyContext(results_of(experiments), tmp_path)
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
    monkeypatch.setattr(real_data, "references_of", lambda results: references)
    (block,) = real_series_blocks(StudyContext(results, tmp_path), [experiment])
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


OWN = """
from pathlib import Path
import driftbandits as db

Path(__file__).with_suffix(".loaded").touch()

class Mine(db.Uniform):
    reports_changes = True
"""


def test_a_class_that_was_played_says_whether_it_reports_changes(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    spec = PolicySpec("Mine", f"{file}:Mine")
    world = {"horizon": 40, "switches": [20], "size": 5}
    small = Experiment("small", "Small", "switching/1", world, (spec, PolicySpec("any arm", "Uniform")), seeds=(0,))
    context = StudyContext(play([small], engine=Engine(jobs=1)), tmp_path)
    assert context.detecting == {spec.name}


def test_a_file_that_nothing_was_played_of_is_not_run(tmp_path):
    file = tmp_path / "strange.py"
    file.write_text(OWN)
    world = {"horizon": 40, "switches": [20], "size": 5}
    played = Experiment("small", "Small", "switching/1", world, (PolicySpec("any arm", "Uniform"),), seeds=(0,))
    results = play([played], engine=Engine(jobs=1))
    named = Experiment("other", "Other", "switching/1", world, (PolicySpec("x", f"{file}:Mine"),), seeds=(0,))
    context = StudyContext(type(results)((played, named), results.cells, results.curves, results.summary), tmp_path)
    assert not context.detecting
    assert not file.with_suffix(".loaded").exists()


def test_symbols_are_formulas_and_the_rest_is_escaped():
    assert html_of("sqrt(gamma_T T log N) < L_T") == "√(γ<sub>T</sub> T log N) &lt; L<sub>T</sub>"
    assert html_of("d^(2/3) V_T^(1/3)") == "d<sup>2/3</sup> V<sub>T</sub><sup>1/3</sup>"


def test_what_only_looks_like_a_symbol_stays():
    for text in ("XL_T", "L_TAB", "my_sqrt", "x^2"):
        assert html_of(text) == text
