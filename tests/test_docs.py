"""The README, the pages in docs/ and the examples run as they stand, and print what they say they print."""

import contextlib
import io
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import driftbandits as db
from driftbandits.live.definition import Definition
from driftbandits.policies import Policy
from tests.pages import KINDS, PAGES, ROOT, Block, blocks_of, name_of, write_files

PACKAGE = ROOT / "src" / "driftbandits"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def assert_prints(printed, block, page):
    """`...` stands for anything; where lines break does not matter."""
    wanted, found = (" ".join(text.split()) for text in (block.text, printed))
    pattern = ".*".join(re.escape(part) for part in wanted.split("..."))
    assert re.fullmatch(pattern, found), f"{page.name}:{block.line} says\n{block.text}\nand the code prints\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_blocks_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(page, tmp_path)
    names = {"__name__": "page"}
    for block, after in pairwise([*blocks_of(page), Block("", "", 0)]):
        if block.label != "python":
            continue
        code = compile("\n" * block.line + block.text, str(page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, names)
        if after.label == "text":
            assert_prints(printed.getvalue(), after, page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page):
    before = ""
    for block in blocks_of(page):
        assert block.label in KINDS or block.file, f"{page.name}:{block.line}: {block.label!r} is no kind of block"
        assert block.label != "text" or before == "python", f"{page.name}:{block.line}: output of no Python block"
        before = block.label


@pytest.mark.parametrize(
    ("printed", "fits"),
    [("regret 12, found\n[3]\n", True), ("regret 13, found [3]", False), ("regret 12, found [3] and more", False)],
)
def test_outputs_are_compared(printed, fits):
    block = Block("text", "regret 12,\nfound ...[3]\n", 0)
    with contextlib.nullcontext() if fits else pytest.raises(AssertionError, match="the code prints"):
        assert_prints(printed, block, ROOT / "README.md")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text()):
        if target.startswith("http"):
            continue
        path = page.parent / target if target else page
        assert path.exists(), f"{page.name} links to {target}, which does not exist"
        assert not anchor or anchor in anchors_of(path), f"{page.name} links to {target}#{anchor}, which does not exist"


def anchors_of(page):
    """The anchors of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_run(example):
    done = subprocess.run(
        [sys.executable, str(example)],
        capture_output=True,
        text=True,
        timeout=300,  # seconds each, but on machines that do much else besides
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 2


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name == "evidence"], ids=name_of)
def test_every_page_of_evidence_is_in_the_index_with_a_date_and_a_command(page):
    text, index = page.read_text(), (page.parent / "index.md").read_text()
    assert f"]({page.name})" in index or page.stem == "index"
    line = re.search(r"^\*Measured .*?\*$", text, flags=re.DOTALL | re.MULTILINE)
    found = line and re.search(r"\d \w+ 20\d\d by `(make|driftbandits|python -m) ", line[0])
    wanted = "*Measured on 17 November 2026 by `make bench`.*"
    assert found or page.stem == "index", f"{page.name} needs a line such as {wanted}"


def packages_below(folder):
    files = [path.stem for path in folder.glob("*.py") if not path.stem.startswith("__")]
    return {*files, *(path.name for path in folder.iterdir() if (path / "__init__.py").exists())}


@pytest.mark.parametrize("folder", ["", "policies", "experiments"])
def test_the_page_on_the_architecture_names_every_package_and_no_other(folder):
    page = (ROOT / "docs" / "architecture.md").read_text()
    section = page.split(f"### `{folder}`:")[1] if folder else page
    table = re.search(r"^\| package .*?(?=^[^|])", section, flags=re.DOTALL | re.MULTILINE)[0]
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    there = packages_below(ROOT / "src" / "driftbandits" / folder)
    assert named == there


def test_the_tree_on_the_page_is_the_tree():
    page = (ROOT / "docs" / "architecture.md").read_text()
    tree = page.split("```text tree\n")[1].split("```")[0]
    package = tree.split("reproduction/")[0]
    named = {name.removesuffix(".py") for name in re.findall(r"\b(\w+)(?:/|\.py)", package)}
    families = {"auto", "opkb", "gp", "ucb", "rivals", "base", "algorithm"}
    assert named - {"src", "driftbandits"} - families == packages_below(ROOT / "src" / "driftbandits")
    assert families <= packages_below(ROOT / "src" / "driftbandits" / "policies")


def entered(call):
    """Files of the package in which functions are called, in the order of their first calls."""
    found = {}

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            found.setdefault(Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix())

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(found)


def test_a_tell_enters_the_files_that_the_page_on_the_architecture_lists():
    policy = db.GPUCB(db.ArmSet([[0.0], [0.5], [1.0]]), seed=0)
    for _ in range(3):
        policy.tell(policy.ask().id, 0.3)
    decision = policy.ask()
    found = entered(lambda: policy.tell(decision.id, 0.3))
    page = (ROOT / "docs" / "architecture.md").read_text()
    listed = re.findall(r"`(\w+/[\w/]+\.py)`", page.split("**Its `tell`**")[1].split("\n\n")[0])
    assert found == listed
    assert len(found) <= 6


def test_the_page_on_the_architecture_names_every_file_of_the_study():
    section = (ROOT / "docs" / "architecture.md").read_text().split("### `reproduction`:")[1]
    table = re.search(r"^\| file .*?(?=^[^|])", section, flags=re.DOTALL | re.MULTILINE)[0]
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == packages_below(ROOT / "reproduction")


@pytest.mark.parametrize("figure", ["ask-tell.svg", "reproduce.svg"])
def test_pictures_of_the_architecture_name_files_that_exist(figure):
    picture = (ROOT / "docs" / "figures" / figure).read_text()
    packages = ("", "_util", "policies", "policies/opkb", "experiments", "cli")
    places = re.findall(r"Consolas, monospace\">([^<]*)<", picture)
    names = [name.strip() for place in places for name in place.split(",") if name.strip() not in ("", "…")]
    assert len(names) > 10
    for name in names:
        if name == "the family":
            continue
        tree = [*(ROOT / "src" / "driftbandits" / package / name for package in packages), ROOT / "reproduction" / name]
        assert any(path.is_dir() or path.with_suffix(".py").exists() for path in tree), name


def test_both_default_ranges_of_rewards_are_said_where_users_look():
    """They differ, and stay so: a policy by itself has (-1, 1), an experiment (0, 1)."""
    assert db.Uniform(db.ArmSet([[0.0]])).reward_range == (-1.0, 1.0)
    assert Definition(arms=()).reward_range == (0.0, 1.0)
    assert "By default (-1, 1)" in (Policy.__doc__ or "")
    assert "(0, 1) by default; that of a policy" in (db.live.Database.create.__doc__ or "")
    pages = {page.name: page.read_text() for page in PAGES}
    assert "`reward_range` is (0, 1) if you do not pass it" in pages["live-experiments.md"]
    assert "`reward_range` (by default `[0, 1]`" in pages["service.md"]
