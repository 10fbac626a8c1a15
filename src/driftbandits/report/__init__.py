"""Report: results as one page to read, and every figure as a file."""

from driftbandits.report.page import write_report

__all__ = ["write_report"]
