"""Policies that join experiments with the settings that a search found for them in each experiment's dimension."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from driftbandits.configuration.files import ConfigFile
from driftbandits.configuration.models import ConfigDict, Settings, StrictModel, validated
from driftbandits.configuration.references import resolve
from driftbandits.errors import InputError
from driftbandits.experiments.definitions.first_settings import written_out
from driftbandits.experiments.definitions.specs import Experiment, PolicySpec
from driftbandits.experiments.running.build import build_world


class TunedEntry(StrictModel):
    """What a search found for one policy in one dimension."""

    policy: str
    settings: Settings
    origin: str
    regret_on_tuning_seeds: float


class TunedSettings(StrictModel):
    """A file of settings found: `how` it was made, and for every dimension ("d=10") entries by label."""

    model_config = ConfigDict(extra="allow")

    how: str
    __pydantic_extra__: dict[str, dict[str, TunedEntry]]

    @property
    def entries(self) -> dict[str, dict[str, TunedEntry]]:
        """Entries by label, by dimension ("d=10"); dimensions without any are left out."""
        found: dict[str, Any] = self.model_extra or {}
        return {key: entries for key, entries in found.items() if entries}

    def specs(self, dimension: int) -> tuple[PolicySpec, ...]:
        """The policies with the settings found in this dimension; none where nothing was searched there."""
        found = self.entries.get(_key(dimension), {})
        return tuple(_spec(label, entry) for label, entry in found.items())


def _key(dimension: int) -> str:
    return f"d={dimension}"


def _spec(label: str, entry: TunedEntry) -> PolicySpec:
    """As the search played it: settings that it does not name are the first ones."""
    name = resolve(entry.policy)
    return PolicySpec(label, name, written_out(name, entry.settings))


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


def tuned_guests(files: Sequence[Path], experiments: Sequence[Experiment]) -> dict[str, tuple[PolicySpec, ...]]:
    """The policies of all files as they join each experiment, by its id: with what was found in its dimension.

    Experiments in whose dimension one of the files has nothing are left out: nobody was searched there. Raises
    InputError if none is left.
    """
    found = {path: read_tuned(path) for path in files}
    joining: dict[str, tuple[PolicySpec, ...]] = {}
    for experiment in experiments:
        dimension = _dimension(experiment)
        guests = [tuned.specs(dimension) for tuned in found.values()]
        if all(guests):
            joining[experiment.id] = tuple(spec for specs in guests for spec in specs)
    if not joining:
        wanted = ", ".join(f"d = {d}" for d in sorted({_dimension(experiment) for experiment in experiments}))
        there = "; ".join(f"{path} has {_dimensions(tuned)}" for path, tuned in found.items())
        raise InputError(
            f"no settings were found for these experiments, which need {wanted}: {there}; search there too"
        )
    return joining


def _dimension(experiment: Experiment) -> int:
    """That of the world's arms; an experiment need not say it."""
    world = build_world(experiment.environment, experiment.settings, experiment.seeds[0])
    return int(world.arms.points.shape[1])


def _dimensions(tuned: TunedSettings) -> str:
    return ", ".join(key.replace("=", " = ") for key in tuned.entries) or "none"
