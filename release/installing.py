"""The wheel in an empty environment: installed as users do, the README's lines run, and what an extra is for."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
CORE = "core"
# What shows that an extra brought all it takes, run in a folder of its own after the README's lines.
TRIALS = {
    CORE: "import driftbandits as db; assert db.AutoBandit(db.ArmSet([[0.0], [1.0]])).ask().probability > 0",
    "torch": """
import driftbandits as db
policy = db.OPNN(db.ArmSet([[0.0], [0.5], [1.0]]), horizon=200, width=16, device="cpu", seed=0)
for _ in range(100):
    policy.tell(policy.ask(), 0.1)
assert policy.trainings > 0
""",
    "experiments": """
import subprocess, sys
import driftbandits as db
world = db.environments.create("switching/1", seed=0, horizon=200, switches=(100,))
assert len(db.compare([db.Uniform], [world], seeds=2).summary) == 1
subprocess.run([sys.executable, "-m", "driftbandits", "list", "policies"], check=True, stdout=subprocess.DEVNULL)
""",
    "tuning": """
import driftbandits.tuning.study
import optuna
assert optuna.create_study().direction.name == "MINIMIZE"
""",
    "live": """
import driftbandits as db
with db.live.open("sqlite:///shop.db") as database:
    shop = database.create("prices", arms=["9 EUR", "12 EUR"], seed=0)
    shop.reward(shop.decide(), 1.0)
    assert shop.summary().rewards == 1 and shop.export("log.parquet") == 1
""",
    "postgres": """
import driftbandits as db
try:
    db.live.open("postgresql://nobody@127.0.0.1:1/none?connect_timeout=2")
except db.errors.LiveError as error:
    assert "cannot be opened" in str(error), error
else:
    raise SystemExit("nobody answers at port 1")
""",
    "serve": """
import socket, subprocess, sys, time
import driftbandits as db
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = str(free.getsockname()[1])
server = subprocess.Popen([sys.executable, "-m", "driftbandits", "serve", "--port", port, "--log-level", "error"])
try:
    with db.live.Client(f"http://127.0.0.1:{port}", timeout=60.0) as client:
        shop = client.create("prices", arms=["9 EUR", "12 EUR"], seed=0)
        assert shop.reward(shop.decide(), 1.0).accepted == 1
finally:
    server.terminate()
    server.wait(30)
""",
    "ray": "import ray",
    "dask": "import distributed",
    "data": "from driftbandits import datasets; assert len(datasets.create('flights', seed=0).arms) > 1",
}


@dataclass(frozen=True)
class Installed:
    """How it went: with which Python and extra, in how many seconds, how large, how many packages; what failed."""

    python: str
    extra: str
    seconds: float = 0.0
    mebibytes: float = 0.0
    packages: int = 0
    problem: str = ""

    def __str__(self) -> str:
        if self.problem:
            return f"Python {self.python}, {self.extra}: FAILED\n{self.problem}"
        size = f"{self.mebibytes:,.0f} MiB, {self.packages} packages"
        return f"Python {self.python}, {self.extra}: installed in {self.seconds:.0f} s ({size}); README and trial fine"


def try_installed(wheel: Path, extra: str, version: str, program: str, folder: Path) -> Installed:
    """Install the wheel with an extra into an empty environment below `folder`, and use it there."""
    place = folder / f"{version}-{extra}"
    shutil.rmtree(place, ignore_errors=True)
    wanted = str(wheel) if extra == CORE else f"{wheel}[{extra}]"
    begun = time.perf_counter()
    try:
        _run(program, "-m", "venv", str(place), cwd=folder)
        python = str(place / "bin" / "python")
        _run(python, "-m", "pip", "install", "--quiet", "--no-compile", wanted, cwd=folder)
        seconds = time.perf_counter() - begun
        size = sum(path.lstat().st_size for path in place.rglob("*") if path.is_file()) / 2**20
        packages = len(_run(python, "-m", "pip", "list", "--format=freeze", cwd=folder).splitlines())
        _try_readme(python, place)
        _run(python, "-I", "-c", TRIALS[extra], cwd=place)
    except subprocess.CalledProcessError as error:
        said = "\n".join((error.stdout + error.stderr).strip().splitlines()[-15:])
        return Installed(version, extra, problem=said)
    except ReadmeError as error:
        return Installed(version, extra, problem=str(error))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return Installed(version, extra, seconds, size, packages)


class ReadmeError(Exception):
    """The README's lines printed something else than the README says."""


def readme_lines(readme: str) -> tuple[str, str | None]:
    """The first Python block of the README, and what it prints, if the block after it says so.

    >>> readme_lines("Lines:\\n```python\\nprint(1)\\n```\\n\\n```text\\n1\\n```\\n")
    ('print(1)\\n', '1\\n')
    """
    block = re.search(r"^```python\n(.*?)^```\n+(?:```text\n(.*?)^```)?", readme, flags=re.DOTALL | re.MULTILINE)
    if block is None:
        raise ReadmeError("the README has no lines of Python")
    return block[1], block[2]


def _try_readme(python: str, place: Path) -> None:
    lines, expected = readme_lines(README.read_text())
    printed = _run(python, "-I", "-c", lines, cwd=place)
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if not printed.strip() or not (
        expected is None or doctest.OutputChecker().check_output(expected, printed, options)
    ):
        raise ReadmeError(f"the README's lines printed\n{printed}\nand not\n{expected}")


def _run(*command: str, cwd: Path) -> str:
    """What a command prints; it fails if the command does. Nothing of this checkout is on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=True)
    return done.stdout
