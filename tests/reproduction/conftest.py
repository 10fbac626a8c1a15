"""One report with every chapter, for all tests that read it."""

import pytest

from reproduction.comparison import COMPARISON
from reproduction.page import write_report
from reproduction.paper import PAPER
from reproduction.suite import SUITE
from tests.cli.conftest import cli, finished, played  # noqa: F401  # fixtures
from tests.reproduction.made_up import own_experiment, results_of, short_sweeps, small


@pytest.fixture(scope="session")
def everything(tmp_path_factory):
    """A report with every chapter of the catalogue: its page, folder, and results."""
    sweeps = short_sweeps()
    experiments = [
        small(PAPER["switching/1"]),
        small(PAPER["cosine/slow/d2"]),
        *(e for sweep in sweeps for e in sweep.experiments),
        small(COMPARISON["comparison/switching/1/d2"], 2),
        small(SUITE["suite/flip-1/d2"], 2),
        small(SUITE["suite/slow/d2"], 2),
        own_experiment(),
    ]
    results = results_of(experiments)
    out = tmp_path_factory.mktemp("report")
    about = {"command": ["make reproduce"], "mode": "quick", "wall_seconds": 75.0, "jobs": 2, "date": "2024-05-06"}
    path = write_report(results, out=out, title="A title", about=about)
    return path.read_text(encoding="utf-8"), out, results
