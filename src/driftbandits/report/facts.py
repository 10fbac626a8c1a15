"""How a report came about: versions, machine, command, time."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping

from driftbandits.packages import installed_versions
from driftbandits.report.formats import duration, number
from driftbandits.report.tables import ReportTable, TableColumn, TableEntry
from driftbandits.version import __version__

PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "matplotlib", "torch")
NAMES_OF_FACTS = {
    "mode": "size of the run",
    "date": "date",
    "jobs": "processes",
    "engine": "engine",
    "command": "command",
}


def facts_table(about: Mapping[str, object]) -> ReportTable:
    """What the caller says about the run, then versions and machine as they are now.

    Keys that end in `seconds` are durations; the command is not in the table, for it has a place of its own.
    """
    said = {_name(key): _shown(key, value) for key, value in about.items() if key not in ("command", "version")}
    versions = {"driftbandits": str(about.get("version", __version__)), "Python": platform.python_version()}
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count() or 'unknown'} cores"
    facts = {**said, **versions, **installed_versions(PACKAGES), "machine": machine}
    rows = tuple((TableEntry(name), TableEntry(value)) for name, value in facts.items())
    return ReportTable(
        "How this report came about", (TableColumn("what", numeric=False), TableColumn("value", numeric=False)), rows
    )


def commands(about: Mapping[str, object]) -> list[str]:
    """The commands that make this report again, one per line."""
    given = about.get("command", "")
    return [str(line) for line in given] if isinstance(given, list | tuple) else str(given).splitlines()


def _name(key: str) -> str:
    if key in ("seconds", "wall_seconds", "wall seconds"):
        return "time it took"
    plain = key.replace("_", " ")
    return NAMES_OF_FACTS.get(key, plain.removesuffix(" seconds"))


def _shown(key: str, value: object) -> str:
    if key == "jobs" and isinstance(value, int) and value < 0:  # joblib's way: -1 is all cores, -2 all but one
        return f"{max(1, (os.cpu_count() or 1) + 1 + value):,}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if key.endswith("seconds"):
            return duration(float(value))
        return f"{value:,}" if isinstance(value, int) else number(value)
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return str(value)
