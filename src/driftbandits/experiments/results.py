"""Results as tidy tables: one row a cell, one row a curve point, one row a policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from driftbandits.experiments.runner import CellResult

DRIFT = 100  # a world with more changes a run than this drifts, and counting those found says nothing


def cell_table(results: Sequence[CellResult]) -> pd.DataFrame:
    """One row a run: final regret, changes found, delays, misses, false alarms, seconds."""
    return pd.DataFrame(
        {
            "experiment": [r.cell.experiment for r in results],
            "policy": [r.cell.policy.label for r in results],
            "seed": [r.cell.seed for r in results],
            "regret": [float(r.regret[-1]) for r in results],
            "changes": [list(r.changes) for r in results],
            "delays": [list(r.detection.delays) for r in results],
            "missed": [r.detection.missed for r in results],
            "false_alarms": [r.detection.false_alarms for r in results],
            "seconds": [r.seconds for r in results],
        }
    )


def curve_table(results: Sequence[CellResult]) -> pd.DataFrame:
    """One row a point of a regret curve: experiment, policy, seed, round (rounds played), cumulative regret."""
    parts = [
        pd.DataFrame(
            {
                "experiment": r.cell.experiment,
                "policy": r.cell.policy.label,
                "seed": r.cell.seed,
                "round": r.rounds,
                "regret": r.regret,
            }
        )
        for r in results
    ]
    return pd.concat(parts, ignore_index=True)


def summary_table(cells: pd.DataFrame) -> pd.DataFrame:
    """One row a policy and experiment: mean final regret with its standard error, detection, seconds."""
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
                "false_alarms_a_run": group["false_alarms"].mean(),
                "seconds_a_run": group["seconds"].median(),
            }
        )
    return pd.DataFrame(rows)


def as_markdown(summary: pd.DataFrame) -> str:
    """The summary as a table to read."""
    lines = [
        "| experiment | policy | seeds | regret ± s.e. | changes found / missed | median delay | false alarms a run "
        "| seconds a run |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in summary.to_dict("records"):
        drifts = row["changes_found"] + row["changes_missed"] > DRIFT * row["seeds"]
        delay = "–" if drifts or np.isnan(row["median_delay"]) else f"{row['median_delay']:.0f}"
        found = "drift" if drifts else f"{row['changes_found']} / {row['changes_missed']}"
        error = "" if np.isnan(row["standard_error"]) else f" ± {row['standard_error']:.0f}"  # one seed has none
        alarms = "–" if drifts else f"{row['false_alarms_a_run']:.2f}"
        lines.append(
            f"| {row['experiment']} | {row['policy']} | {row['seeds']} "
            f"| {row['regret']:.0f}{error} | {found} | {delay} | {alarms} "
            f"| {row['seconds_a_run']:.3f} |"
        )
    return "\n".join(lines) + "\n"
