"""Judging: tables, slopes, claims and verdicts, computed from finished cells; plays no policy."""
