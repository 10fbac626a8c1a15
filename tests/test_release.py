"""What is released: built here as `make release` does, which also installs it; that takes minutes."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import driftbandits as db
from release import contents
from release.installing import CORE, TRIALS, ReadmeError, readme_lines
from release.pythons import candidates
from tests.test_requirements import PROJECT

ROOT = Path(__file__).parents[1]
BUILD = "from setuptools.build_meta import build_sdist, build_wheel; build_sdist('dist'); build_wheel('dist')"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A copy of the checkout with tests and results in it, and what was built from it."""
    copy = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, copy)
    for decoy in ("tests/test_decoy.py", "tests/data.npz", "results/decoy.csv", "docs/page.md", "benchmarks/slow.py"):
        (copy / decoy).parent.mkdir(exist_ok=True)
        (copy / decoy).write_text("")
    subprocess.run([sys.executable, "-c", BUILD], cwd=copy, check=True, capture_output=True)
    return copy


def archive(built, ending):
    (found,) = (built / "dist").glob(f"*{ending}")
    return contents.files_of(found)


def test_the_wheel_has_the_package_whole_and_nothing_else(built):
    package = contents.package_files(ROOT)
    assert {"driftbandits/py.typed", "driftbandits/service/static/page.css"} <= package
    assert contents.problems_of_wheel(archive(built, ".whl"), package) == []


def test_the_source_distribution_builds_the_same_and_has_no_tests(built):
    assert contents.problems_of_sources(archive(built, ".tar.gz"), contents.package_files(ROOT)) == []


def test_what_does_not_belong_there_is_named():
    package = {"driftbandits/a.py", "driftbandits/b.css"}
    assert contents.problems_of_wheel({"driftbandits/a.py", "tests/test_a.py"}, package) == [
        "tests/test_a.py is in the wheel and does not belong there",
        "driftbandits/b.css is not in the wheel",
    ]
    sources = {*contents.BESIDE, "src/driftbandits/a.py", "src/driftbandits/b.css", "results/runs.csv"}
    assert contents.problems_of_sources(sources, package) == [
        "results/runs.csv is in the source distribution and does not belong there"
    ]


def test_one_version_and_one_date_everywhere():
    citation = (ROOT / "CITATION.cff").read_text()
    version, date = re.findall(r"^(?:version|date-released): (.*)$", citation, flags=re.MULTILINE)
    assert version == db.__version__
    released = re.findall(r"^## (?!Unreleased$)(.*)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert released[0] == f"{version} ({date})"


def test_every_extra_of_users_is_tried():
    assert set(TRIALS) == {CORE, *PROJECT["optional-dependencies"]}


@pytest.mark.parametrize("extra", [CORE, "live", "data"])
def test_trials_try_what_there_is(extra, tmp_path, monkeypatch):
    """The quick ones, here where everything is installed; `make release` runs all where only their extra is."""
    monkeypatch.chdir(tmp_path)
    exec(TRIALS[extra], {})


def test_the_readme_has_lines_to_try():
    lines, _ = readme_lines((ROOT / "README.md").read_text())
    assert "import driftbandits as db" in lines
    assert readme_lines("```python\nprint(1)\n```\n\n```text\n1\n```\n") == ("print(1)\n", "1\n")
    assert readme_lines("```python\nprint(1)\n```\nwords\n") == ("print(1)\n", None)
    with pytest.raises(ReadmeError):
        readme_lines("no lines")


def test_this_python_is_tried_first():
    assert candidates(sys.version_info.minor)[0] == sys.executable
    assert sys.executable not in candidates(99)
