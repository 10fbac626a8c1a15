"""What `compare` gives back: tables, a figure, and a rendering as text and for notebooks."""

from __future__ import annotations

import base64
import dataclasses
import html
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from driftbandits._util.checks import check_positive
from driftbandits._util.intervals import CONFIDENCE_LEVEL, t_interval
from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.results import (
    MOST_COUNTED_CHANGES_PER_RUN,
    RunRow,
    cell_table,
    curve_table,
    summary_table,
)
from driftbandits.plots.frame import Frame, LineStyle, columns_of, line_styles, png
from driftbandits.plots.regret import (
    ChangesPanel,
    RegretPanel,
    changes_panels,
    regret_curves,
    regret_figure,
    regret_frame,
    regret_panels,
)
from driftbandits.text import aligned, counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AS_WORLD = {"experiment": "world"}
AS_EXPERIMENT = {"world": "experiment"}
ALL_POLICIES = "Policies"  # what `regret_panels` calls a panel that holds all of many
LONGEST_TITLE = 46  # letters, of a panel


@dataclass(frozen=True, eq=False)  # tables have no single truth value to compare by
class Comparison:
    """Policies side by side: the result of `compare`.

    Parameters
    ----------
    summary : DataFrame, a row per world and policy: mean final `regret` with its `standard_error`; `behind`, the mean
        difference over seeds to the policy with the least regret in that world, and the ends of its 95 % interval;
        changes found and missed and false alarms (blank for policies that report no changes), turnover (the share of
        rounds with another arm than the round before) and seconds per run. The best is chosen by the same runs, so with
        few seeds and many policies the others look further behind than they are; with a `reference`, `behind` is the
        difference to that policy, and its intervals hold for all other policies of a world together
    runs : DataFrame, a row per run
    curves : DataFrame, a row per point of a regret curve, cumulative
    true_changes : rounds in which each world changes; empty if they differ from seed to seed
    reporting : labels of the policies that report changes, or did
    reference : label of the policy that the others are compared with; None for the best in each world

    >>> import driftbandits as db
    >>> world = db.environments.create("switching/1", seed=0, horizon=200, switches=(100,), size=10)
    >>> found = db.compare([db.Uniform, db.GPUCB], world, seeds=2, jobs=1)
    >>> sorted(found.summary["policy"]), len(found.runs), dict(found.true_changes)
    (['GPUCB', 'Uniform'], 4, {'switching/1': [100]})
    """

    summary: pd.DataFrame
    runs: pd.DataFrame
    curves: pd.DataFrame
    true_changes: Mapping[str, Sequence[int]]
    reporting: frozenset[str]
    reference: str | None = None

    def to_csv(self) -> str:
        """The summary as CSV, all digits.

        Returns
        -------
        str
        """
        return str(self.summary.to_csv(index=False))

    def to_latex(self) -> str:
        """Mean final regret ± standard error of every policy in every world, as a table of LaTeX with booktabs.

        The least regret of a world is bold, and so is whatever is not told apart from it: whose interval of the
        difference to it reaches 0. With a `reference`, policies that are told apart from it have a star.

        Returns
        -------
        str
        """
        return latex_table(self.summary, self.reference)

    def plot(self, width: float | str | None = None) -> Figure:
        """Mean cumulative regret with bands of one standard error, one panel per world.

        Dotted lines are true jumps, shades true drift. Where policies reported changes, a panel more has their rounds.

        Parameters
        ----------
        width : of the figure in inches, or a style file whose text is so wide: "aistats", "icml", "iclr", "jmlr",
            "neurips", "tmlr", or "column" for one column of two. By default what suits a screen

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        InputError
            For a width that is none, or an unknown style.
        MissingExtraError
            Without matplotlib.
        """
        panels = self._panels()
        return regret_figure(panels, palette=self._palette(), frame=None if width is None else _frame(panels, width))

    def __repr__(self) -> str:
        """The summary as a text to read."""
        return text_page(self.summary, self.reporting, self.reference)

    def _repr_html_(self) -> str:
        """The summary and the panels of the figure, as a notebook shows them."""
        panels, palette = self._panels(), self._palette()
        frame = regret_frame(panels)
        figures = [regret_figure([panel], palette=palette, frame=frame) for panel in panels]
        return html_page(self.summary, self.reporting, figures, self.reference)

    def _panels(self) -> list[RegretPanel | ChangesPanel]:
        curves, runs = self.curves.rename(columns=AS_EXPERIMENT), self.runs.rename(columns=AS_EXPERIMENT)
        panels: list[RegretPanel | ChangesPanel] = []
        for world, changes in self.true_changes.items():
            parts = regret_panels(regret_curves(curves, runs, world), true_changes=changes)
            both: list[RegretPanel | ChangesPanel] = [*parts, *changes_panels(parts)]
            panels += [dataclasses.replace(part, title=_title(world, part.title)) for part in both]
        return panels

    def _palette(self) -> dict[str, LineStyle]:
        return line_styles(self.summary["policy"].unique())


