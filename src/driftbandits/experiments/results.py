"""Results as tidy tables: one row per run, one row per point of a curve, one row per policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from driftbandits._util.markdown import markdown
from driftbandits.experiments.specs import Experiment, cells_of
from driftbandits.experiments.stores import CellResult
from driftbandits.text import counted

MOST_COUNTED_CHANGES_PER_RUN = 100  # a world with more of them drifts, and counting those found says nothing
MOST_NAMED_IN_REPR = 3
SUMMARY_COLUMNS = (
    "experiment",
    "policy",
    "seeds",
    "regret",
    "standard_error",
    "changes_found",
    "changes_missed",
    "median_delay",
    "false_alarms_per_run",
    "turnover",
    "seconds_per_run",
)


@dataclass(frozen=True)
class RunRow:
    """A run as one experiment shows it: under that experiment's id and its own label for the policy."""

    experiment: str
    policy: str
    result: CellResult


@dataclass(frozen=True, eq=False)  # tables have no single truth value to compare by
class Results:
    """What was played of some experiments, as tables.

    Parameters
    ----------
    experiments : those asked for
    cells : DataFrame, a row per run
    curves : DataFrame, a row per point of a regret curve
    summary : DataFrame, a row per policy of an experiment

    >>> collect([], [])
    Results(nothing: 0 policies, 0 of 0 runs)
    """

    experiments: tuple[Experiment, ...]
    cells: pd.DataFrame
    curves: pd.DataFrame
    summary: pd.DataFrame

    def __repr__(self) -> str:
        """What was played, in one line."""
        names = [experiment.id for experiment in self.experiments]
        more = [f"and {len(names) - MOST_NAMED_IN_REPR} more"] if len(names) > MOST_NAMED_IN_REPR else []
        what = ", ".join([*names[:MOST_NAMED_IN_REPR], *more]) or "nothing"
        wanted = sum(len(cells_of(experiment)) for experiment in self.experiments)
        policies = counted(self.cells["policy"].nunique(), "policy")
        return f"Results({what}: {policies}, {len(self.cells):,} of {wanted:,} runs)"

    def _repr_html_(self) -> str:
        """The summary as a notebook shows it."""
        return str(self.summary.to_html(index=False, float_format="{:,.2f}".format))


def collect(experiments: Sequence[Experiment], results: Sequence[CellResult]) -> Results:
    """Tables of all runs that belong to the experiments.

    A run belongs to every experiment that holds a cell with its key, whatever either calls it; runs of no experiment
    are left out, cells without a run have no row, and of two runs with one key the later counts. Rows come in the
    order of experiments, policies, seeds, so tables do not depend on which run ended first.

    >>> from driftbandits.experiments.runner import run_cell
    >>> from driftbandits.experiments.specs import PolicySpec
    >>> world = {"horizon": 100, "switches": [50], "size": 5}
    >>> small = Experiment("small", "Small", "switching/1", world, (PolicySpec("any arm", "Uniform"),), seeds=(0, 1))
    >>> found = collect([small], [run_cell(cell) for cell in cells_of(small)])
    >>> found.cells[["experiment", "policy", "seed"]].values.tolist()
    [['small', 'any arm', 0], ['small', 'any arm', 1]]
    """
    by_key = {result.cell.key: result for result in results}
    rows = [row for experiment in experiments for row in _rows(experiment, by_key)]
    cells = cell_table(rows)
    return Results(tuple(experiments), cells, curve_table(rows), summary_table(cells))


def _rows(experiment: Experiment, by_key: dict[str, CellResult]) -> list[RunRow]:
    order = {policy.label: place for place, policy in enumerate(experiment.policies)}
    found = [
        RunRow(experiment.id, cell.policy.label, by_key[key])
        for cell in cells_of(experiment)
        if (key := cell.key) in by_key
    ]
    return sorted(found, key=lambda row: order[row.policy])  # stable: seeds stay in their order


