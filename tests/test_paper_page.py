"""The page from the paper to the code names only what exists, and leaves out no reading and no claim."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from reproduction.paper import BEYOND, FIGURES, STATEMENTS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "paper.md").read_text()
QUOTED = sorted(set(re.findall(r"`([^`\n]+)`", PAGE)))
CODE = [name for name in QUOTED if re.fullmatch(r"[a-z_]+(\.[a-z_0-9]+)*:[\w.]+", name)]
TESTS = [name for name in QUOTED if "::" in name]
PATHS = [name for name in QUOTED if "/" in name and "::" not in name]


@cache
def names_in(path):
    """All functions, classes, methods and assigned names of a file, as they are reached from outside."""
    return frozenset(_names(ast.parse(path.read_text()), ""))


def _names(node, prefix):
    for child in getattr(node, "body", []):
        if isinstance(child, ast.FunctionDef):
            yield prefix + child.name
        elif isinstance(child, ast.ClassDef):
            yield prefix + child.name
            yield from _names(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.Assign | ast.AnnAssign):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            yield from (prefix + target.id for target in targets if isinstance(target, ast.Name))


@pytest.mark.parametrize("name", CODE)
def test_names_of_the_library_exist(name):
    module, _, inside = name.partition(":")
    root = ROOT if module.startswith("reproduction.") else ROOT / "src" / "driftbandits"
    path = root.joinpath(*module.split(".")).with_suffix(".py")
    assert path.exists(), f"docs/paper.md names {name}, and there is no {path.relative_to(ROOT)}"
    assert inside in names_in(path), f"docs/paper.md names {name}, which is not in {path.relative_to(ROOT)}"


@pytest.mark.parametrize("name", TESTS)
def test_names_of_tests_exist(name):
    path, _, inside = name.partition("::")
    assert (ROOT / path).exists(), f"docs/paper.md names {name}, and there is no {path}"
    assert inside in names_in(ROOT / path), f"docs/paper.md names {name}, which is not in {path}"


@pytest.mark.parametrize("path", PATHS)
def test_paths_exist(path):
    assert (ROOT / path).exists(), f"docs/paper.md names {path}, which does not exist"


def test_there_is_something_to_check():
    assert (len(CODE) > 80, len(TESTS) > 25, len(PATHS) > 2) == (True, True, True)


def test_a_name_that_is_gone_would_be_noticed():
    known = names_in(ROOT / "src" / "driftbandits" / "design" / "blocks.py")
    assert "draw_schedule" in known
    assert "draw_timetable" not in known


def test_every_algorithm_has_its_lines():
    for algorithm in ("OP", "OPKB", "ADA-OPKB", "Schedule", "OPNN", "TrainNN", "ADA-OPNN", "GPUCB"):
        assert re.search(rf"^\| \*\*{algorithm}\*\*", PAGE, flags=re.MULTILINE), algorithm


def test_readings_are_numbered_and_each_points_somewhere():
    section = PAGE.split("## How we read it")[1].split("\n## ")[0]
    readings = re.split(r"^ ?(\d+)\. ", section, flags=re.MULTILINE)[1:]
    assert [int(number) for number in readings[::2]] == list(range(1, 28))
    for number, text in zip(readings[::2], readings[1::2], strict=True):
        assert re.search(r"`[a-z_.]+:\w|`tests/", text), f"reading {number} names nothing in the code"


def test_every_row_of_the_figures_is_in_the_table_of_text_files_code_and_what_we_play():
    """By its whole label, or by its ending in a row that begins with its name."""
    section = PAGE.split("## Text, files, code, and what we play")[1].split("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    assert {len(cells) for cells in lines} == {5}
    labels = {p.label for figure in FIGURES.values() for p in figure.policies if p not in BEYOND}
    for label in labels:
        name, bracket, ending = label.partition(" (")
        endings = [f'"{label}"', *([f'"({ending}"'] if bracket else [])]
        # a row that the search found again is the published and the tuned one
        parts = [part.strip(") ") for part in ending.split(",")] if label.endswith("published, tuned)") else []
        places = [cells for cells in lines if re.search(rf"\b{re.escape(name)}\b", cells[0])]
        played = " ".join(cells[-1] for cells in places)
        assert any(e in played for e in endings) or (parts and all(f'"({p})"' in played for p in parts)), label


def test_every_claim_is_named():
    for statement in STATEMENTS:
        assert statement.id in PAGE