# Inches of text across, of the style files that reviewers know.
PAPER_WIDTHS = {"aistats": 6.75, "column": 3.25, "icml": 6.75, "iclr": 5.5, "jmlr": 6.0, "neurips": 5.5, "tmlr": 6.5}
LEAST_PANEL_INCHES = 1.6  # narrower ones have no room for their axes


def _frame(panels: Sequence[RegretPanel | ChangesPanel], width: float | str) -> Frame:
    """Sizes of panels that together are so wide."""
    if isinstance(width, str) and width not in PAPER_WIDTHS:
        known = ", ".join(PAPER_WIDTHS)
        raise InputError(f"no style is called {width!r}; {did_you_mean(width, PAPER_WIDTHS)}known: {known}")
    inches = PAPER_WIDTHS[width] if isinstance(width, str) else check_positive("width", width)
    each = inches / columns_of(len(panels))
    if each < LEAST_PANEL_INCHES:
        raise InputError(
            f"{counted(len(panels), 'panel')} need more than {inches:g} inches; compare fewer worlds at once"
        )
    usual = regret_frame(panels)
    return dataclasses.replace(usual, width=each, height=usual.height * max(each / usual.width, 0.6))


def _title(world: str, part: str) -> str:
    """A panel's title: its world, cut so that it fits, and which policies it has if not all."""
    ending = "" if part in ("", ALL_POLICIES) else f": {part[0].lower()}{part[1:]}"
    room = LONGEST_TITLE - len(ending)
    return f"{world if len(world) <= room else world[: room - 1] + '…'}{ending}"


def tabulated(
    rows: Sequence[RunRow],
    *,
    true_changes: Mapping[str, Sequence[int]],
    reporting: frozenset[str],
    reference: str | None = None,
) -> Comparison:
    """The comparison of these runs."""
    runs = cell_table(rows)
    summary = summary_table(runs).rename(columns=AS_WORLD)
    runs = runs.rename(columns=AS_WORLD)
    reporting |= set(runs.loc[runs["changes"].map(len) > 0, "policy"])
    silent = ~summary["policy"].isin(reporting)
    counts = ["changes_found", "changes_missed", "false_alarms_per_run"]
    summary[counts] = summary[counts].astype("float64").mask(silent)
    return Comparison(
        summary=_with_differences(summary, runs, reference),
        runs=runs,
        curves=curve_table(rows).rename(columns=AS_WORLD),
        true_changes=dict(true_changes),
        reporting=reporting,
        reference=reference,
    )


def _with_differences(summary: pd.DataFrame, runs: pd.DataFrame, reference: str | None) -> pd.DataFrame:
    """The summary with the paired differences to the reference, or the best policy of each world, behind the regret."""
    columns: dict[str, list[float]] = {"behind": [], "behind_low": [], "behind_high": []}
    for world, group in summary.groupby("world", sort=False):
        regrets = runs[runs["world"] == world].pivot_table(index="seed", columns="policy", values="regret")
        best = regrets[regrets.mean().idxmin() if reference is None else reference]
        shared = 1 if reference is None else max(len(group) - 1, 1)  # how many intervals hold at once
        for policy in group["policy"]:
            interval = t_interval((regrets[policy] - best).to_numpy(), level=1.0 - (1.0 - CONFIDENCE_LEVEL) / shared)
            for column, value in zip(columns, (interval.estimate, interval.low, interval.high), strict=True):
                columns[column].append(value)
    place = list(summary.columns).index("standard_error") + 1
    for shift, (name, values) in enumerate(columns.items()):
        summary.insert(place + shift, name, values)
    return summary


