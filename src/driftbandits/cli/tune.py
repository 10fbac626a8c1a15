"""`driftbandits tune`: searches of settings on tuning seeds."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftbandits.cli import complete
from driftbandits.cli.options import Address, EngineName, Jobs, Json, Out, engine_of
from driftbandits.cli.show import print_json, print_table, say

if TYPE_CHECKING:
    from driftbandits.tuning.records import Tuned


class Study(StrEnum):
    """What can be searched."""

    constants = "constants"
    neural = "neural"
    comparison = "comparison"
    oracles = "oracles"


def tune(
    study: Annotated[
        Study, typer.Argument(help="Constants of ADA-OPKB, of ADA-OPNN, all policies alike, or in every world.")
    ],
    labels: Annotated[
        list[str] | None,
        typer.Argument(metavar="LABEL", autocompletion=complete.labels, help="comparison: only these policies."),
    ] = None,
    out: Out = Path("results/tune"),
    storage: Annotated[
        str | None,
        typer.Option("--storage", metavar="URL", help="Optuna storage to share with other machines."),
    ] = None,
    jobs: Jobs = -1,
    engine: EngineName = "loky",
    address: Address = None,
    json: Json = False,
) -> None:
    """Search settings again, on tuning seeds that no figure uses. The same command goes on where it was stopped."""
    if labels and study is not Study.comparison:
        raise typer.BadParameter(f"{study} takes no policies; labels are for comparison")
    if storage and study is Study.oracles:
        raise typer.BadParameter("oracles keeps its runs in --out, not in a storage")
    where = engine_of(engine, jobs, address)
    if study is Study.comparison:
        from driftbandits.tuning.comparison import tune_comparison

        tuned = tune_comparison(out=out, labels=labels or (), storage=storage, engine=where, show=True)
    elif study is Study.oracles:
        from driftbandits.tuning.oracles import tune_oracles

        tuned = tune_oracles(out=out, engine=where, show=True)
    else:
        from driftbandits.tuning.constants import tune_constants

        tuned = tune_constants(study.value, out=out, storage=storage, engine=where, show=True)
    _print(tuned, as_json=json)


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
