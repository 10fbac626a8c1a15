"""Tunes policies, a user's own for example, in any worlds with one budget each; settings found go to a file.

Where no worlds are named, the search has the budget, the world and the tuning seeds with which the policies of the
published comparison were tuned, so the policy may be compared with them.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftbandits._util.checks import check_count, check_path, check_positive
from driftbandits._util.files import write_whole
from driftbandits.configuration.files import read_config_file
from driftbandits.configuration.models import Field, NamedEnvironment, StrictModel, folder_name, validated
from driftbandits.configuration.references import resolve
from driftbandits.errors import InputError
from driftbandits.experiments.building import check_experiment, cost_of, policy_maker
from driftbandits.experiments.contestants import entries, with_settings
from driftbandits.experiments.engines import Engine
from driftbandits.experiments.run_files import read_tuned
from driftbandits.experiments.seeds import TUNING
from driftbandits.experiments.specs import NOT_POLICY_SETTINGS, Cell, Experiment, PolicySpec
from driftbandits.policies import POLICIES, Policy
from driftbandits.policies.inputs import signature_of
from driftbandits.text import shown
from driftbandits.tuning.search import launch
from driftbandits.tuning.spaces import NamedSpace, Space, TuningWorld, environment_1, read_space
from driftbandits.tuning.study import BestSettings, Rungs, Search, Tuned, count_cells, geometric_mean_regret

EQUAL_RUNGS: Rungs = ((32, 1), (8, 4), (2, 16))  # (points kept, tuning seeds played so far)
EQUAL_RUNS = count_cells(EQUAL_RUNGS[0][0], EQUAL_RUNGS, worlds=1)
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
    policy: str | type[Policy] | Mapping[Any, Any],
    space: str | Path | Mapping[str, Any] | None = None,
    *,
    out: str | Path,
    worlds: Any = None,
    runs: int = EQUAL_RUNS,
    minutes: float | None = None,
    dimensions: int | Sequence[int] = EQUAL_DIMENSIONS,
    storage: str | None = None,
    engine: Engine = Engine(),  # noqa: B008  # frozen
    show: bool = False,
) -> Tuned:
    """Search the settings of a policy, or of several with one budget each, on tuning seeds that no figure uses.

    Parameters
    ----------
    policy : a registered name or class, or `file.py:Class`, since other processes and later experiments load it by
        name; or a mapping from several of these to the space of each
    space : which settings are searched, as a file or a mapping, such as `{"ranges": {"window": [100, 10_000]}}`
    out : the folder of what is found and of the study, `tuning.db`
    worlds : names of worlds, or pairs of a name and settings, which are searched together: a point counts with the
        geometric mean over the worlds of its mean regret. By default environment 1 in every one of `dimensions`, each
        by itself: the search of the published comparison
    runs : how many are played per policy; the first points play one seed in every world, a quarter of them four, and a
        sixteenth sixteen
    minutes : in place of `runs`, about so long per policy on one core, by the usual time of a run
    dimensions : of environment 1, where no worlds are named
    storage : an Optuna storage to share with other machines, as a URL
    engine : where runs are played
    show : whether to show progress on standard error

    Returns
    -------
    Tuned
        `path` is the file of what was found: `db.compare`, a run file and `driftbandits reproduce --tuned` take it in
        the place of a policy. `best` has the settings, their regret on tuning seeds, and all points that were tried

    Raises
    ------
    InputError
        For a policy, a space or a world that cannot be, with the place of what is wrong.

    A policy's own defaults are its first point, if it has one for every setting searched. Everything is checked, and
    every point plays one round, before the search begins. The same call goes on where it was stopped.

    >>> import tempfile
    >>> world = ("switching", {"horizon": 200, "switches": [100], "size": 10})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     space = {"ranges": {"scale": [0.01, 1]}}
    ...     found = tune("UCB1", space, out=folder, worlds=[world], runs=4, engine=Engine(jobs=1))
    >>> found.best[0].policy, found.played, list(found.best[0].settings)
    ('UCB1', 2, ['scale'])
    """
    check_path("out must be the folder of what is found", out)
    given = _named_spaces(policy, space)
    plan = _plan(given, worlds, dimensions, runs=runs, minutes=minutes)
    for entry in plan:
        if entry.search.worlds == plan[0].search.worlds:  # other worlds of the same policy differ in dimension alone
            _check_points(entry.search, entry.label)
    name = f"tuned-{folder_name(plan[0].label, 'label')}.json" if len(given) == 1 else "tuned.json"
    path = Path(out) / name
    written = read_found(path)
    places = {entry.search.name: entry for entry in plan}
    played = plan[0].search
    cells, where = played.cells, "environment 1" if worlds is None else plan[0].key
    how = (
        f"driftbandits tune {', '.join(given)}: {len(played.points)} points and {cells} cells of {where} per policy"
        f"{' and dimension' if worlds is None else ''}, on tuning seeds {TUNING.first} to "
        f"{TUNING.first + played.rungs[-1][1] - 1}"
    )

    def keep(found: BestSettings) -> None:
        entry = places[found.name]
        written.setdefault(entry.key, {})[entry.label] = tuned_entry(found)
        write_found(path, written, how=how)

    searches = [entry.search for entry in plan]
    return launch(searches, path=path, storage=storage, engine=engine, show=show, keep=keep)


class PlanConfig(StrictModel):
    """A file that says what `tune` is to search: worlds, a budget per policy, and the space of every policy."""

    worlds: list[NamedEnvironment] = Field(min_length=1, description="Worlds that are searched together.")
    policies: dict[str, dict[str, Any]] = Field(min_length=1, description="The space of every policy, by its name.")
    runs: int = Field(default=EQUAL_RUNS, ge=1, description="How many runs per policy.")
    minutes: float | None = Field(default=None, gt=0, description="In place of runs: so long per policy on one core.")


def tune_file(source: Path, *, out: str | Path, storage: str | None, engine: Engine, show: bool) -> Tuned:
    """Search what a YAML or TOML file describes; names of files in it are searched beside it first."""
    file = read_config_file(source, needs=("worlds", "policies"), example="worlds: [switching/1]")
    config = validated(PlanConfig, file)
    policies = {resolve(name, folder=source.parent): space for name, space in config.policies.items()}
    worlds = [(world.name, world.settings) for world in config.worlds]
    budget: dict[str, Any] = {"runs": config.runs, "minutes": config.minutes}
    return tune(policies, out=out, worlds=worlds, storage=storage, engine=engine, show=show, **budget)


@dataclass(frozen=True)
class _Planned:
    """A search, and where what it finds is written."""

    key: str
    label: str
    search: Search


def _named_spaces(policy: Any, space: Any) -> dict[str, NamedSpace]:
    """The space of every policy by its name."""
    if isinstance(policy, Mapping):
        if space is not None:
            raise InputError("policy already says the space of each; leave out space")
        pairs = list(policy.items())
        if not pairs:
            raise InputError("there is no policy to search; name at least one, with its space")
    else:
        pairs = [(policy, space)]
    found = {name: read_space(one, name, known=_known(policy_maker(name))) for name, one in map(_resolved, pairs)}
    labels = [named.label for named in found.values()]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"two policies are called {label!r}; give one of the spaces a label of its own")
    return found


def _resolved(pair: tuple[Any, Any]) -> tuple[str, Any]:
    return resolve(_name(pair[0])), pair[1]


def _plan(
    given: Mapping[str, NamedSpace], worlds: Any, dimensions: int | Sequence[int], *, runs: int, minutes: float | None
) -> list[_Planned]:
    """Every search, by policy and by what is searched together."""
    check_count("runs", runs)
    if minutes is not None:
        check_positive("minutes", minutes)
    if worlds is None:
        if runs != EQUAL_RUNS or minutes is not None:
            raise InputError("runs and minutes are for worlds that are named; say which, as in worlds=['switching/1']")
        return [
            _Planned(key, named.label, search)
            for name, named in given.items()
            for key, search in _searches(named, dimensions, default=_has_default(policy_maker(name), named)).items()
        ]
    together = _worlds(worlds)
    key = ", ".join(with_settings(world.environment, world.settings) for world in together)
    planned = []
    for name, named in given.items():
        default = _has_default(policy_maker(name), named)
        budget = runs if minutes is None else _runs_in(minutes, name, together)
        search = Search(
            f"{named.label}, {key}",
            named.space,
            together,
            rungs_of(budget, worlds=len(together)),
            default=default,
            score=geometric_mean_regret,
        )
        planned.append(_Planned(key, named.label, search))
    return planned


def _worlds(given: Any) -> tuple[TuningWorld, ...]:
    """The worlds as names with settings: other processes build them."""
    found = []
    for entry in entries(given, "world"):
        if not isinstance(entry.what, str):
            raise InputError(
                f"a world is searched by its name or 'file.py:Class', alone or with a mapping of its settings; got "
                f"{shown(entry.what)}"
            )
        found.append(TuningWorld(resolve(entry.what), dict(entry.settings)))
    if not found:
        raise InputError("there is no world to search in; name at least one, such as 'switching/1'")
    return tuple(found)


def _runs_in(minutes: float, policy: str, worlds: Sequence[TuningWorld]) -> int:
    """How many runs so many minutes of one core are, by the usual time of a run."""
    spec = PolicySpec(policy, policy, {})
    seconds = [cost_of(Cell(world.environment, world.settings, spec, TUNING.first)) for world in worlds]
    return max(int(60.0 * minutes * len(seconds) / sum(seconds)), 1)


def rungs_of(runs: int, *, worlds: int) -> Rungs:
    """Halving with this many runs in all: as `EQUAL_RUNGS`, with more or fewer points.

    >>> rungs_of(80, worlds=1) == EQUAL_RUNGS, rungs_of(20, worlds=1)
    (True, ((8, 1), (2, 4)))
    """
    points = max(runs * EQUAL_RUNGS[0][0] // (EQUAL_RUNS * worlds), 2)
    rungs = [(max(points * keep // EQUAL_RUNGS[0][0], 1), played) for keep, played in EQUAL_RUNGS]
    while len(rungs) > 1 and count_cells(points, rungs, worlds=worlds) > runs:
        rungs.pop()
    return tuple(rungs)


def equal_search(
    label: str, space: Space, world: TuningWorld, dimension: int, *, kind: str = "", **more: Any
) -> Search:
    """The search that every policy gets that is to be compared: same world, seeds and budget.

    `kind` of the world is part of the study's name; `more` are fields of `Search`.
    """
    return Search(f"{label}{kind}, d = {dimension}", space, (world,), EQUAL_RUNGS, **more)


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