def cell_table(rows: Sequence[RunRow]) -> pd.DataFrame:
    """One row per run: final regret, changes found, delays, misses, false alarms, turnover, seconds."""
    results = [row.result for row in rows]
    return pd.DataFrame(
        {
            "experiment": pd.Series([row.experiment for row in rows], dtype="str"),  # of no rows too
            "policy": pd.Series([row.policy for row in rows], dtype="str"),
            "seed": np.array([r.cell.seed for r in results], dtype=np.int64),
            "regret": np.array([r.regret[-1] for r in results], dtype=np.float64),
            "changes": [list(r.changes) for r in results],
            "delays": [list(r.detection.delays) for r in results],
            "missed": np.array([r.detection.missed for r in results], dtype=np.int64),
            "false_alarms": np.array([r.detection.false_alarms for r in results], dtype=np.int64),
            "turnover": np.array([r.turnover for r in results], dtype=np.float64),
            "seconds": np.array([r.seconds for r in results], dtype=np.float64),
        }
    )


def curve_table(rows: Sequence[RunRow]) -> pd.DataFrame:
    """One row per point of a regret curve: experiment, policy, seed, round (rounds played), cumulative regret."""
    sizes = np.array([len(row.result.rounds) for row in rows], dtype=np.int64)
    rounds = [row.result.rounds for row in rows]
    regrets = [row.result.regret for row in rows]
    return pd.DataFrame(
        {
            "experiment": np.repeat(np.array([row.experiment for row in rows], dtype=object), sizes),
            "policy": np.repeat(np.array([row.policy for row in rows], dtype=object), sizes),
            "seed": np.repeat(np.array([row.result.cell.seed for row in rows], dtype=np.int64), sizes),
            "round": np.concatenate(rounds) if rounds else np.empty(0, dtype=np.int64),
            "regret": np.concatenate(regrets) if regrets else np.empty(0),
        }
    )


def summary_table(cells: pd.DataFrame) -> pd.DataFrame:
    """One row per policy and experiment: mean final regret with its standard error, detection, turnover, seconds."""
    rows = []
    for (experiment, policy), group in cells.groupby(["experiment", "policy"], sort=False):
        delays = [delay for delays in group["delays"] for delay in delays]
        rows.append(
            {
                "experiment": experiment,
                "policy": policy,
                "seeds": len(group),
                "regret": group["regret"].mean(),
                "standard_error": group["regret"].sem(),
                "changes_found": len(delays),
                "changes_missed": int(group["missed"].sum()),
                "median_delay": float(np.median(delays)) if delays else float("nan"),
                "false_alarms_per_run": group["false_alarms"].mean(),
                "turnover": group["turnover"].mean(),
                "seconds_per_run": group["seconds"].median(),
            }
        )
    return pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS))


def summary_markdown(summary: pd.DataFrame) -> str:
    """The summary as a table to read."""
    lines = [
        "| experiment | policy | seeds | regret ± s.e. | changes found / missed | median delay | false alarms per run "
        "| seconds per run |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in summary.to_dict("records"):
        drifts = row["changes_found"] + row["changes_missed"] > MOST_COUNTED_CHANGES_PER_RUN * row["seeds"]
        delay = "–" if drifts or np.isnan(row["median_delay"]) else f"{row['median_delay']:.0f}"
        found = "drift" if drifts else f"{row['changes_found']} / {row['changes_missed']}"
        error = "" if np.isnan(row["standard_error"]) else f" ± {row['standard_error']:.0f}"  # one seed has none
        alarms = "–" if drifts else f"{row['false_alarms_per_run']:.2f}"
        lines.append(
            f"| {markdown(row['experiment'])} | {markdown(row['policy'])} | {row['seeds']} "
            f"| {row['regret']:.0f}{error} | {found} | {delay} | {alarms} "
            f"| {row['seconds_per_run']:.3f} |"
        )
    return "\n".join(lines) + "\n"
