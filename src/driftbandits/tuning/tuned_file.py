"""The file of settings that a search found: by dimension ("d=10") and label, with a word on how it was made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driftbandits.errors import InputError
from driftbandits.experiments.running.tuned_guests import read_tuned
from driftbandits.files import write_whole
from driftbandits.tuning.records import BestSettings

Found = dict[str, dict[str, Any]]  # entries by label, by "d=10"
HOW = "how"


def tuned_entry(found: BestSettings) -> dict[str, Any]:
    """What the file says of a policy."""
    return {
        "policy": found.policy,
        "settings": dict(found.settings),
        "origin": found.origin,
        "regret_on_tuning_seeds": round(found.regret, 1),
    }


def read_found(path: Path) -> Found:
    """What the file holds; nothing where there is none yet."""
    if not path.exists():
        return {}
    try:
        entries = read_tuned(path).entries
    except InputError as error:
        raise InputError(f"{error}; what is found would be written there, so move it away") from None
    return {key: {label: entry.model_dump() for label, entry in found.items()} for key, found in entries.items()}


def write_found(path: Path, found: Mapping[str, Mapping[str, Any]], *, how: str) -> None:
    """Write the file whole or not at all."""
    write_whole(path, (json.dumps({HOW: how, **found}, indent=1) + "\n").encode())
