"""What a comparison gives back: tables, a figure, and a look for the notebook."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from driftbandits.comparing.shown import html_page, text_page
from driftbandits.experiments.judging.results import RunRow, cell_table, curve_table, summary_table
from driftbandits.intervals import t_interval
from driftbandits.plots.data import ChangesPanel, RegretPanel, changes_panels, regret_curves, regret_panels
from driftbandits.plots.figures import regret_figure, regret_frame
from driftbandits.plots.palette import LineStyle, line_styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AS_WORLD = {"experiment": "world"}
AS_EXPERIMENT = {"world": "experiment"}
ALL_POLICIES = "Policies"  # what `regret_panels` calls a panel that holds all of many
LONGEST_TITLE = 46  # letters, of a panel


@dataclass(frozen=True, eq=False)  # tables have no single truth value to compare by
class Comparison:
    """Policies side by side: what `compare` gives back.

    Parameters
    ----------
    summary : DataFrame, a row per world and policy: mean final `regret` with its `standard_error`; `behind`, the mean
        difference over seeds to the policy with the least regret in that world, and the ends of its 95 % interval;
        changes found and missed, false alarms and seconds per run. The best is chosen by the same runs, so with few
        seeds and many policies the others look further behind than they are
    runs : DataFrame, a row per run
    curves : DataFrame, a row per point of a regret curve, cumulative
    true_changes : rounds in which each world changes; empty if they differ from seed to seed
    reporting : labels of the policies that report changes, or did

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

    def plot(self) -> Figure:
        """Mean cumulative regret with bands of one standard error, one panel per world.

        Dotted lines are true jumps, shades true drift. Where policies reported changes, a panel more has their rounds.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        MissingExtraError
            Without matplotlib.
        """
        return regret_figure(self._panels(), palette=self._palette())

    def __repr__(self) -> str:
        """The summary as a text to read."""
        return text_page(self.summary, self.reporting)

    def _repr_html_(self) -> str:
        """The summary and the panels of the figure, as a notebook shows them."""
        panels, palette = self._panels(), self._palette()
        frame = regret_frame(panels)
        figures = [regret_figure([panel], palette=palette, frame=frame) for panel in panels]
        return html_page(self.summary, self.reporting, figures)

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


def _title(world: str, part: str) -> str:
    """A panel's title: its world, cut so that it fits, and which policies it has if not all."""
    ending = "" if part in ("", ALL_POLICIES) else f": {part[0].lower()}{part[1:]}"
    room = LONGEST_TITLE - len(ending)
    return f"{world if len(world) <= room else world[: room - 1] + '…'}{ending}"


def tabulated(
    rows: Sequence[RunRow], *, true_changes: Mapping[str, Sequence[int]], reporting: frozenset[str]
) -> Comparison:
    """The comparison of these runs."""
    runs = cell_table(rows)
    summary = summary_table(runs).rename(columns=AS_WORLD)
    runs = runs.rename(columns=AS_WORLD)
    return Comparison(
        summary=_with_differences(summary, runs),
        runs=runs,
        curves=curve_table(rows).rename(columns=AS_WORLD),
        true_changes=dict(true_changes),
        reporting=reporting | set(runs.loc[runs["changes"].map(len) > 0, "policy"]),
    )


def _with_differences(summary: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The summary with the paired differences to the best policy of each world, behind the regret."""
    columns: dict[str, list[float]] = {"behind": [], "behind_low": [], "behind_high": []}
    for world, group in summary.groupby("world", sort=False):
        regrets = runs[runs["world"] == world].pivot_table(index="seed", columns="policy", values="regret")
        best = regrets[regrets.mean().idxmin()]
        for policy in group["policy"]:
            interval = t_interval((regrets[policy] - best).to_numpy())
            for column, value in zip(columns, (interval.estimate, interval.low, interval.high), strict=True):
                columns[column].append(value)
    place = list(summary.columns).index("standard_error") + 1
    for shift, (name, values) in enumerate(columns.items()):
        summary.insert(place + shift, name, values)
    return summary
