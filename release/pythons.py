"""The Pythons of this machine that the library supports: on the path, or kept by pyenv."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST, NEWEST = 11, 14  # of 3.x: the oldest supported, and the newest that there is


def find_pythons() -> dict[str, str]:
    """Programs by version, such as 3.12; one of each that can be run."""
    found = {}
    for minor in range(OLDEST, NEWEST + 1):
        program = next(filter(_runs, candidates(minor)), None)
        if program is not None:
            found[f"3.{minor}"] = program
    return found


def candidates(minor: int) -> list[str]:
    """Programs that may be Python 3.`minor`: this one, one on the path, those of pyenv."""
    this = [sys.executable] if sys.version_info.minor == minor else []
    on_path = shutil.which(f"python3.{minor}")
    kept = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    of_pyenv = sorted(map(str, kept.glob(f"3.{minor}.*/bin/python")), reverse=True)
    return [*this, *([on_path] if on_path else []), *of_pyenv]


def _runs(program: str) -> bool:
    """Whether it is more than a signpost: pyenv has one on the path for every version, and it may lead nowhere."""
    return subprocess.run([program, "-m", "venv", "--help"], capture_output=True, check=False).returncode == 0
