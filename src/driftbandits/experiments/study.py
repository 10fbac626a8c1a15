"""Where the study of the paper is: the folder `reproduction` of a checkout, which is in no wheel.

Experiments and searches of the study are found by name where that folder is: beside the sources of this package, or in
the current directory.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from driftbandits.errors import InputError
from driftbandits.experiments.specs import Experiment

STUDY = "reproduction"
MARKER = Path("settings", "oracles.json")  # no folder of that name but ours has it


class StudyNotFoundError(InputError):
    """What was asked for belongs to the study of the paper, which is not here."""


def study_folder() -> Path | None:
    """The folder that holds the study, if there is one.

    >>> study_folder() is None or (study_folder() / "reproduction").is_dir()
    True
    """
    for folder in (Path(__file__).resolve().parents[3], Path.cwd()):
        if (folder / STUDY / MARKER).is_file():
            return folder
    return None


def load_study(module: str, *, purpose: str) -> ModuleType:
    """A module of the study. Raises StudyNotFoundError, which begins with the `purpose`, where there is no study."""
    folder = study_folder()
    if folder is None:
        raise StudyNotFoundError(
            f"{purpose} needs the study of the paper, which is no part of the installed package: it is the folder "
            f"{STUDY}/ of the driftbandits repository; run the command in a checkout of it"
        )
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return importlib.import_module(f"{STUDY}.{module}")


def study_experiments() -> Mapping[str, Experiment]:
    """Every experiment of the study by id; none where the study is not here."""
    if study_folder() is None:
        return {}
    found: Mapping[str, Experiment] = load_study("groups", purpose="an experiment by its id").EXPERIMENTS
    return found
