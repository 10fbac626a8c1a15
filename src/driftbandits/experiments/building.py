"""Worlds and policies built from names, classes or objects, and checked before anything long begins.

What is refused here: settings that do not exist, sizes beyond which a run would not end or not fit into memory,
experiments that would take years, and whatever cannot play a first round.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from driftbandits import datasets, environments
from driftbandits._util.checks import check_memory
from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.kernels import kernel_from_config
from driftbandits.configuration.models import Problems, read_settings
from driftbandits.configuration.references import is_reference, load
from driftbandits.datasets import REAL_PREFIX
from driftbandits.environments import Environment
from driftbandits.errors import DriftbanditsError, InputError, did_you_mean
from driftbandits.experiments.seeds import MOST_RUNS_PER_EXPERIMENT, PLAY_FEWER_SEEDS
from driftbandits.experiments.specs import (
    HORIZON,
    NOT_POLICY_SETTINGS,
    NOT_WORLD_SETTINGS,
    Cell,
    Experiment,
    PolicySpec,
    cells_of,
    policy_class,
)
from driftbandits.policies import POLICIES, Policy, create_policy, find_policy
from driftbandits.policies.inputs import known_settings
from driftbandits.policies.opkb.opnn import PAPER_DEPTH, PAPER_WIDTH
from driftbandits.simulation import simulate
from driftbandits.text import shown

USUAL_ARMS = 100  # what TIMINGS were measured with
LARGEST = 1e15


class Timing(NamedTuple):
    """What a run takes on one core, measured with 100 arms while other processes were busy."""

    microseconds: float  # per round; of a wrapper, beside what its base takes
    seconds: float = 0.0  # once
    arms_power: float = 0.25  # with more arms it grows like this power of their number
    trainings: float = 0.0  # seconds of a run's trainings at the paper's width and depth


DESIGNS = 0.6  # the power of a policy that solves designs over all arms
TIMINGS = {
    "Policy": Timing(40.0),
    "AutoBandit": Timing(260.0),
    "CalibratedOPKB": Timing(60.0, 0.0, DESIGNS),
    "AdaOPKB": Timing(11.0, 0.07, DESIGNS),
    "OPKB": Timing(1.5, 0.03, DESIGNS),
    "AdaOPNN": Timing(11.0, 0.1, DESIGNS, 90.0),
    "OPNN": Timing(1.5, 0.1, DESIGNS, 20.0),
    "NeuralUCB": Timing(70.0, 0.0, 0.7),
    "DetectionAugmentedGPUCB": Timing(35.0),
    "GPUCB": Timing(30.0),
    "TimeVaryingGPUCB": Timing(30.0),
    "WeightedGPUCB": Timing(110.0),
    "LinUCB": Timing(22.0),
    "RestartLinUCB": Timing(24.0),
    "SlidingWindowLinUCB": Timing(30.0),
    "DiscountedLinUCB": Timing(60.0),
    "BanditOverBandit": Timing(15.0),
    "Master": Timing(35.0),
    "LinearExp3": Timing(80.0),
    "SlidingWindowUCB": Timing(16.0),
    "DiscountedUCB": Timing(16.0),
    "GLRklUCB": Timing(36.0),
    "Exp3S": Timing(30.0),
    "Uniform": Timing(1.5),
}
USUAL_BASES = {"Master": "GPUCB", "BanditOverBandit": "SlidingWindowGPUCB"}


def cost_of(cell: Cell) -> float:
    """Roughly the seconds a cell takes on one core of two that are busy; a guess, which is off by a factor of two.

    >>> from driftbandits.experiments.specs import PolicySpec
    >>> wide, narrow = (PolicySpec("a network", "AdaOPNN", {"width": width}) for width in (2048, 256))
    >>> cost_of(Cell("switching/1", {}, wide, 0)) > 10 * cost_of(Cell("switching/1", {}, narrow, 0))
    True
    """
    # a user's own world may mean something else by it
    rounds = _number(cell.settings, "horizon", HORIZON)
    kind = policy_class(cell.policy.name)
    more: float = max(_arms(cell.settings) / USUAL_ARMS, 1.0) ** _timing(kind).arms_power
    return more * _seconds(kind, rounds, cell.policy.settings)


def _timing(kind: type[Policy]) -> Timing:
    """That of the class, or of the nearest that it derives from."""
    return next(TIMINGS[above.__name__] for above in kind.__mro__ if above.__name__ in TIMINGS)


def _seconds(kind: type[Policy], rounds: float, settings: Mapping[str, Any]) -> float:
    """Of a run with 100 arms; that of a network depends on its size, that of a wrapper on its base."""
    timing = _timing(kind)
    seconds = timing.seconds + 1e-6 * timing.microseconds * rounds
    if timing.trainings and kind.trains(settings):
        width, depth = settings.get("width", PAPER_WIDTH), settings.get("depth", PAPER_DEPTH)
        seconds += timing.trainings * (width / PAPER_WIDTH) ** 2 * (depth - 2) / (PAPER_DEPTH - 2)
    if usual := USUAL_BASES.get(kind.__name__):
        base, own = settings.get("base", usual), settings.get("base_settings")
        found = policy_class(base if base in POLICIES else usual)
        seconds += _seconds(found, rounds, own if isinstance(own, Mapping) else {})
    return seconds


def _arms(settings: Mapping[str, Any]) -> float:
    """How many arms a world has, by its settings."""
    error, dimension = _number(settings, "box_error", 0.0), _number(settings, "dimension", 1.0)
    if error > 0.0 and 0.0 < dimension <= 10.0:  # the largest cube in the unit ball, see `ArmSet.box`
        return float(math.ceil(2 * math.sqrt(dimension) / error) ** dimension)
    return _number(settings, "size", USUAL_ARMS)


def _number(settings: Mapping[str, Any], name: str, usual: float) -> float:
    """A setting that is a number; what is usual in place of any other, and of one too large to reckon with the most."""
    value = settings.get(name, usual)
    return float(min(value, LARGEST)) if isinstance(value, int | float) else usual


MOST_ROUNDS_PER_RUN = 10**8  # an hour of the quickest policy
TRACE_BYTES_PER_ROUND = 36
MOST_ARMS = 10**5  # where the kernel tells every arm from every other, their features take 80 GB already
SECONDS_PER_YEAR = 365.25 * 24 * 3600
MOST_YEARS_ON_ONE_CORE = 10
PLAY_IN_STRETCHES = "play it in stretches from Python: simulate(policy, world, rounds=...)"


def check_sizes(what: str, settings: Mapping[str, Any]) -> None:
    """Refuse settings of a registered world that no machine could build or play."""
    _check_rounds(what, _whole(settings, "horizon"))
    _check_arms(what, _whole(settings, "size"))


def check_world(what: str, world: Environment) -> None:
    """Refuse a world, of a user's own say, that is too large to be played."""
    _check_rounds(what, world.horizon)
    _check_arms(what, len(world.arms))


