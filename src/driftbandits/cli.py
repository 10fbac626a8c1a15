"""Command line: thin argument parsing over public functions."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from driftbandits import __version__, environments
from driftbandits.errors import DriftbanditsError, MissingExtraError
from driftbandits.experiments.catalogue import DIMENSIONS, EXPERIMENTS, Experiment, comparison, find_experiment

try:
    from driftbandits.experiments.results import as_markdown, cell_table, curve_table, summary_table
    from driftbandits.experiments.runner import cells_of, progress_bar, run_cells
    from driftbandits.plots.data import ranked_regret, regret_curves
    from driftbandits.plots.figures import ranking_figure, regret_figure
    from driftbandits.tuning.comparison import tune_comparison, tuned_specs
    from driftbandits.tuning.constants import SEARCHED, tune_constants
    from driftbandits.tuning.spaces import FAMILIES
except ModuleNotFoundError as error:
    raise MissingExtraError(str(error.name), extra="experiments", purpose="the command line") from None


def reproduce(ids: Sequence[str], *, out: Path, jobs: int, seeds: int | None) -> None:
    """Run experiments of the catalogue; write tables and the regret figure to `out`; print the summary."""
    experiments = [find_experiment(name) for name in dict.fromkeys(ids or EXPERIMENTS)]
    cells = [cell for experiment in experiments for cell in cells_of(experiment, seeds=seeds)]
    out.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    with progress_bar(len(cells), "runs") as advance:
        results = run_cells(cells, jobs=jobs, progress=advance)
    table, curves = cell_table(results), curve_table(results)
    summary = summary_table(table)
    table.to_parquet(out / "cells.parquet")
    curves.to_parquet(out / "curves.parquet")
    (out / "summary.md").write_text(as_markdown(summary))
    summary.to_csv(out / "summary.csv", index=False)
    figure = regret_figure(
        [
            {
                "curves": regret_curves(curves, table, experiment.id),
                "title": experiment.title,
                "true_changes": _true_changes(experiment),
            }
            for experiment in experiments
        ]
    )
    figure.savefig(out / "regret.png")
    figure.savefig(out / "regret.pdf")
    notes = {
        "version": __version__,
        "python": platform.python_version(),
        "seconds": round(time.perf_counter() - begun, 1),
        "experiments": [experiment.id for experiment in experiments],
        "policies": {p.label: {k: repr(v) for k, v in p.settings.items()} for e in experiments for p in e.policies},
    }
    (out / "run.json").write_text(json.dumps(notes, indent=2) + "\n")
    print(as_markdown(summary))
    print(
        f"{len(cells)} runs in {notes['seconds']} s. Table: {out / 'summary.md'}; figure: {out / 'regret.png'} and "
        f".pdf; every run: {out / 'cells.parquet'}; curves: {out / 'curves.parquet'}"
    )


def compare(*, out: Path, jobs: int, seeds: int | None) -> None:
    """Play all policies, with the settings found for them, on the comparison worlds; write table and figure."""
    experiments = [e for dimension in DIMENSIONS for e in comparison(dimension, tuned_specs(dimension))]
    cells = [cell for experiment in experiments for cell in cells_of(experiment, seeds=seeds)]
    out.mkdir(parents=True, exist_ok=True)
    with progress_bar(len(cells), "runs") as advance:
        results = run_cells(cells, jobs=jobs, progress=advance)
    table = cell_table(results)
    table.to_parquet(out / "cells.parquet")
    summary = summary_table(table)
    (out / "summary.md").write_text(as_markdown(summary))
    summary.to_csv(out / "summary.csv", index=False)
    members = {label: number for number, labels in enumerate(FAMILIES.values()) for label in labels}
    figure = ranking_figure(
        [ranked_regret(table, experiment.id, title=experiment.title) for experiment in experiments],
        columns=len(experiments) // len(DIMENSIONS),
        families=members,
        names=list(FAMILIES),
    )
    figure.savefig(out / "comparison.png")
    figure.savefig(out / "comparison.pdf")
    print(as_markdown(summary))
    print(f"{len(cells)} runs. Table: {out / 'summary.md'}; figure: {out / 'comparison.png'} and .pdf")


def _true_changes(experiment: Experiment) -> list[int]:
    world = environments.create(experiment.environment, seed=experiment.seeds[0], **experiment.settings)
    return [int(t) for t in world.change_rounds]


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; 0 on success, 1 on an error of ours, 2 on wrong usage."""
    parser = argparse.ArgumentParser(
        prog="driftbandits", description="Kernel bandits that notice when the world changes."
    )
    parser.add_argument("--version", action="version", version=f"driftbandits {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("reproduce", help="run the paper's experiments; write tables and figures")
    run.add_argument("ids", nargs="*", help=f"experiments, by default all: {', '.join(EXPERIMENTS)}")
    run.add_argument("--out", type=Path, default=Path("results/reproduce"), help="folder for tables and figures")
    run.add_argument("--jobs", type=int, default=-1, help="processes; -1: one a core")
    run.add_argument("--seeds", type=_positive, default=None, help="only the first so many seeds")
    against = commands.add_parser("compare", help="play all policies, tuned alike, on switches and slow drift")
    against.add_argument("--out", type=Path, default=Path("results/compare"), help="folder for table and figure")
    against.add_argument("--jobs", type=int, default=-1, help="processes; -1: one a core")
    against.add_argument("--seeds", type=_positive, default=None, help="only the first so many seeds")
    tuning = commands.add_parser("tune", help="search settings on tuning seeds")
    tuning.add_argument(
        "study", choices=[*SEARCHED, "comparison"], help="the default of ADA-OPKB or ADA-OPNN, or all alike"
    )
    tuning.add_argument("labels", nargs="*", help="comparison: only these policies")
    tuning.add_argument("--out", type=Path, default=Path("results/tune"), help="folder for what was found")
    tuning.add_argument("--jobs", type=int, default=-1, help="processes; -1: one a core")
    options = parser.parse_args(arguments)
    try:
        if options.command == "reproduce":
            reproduce(options.ids, out=options.out, jobs=options.jobs, seeds=options.seeds)
        elif options.command == "compare":
            compare(out=options.out, jobs=options.jobs, seeds=options.seeds)
        elif options.study in SEARCHED:
            tune_constants(options.study, out=options.out, jobs=options.jobs)
        else:
            tune_comparison(out=options.out / "tuned.json", labels=options.labels, jobs=options.jobs)
    except DriftbanditsError as error:
        print(f"driftbandits: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
