"""All benchmarks: `make bench`, or `python -m benchmarks [--quick] [name ...]`.

Times depend on the machine and on what else it does; read the ratios, each against a reference timed in the same run.
"""

from __future__ import annotations

import argparse
import importlib

from threadpoolctl import threadpool_limits

NAMES = (
    "imports",
    "design",
    "design_grid",
    "features",
    "simulation",
    "policies",
    "defaults",
    "autobandit",
    "many_arms",
    "calibrated",
    "detectors",
    "logs",
    "estimators",
    "verdicts",
    "neural",
    "promises",
    "traffic",
    "runner",
    "live_journal",
    "lives",
    "sizes",
    "blas_threads",
    "service",
    "segments",
    "wrong_sign",
    "live",
    "hidden",
    "money",
    "consistency",
    "delays",
