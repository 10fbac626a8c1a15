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
    "contexts",
    "detectors",
    "logs",
    "estimators",
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
    "open_decisions",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(NAMES), help=f"which, of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="leave out what takes more than a few seconds")
    options = parser.parse_args()
    for name in options.names:
        if name not in NAMES:
            parser.error(f"no benchmark is called {name!r}; known: {', '.join(NAMES)}")
        benchmark = importlib.import_module(f"benchmarks.{name}")
        with threadpool_limits(limits=1):  # of libraries loaded by now
            benchmark.run(quick=options.quick)


if __name__ == "__main__":
    main()
