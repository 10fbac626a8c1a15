"""Bandits from real series, with their controls; start offsets are the replicates."""

from __future__ import annotations

from driftbandits.experiments.specs import Experiment

REAL: dict[str, Experiment] = {}
