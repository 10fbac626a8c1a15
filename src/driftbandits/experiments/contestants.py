"""What `compare` plays: policies and worlds as objects, classes, names or references, read, checked and played.

Every worker process imports this file, so it imports little.
"""

from __future__ import annotations

import copy
import operator
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

from threadpoolctl import threadpool_limits

from driftbandits import environments
from driftbandits._util.checks import check_count
from driftbandits._util.guard import one_blas_thread
from driftbandits._util.progress import progress_bar
from driftbandits._util.seeding import check_seed
from driftbandits.configuration.models import check_name, default_label, plain_settings
from driftbandits.configuration.references import is_reference, resolve
from driftbandits.datasets import REAL_PREFIX, REWARD_RANGES
from driftbandits.environments import Environment
from driftbandits.errors import DriftbanditsError, InputError, did_you_mean
from driftbandits.experiments.building import (
    build_policy,
    build_world,
    check_experiment,
    check_one_horizon,
    check_world,
    make_policy,
    policy_maker,
)
from driftbandits.experiments.engines import Engine
from driftbandits.experiments.folder_store import FolderStore
from driftbandits.experiments.run_files import is_tuned, tuned_policies
from driftbandits.experiments.runner import CellError, RunError, play_in, run_cells
from driftbandits.experiments.seeds import DEVELOPMENT, check_seed_count, check_seeds
from driftbandits.experiments.specs import NOT_POLICY_SETTINGS, Cell, Experiment, PolicySpec
from driftbandits.experiments.stores import CellResult, Store
from driftbandits.experiments.study import study_experiments
from driftbandits.policies import POLICIES, Policy, policy_label
from driftbandits.simulation import simulate
from driftbandits.text import shown

if TYPE_CHECKING:
    from driftbandits.experiments.comparison import Comparison


