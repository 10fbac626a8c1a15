"""What every run of the tests says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.service.browser import CHROMIUM, HOW_TO_GET_IT


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Ahead of the summary: what was not tested for want of a browser."""
    skipped = [one for one in terminalreporter.stats.get("skipped", []) if HOW_TO_GET_IT in str(one.longrepr)]
    if CHROMIUM is None and skipped:
        terminalreporter.write_line(f"{len(skipped)} tests of pages were skipped, {HOW_TO_GET_IT}", yellow=True)


# Left out by `make quick`, which is for while one edits: whole pages, killed processes, other machines, clusters and
# rates of false alarms. `make test` runs everything.
SLOW = (
    "cli/test_entry.py",
    "cli/test_errors.py",
    "cli/test_logs.py",
    "design/test_grid.py",
    "experiments/test_building.py",
    "experiments/test_comparing.py",
    "experiments/test_kill.py",
    "experiments/test_runner.py",
    "lemmas/",
    "live/test_other_machines.py",
    "live/test_postgres.py",
    "logs/test_advising.py",
    "logs/test_changes.py",
    "logs/test_estimators.py",
    "policies/auto/test_samples.py",
    "policies/gp/test_detecting.py",
    "policies/opkb/test_odd_worlds.py",
    "policies/opkb/test_opnn.py",
    "policies/rivals/",
    "policies/test_base.py",
    "policies/test_other_machines.py",
    "reproduction/",
    "service/",
    "state/test_damaged",
    "statistical/",
    "test_blas_threads.py",
    "test_docs.py",
    "test_docs_commands.py",
    "test_linalg.py",
    "test_release.py",
    "test_site.py",
    "tuning/",
)
QUICK_POLICIES = ("AutoBandit", "GPUCB", "AdaOPKB")  # of the conformance suite


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what takes long as slow."""
    for item in items:
        _, _, path = item.nodeid.partition("tests/")
        other = path.startswith("testing/test_conformance.py::test_policy") and not any(
            path.endswith(f"-{name}]") for name in QUICK_POLICIES
        )
        if path.startswith(SLOW) or other:
            item.add_marker(pytest.mark.slow)
