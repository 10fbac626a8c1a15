"""Bandits made from real data: recipes, controls, what could have been had in hindsight, and a test for drift."""

from __future__ import annotations

from driftbandits.datasets.hindsight import (
    SWITCHES,
    DriftTest,
    benchmarks_of,
    drift_test,
    filled,
    switching_totals,
    turnover,
)
from driftbandits.datasets.registry import COPIES, create, load, names
from driftbandits.datasets.series import OFFSETS, Panel, SeriesReplay

__all__ = [
    "COPIES",
    "DriftTest",
    "OFFSETS",
    "Panel",
    "SeriesReplay",
    "SWITCHES",
    "benchmarks_of",
    "create",
    "drift_test",
    "filled",
    "load",
    "names",
    "switching_totals",
    "turnover",
]
