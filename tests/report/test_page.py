import dataclasses
import re
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from driftbandits.experiments.definitions.growth import SWEEPS
from driftbandits.experiments.definitions.specs import PolicySpec
from driftbandits.experiments.judging.claims import check_claims
from driftbandits.experiments.judging.results import collect
from driftbandits.report import write_report
from driftbandits.report.symbols import html_of
from tests.report.made_up import own_experiment, results_of, short_sweeps, small
from tests.report.walk import Walk


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


@pytest.mark.parametrize("name", ["style.css", "template.html"])
def test_what_the_page_is_made_of_is_in_the_package(name):
    from importlib import resources

    assert (resources.files("driftbandits.report") / name).is_file()


def test_the_same_results_make_the_same_page(tmp_path):
    results = results_of([own_experiment()])
    one = write_report(results, out=tmp_path / "one").read_text(encoding="utf-8")
    assert write_report(results, out=tmp_path / "two").read_text(encoding="utf-8") == one
