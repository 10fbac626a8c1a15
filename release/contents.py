"""What a wheel and a source distribution hold: the package whole, what says what it is, and nothing else.

Tests, documentation, benchmarks and results stay in the repository. A source distribution builds the same wheel without
them; who wants to run the tests needs the repository anyway, with its pinned environments.
"""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

SOURCE = "src/"
PACKAGE = "driftbandits"
BESIDE = (
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "MANIFEST.in",
    "PKG-INFO",
    "README.md",
    "pyproject.toml",
    "setup.cfg",
)


def package_files(root: Path) -> set[str]:
    """Files of the package in a checkout, by their path below `src`."""
    found = (path for path in (root / SOURCE / PACKAGE).rglob("*") if path.is_file())
    return {path.relative_to(root / SOURCE).as_posix() for path in found if "__pycache__" not in path.parts}


def files_of(archive: Path) -> set[str]:
    """Files in a wheel or a source distribution; of the latter without its first folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name for name in wheel.namelist() if not name.endswith("/")}
    with tarfile.open(archive) as sources:
        return {member.name.partition("/")[2] for member in sources.getmembers() if member.isfile()}


def problems_of_wheel(found: set[str], package: set[str]) -> list[str]:
    """What is wrong with the files of a wheel.

    >>> package = {"driftbandits/a.py"}
    >>> problems_of_wheel({*package, "tests/b.py", "driftbandits-1.0.dist-info/RECORD"}, package)
    ['tests/b.py is in the wheel and does not belong there']
    """
    about = {name for name in found if name.split("/")[0].endswith(".dist-info")}
    return _differences("wheel", found - about, package)


def problems_of_sources(found: set[str], package: set[str]) -> list[str]:
    """What is wrong with the files of a source distribution.

    >>> problems_of_sources({*BESIDE, "src/driftbandits/a.py"}, {"driftbandits/a.py", "driftbandits/b.css"})
    ['src/driftbandits/b.css is not in the source distribution']
    """
    about = {name for name in found if name.startswith(f"{SOURCE}{PACKAGE}.egg-info/")}
    return _differences("source distribution", found - about, {*BESIDE, *(f"{SOURCE}{name}" for name in package)})


def _differences(what: str, found: set[str], wanted: set[str]) -> list[str]:
    more = [f"{name} is in the {what} and does not belong there" for name in sorted(found - wanted)]
    return [*more, *(f"{name} is not in the {what}" for name in sorted(wanted - found))]


def by_folder(found: set[str]) -> dict[str, int]:
    """How many files each folder has, to two levels: a list that people read."""
    counts: dict[str, int] = {}
    for name in sorted(found):
        folder = "/".join(name.split("/")[:-1][:3]) or "."
        counts[folder] = counts.get(folder, 0) + 1
    return counts
