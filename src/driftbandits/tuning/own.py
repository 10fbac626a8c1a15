"""Tunes one policy, a user's own say, exactly as the comparison tunes its own, so that it may stand beside them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from driftbandits.checks import check_count
from driftbandits.configuration.names import folder_name
from driftbandits.configuration.references import is_reference, resolve
from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.definitions.seeds import TUNING_SEEDS
from driftbandits.experiments.definitions.specs import NOT_POLICY_SETTINGS, Experiment
from driftbandits.experiments.running.engines import Engine
from driftbandits.experiments.running.preflight import check_experiment, load_maker
from driftbandits.policies import POLICIES, Policy
from driftbandits.policies.core.settings import signature_of
from driftbandits.tuning.comparison import COMPARISON_DIMENSIONS, comparison_search, how_it_was_made
from driftbandits.tuning.launch import launch
from driftbandits.tuning.records import BestSettings, Tuned
from driftbandits.tuning.space_file import NamedSpace, read_space
from driftbandits.tuning.spaces import SPACES
from driftbandits.tuning.study import Search
from driftbandits.tuning.tuned_file import read_found, tuned_entry, write_found


def tune(
    policy: str,
    space: str | Path | Mapping[str, Any],
    *,
    out: Path,
    dimensions: Sequence[int] = COMPARISON_DIMENSIONS,
    storage: str | None = None,
    engine: Engine = Engine(),  # noqa: B008  # frozen
    show: bool = False,
) -> Tuned:
    """Search the settings of `policy`, a registered name or `file.py:Class`, as those of the comparison were searched.

    The world (environment 1), the tuning seeds, the number of points and the runs are the same: 32 points and 80 runs
    per dimension. `space` says which settings, as a file or a mapping (see `space_file`). The policy's own defaults
    (of a registered one, those of `first_settings`) are the first point, if it has one for every setting searched.
    Everything is checked, and every point plays one round, before the search begins.

    What is found is written to `out/tuned-<label>.json`; entries of dimensions that are not searched stay. Storage,
    engine and `show` are as in `tune_comparison`; the same call goes on where it was stopped.
    """
    name = resolve(policy)
    maker = _maker(name)
    named = read_space(Path(space) if isinstance(space, str) else space, name, known=_known(maker))
    if named.label in SPACES:
        raise InputError(f"the comparison has a row {named.label!r} already; give yours a label of its own")
    plan = _searches(named, dimensions, default=_has_default(maker, named))
    _check_points(next(iter(plan.values())), named.label)
    path = out / f"tuned-{folder_name(named.label, 'label')}.json"
    written = read_found(path)
    places = {search.name: key for key, search in plan.items()}

    def keep(found: BestSettings) -> None:
        written.setdefault(places[found.name], {})[named.label] = tuned_entry(found)
        write_found(path, written, how=how_it_was_made(f"driftbandits tune {policy}"))

    return launch(list(plan.values()), path=path, storage=storage, engine=engine, show=show, keep=keep)


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


def _searches(named: NamedSpace, dimensions: Sequence[int], *, default: bool) -> dict[str, Search]:
    """One search per dimension, by the key of its entry in the file."""
    checked = dict.fromkeys(check_count("dimension", dimension) for dimension in dimensions)
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
