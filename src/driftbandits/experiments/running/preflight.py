"""Checks of an experiment before anything is kept: every policy is built, and plays one round, on its first seed."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from driftbandits import datasets
from driftbandits.configuration.problems import Problems
from driftbandits.configuration.references import is_reference, load
from driftbandits.environments import Environment
from driftbandits.errors import DriftbanditsError, InputError, did_you_mean
from driftbandits.experiments.definitions.ids import REAL_PREFIX
from driftbandits.experiments.definitions.specs import (
    NOT_POLICY_SETTINGS,
    NOT_WORLD_SETTINGS,
    Cell,
    Experiment,
    PolicySpec,
    cells_of,
)
from driftbandits.experiments.running.build import build_policy, build_world
from driftbandits.experiments.running.limits import check_cost
from driftbandits.policies import Policy, find_policy
from driftbandits.simulation import simulate

Built = TypeVar("Built")


def check_experiment(experiment: Experiment, *, labels: Iterable[str] | None = None) -> None:
    """Build the world and the policies (only those called `labels`, if given) on the first seed; play one round.

    Raises InputError that says which of them cannot be played, and why: all of them, one per line.

    >>> check_experiment(Experiment("one", "One", "switching/1", {"horizn": 100}, ()))
    Traceback (most recent call last):
    ...
    driftbandits.errors.InputError: environment 'switching/1' has no setting 'horizn'; did you mean 'horizon'? ...
    """
    wanted = None if labels is None else set(labels)
    problems = Problems()
    world: Environment | None = None
    with problems.noted():
        world = _build_world(experiment)
    with problems.noted():
        check_cost(experiment)
    for label, cell in _first_cells(experiment).items():
        if wanted is None or label in wanted:
            with problems.noted():
                _check_policy(cell.policy)
                if world is not None:
                    _play_one_round(cell, world)
    problems.raise_all()


def _first_cells(experiment: Experiment) -> dict[str, Cell]:
    """The first cell of every policy, by its label."""
    first: dict[str, Cell] = {}
    for cell in cells_of(experiment):
        first.setdefault(cell.policy.label, cell)
    return first


def _play_one_round(cell: Cell, world: Environment) -> None:
    label = cell.policy.label
    policy = _trying(f"policy {label!r} cannot be built", partial(build_policy, cell.policy, world, cell.seed))
    _trying(f"policy {label!r} cannot play", partial(simulate, policy, world, seed=cell.seed, rounds=1))


def _build_world(experiment: Experiment) -> Environment:
    name, settings = experiment.environment, experiment.settings
    what = f"environment {name!r}"
    _refuse(what, settings, NOT_WORLD_SETTINGS)
    if name.startswith(REAL_PREFIX):
        _check_known(what, settings, ("copy",))
        if max(experiment.seeds) >= datasets.OFFSETS:
            raise InputError(f"{what} has {datasets.OFFSETS} start offsets: seeds 0 to {datasets.OFFSETS - 1}")
    if is_reference(name):
        maker = load_maker(what, name)
        if isinstance(maker, type) and not issubclass(maker, Environment):
            raise InputError(f"{name} is a class, but not one derived from driftbandits.environments.Environment")
        _check_known(what, ["seed", *settings], _keywords(maker))
    first = _trying(f"{what} cannot be built", lambda: build_world(name, settings, experiment.seeds[0]))
    if is_reference(name):  # the library's own have one horizon on all seeds
        check_one_horizon(what, _horizons(what, experiment))
    return first


def _horizons(what: str, experiment: Experiment) -> dict[int, int]:
    """By seed, the horizon of the world."""
    build = partial(build_world, experiment.environment, experiment.settings)
    return {
        seed: _trying(f"{what} cannot be built on seed {seed}", partial(build, seed)).horizon
        for seed in experiment.seeds
    }


def check_one_horizon(what: str, horizons: Mapping[int, int]) -> None:
    """Refuse a world whose horizon, given by seed, is not the same on all: its regrets would have no common mean.

    >>> check_one_horizon("world 'mine'", {0: 300, 1: 300, 2: 3000})
    Traceback (most recent call last):
    ...
    driftbandits.errors.InputError: world 'mine' has 300 rounds on seed 0 and 3,000 on seed 2; give it one ...
    """
    first = next(iter(horizons))
    for seed, horizon in horizons.items():
        if horizon != horizons[first]:
            raise InputError(
                f"{what} has {horizons[first]:,} rounds on seed {first} and {horizon:,} on seed {seed}; give it one "
                "horizon on all seeds, or play a world for each"
            )


def _check_policy(spec: PolicySpec) -> None:
    """What can be said of a policy without its world."""
    what = f"policy {spec.label!r}"
    _refuse(what, spec.settings, NOT_POLICY_SETTINGS)
    if is_reference(spec.name):
        maker = load_maker(what, spec.name)
        if isinstance(maker, type) and not issubclass(maker, Policy):
            raise InputError(f"{spec.name} is a class, but not one derived from driftbandits.Policy")
    else:
        find_policy(spec.name)


def _refuse(what: str, settings: Mapping[str, Any], own: Mapping[str, str]) -> None:
    for key, reason in own.items():
        if key in settings:
            raise InputError(f"{what} cannot be given {key!r}: {reason}")


def load_maker(what: str, name: str) -> Any:
    """The class or function that a reference names; InputError that begins with `what` if it cannot be loaded."""
    maker = _trying(f"{what} cannot be loaded", lambda: load(name))
    if not callable(maker):
        raise InputError(f"{name} is {maker!r}; name a class, or a function that makes one of it")
    return maker


def _keywords(maker: Any) -> tuple[str, ...] | None:
    """Names of the arguments, None if it takes any."""
    parameters = inspect.signature(maker).parameters
    return None if any(p.kind is p.VAR_KEYWORD for p in parameters.values()) else tuple(parameters)


def _check_known(what: str, given: Iterable[str], known: Sequence[str] | None) -> None:
    unknown = [] if known is None else [key for key in given if key not in known]
    if known is not None and unknown:
        valid = ", ".join(known)
        lines = [f"{what} has no setting {key!r}; {did_you_mean(key, known)}known: {valid}" for key in unknown]
        raise InputError("\n".join(lines))


def _trying(failure: str, make: Callable[[], Built]) -> Built:
    """One message of ours for whatever a user's own code, or a value of the wrong type, may raise."""
    try:
        return make()
    except DriftbanditsError:
        raise
    except (Exception, SystemExit) as error:  # a user's file may raise anything, and end the program
        raise InputError(f"{failure}: {type(error).__name__}: {error}{_place(error)}") from error


def _place(error: BaseException) -> str:
    """Where in a user's file it happened; a SyntaxError says so itself."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    ours = last.filename.startswith(("<", str(Path(__file__).parents[2])))
    return "" if ours else f" ({Path(last.filename).name}, line {last.lineno})"
