"""`driftbandits tune`: searches of settings on tuning seeds."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftbandits.cli.options import (
    Address,
    EngineName,
    Jobs,
    Json,
    Out,
    complete_environments,
    complete_labels,
    complete_searches,
    engine_of,
    print_json,
    print_table,
    say,
)
from driftbandits.errors import did_you_mean

if TYPE_CHECKING:
    from driftbandits.experiments.engines import Engine
    from driftbandits.tuning.study import Tuned

STUDIES = ("constants", "neural", "comparison", "paper", "linear", "oracles")  # of the paper's study
COMPARED_DIMENSIONS = (10, 2)  # where all policies are compared


def tune(
    what: Annotated[
        str,
        typer.Argument(
            metavar="FILE|POLICY|STUDY",
            autocompletion=complete_searches,
            help="A YAML or TOML file with worlds and a space for every policy; one policy, a name or file.py:Class, "
            "with --space; or a study of the paper's: constants (of ADA-OPKB), neural (of ADA-OPNN), comparison (all "
            "policies alike), paper (the grids of its section 6), linear (those for linear bandits alike), oracles (in "
            "every world).",
        ),
    ],
    labels: Annotated[
        list[str] | None,
        typer.Argument(metavar="LABEL", autocompletion=complete_labels, help="comparison: only these policies."),
    ] = None,
    space: Annotated[
        Path | None,
        typer.Option("--space", metavar="FILE", help="One policy: what is searched, as YAML or TOML."),
    ] = None,
    dimension: Annotated[
        list[int],
        typer.Option(
            "--dimension",
            min=1,
            help="comparison, one policy: of the world. May be given several times; by default 10, 3 and 2.",
        ),
    ] = [],  # noqa: B006  (Typer makes a new list)
    out: Out = Path("results/tune"),
    world: Annotated[
        list[str],
        typer.Option(
            "--world",
            autocompletion=complete_environments,
            help="One policy: search in this world; several are searched together. By default environment 1.",
        ),
    ] = [],  # noqa: B006
    runs: Annotated[int | None, typer.Option("--runs", min=1, help="One policy with --world: the budget.")] = None,
    storage: Annotated[
        str | None,
        typer.Option("--storage", metavar="URL", help="Optuna storage to share with other machines."),
    ] = None,
    jobs: Jobs = -1,
    engine: EngineName = "loky",
    address: Address = None,
    json: Json = False,
) -> None:
    """Search settings, on tuning seeds that no figure uses. The same command goes on where it was stopped.

    driftbandits tune my.py:Mine --space space.yaml

    searches a policy of your own as all others were. What is found can then stand beside them:

    driftbandits reproduce comparison --tuned results/tune/tuned-Mine.json

    driftbandits tune plan.yaml

    searches several policies in any worlds, with one budget each. What is found stands for them in a run file, and in
    db.compare, by the name of the file: results/tune/tuned.json
    """
    played_on = engine_of(engine, jobs, address)
    if _is_file(what):
        _check_file_usage(what, labels=labels, space=space, dimension=dimension, world=world, runs=runs)
        from driftbandits.tuning.own import tune_file

        tuned = tune_file(Path(what), out=out, storage=storage, engine=played_on, show=True)
    else:
        _check_usage(what, labels=labels, space=space, dimension=dimension, storage=storage)
        _check_world_usage(world, runs=runs, space=space, dimension=dimension)
        tuned = _search(what, labels or [], space, dimension, world, runs, out, storage, played_on)
    _print(tuned, as_json=json)
    if space is not None and not world:
        say(_next_command(tuned.path))
    elif what not in STUDIES:
        say(f"these settings can be played by the name of the file, in a run file and in db.compare: {tuned.path}")


def _is_file(what: str) -> bool:
    return Path(what).suffix in (".yaml", ".yml", ".toml")


def _check_file_usage(what: str, **given: Any) -> None:
    for name, value in given.items():
        if value:
            raise typer.BadParameter(f"{what} says all that is searched; leave out {name}")


def _check_world_usage(world: list[str], *, runs: int | None, space: Path | None, dimension: list[int]) -> None:
    if world and space is None:
        raise typer.BadParameter("--world is for one policy, with --space")
    if world and dimension:
        raise typer.BadParameter("--dimension is of environment 1; the settings of other worlds go into a file")
    if runs is not None and not world:
        raise typer.BadParameter("--runs goes with --world; environment 1 has the budget of the comparison")


def _check_usage(
    what: str, *, labels: list[str] | None, space: Path | None, dimension: list[int], storage: str | None
) -> None:
    if what not in STUDIES and not _is_policy(what):
        hint = did_you_mean(what, complete_searches(""))
        raise typer.BadParameter(
            f"neither a study nor a policy is called {what!r}; {hint}studies: {', '.join(STUDIES)}; a policy is a name "
            f"of driftbandits list policies, or file.py:Class"
        )
    if what not in STUDIES and space is None:
        raise typer.BadParameter(f"say what to search of {what}, as in --space space.yaml")
    if what in STUDIES and space is not None:
        raise typer.BadParameter(f"{what} has spaces of its own; --space is for one policy, a name or file.py:Class")
    if labels and what != "comparison":
        raise typer.BadParameter(f"{what} takes no policies; labels are for comparison")
    if dimension and what in ("constants", "neural", "paper", "linear", "oracles"):
        raise typer.BadParameter(f"{what} has dimensions of its own; --dimension is for comparison, or one policy")
    if storage and what == "oracles":
        raise typer.BadParameter("oracles keeps its runs in --out, not in a storage")


def _is_policy(what: str) -> bool:
    from driftbandits.configuration.references import is_reference
    from driftbandits.policies import POLICIES

    return is_reference(what) or what in POLICIES


def _search(
    what: str,
    labels: list[str],
    space: Path | None,
    dimension: list[int],
    world: list[str],
    runs: int | None,
    out: Path,
    storage: str | None,
    engine: Engine,
) -> Tuned:
    from driftbandits.experiments.study import load_study
    from driftbandits.tuning.own import EQUAL_DIMENSIONS, EQUAL_RUNS, tune

    dimensions = dimension or EQUAL_DIMENSIONS
    if world:
        budget = EQUAL_RUNS if runs is None else runs
        return tune(what, space, out=out, worlds=world, runs=budget, storage=storage, engine=engine, show=True)
    if space is not None:
        return tune(what, space, out=out, dimensions=dimensions, storage=storage, engine=engine, show=True)
    study = load_study("tuning", purpose=f"driftbandits tune {what}")
    found: Tuned = study.tune_study(
        what, out=out, labels=labels, dimensions=dimensions, storage=storage, engine=engine, show=True
    )
    return found


def _print(tuned: Tuned, *, as_json: bool) -> None:
    rows: list[dict[str, Any]] = [
        {
            "search": found.name,
            "policy": found.policy,
            "regret": round(found.regret, 1),
            "cells": found.cells,
            "origin": str(found.origin),
            "settings": dict(found.settings),
        }
        for found in tuned.best
    ]
    if as_json:
        about = {key: value for key, value in dataclasses.asdict(tuned).items() if key != "best"}
        print_json({**about, "path": str(tuned.path), "found": rows})
        return
    print_table(rows)
    say(f"{tuned.played} of {tuned.cells} runs played here, {tuned.seconds:.0f} s: {tuned.path}; {tuned.storage}")


def _next_command(path: Path) -> str:
    """How to see a policy that was searched beside all others, which are compared in some dimensions only."""
    from driftbandits.experiments.run_files import read_tuned

    found = read_tuned(path)
    if any(found.specs(dimension) for dimension in COMPARED_DIMENSIONS):
        return f"to see it beside all others: driftbandits reproduce comparison --tuned {shlex.quote(str(path))}"
    options = " or ".join(f"--dimension {dimension}" for dimension in COMPARED_DIMENSIONS)
    return f"to see it beside all others, search it where they are compared too: {options}"
