"""The commands in the documentation: short ones are run in a shell, long ones are read and resolved without playing.

Which form a command has is said in FORMS, by its first words; a command that has none fails. Those in the middle of a
sentence are read too.
"""

import contextlib
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import NAMES
from driftbandits.cli.app import app
from driftbandits.experiments.engines import Engine
from tests.pages import PAGES, ROOT, blocks_of, name_of, write_files

SHORT = ["--seeds", "1", "--jobs", "1"]  # options of `run`: the last one counts


class NothingIsPlayed(BaseException):
    """Raised where the first run would begin: everything before it was fine."""


def run_shortly(words, folder):
    """Really run, in a shell, on one seed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = shlex.join([*words, *SHORT])
    done = subprocess.run(
        ["bash", "-ec", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    assert done.stdout


def run_here(words, _folder):
    """Really run, in this process."""
    done = CliRunner().invoke(app, words[1:])
    assert done.exit_code == 0, f"{shlex.join(words)}: {done.stderr}"
    assert done.stdout


def resolve(words, _folder):
    """Read all options, names and files, build what is to be played, and stop before the first run."""
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(NothingIsPlayed):
        patch.setattr(Engine, "started", _stop)
        done = CliRunner().invoke(app, words[1:])
        pytest.fail(f"{shlex.join(words)} ended before the first run: {done.stderr}")


def _stop(_engine, **_):
    raise NothingIsPlayed


def ask_for_help(words, _folder):
    """Read the options and stop at --help, which shows that there is such a command and such options."""
    done = CliRunner().invoke(app, [*words[1:], "--help"])
    assert done.exit_code == 0, f"{shlex.join(words)}: {done.stderr}"


def find_in_help(words, _folder):
    """See that there is such an option."""
    assert words[1] in CliRunner().invoke(app, ["--help"]).stdout


def make_without_doing(words, folder):
    """Ask make what it would do; the commands of the library among that are resolved as if they stood on the page."""
    done = subprocess.run([*words, "-n", "-C", str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        if re.match(r"\.venv[\w-]*/bin/driftbandits", line):
            check_command(line, folder)


def name_benchmarks(words, _folder):
    """See that the benchmarks exist."""
    assert {word for word in words[3:] if word != "--quick"} <= set(NAMES)


def name_a_module(words, _folder):
    """See that the module exists."""
    assert importlib.util.find_spec(words[2])


def name_paths(words, _folder):
    """See that files and folders exist."""
    for word in words[1:]:
        assert word.startswith("-") or word in ("auto", "check", "format") or (ROOT / word.partition("::")[0]).exists()


def name_extras(words, _folder):
    """See that the extras exist, and are those of a checkout: the library is in no index."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for word in words[2:]:
        assert not word.startswith("driftbandits")
        if word.startswith("."):
            assert set(re.findall(r"\w+", word)) <= set(extras)


def fit_the_document(words, _folder):
    """See that a request is one of those that the service describes, and that its body fits."""
    from driftbandits.service import requests as bodies

    path = urlsplit(words[1]).path
    body = json.loads(words[words.index("-d") + 1])
    kinds = {"experiments": bodies.Creation, "decisions": bodies.Deciding, "rewards": bodies.OneReward}
    kinds[path.rsplit("/", 1)[1]].model_validate(body)
    assert "Content-Type: application/json" in words


FORMS = {
    "driftbandits run": run_shortly,
    "driftbandits list": run_here,
    "driftbandits reproduce": resolve,
    "driftbandits tune": resolve,
    "driftbandits report": ask_for_help,
    "driftbandits experiments": ask_for_help,
    "driftbandits db": ask_for_help,
    "driftbandits doctor": ask_for_help,
    "driftbandits serve": ask_for_help,
    "driftbandits keys": ask_for_help,
    "curl": fit_the_document,
    "driftbandits evaluate": run_here,
    "driftbandits advise": ask_for_help,
    "driftbandits --": find_in_help,
    "make": make_without_doing,
    "python -m benchmarks": name_benchmarks,
    "python -m tests": name_a_module,
    "pytest": name_paths,
    "ruff": name_paths,
    "mypy": name_paths,
    "lint-imports": name_paths,
    "pip install": name_extras,
}


def check_command(line, folder):
    """Test one command in the form that its first words have."""
    words = shlex.split(re.sub(r"\.venv[\w-]*/bin/", "", line), comments=True)
    text = " ".join(words)
    forms = [form for begin, form in FORMS.items() if text.startswith(begin)]
    assert forms, f"no form is known for the command {text!r}"
    forms[0](words, folder)


def commands_of(page):
    """The lines of its shell blocks, continued lines joined."""
    blocks = [block for block in blocks_of(page) if block.label == "sh"]
    lines = [line for block in blocks for line in block.text.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def commands_in_sentences(page):
    """`driftbandits ...`, `make ...` and `pip install ...` in the text, without those that leave a word open."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"`((?:driftbandits|make|pip install) [^`]+)`", text)
    return [command for command in dict.fromkeys(found) if not re.search(r"\b[A-Z]{3,}\b(?!=)|\.\.\.|…", command)]


COMMANDS = [
    pytest.param(page, command, id=f"{name_of(page)}: {command[:60]}")
    for page in PAGES
    for command in commands_of(page)
]


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """Makes a folder with the examples and the files of a page, and goes there."""

    def go(page=None, name="stage"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "examples").symlink_to(ROOT / "examples")
        if page is not None:
            write_files(page, folder)
        monkeypatch.chdir(folder)
        return folder

    return go


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_commands_of_shell_blocks(page, command, stage):
    check_command(command, stage(page))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_in_sentences(page, stage):
    for number, command in enumerate(commands_in_sentences(page)):
        if not command.startswith("driftbandits run"):  # those are played, which only blocks are
            check_command(command, stage(page, name=str(number)))


@pytest.mark.parametrize(
    "wrong",
    [
        "driftbandits reproduce swiching/1",
        "driftbandits reproduce switching/1 --quik",
        "driftbandits reproduce switching/1 --policy examples/no_such_file.py:MyPolicy",
        "driftbandits tune comparisons",
        "driftbandits run --environment examples/own_world.py:MyWorld --policy AdaOPKB",
        "make no-such-target",
        "pip install '.[no_such_extra]'",
        "pip install 'driftbandits[ray]'",
        "python -m benchmarks no_such_benchmark",
        "some other command",
    ],
)
def test_wrong_commands_are_found(wrong, stage):
    folder = stage()
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_command(wrong, folder)
