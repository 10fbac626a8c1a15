"""The worlds of a comparison, from what a user gives: objects, names, references, makers."""

from __future__ import annotations

from typing import Any

from driftbandits import environments
from driftbandits.comparing.cells import World
from driftbandits.comparing.entries import Entry, check_distinct, entries, label_of, name_of
from driftbandits.configuration.names import default_label
from driftbandits.configuration.references import is_reference, resolve
from driftbandits.environments import Environment
from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.experiments.groups import EXPERIMENTS
from driftbandits.experiments.running.limits import check_world
from driftbandits.experiments.running.preflight import check_experiment
from driftbandits.showing import shown


def read_worlds(given: Any) -> tuple[World, ...]:
    """The worlds that an argument of `compare` means. Raises InputError with the cure for what cannot be one."""
    found = tuple(_world(entry) for entry in entries(given, "world"))
    check_distinct([one.label for one in found], "world")
    return found


def _world(entry: Entry) -> World:
    if "seed" in entry.settings:
        raise InputError("a world cannot be given 'seed' here: the seeds are those of the comparison")
    if isinstance(entry.what, str):
        return _named(entry, entry.what)
    if isinstance(entry.what, Environment):
        if entry.settings:
            raise InputError(f"the world {entry.what.name!r} is built already and takes no settings; leave them out")
        check_world(f"world {entry.what.name!r}", entry.what)
        return World(label_of(entry, "world", lambda: entry.what.name), entry.what)
    if not callable(entry.what):
        raise InputError(
            f"a world is an environment, a name, 'file.py:Class', or a class or function called with a seed, alone or "
            f"with a mapping of its settings; got {shown(entry.what)}"
        )
    label = label_of(entry, "world", lambda: name_of(entry.what, "world"))
    return World(label, entry.what, dict(entry.settings))


def _named(entry: Entry, text: str) -> World:
    name = resolve(text)
    label = label_of(entry, "world", lambda: default_label(name))
    if name in EXPERIMENTS and name not in environments.names():
        experiment = EXPERIMENTS[name]
        return World(label, experiment.environment, {**experiment.settings, **entry.settings}, experiment.common)
    if is_reference(name) or name in environments.names():
        return World(label, name, dict(entry.settings))
    hint, known = did_you_mean(name, [*environments.names(), *EXPERIMENTS]), ", ".join(environments.names())
    raise InputError(f"no world is called {name!r}; {hint}known: {known}, and the worlds of all experiments")


def check_named(world: World, seeds: tuple[int, ...]) -> None:
    """Refuse settings and seeds that a world by name cannot have."""
    if isinstance(world.maker, str):
        check_experiment(Experiment(world.label, world.label, world.maker, world.settings, (), seeds))
