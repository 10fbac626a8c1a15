"""The command as a process: entry points, exit codes, completion, what is imported when."""

import json
import os
import runpy
import signal
import subprocess
import sys
import time

import pytest

from driftbandits import POLICIES, __version__
from driftbandits.cli import main
from reproduction.groups import EXPERIMENTS

COMMANDS = ("reproduce", "run", "report", "tune", "list", "doctor", "experiments", "db")
HIDING = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
from driftbandits.cli import main
sys.exit(main({arguments}))
"""


def run(*command, timeout=100, **environment):
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, **environment},
    )


def test_main_gives_the_exit_code(capsys, tmp_path):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"driftbandits {__version__}\n"
    assert main(["report", str(tmp_path)]) == 1
    assert main(["fly"]) == 2


def test_the_package_is_the_command():
    done = run("-m", "driftbandits", "--version")
    assert (done.returncode, done.stdout) == (0, f"driftbandits {__version__}\n")


def test_so_is_its_command_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["driftbandits", "--version"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("driftbandits.cli", run_name="__main__")
    assert capsys.readouterr().out == f"driftbandits {__version__}\n"


def test_help_needs_nothing_heavy():
    code = """
import sys
from driftbandits.cli import main
code = main(["--help"])
heavy = {"matplotlib", "optuna", "ray", "distributed", "torch", "pydantic", "yaml", "jinja2"} & set(sys.modules)
heavy |= {name for name in sys.modules if name.startswith("driftbandits.experiments.")}
heavy -= {"driftbandits.experiments.comparing"}  # which loads nothing before it is called
sys.exit(code or ", ".join(sorted(heavy)) or 0)
"""
    done = run("-c", code)
    assert done.returncode == 0, done.stderr
    for command in (*COMMANDS, "--install-completion"):
        assert command in done.stdout


def test_without_the_extra_it_says_what_to_install():
    done = run("-c", HIDING.format(hidden=["typer"], arguments=["--help"]))
    assert done.returncode == 1
    assert done.stderr == (
        "driftbandits: the command line needs typer; in a checkout of driftbandits, install it with: "
        "pip install '.[experiments]'\n"
    )


@pytest.mark.parametrize(
    ("words", "names"),
    [(("reproduce", "switching/"), EXPERIMENTS), (("run", "--policy", "Sliding"), POLICIES), (("re",), COMMANDS)],
)
def test_the_shell_completes_commands_ids_and_names(words, names, monkeypatch, capsys):
    monkeypatch.setenv("_DRIFTBANDITS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(["driftbandits", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert main([]) == 0
    assert set(capsys.readouterr().out.split()) == {name for name in names if name.startswith(words[-1])}


def test_completers_know_every_kind_of_name():
    from driftbandits.cli import options

    assert "paper" in options.complete_experiments("p")
    assert options.complete_environments("real/d") == ["real/digits"]
    assert options.complete_environments("switching") == ["switching", "switching/1", "switching/2"]
    assert options.complete_engines("") == ["loky", "ray", "dask"]
    assert options.complete_labels("SW-G") == ["SW-GPUCB"]


SLOW = """
import time
import driftbandits as db
class Slow(db.Uniform):
    def _learn(self, feedback):
        time.sleep(0.1)
"""


def test_interrupted_by_the_user_it_goes_on_later(tmp_path):
    (tmp_path / "own.py").write_text(SLOW)
    out = tmp_path / "out"
    arguments = [
        *("-m", "driftbandits", "run", "--environment", "switching/1", "--set", "horizon=20", "--set", "switches=[10]"),
        *("--policy", f"{tmp_path / 'own.py'}:Slow", "--out", str(out), "--jobs", "1", "--seeds", "5", "--json"),
    ]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test in the background ignores it, and so
    try:  # would what it starts
        command = [sys.executable, *arguments]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list(out.glob("cells/*.parquet")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    last = errors.splitlines()[-1]
    assert last.startswith("driftbandits: interrupted; ")
    assert "of 5 cells are finished" in last
    assert "--resume" in last
    assert output == ""
    kept = len(list(out.glob("cells/*.parquet")))
    assert 1 <= kept < 5
    done = run(*arguments, "--resume")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"] == 5
