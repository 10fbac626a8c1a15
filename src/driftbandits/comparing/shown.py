"""A summary as people read it: a short table, as text or as HTML, world by world, best policy first."""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from driftbandits.experiments.judging.results import MOST_COUNTED_CHANGES_PER_RUN
from driftbandits.plots.frame import png
from driftbandits.showing import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTHING = "–"
HEADS = (
    "policy",
    "regret ± s.e.",
    "behind the best [95 %]",
    "changes found",
    "false alarms per run",
    "seconds per run",
)
PIXELS_PER_INCH = 96
PICTURE_ALT = "Line chart: mean cumulative regret of every policy; where it ends is in the table."

Rows = list[list[str]]


def text_page(summary: pd.DataFrame, reporting: frozenset[str]) -> str:
    """The table as text."""
    tables = _tables(summary, reporting)
    widths = [
        max(map(len, column)) for column in zip(HEADS, *(row for rows in tables.values() for row in rows), strict=True)
    ]
    lines = [_headline(summary), "", _line(HEADS, widths)]
    for world, rows in tables.items():
        lines += ["", f"{world}:", *(_line(row, widths) for row in rows)]
    return "\n".join(lines)


def html_page(summary: pd.DataFrame, reporting: frozenset[str], figures: Sequence[Figure]) -> str:
    """The table as HTML, then the figures, side by side where there is room; it needs nothing from elsewhere."""
    body = "".join(_html_world(world, rows) for world, rows in _tables(summary, reporting).items())
    return (
        f"<p>{html.escape(_headline(summary))}</p>"
        f'<div style="max-width:100%;overflow-x:auto"><table>{_html_row("th", HEADS)}{body}</table></div>'
        f'<div style="display:flex;flex-wrap:wrap">{"".join(map(_image, figures))}</div>'
    )


def _headline(summary: pd.DataFrame) -> str:
    worlds, policies = counted(summary["world"].nunique(), "world"), counted(summary["policy"].nunique(), "policy")
    return f"{policies} in {worlds}, {counted(int(summary['seeds'].max()), 'seed')}"


def _tables(summary: pd.DataFrame, reporting: frozenset[str]) -> dict[str, Rows]:
    """Rows by world."""
    tables: dict[str, Rows] = {}
    for world, group in summary.groupby("world", sort=False):
        records = group.sort_values("regret", kind="stable").to_dict("records")
        tables[str(world)] = [_row(record, reports=record["policy"] in reporting) for record in records]
    return tables


def _row(record: Mapping[Any, Any], *, reports: bool) -> list[str]:
    changes = record["changes_found"] + record["changes_missed"]
    counts = reports and changes <= MOST_COUNTED_CHANGES_PER_RUN * record["seeds"]  # else it drifts
    digits = _decimals(record["regret"])
    error = "" if math.isnan(record["standard_error"]) else f" ± {record['standard_error']:,.{digits}f}"
    return [
        str(record["policy"]),
        f"{record['regret']:,.{digits}f}{error}",
        _behind(record, digits),
        f"{record['changes_found']:,} of {changes:,}" if counts and changes else NOTHING,
        f"{record['false_alarms_per_run']:.2f}" if counts else NOTHING,
        f"{record['seconds_per_run']:.3f}",
    ]


def _behind(record: Mapping[Any, Any], digits: int) -> str:
    if record["behind"] == 0:
        return NOTHING
    behind = f"{record['behind']:,.{digits}f}"
    if math.isnan(record["behind_low"]):
        return behind
    return f"{behind} [{record['behind_low']:,.{digits}f}, {record['behind_high']:,.{digits}f}]"


def _decimals(value: float) -> int:
    """How many decimals show three digits of a value.

    >>> _decimals(12345.6), _decimals(12.3), _decimals(0.0123)
    (0, 1, 4)
    """
    return max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(cells, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)])


def _html_world(world: str, rows: Rows) -> str:
    style = "padding:0.8em 0.6em 0.1em;text-align:left"
    head = f'<tr><th colspan="{len(HEADS)}" style="{style}">{html.escape(world)}</th></tr>'
    return f"<tbody>{head}{''.join(_html_row('td', row) for row in rows)}</tbody>"


def _html_row(tag: str, cells: Sequence[str]) -> str:
    style = "padding:0.1em 0.6em;white-space:nowrap;text-align"
    sides = ("left", *["right"] * (len(cells) - 1))
    inside = (f'<{tag} style="{style}:{side}">{html.escape(c)}</{tag}>' for c, side in zip(cells, sides, strict=True))
    return f"<tr>{''.join(inside)}</tr>"


def _image(figure: Figure) -> str:
    data = base64.b64encode(png(figure)).decode("ascii")
    width = round(PIXELS_PER_INCH * figure.get_size_inches()[0])
    style = f"width:{width}px;max-width:100%;height:auto"
    return f'<img alt="{PICTURE_ALT}" style="{style}" src="data:image/png;base64,{data}">'
