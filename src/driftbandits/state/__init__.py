"""Saved state: JSON values and arrays, nothing else; how it is read, checked and kept in files."""

from driftbandits.state.archive import FORMAT, LIMIT, check_format, read, write
from driftbandits.state.reader import Reader, check

__all__ = ["FORMAT", "LIMIT", "Reader", "check", "check_format", "read", "write"]