def check_cost(experiment: Experiment) -> None:
    """Refuse an experiment that would take years, by an estimate of its cost."""
    runs, seconds = 0, 0.0
    for policy in experiment.policies:
        own = len(experiment.seeds) if policy.seeds is None else min(policy.seeds, len(experiment.seeds))
        runs += own
        seconds += own * cost_of(Cell(experiment.environment, experiment.settings, policy, 0))
    if runs > MOST_RUNS_PER_EXPERIMENT:
        raise InputError(
            f"{experiment.id} has {runs:,} runs, more than {MOST_RUNS_PER_EXPERIMENT:,}; {PLAY_FEWER_SEEDS}"
        )
    years = seconds / SECONDS_PER_YEAR
    if years > MOST_YEARS_ON_ONE_CORE:
        raise InputError(
            f"{experiment.id} would take about {years:,.0f} years on one core, more than {MOST_YEARS_ON_ONE_CORE}; "
            f"use a shorter horizon, or {PLAY_FEWER_SEEDS}"
        )


def _check_rounds(what: str, rounds: int) -> None:
    if rounds > MOST_ROUNDS_PER_RUN:
        most = f"{MOST_ROUNDS_PER_RUN:,} in one run"
        raise InputError(f"{what} has {shown(rounds)} rounds, more than {most}; {PLAY_IN_STRETCHES}")
    trace = f"what happens in the {rounds:,} rounds of {what}"
    check_memory(TRACE_BYTES_PER_ROUND * rounds, trace, cure=PLAY_IN_STRETCHES)


def _check_arms(what: str, arms: int) -> None:
    if arms > MOST_ARMS:
        raise InputError(f"{what} has {shown(arms)} arms, more than {MOST_ARMS:,}; use fewer, a sample of them say")


def _whole(settings: Mapping[str, Any], name: str) -> int:
    """A setting that is a whole number; 0 for any other, which the world itself refuses or explains."""
    value = settings.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def build_world(
    maker: Environment | str | Callable[..., Any], settings: Mapping[str, Any], seed: int, *, label: str = ""
) -> Environment:
    """The world that `maker` means for a seed; `label` is what messages call it.

    `maker` is a registered name, `real/...`, a user's `file.py:Class`, a class or function, or a world, which stays
    the same on every seed.
    """
    if isinstance(maker, Environment):
        return maker
    if isinstance(maker, str) and maker.startswith(REAL_PREFIX):
        return datasets.create(maker.removeprefix(REAL_PREFIX), offset=seed, seed=seed, **settings)
    if isinstance(maker, str) and not is_reference(maker):
        check_sizes(f"environment {maker!r}", settings)
        return environments.create(maker, seed=seed, **settings)
    world = (load(maker) if isinstance(maker, str) else maker)(seed=seed, **settings)
    if not isinstance(world, Environment):
        raise InputError(f"{label or maker} gave {type(world).__name__}; it must give a driftbandits Environment")
    check_world(f"world {label!r}" if label else f"environment {maker!r}", world)
    return world


def build_policy(spec: PolicySpec, world: Environment, seed: int) -> Policy:
    """A fresh policy for `world`, on the kernel the spec tells it (by default the world's own)."""
    arms = world.arms if spec.kernel is None else ArmSet(world.arms.points, kernel=kernel_from_config(spec.kernel))
    settings = read_settings(spec.settings)
    kind = policy_class(spec.name)
    if world.contexts is not None and "contexts" in known_settings(kind):
        settings = {"contexts": world.contexts, **settings}
    if not is_reference(spec.name):
        return create_policy(spec.name, arms, horizon=world.horizon, seed=seed, **settings)
    return make_policy(load(spec.name), arms, settings, horizon=world.horizon, seed=seed, name=spec.name)


def make_policy(
    maker: Callable[..., Any], arms: ArmSet, settings: Mapping[str, Any], *, horizon: int, seed: int, name: str
) -> Policy:
    """What a class or function of a user's own makes; messages call it `name`."""
    policy = maker(arms, horizon=horizon, seed=seed, **settings)
    if not isinstance(policy, Policy):
        raise InputError(f"{name} gave {type(policy).__name__}; it must give a driftbandits Policy")
    return policy


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
    for cell in cells_of(dataclasses.replace(experiment, seeds=experiment.seeds[:1])):
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


def policy_maker(name: str) -> Any:
    """The class of a registered policy, or what a reference names; InputError if there is none."""
    return load_maker(f"policy {name!r}", name) if is_reference(name) else find_policy(name)


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
