"""Bandits made from real data: recipes, controls, what could have been had in hindsight, and a test for drift."""

from __future__ import annotations

from driftbandits.datasets.drift_test import DriftTest, drift_test
from driftbandits.datasets.hindsight import SWITCHES, benchmarks_of, filled, switching_totals, turnover
from driftbandits.datasets.panel import OFFSETS, Panel
from driftbandits.datasets.registry import COPIES, create, load, names
from driftbandits.datasets.replay import SeriesReplay

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
