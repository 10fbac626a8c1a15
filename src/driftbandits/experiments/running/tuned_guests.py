"""Policies that join an experiment with the settings that a search found for them in its dimension."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from driftbandits.configuration.files import read_config_file
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

    def specs(self, dimension: int) -> tuple[PolicySpec, ...]:
        """The policies with the settings found in this dimension; InputError where nothing was searched there."""
        found: dict[str, Any] = self.model_extra or {}
        if f"d={dimension}" not in found:
            there = ", ".join(key.replace("=", " = ") for key in found)
            raise InputError(f"no settings were found at d = {dimension}, only at {there}; search them there too")
        entries: dict[str, TunedEntry] = found[f"d={dimension}"]
        return tuple(_spec(label, entry) for label, entry in entries.items())


def _spec(label: str, entry: TunedEntry) -> PolicySpec:
    """As the search played it: settings that it does not name are the first ones."""
    name = resolve(entry.policy)
    return PolicySpec(label, name, written_out(name, entry.settings))


def read_tuned(path: Path) -> TunedSettings:
    """The settings that a search wrote to this file. Raises InputError with the place of what is wrong in it."""
    return validated(TunedSettings, read_config_file(path, needs=("how", "d=10"), example='"how": "..."'))


def tuned_guests(path: Path, experiment: Experiment) -> tuple[PolicySpec, ...]:
    """The policies of a file of settings, as they join the experiment: with what was found in its dimension."""
    found = read_tuned(path)
    world = build_world(experiment.environment, experiment.settings, experiment.seeds[0])
    try:
        return found.specs(world.arms.points.shape[1])
    except InputError as error:
        raise InputError(f"{path} has nothing for {experiment.id}: {error}") from None