NOTHING = "–"


def _heads(reference: str | None) -> tuple[str, ...]:
    behind = "behind the best [95 %]" if reference is None else f"behind {reference} [95 % at once]"
    return "policy", "regret ± s.e.", behind, "changes found", "false alarms per run", "seconds per run"


PIXELS_PER_INCH = 96
PICTURE_ALT = "Line chart: mean cumulative regret of every policy; where it ends is in the table."
Rows = list[list[str]]


def text_page(summary: pd.DataFrame, reporting: frozenset[str], reference: str | None) -> str:
    """The table as text."""
    tables, heads = _tables(summary, reporting), _heads(reference)
    head, *body = aligned([heads, *(row for rows in tables.values() for row in rows)], left=[True, *[False] * 5])
    lines, left = [_headline(summary), "", head], iter(body)
    for world, rows in tables.items():
        lines += ["", f"{world}:", *itertools.islice(left, len(rows))]
    return "\n".join(lines)


def html_page(
    summary: pd.DataFrame, reporting: frozenset[str], figures: Sequence[Figure], reference: str | None
) -> str:
    """The table as HTML, then the figures, side by side where there is room; it needs nothing from elsewhere."""
    body = "".join(_html_world(world, rows) for world, rows in _tables(summary, reporting).items())
    return (
        f"<p>{html.escape(_headline(summary))}</p>"
        f'<div style="max-width:100%;overflow-x:auto"><table>{_html_row("th", _heads(reference))}{body}</table></div>'
        f'<div style="display:flex;flex-wrap:wrap">{"".join(map(_image, figures))}</div>'
    )


LATEX_ESCAPES = str.maketrans({char: f"\\{char}" for char in "&%$#_{}"} | {"~": r"\textasciitilde{}", "^": r"\^{}"})


def latex_table(summary: pd.DataFrame, reference: str | None) -> str:
    """A row per policy, a column per world; see `Comparison.to_latex`."""
    worlds, labels = list(summary["world"].unique()), list(summary["policy"].unique())
    cells = {(row["world"], row["policy"]): row for row in summary.to_dict("records")}
    lines = [
        r"\begin{tabular}{l" + "r" * len(worlds) + "}",
        r"\toprule",
        " & ".join(["", *(_latex(world) for world in worlds)]) + r" \\",
        r"\midrule",
        *(
            " & ".join([_latex(label), *(_latex_cell(cells[world, label], reference) for world in worlds)]) + r" \\"
            for label in labels
        ),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _latex(text: object) -> str:
    return str(text).replace("\\", " ").translate(LATEX_ESCAPES)


def _latex_cell(record: Mapping[Any, Any], reference: str | None) -> str:
    digits = _decimals(record["regret"])
    mean = f"{record['regret']:,.{digits}f}"
    error = "" if math.isnan(record["standard_error"]) else rf" \pm {record['standard_error']:,.{digits}f}"
    apart = record["behind_low"] > 0 or record["behind_high"] < 0
    if reference is not None:
        return f"${mean}{error}{'^*' if apart else ''}$"
    return f"${mean}{error}$" if apart else rf"$\mathbf{{{mean}{error}}}$"


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
    changes = int(record["changes_found"] + record["changes_missed"]) if reports else 0
    counts = reports and changes <= MOST_COUNTED_CHANGES_PER_RUN * record["seeds"]  # else it drifts
    digits = _decimals(record["regret"])
    error = "" if math.isnan(record["standard_error"]) else f" ± {record['standard_error']:,.{digits}f}"
    return [
        str(record["policy"]),
        f"{record['regret']:,.{digits}f}{error}",
        _behind(record, digits),
        f"{int(record['changes_found']):,} of {changes:,}" if counts and changes else NOTHING,
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


def _html_world(world: str, rows: Rows) -> str:
    style = "padding:0.8em 0.6em 0.1em;text-align:left"
    head = f'<tr><th colspan="{len(rows[0])}" style="{style}">{html.escape(world)}</th></tr>'
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
