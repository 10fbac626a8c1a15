"""Passes: the whole report again and again, sharper each time, so that there is something to read from the beginning.

What a pass has in common with those before it is not played again: a run has one key, whichever pass asks for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from driftbandits.experiments.definitions.lengths import with_networks_narrow
from driftbandits.experiments.definitions.specs import Cell, Experiment, cells_of
from driftbandits.experiments.files.store import distinct
from driftbandits.experiments.groups import GROUPS, default_groups
from driftbandits.experiments.groups.group import Group

TASTE, WIDE_NETWORKS = "a taste of everything", "networks at full width"


@dataclass(frozen=True)
class Step:
    """What a pass sharpens: groups by name, on their first `seeds` (None: all), but for networks at full width."""

    title: str
    groups: tuple[str, ...]
    seeds: int | None = None


# Between the taste and the networks: what readers look at first comes first, and five seeds, where verdicts need three,
# before all of them.
_GROWTH_AND_LINEAR = ("growth", "linear", "linear/growth")
STEPS = (
    Step("all seeds of the kernel rows in the paper's figures", ("paper",)),
    Step("growth of regret and linear bandits, five seeds", _GROWTH_AND_LINEAR, seeds=5),
    Step("all seeds of all kernel and linear rows", (*_GROWTH_AND_LINEAR, "paper/d2", "paper/d3", "paper/sizes")),
)


@dataclass(frozen=True)
class Pass:
    """What is played before the report is written again: `title` says what is new in it, `experiments` are all of it.

    >>> [one.title for one in standard_passes()][0]
    'a taste of everything'
    """

    title: str
    experiments: tuple[Experiment, ...]

    @property
    def cells(self) -> list[Cell]:
        """All its cells, those with equal keys too."""
        return [cell for experiment in self.experiments for cell in cells_of(experiment)]

    @property
    def distinct_cells(self) -> dict[str, Cell]:
        """Its cells by key."""
        return distinct(self.cells)


def standard_passes() -> tuple[Pass, ...]:
    """The passes of what is played when nothing is named; the last has it all as it is defined."""
    names = default_groups()
    return make_passes([group for group in GROUPS if any(group.is_part_of(name) for name in names)], STEPS)


def make_passes(groups: Sequence[Group], steps: Sequence[Step]) -> tuple[Pass, ...]:
    """A taste of the groups, one pass per step, and last everything as it is defined, networks too."""
    return (
        Pass(TASTE, _after(groups, [])),
        *(Pass(step.title, _after(groups, steps[: k + 1])) for k, step in enumerate(steps)),
        Pass(WIDE_NETWORKS, tuple(experiment for group in groups for experiment in group.experiments)),
    )


def _after(groups: Sequence[Group], steps: Sequence[Step]) -> tuple[Experiment, ...]:
    """What there is after these steps: of a group that none of them names a taste."""
    found: list[Experiment] = []
    for group in groups:
        own = [step for step in steps if group.name in step.groups]
        if own:
            sharp = map(with_networks_narrow, group.experiments)
            found += [dataclasses.replace(experiment, seeds=experiment.seeds[: own[-1].seeds]) for experiment in sharp]
        else:
            found += [taste for experiment in group.experiments if (taste := group.quick(experiment)) is not None]
    return tuple(found)


def left_to_play(passes: Sequence[Pass], held: set[str]) -> list[dict[str, Cell]]:
    """What each pass adds to those before it, by key; of `held` nothing is left."""
    known, added = set(held), []
    for one in passes:
        new = {key: cell for key, cell in one.distinct_cells.items() if key not in known}
        known.update(new)
        added.append(new)
    return added


def first_to_play(added: Sequence[dict[str, Cell]]) -> int:
    """Where to begin: with the last of the passes that lack nothing, whose report can be written at once.

    >>> cell = Cell("switching/1", {}, None, 0)
    >>> first_to_play([{}, {}, {"key": cell}, {}]), first_to_play([{"key": cell}, {}])
    (1, 0)
    """
    lacking = next((number for number, cells in enumerate(added) if cells), len(added))
    return max(lacking - 1, 0)
