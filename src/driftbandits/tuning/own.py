"""Tunes one policy, a user's own say, exactly as the comparison tunes its own, so that it may stand beside them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from driftbandits.checks import check_count, check_path
from driftbandits.configuration.names import folder_name
from driftbandits.configuration.references import is_reference, resolve
from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.definitions.seeds import TUNING_SEEDS
from driftbandits.experiments.definitions.specs import NOT_POLICY_SETTINGS, Experiment
from driftbandits.experiments.running.engines import Engine
from driftbandits.experiments.running.preflight import check_experiment, load_maker
from driftbandits.policies import POLICIES, Policy
from driftbandits.policies.inputs import signature_of
from driftbandits.showing import shown
from driftbandits.tuning.comparison import COMPARISON_DIMENSIONS, comparison_search, how_it_was_made
from driftbandits.tuning.launch import launch
from driftbandits.tuning.records import BestSettings, Tuned
from driftbandits.tuning.space_file import NamedSpace, read_space
from driftbandits.tuning.spaces import SPACES
from driftbandits.tuning.study import Search
from driftbandits.tuning.tuned_file import read_found, tuned_entry, write_found


def tune(
    policy: str | type[Policy],
    space: str | Path | Mapping[str, Any],
    *,
    out: str | Path,
    dimensions: int | Sequence[int] = COMPARISON_DIMENSIONS,
    storage: str | None = None,
    engine: Engine = Engine(),  # noqa: B008  # frozen
    show: bool = False,
) -> Tuned:
    """Search the settings of `policy` as those of the comparison were searched.

    It is a registered name or class, or `file.py:Class`, since other processes and later experiments load it by name.
    The world (environment 1), the tuning seeds, the number of points and the runs are the same: 32 points and 80 runs
    per dimension. `space` says which settings, as a file or a mapping (see `space_file`). The policy's own defaults
    (of a registered one, those of `first_settings`) are the first point, if it has one for every setting searched.
    Everything is checked, and every point plays one round, before the search begins.

    What is found is written to `out/tuned-<label>.json`; entries of dimensions that are not searched stay. Storage,
    engine and `show` are as in `tune_comparison`; the same call goes on where it was stopped.
    """
    check_path("out must be the folder of what is found", out)
    given = _name(policy)
    name = resolve(given)
    maker = _maker(name)
    named = read_space(space, name, known=_known(maker))
    if named.label in SPACES:
        raise InputError(f"the comparison has a row {named.label!r} already; give yours a label of its own")
    plan = _searches(named, dimensions, default=_has_default(maker, named))
    _check_points(next(iter(plan.values())), named.label)
    path = Path(out) / f"tuned-{folder_name(named.label, 'label')}.json"
    written = read_found(path)
    places = {search.name: key for key, search in plan.items()}

    def keep(found: BestSettings) -> None:
        written.setdefault(places[found.name], {})[named.label] = tuned_entry(found)
        write_found(path, written, how=how_it_was_made(f"driftbandits tune {given}"))

    return launch(list(plan.values()), path=path, storage=storage, engine=engine, show=show, keep=keep)


def _name(policy: str | type[Policy]) -> str:
    """The policy as text: of a registered class its name."""
    if isinstance(policy, str):
        return policy
    if isinstance(policy, type):
        name = policy.__name__
        if POLICIES.get(name) is policy:
            return name
        raise InputError(f"the class {name} is not registered; put it into a file and name it 'file.py:{name}'")
    raise InputError(f"policy must be a registered name or 'file.py:Class', got {shown(policy)}")


def _maker(name: str) -> Any:
    """The class, or the function of a user's file, that makes the policy."""
    if not is_reference(name):
        if name not in POLICIES:
            hint = did_you_mean(name, POLICIES, cutoff=0.4)
            raise InputError(f"no policy is called {name!r}; {hint}write file.py:Class for one of your own")
        return POLICIES[name]
    return load_maker(f"policy {name!r}", name)


def _parameters(maker: Any) -> Mapping[str, inspect.Parameter]:
    is_policy = isinstance(maker, type) and issubclass(maker, Policy)
    return (signature_of(maker) if is_policy else inspect.signature(maker)).parameters


def _known(maker: Any) -> frozenset[str] | None:
    """Names of the settings, None if it takes any."""
    parameters = _parameters(maker)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    return frozenset(parameters) - NOT_POLICY_SETTINGS.keys()


def _has_default(maker: Any, named: NamedSpace) -> bool:
    """Whether the policy can be built without the settings that are searched."""
    parameters = _parameters(maker)
    searched = [parameters[name] for name in named.space.ranges if name in parameters]
    return all(parameter.default is not parameter.empty for parameter in searched)


def _searches(named: NamedSpace, dimensions: int | Sequence[int], *, default: bool) -> dict[str, Search]:
    """One search per dimension, by the key of its entry in the file."""
    several = dimensions if isinstance(dimensions, Iterable) and not isinstance(dimensions, str) else (dimensions,)
    checked = dict.fromkeys(
        check_count("dimension", dimension, cure="name one or several, such as [10, 2]") for dimension in several
    )
    if not checked:
        raise InputError("there is no dimension to search in; name at least one, such as 10")
    return {f"d={d}": comparison_search(named.label, named.space, d, default=default) for d in checked}


def _check_points(search: Search, label: str) -> None:
    """Have every point play one round, so that a setting that cannot be is known before hours are played.

    One after the other: what is wrong with a setting is wrong with it at most points, and one of them says it all.
    """
    world = search.worlds[0]
    for number in range(len(search.points)):
        point = search.cell(number, (0, 0)).policy
        check_experiment(Experiment(label, label, world.environment, world.settings, (point,), TUNING_SEEDS[:1]))
