"""Write the states of this version and what they decide next, and a journal: `python -m tests.state.record_release`.

Before a release: it writes the folder of the present version anew. What older releases wrote is never written again.
With names of cases it adds those alone to that folder: policies that have joined since.
If a later version decides otherwise on purpose, `--decisions` records the next decisions of all states anew; the commit
says why.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driftbandits import __version__
from tests.live import released as journals
from tests.state.released import CASES, DECISIONS, FOLDER, NEXT, PLAYED, Case, Choice, read_decisions


def main() -> None:
    """Record this version, or the decisions of all."""
    if sys.argv[1:] == ["--decisions"]:
        for folder in sorted(FOLDER.iterdir()):
            known = read_decisions(folder)
            _write(folder, {name: _going_on(CASES[name], folder / f"{name}.state", known[name]) for name in known})
        return
    folder = FOLDER / __version__
    if joined := sys.argv[1:]:
        _write(
            folder,
            {**read_decisions(folder), **{name: _saved(CASES[name], folder / f"{name}.state") for name in joined}},
        )
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _write(folder, {name: _saved(case, folder / f"{name}.state") for name, case in CASES.items()})
    journals.record(folder)
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{folder}: {len(CASES)} states and a journal, {size / 1024:.0f} KiB")


def _saved(case: Case, path: Path) -> dict[str, list[Choice]]:
    """Play, save, and go on."""
    policy, waiting = case.build(), []
    case.play(policy, PLAYED, waiting)
    policy.save(path)
    return _going_on(case, path, {"waiting": waiting})


def _going_on(case: Case, path: Path, known: Mapping[str, list[Choice]]) -> dict[str, list[Choice]]:
    """What the state in a file decides next."""
    return {"waiting": known["waiting"], "next": case.play(case.load(path), NEXT, list(known["waiting"]))}


def _write(folder: Path, decisions: Mapping[str, Any]) -> None:
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(decisions[name])}" for name in decisions)
    (folder / DECISIONS).write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
