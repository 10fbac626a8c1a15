"""The settings every policy played with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.report.formats import listed
from driftbandits.report.tables import ReportTable, TableColumn, TableEntry

MOST_EXPERIMENTS_PER_ROW = 3


def settings_table(experiments: Sequence[Experiment]) -> ReportTable:
    """One row per policy and settings, with the experiments it played them in."""
    where: dict[tuple[str, str, str, str], list[str]] = {}
    for experiment in experiments:
        for policy in experiment.policies:
            settings = {**experiment.common, **policy.settings}
            kernel = "the world’s" if policy.kernel is None else in_words(policy.kernel)
            key = (policy.label, policy.name, in_words(settings) or "defaults", kernel)
            where.setdefault(key, []).append(experiment.id)
    rows = [
        (*(TableEntry(part) for part in key), TableEntry(listed(ids, MOST_EXPERIMENTS_PER_ROW)))
        for key, ids in sorted(where.items(), key=lambda item: item[0][0].lower())
    ]
    heads = ("policy", "class", "settings", "kernel it is told", "played in")
    return ReportTable(
        "Settings of every policy", tuple(TableColumn(head, numeric=False) for head in heads), tuple(rows)
    )


def in_words(settings: Mapping[str, Any]) -> str:
    """Settings as text that a person reads.

    >>> in_words({"window": 3000, "constants": {"c0": 1.38, "scale": None}, "train": False})
    'window 3000, constants (c0 1.38, scale none), train no'
    """
    return ", ".join(f"{key} {_value(value)}" for key, value in settings.items())


def _value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, Mapping):
        return f"({in_words(value)})"
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value)