def _copied(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings for one run: what it does to a list among them, no other run sees, as in processes of their own."""
    copies = {}
    for name, value in settings.items():
        try:
            copies[name] = copy.deepcopy(value)
        except Exception as error:
            raise InputError(
                f"the setting {name!r} cannot be copied for every run ({type(error).__name__}: {error}); give a "
                "function that builds with it in place of the class, and jobs=1"
            ) from error
    return copies


@dataclass(frozen=True)
class World:
    """A world to be compared in: `maker` is the world itself, a name, a resolved `file.py:Class`, or what is called.

    `common` are settings of all policies there.
    """

    label: str
    maker: Environment | str | Callable[..., Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    common: Mapping[str, Any] = field(default_factory=dict)

    def build(self, seed: int) -> Environment:
        """The world of this seed."""
        return build_world(self.maker, _copied(self.settings), seed, label=self.label)


@dataclass(frozen=True)
class Contestant:
    """A policy to be compared; `maker` is a registered name, a resolved `file.py:Class`, or what is called."""

    label: str
    maker: str | Callable[..., Any]
    settings: Mapping[str, Any]

    def build(self, world: Environment, seed: int, common: Mapping[str, Any]) -> Policy:
        """A fresh policy for `world`; `common` settings are those of all policies there."""
        settings = _copied({**common, **self.settings})
        if isinstance(self.maker, str):
            return build_policy(PolicySpec(self.label, self.maker, settings), world, seed)
        return make_policy(self.maker, world.arms, settings, horizon=world.horizon, seed=seed, name=self.label)


@dataclass(frozen=True)
class LiveCell(Cell):
    """A run; its key means something in one comparison alone."""

    world: World
    contestant: Contestant

    @property
    def key(self) -> str:
        """Names the run among those of one comparison; quoted, for a label may hold any separator."""
        return repr((self.environment, self.policy.label, self.seed))

    @one_blas_thread
    def play(self) -> CellResult:
        """Play it. The result does not carry the objects: it may come from another process."""
        plain = Cell(self.environment, self.settings, self.policy, self.seed)
        with threadpool_limits(limits=1, user_api="openmp"):  # that is torch
            world = self.world.build(self.seed)
            return play_in(world, self.contestant.build(world, self.seed, self.world.common), plain)


@dataclass(frozen=True)
class Entry:
    """One of the things given: the label if it has one, what it is, and its settings."""

    label: str | None
    what: Any
    settings: Mapping[str, Any]


def entries(given: Any, kind: str) -> Iterator[Entry]:
    """The entries of an argument: one thing, a sequence of them, or a mapping from labels."""
    if isinstance(given, Mapping):
        for label, value in given.items():
            if not isinstance(label, str):
                raise InputError(f"the label of a {kind} is a text, got {shown(label)}; write {{{str(label)!r}: ...}}")
            yield _entry(label, value)
    elif isinstance(given, Sequence) and not isinstance(given, str) and not _is_pair(given):
        yield from (_entry(None, value) for value in given)
    else:
        yield _entry(None, given)


def _entry(label: str | None, value: Any) -> Entry:
    return Entry(label, value[0], value[1]) if _is_pair(value) else Entry(label, value, {})


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping)


def label_of(entry: Entry, kind: str, own: Callable[[], Any]) -> str:
    """The label that was given, or the one that a thing has of its `own` with its settings."""
    if entry.label is not None:
        return entry.label
    name = own()
    if not isinstance(name, str):
        raise InputError(f"the label of a {kind} is a text, got {shown(name)}; write label = {str(name)!r}")
    return with_settings(check_name(name, f"label of a {kind}"), entry.settings)


def with_settings(name: str, settings: Mapping[str, Any]) -> str:
    """A label that tells variants of one thing apart.

    >>> with_settings("GPUCB", {"beta": 1.0})
    'GPUCB (beta=1.0)'
    """
    return f"{name} ({', '.join(f'{key}={shown(value)}' for key, value in settings.items())})" if settings else name


def check_distinct(labels: Sequence[str], kind: str) -> None:
    """Refuse nothing at all, and two of a name."""
    if not labels:
        raise InputError(f"there is no {kind} to compare; give at least one")
    for label in labels:
        check_name(label, f"label of a {kind}")
        if labels.count(label) > 1:
            raise InputError(
                f"a {kind} called {label!r} is there twice; give a mapping from labels, as in "
                f"{{'first': ..., 'second': ...}}"
            )


def name_of(maker: Any, kind: str) -> str:
    """The name of a class or function."""
    name = str(getattr(maker, "__name__", type(maker).__name__))
    if name == "<lambda>":
        raise InputError(f"a {kind} made by a lambda needs a label; write {{'my {kind}': lambda ...}}")
    return name


def read_policies(given: Any) -> tuple[Contestant, ...]:
    """The policies that an argument of `compare` means. Raises InputError with the cure for what cannot be one."""
    found = tuple(one for entry in entries(given, "policy") for one in _contestants(entry))
    check_distinct([one.label for one in found], "policy")
    return found


def _contestants(entry: Entry) -> Iterator[Contestant]:
    """One policy, or all of a file of settings found."""
    if not isinstance(entry.what, str) or not is_tuned(entry.what):
        yield _contestant(entry)
        return
    if entry.settings:
        raise InputError(f"{entry.what} has the settings of its policies; leave out {', '.join(entry.settings)}")
    for spec in tuned_policies(entry.what):
        label = spec.label if entry.label is None else f"{entry.label}: {spec.label}"
        yield Contestant(label, spec.name, plain_settings(spec.settings))


def _contestant(entry: Entry) -> Contestant:
    for name, reason in NOT_POLICY_SETTINGS.items():
        if name in entry.settings:
            raise InputError(f"a policy cannot be given {name!r} here: {reason}")
    if isinstance(entry.what, str):
        return _named_policy(entry, entry.what)
    if isinstance(entry.what, Policy):
        kind = type(entry.what).__name__
        raise InputError(f"give the class, not a {kind} that is built already: write {kind}, or ({kind}, {{...}})")
    if not callable(entry.what) or (isinstance(entry.what, type) and not issubclass(entry.what, Policy)):
        raise InputError(
            f"a policy is a class derived from driftbandits.Policy, a registered name or 'file.py:Class', alone or "
            f"with a mapping of its settings; got {shown(entry.what)}"
        )
    label = label_of(entry, "policy", partial(_own_label, entry.what))
    return Contestant(label, entry.what, dict(entry.settings))


def _own_label(maker: Callable[..., Any]) -> Any:
    """What a class of policies says of itself, or the name of a function."""
    if isinstance(maker, type) and issubclass(maker, Policy):
        return vars(maker).get("label", policy_label(maker))
    return name_of(maker, "policy")


def _named_policy(entry: Entry, text: str) -> Contestant:
    name = resolve(text)
    label = label_of(entry, "policy", partial(_own_label, policy_maker(name)))
    return Contestant(label, name, plain_settings(entry.settings))


def read_worlds(given: Any) -> tuple[World, ...]:
    """The worlds that an argument of `compare` means. Raises InputError with the cure for what cannot be one."""
    found = tuple(_world(entry) for entry in entries(given, "world"))
    check_distinct([one.label for one in found], "world")
    return found


def _world(entry: Entry) -> World:
    if "seed" in entry.settings:
        raise InputError("a world cannot be given 'seed' here: the seeds are those of the comparison")
    if isinstance(entry.what, str):
        return _named_world(entry, entry.what)
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


def _named_world(entry: Entry, text: str) -> World:
    name = resolve(text)
    label = label_of(entry, "world", lambda: default_label(name))
    if is_reference(name) or name in environments.names():
        return World(label, name, dict(entry.settings))
    series = name.removeprefix(REAL_PREFIX)
    if name.startswith(REAL_PREFIX) and series in REWARD_RANGES:
        return World(label, name, dict(entry.settings), {"reward_range": list(REWARD_RANGES[series])})
    studied = study_experiments()
    if name in studied:
        experiment = studied[name]
        return World(label, experiment.environment, {**experiment.settings, **entry.settings}, experiment.common)
    hint, known = did_you_mean(name, [*environments.names(), *studied]), ", ".join(environments.names())
    raise InputError(f"no world is called {name!r}; {hint}known: {known}, and the worlds of all experiments")


def check_named(world: World, seeds: tuple[int, ...]) -> None:
    """Refuse settings and seeds that a world by name cannot have."""
    if isinstance(world.maker, str):
        check_experiment(Experiment(world.label, world.label, world.maker, world.settings, (), seeds))


Made = TypeVar("Made")
SEEDS = "a whole number from 1, or a list of whole numbers from 0"


def play(
    policies: Sequence[Contestant],
    worlds: Sequence[World],
    *,
    seeds: int | Iterable[int],
    engine: Engine,
    show: bool | None,
    store: Store | str | os.PathLike[str] | None = None,
    reference: str | None = None,
) -> Comparison:
    """Check everything, play all, and make tables of it; with `show=None`, progress is shown to people only."""
    from driftbandits.experiments.comparison import tabulated  # pandas and matplotlib, which workers do not need
    from driftbandits.experiments.results import RunRow

    numbers = read_seeds(seeds)
    labels = [policy.label for policy in policies]
    if reference is not None and reference not in labels:
        raise InputError(f"no policy is called {reference!r}; {did_you_mean(reference, labels)}there are {labels}")
    one = _cell if store is None else _kept_cell
    cells = [one(world, policy, seed) for world in worlds for policy in policies for seed in numbers]
    first = {world.label: _first(world, numbers) for world in worlds}
    changes = {world.label: _true_changes(world, first[world.label], numbers) for world in worlds}
    reporting = {p.label for w in worlds for p in policies if _try(p, w, first[w.label], numbers[0]).reports_changes}
    kept = FolderStore(store) if isinstance(store, str | os.PathLike) else store
    with progress_bar(len(cells), "runs", show=_is_watched() if show is None else show) as advance:
        results = _run(cells, engine, kept, lambda finished: advance(len(finished)))
    names = [(world.label, policy.label) for world in worlds for policy in policies for _ in numbers]
    rows = [RunRow(world, policy, result) for (world, policy), result in zip(names, results, strict=True)]
    return tabulated(rows, true_changes=changes, reporting=frozenset(reporting), reference=reference)


def read_seeds(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """How many, counted from 0, or which.

    >>> read_seeds(3), read_seeds([5, 7])
    ((0, 1, 2), (5, 7))
    """
    if isinstance(seeds, str | bytes | bool | None) or not isinstance(seeds, SupportsIndex | Iterable):
        raise InputError(f"seeds must be {SEEDS}, got {shown(seeds)}")
    if not isinstance(seeds, Iterable):
        return DEVELOPMENT.take(check_seed_count(check_count("seeds", seeds)))
    try:
        given = tuple(seeds)
    except TypeError:  # an array without a dimension
        raise InputError(f"seeds must be {SEEDS}, got {shown(seeds)}; write seeds=int(...)") from None
    if not given or any(seed is None for seed in given):
        raise InputError(f"seeds must be {SEEDS}, got {shown(seeds)}")
    return check_seeds(tuple(check_seed(seed) for seed in given))


def _cell(world: World, policy: Contestant, seed: int) -> LiveCell:
    name = policy.maker if isinstance(policy.maker, str) else getattr(policy.maker, "__name__", policy.label)
    return LiveCell(world.label, {}, PolicySpec(policy.label, name, policy.settings), seed, world, policy)


def _kept_cell(world: World, policy: Contestant, seed: int) -> Cell:
    """A run that a store can keep: its key says all that is played, so both must be had by name."""
    maker = policy.maker
    name = maker if isinstance(maker, str) else maker.__name__ if maker in POLICIES.values() else None
    for what, given in ((f"world {world.label!r}", world.maker), (f"policy {policy.label!r}", name)):
        if not isinstance(given, str):
            raise InputError(
                f"{what} cannot be kept in a store, whose keys must say what was played: give a name, 'file.py:Class' "
                "or a registered class, or leave out store="
            )
    settings = plain_settings({**world.common, **policy.settings})
    return Cell(str(world.maker), plain_settings(world.settings), PolicySpec(policy.label, str(name), settings), seed)


def _is_watched() -> bool:
    """Whether a person sees standard error: in a terminal, or in a notebook, where it is no terminal."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


# Before anything long begins.


def _first(world: World, seeds: tuple[int, ...]) -> Environment:
    """The world of the first seed."""
    what = f"world {world.label!r}, seed {seeds[0]}"
    _trying(what, partial(check_named, world, seeds))
    return _trying(what, partial(world.build, seeds[0]))


def _try(policy: Contestant, world: World, first: Environment, seed: int) -> Policy:
    """The policy after one round in the world of the first seed."""
    what = f"policy {policy.label!r} in world {world.label!r}, seed {seed}"
    fresh = _trying(what, partial(policy.build, first, seed, world.common))
    _trying(what, partial(simulate, fresh, first, seed=seed, rounds=1))
    return fresh


def _true_changes(world: World, first: Environment, seeds: tuple[int, ...]) -> list[int]:
    """Rounds in which the world changes; none where they differ from seed to seed. Its horizon may not differ."""
    rounds: list[int] = first.change_rounds.tolist()
    if isinstance(world.maker, Environment):
        return rounds
    horizons, agree = {seeds[0]: first.horizon}, True
    for seed in seeds[1:]:
        other = _trying(f"world {world.label!r}, seed {seed}", partial(world.build, seed))
        horizons[seed] = other.horizon
        agree = agree and other.change_rounds.tolist() == rounds
    check_one_horizon(f"world {world.label!r}", horizons)
    return rounds if agree else []


def _trying(what: str, make: Callable[[], Made]) -> Made:
    """One kind of error that names policy, world and seed; the user's own error with its traceback is its cause."""
    try:
        return make()
    except ImportError:
        raise  # what is not installed, with its cure
    except DriftbanditsError as error:
        raise InputError(f"{what}: {error}") from error
    except Exception as error:
        raise InputError(f"{what}: {type(error).__name__}: {error}") from error


# The runs.


def _run(
    cells: Sequence[Cell], engine: Engine, store: Store | None, progress: Callable[[list[Cell]], None]
) -> list[CellResult]:
    play = operator.methodcaller("play") if store is None else None
    try:
        return run_cells(cells, store=store, engine=engine, progress=progress, play=play)
    except RunError as error:
        cure = ""
        if isinstance(error.__cause__, pickle.PicklingError):
            cure = "; something of a policy or a world cannot be sent to other processes: jobs=1 plays in this one"
        error.args = (f"{error.reason}{cure}",)
        if isinstance(error, CellError):
            error.add_note(f"In the run:\n{error.details}")
        raise
