"""What every run of the tests says."""

from __future__ import annotations

from typing import Any

from tests.service.browser import CHROMIUM, HOW_TO_GET_IT


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Ahead of the summary: what was not tested for want of a browser."""
    skipped = [one for one in terminalreporter.stats.get("skipped", []) if HOW_TO_GET_IT in str(one.longrepr)]
    if CHROMIUM is None and skipped:
        terminalreporter.write_line(f"{len(skipped)} tests of pages were skipped, {HOW_TO_GET_IT}", yellow=True)
