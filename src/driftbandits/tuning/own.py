"""Tunes one policy, a user's own for example, and writes the settings found to a file.

The search has the budget, the world and the tuning seeds with which the policies of the published comparison were
tuned, so the policy may be compared with them.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from driftbandits._util.checks import check_count, check_path
from driftbandits._util.files import write_whole
from driftbandits.configuration.files import ConfigFile
from driftbandits.configuration.models import ConfigDict, Settings, StrictModel, folder_name, validated
from driftbandits.configuration.references import resolve
from driftbandits.errors import InputError
from driftbandits.experiments.building import check_experiment, policy_maker
from driftbandits.experiments.engines import Engine
from driftbandits.experiments.seeds import TUNING
from driftbandits.experiments.specs import NOT_POLICY_SETTINGS, Experiment, PolicySpec
from driftbandits.policies import POLICIES, Policy
from driftbandits.policies.inputs import signature_of
from driftbandits.text import shown
from driftbandits.tuning.halving import BestSettings, Rungs, Tuned, count_cells
from driftbandits.tuning.search import launch
from driftbandits.tuning.spaces import NamedSpace, Space, TuningWorld, environment_1, read_space
from driftbandits.tuning.study import Search


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
        found = self.entries.get(f"d={dimension}", {})
        return tuple(PolicySpec(label, resolve(entry.policy), entry.settings) for label, entry in found.items())


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


EQUAL_RUNGS: Rungs = ((32, 1), (8, 4), (2, 16))  # (points kept, tuning seeds played so far)
EQUAL_DIMENSIONS = (10, 3, 2)
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
    """The content of the file; empty if there is no file yet."""
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


def tune(
    policy: str | type[Policy],
    space: str | Path | Mapping[str, Any],
    *,
    out: str | Path,
    dimensions: int | Sequence[int] = EQUAL_DIMENSIONS,
    storage: str | None = None,
    engine: Engine = Engine(),  # noqa: B008  # frozen
    show: bool = False,
) -> Tuned:
    """Search the settings of `policy` as those of the published comparison were searched.

    It is a registered name or class, or `file.py:Class`, since other processes and later experiments load it by name.
    The world (environment 1), the tuning seeds, the number of points and the runs are the same: 32 points and 80 runs
    per dimension. `space` says which settings, as a file or a mapping (see `spaces`). The policy's own defaults are the
    first point, if it has one for every setting searched. Everything is checked, and every point plays one round,
    before the search begins.

    What is found is written to `out/tuned-<label>.json`; entries of dimensions that are not searched stay. The study is
    kept in `out/tuning.db`, or at the URL `storage`; the same call continues from there, on this machine and on others.
    `show` shows progress on standard error.
    """
    check_path("out must be the folder of what is found", out)
    given = _name(policy)
    name = resolve(given)
    maker = policy_maker(name)
    named = read_space(space, name, known=_known(maker))
    plan = _searches(named, dimensions, default=_has_default(maker, named))
    _check_points(next(iter(plan.values())), named.label)
    path = Path(out) / f"tuned-{folder_name(named.label, 'label')}.json"
    written = read_found(path)
    places = {search.name: key for key, search in plan.items()}

    def keep(found: BestSettings) -> None:
        written.setdefault(places[found.name], {})[named.label] = tuned_entry(found)
        write_found(path, written, how=how_it_was_made(f"driftbandits tune {given}"))

    return launch(list(plan.values()), path=path, storage=storage, engine=engine, show=show, keep=keep)


def equal_search(
    label: str, space: Space, world: TuningWorld, dimension: int, *, kind: str = "", **more: Any
) -> Search:
    """The search that every policy gets that is to be compared: same world, seeds and budget.

    `kind` of the world is part of the study's name; `more` are fields of `Search`.
    """
    return Search(f"{label}{kind}, d = {dimension}", space, (world,), EQUAL_RUNGS, **more)


def how_it_was_made(command: str, *, world: str = "environment 1") -> str:
    """What a file of settings found by such a search says of itself."""
    points, seeds = EQUAL_RUNGS[0][0], EQUAL_RUNGS[-1][1]
    cells = count_cells(points, EQUAL_RUNGS, worlds=1)
    return (
        f"{command}: {points} points and {cells} cells of {world} per policy and dimension, "
        f"on tuning seeds {TUNING.first} to {TUNING.first + seeds - 1}"
    )


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
    return {f"d={d}": equal_search(named.label, named.space, environment_1(d), d, default=default) for d in checked}


def _check_points(search: Search, label: str) -> None:
    """Have every point play one round, so that a setting that cannot be is known before hours are played.

    One after the other: what is wrong with a setting is wrong with it at most points, and one of them says it all.
    """
    world = search.worlds[0]
    for number in range(len(search.points)):
        point = search.cell(number, (0, 0)).policy
        check_experiment(Experiment(label, label, world.environment, world.settings, (point,), TUNING.take(1)))
