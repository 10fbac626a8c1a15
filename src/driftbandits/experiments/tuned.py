"""Files of settings that a search has found: read, and played wherever a policy is named.

`tuned.json` stands for every policy in it, `tuned.json#d=10` for those under that key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driftbandits.configuration.files import ConfigFile
from driftbandits.configuration.models import ConfigDict, Settings, StrictModel, validated
from driftbandits.configuration.references import resolve
from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.specs import PolicySpec

TUNED_FILE = ".json"


class TunedEntry(StrictModel):
    """What a search found for one policy in one dimension."""

    policy: str
    settings: Settings
    origin: str
    regret_on_tuning_seeds: float


class TunedSettings(StrictModel):
    """A file of settings found: `how` it was made, and entries by label under every key: a dimension ("d=10"), or the
    worlds that were searched.
    """

    model_config = ConfigDict(extra="allow")

    how: str
    __pydantic_extra__: dict[str, dict[str, TunedEntry]]

    @property
    def entries(self) -> dict[str, dict[str, TunedEntry]]:
        """Entries by label, by key; keys without any are left out."""
        found: dict[str, Any] = self.model_extra or {}
        return {key: entries for key, entries in found.items() if entries}

    def specs(self, dimension: int) -> tuple[PolicySpec, ...]:
        """The policies with the settings found in this dimension; none where nothing was searched there."""
        return _specs(self.entries.get(f"d={dimension}", {}))


def _specs(entries: Mapping[str, TunedEntry]) -> tuple[PolicySpec, ...]:
    return tuple(PolicySpec(label, resolve(entry.policy), entry.settings) for label, entry in entries.items())


def read_tuned(path: Path) -> TunedSettings:
    """The settings that a search wrote to this file. Raises InputError with the place of what is wrong in it."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no file {str(path)!r}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise InputError(f'{path} holds no keys; a search writes "how", and one such as "d=10" per dimension')
    return validated(TunedSettings, ConfigFile(path, values))


def is_tuned(text: str) -> bool:
    """Whether a text in the place of a policy names a file of settings found.

    >>> is_tuned("results/tune/tuned.json#d=10"), is_tuned("my.py:Mine")
    (True, False)
    """
    return text.partition("#")[0].endswith(TUNED_FILE)


def tuned_policies(text: str, *, folder: Path | None = None) -> tuple[PolicySpec, ...]:
    """The policies of a file of settings found, by its path; searched in `folder` first, then here."""
    name, _, key = text.partition("#")
    path = Path(name)
    if folder is not None and (folder / path).exists():
        path = folder / path
    entries = read_tuned(path).entries
    if not entries:
        raise InputError(f"{path} has no settings found; driftbandits tune writes some")
    if not key and len(entries) > 1:
        raise InputError(
            f"{path} has settings for {', '.join(entries)}; name one, as in '{name}#{next(iter(entries))}'"
        )
    if key and key not in entries:
        raise InputError(
            f"{path} has nothing for {key!r}; {did_you_mean(key, list(entries))}it has {', '.join(entries)}"
        )
    return _specs(entries[key or next(iter(entries))])
