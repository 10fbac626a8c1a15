"""What commands say: data to standard output, messages to standard error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import typer


def say(message: str) -> None:
    """A message, beside the data."""
    typer.echo(message, err=True)


def print_json(value: Any) -> None:
    """Data for programs."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Data for people: aligned columns under the keys of the rows, numbers to the right."""
    if not rows:
        return
    names = list(rows[0])
    cells = [[_text(row[name]) for name in names] for row in rows]
    widths = [max(len(name), *(len(row[k]) for row in cells)) for k, name in enumerate(names)]
    right = [all(type(row[name]) in (int, float) for row in rows) for name in names]
    for line in [names, ["-" * width for width in widths], *cells]:
        parts = [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ]
        typer.echo("  ".join(parts).rstrip())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}" if isinstance(value, float) else str(value)
