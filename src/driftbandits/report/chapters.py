"""The chapters of the page: one per group of which anything was played."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from driftbandits.configuration.references import load
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.experiments.groups import GROUPS, OWN, group_of
from driftbandits.experiments.groups.group import Group
from driftbandits.report.context import ReportContext
from driftbandits.report.sections import Block, Section

Blocks = Callable[[ReportContext, Sequence[Experiment]], Sequence[Block]]


def make_chapters(context: ReportContext) -> list[Section]:
    """All chapters that hold anything."""
    members = sort_experiments(context.results.experiments)
    sections = [_chapter(context, group, members[group.anchor]) for group in (*GROUPS, OWN) if members[group.anchor]]
    return [section for section in sections if section.blocks]


def _chapter(context: ReportContext, group: Group, experiments: Sequence[Experiment]) -> Section:
    return Section(group.anchor, group.title, group.lead, tuple(blocks_of(group)(context, experiments)))


def blocks_of(group: Group) -> Blocks:
    """The function that makes the chapter of a group."""
    return cast(Blocks, load(group.blocks))


def sort_experiments(experiments: Sequence[Experiment]) -> dict[str, list[Experiment]]:
    """Experiments by the anchors of their chapters; whatever belongs to none of ours is the user's own.

    >>> sort_experiments([Experiment("mine", "Mine", "switching/1", {}, ())])["own"][0].id
    'mine'
    """
    members: dict[str, list[Experiment]] = {group.anchor: [] for group in (*GROUPS, OWN)}
    for experiment in experiments:
        members[group_of(experiment.id).anchor].append(experiment)
    return members
