"""Groups: every experiment there is by group; one module per group, and here the one list of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.definitions.specs import Experiment, by_id
from driftbandits.experiments.groups.calibrated_opkb import CALIBRATED_OPKB_GROUP
from driftbandits.experiments.groups.comparison import TUNED_COMPARISON
from driftbandits.experiments.groups.five_matrices import FIVE_WEIGHT_MATRICES
from driftbandits.experiments.groups.group import Group
from driftbandits.experiments.groups.growth import GROWTH_OF_REGRET
from driftbandits.experiments.groups.linear import LINEAR_BANDITS, LINEAR_TABLE_1
from driftbandits.experiments.groups.paper import PAPER_FIGURES, PAPER_IN_OTHER_DIMENSIONS, PAPER_SIZES
from driftbandits.experiments.groups.real_series import REAL_SERIES
from driftbandits.experiments.groups.suite import SUITE_OF_WORLDS
from driftbandits.experiments.groups.yardstick import AUTOBANDIT_YARDSTICK

# In the order of the chapters on a page.
GROUPS: tuple[Group, ...] = (
    PAPER_FIGURES,
    *PAPER_IN_OTHER_DIMENSIONS,
    PAPER_SIZES,
    GROWTH_OF_REGRET,
    LINEAR_BANDITS,
    LINEAR_TABLE_1,
    TUNED_COMPARISON,
    SUITE_OF_WORLDS,
    REAL_SERIES,
    AUTOBANDIT_YARDSTICK,
    CALIBRATED_OPKB_GROUP,
    FIVE_WEIGHT_MATRICES,
)
OWN = Group("own", "Experiments of your own", "", ())  # whatever belongs to no other group
EXPERIMENTS: dict[str, Experiment] = by_id(experiment for group in GROUPS for experiment in group.experiments)


def group_names() -> list[str]:
    """What asks for whole groups; `paper` stands for its parts too.

    >>> group_names()[:3]
    ['paper', 'growth', 'linear']
    """
    return list(dict.fromkeys(group.name.partition("/")[0] for group in GROUPS))


def default_groups(*, full: bool = False) -> list[str]:
    """The groups that are played when nothing is named, in a standard or a full run."""
    wanted = ("always", "in full") if full else ("always",)
    return list(dict.fromkeys(group.name.partition("/")[0] for group in GROUPS if group.played in wanted))


def group_of(name: str) -> Group:
    """The group that an experiment called `name` belongs to: the one that lists it, or else one that welcomes it.

    >>> group_of("switching/1/d3").name, group_of("suite/of my own").name, group_of("mine").name
    ('paper/d3', 'suite', 'own')
    """
    listing = [group for group in GROUPS if group.holds(name)]
    welcoming = [group for group in GROUPS if group.welcomes(name)]
    return [*listing, *welcoming, OWN][0]


def find_experiments(names: Sequence[str]) -> list[Experiment]:
    """Experiments by their names, each once.

    Parameters
    ----------
    names : ids, groups (`suite`), or beginnings of ids (`switching`, `growth/rounds`)

    Returns
    -------
    list of Experiment

    Raises
    ------
    InputError
        For a name that nothing has, with the nearest one.

    >>> [experiment.id for experiment in find_experiments(["switching/2", "cosine/slow/d2"])]
    ['switching/2', 'cosine/slow/d2']
    """
    found: dict[str, Experiment] = {}
    for name in names:
        matches = _matches(name)
        if not matches:
            hint = did_you_mean(name, [*EXPERIMENTS, *group_names()])
            raise InputError(
                f"no experiment is called {name!r}; {hint}groups: {', '.join(group_names())}; all ids are in "
                "driftbandits.experiments.EXPERIMENTS"
            )
        found.update(matches)
    return list(found.values())


def _matches(name: str) -> Mapping[str, Experiment]:
    groups = [group for group in GROUPS if group.is_part_of(name)]
    if groups:
        return _members(groups)
    if name in EXPERIMENTS:
        return {name: EXPERIMENTS[name]}
    # what takes hours is played when its group is named, not because its ids begin like others
    quicker = _members(group for group in GROUPS if group.played != "in full")
    return {key: experiment for key, experiment in quicker.items() if key.startswith(f"{name}/")}


def _members(groups: Iterable[Group]) -> dict[str, Experiment]:
    return by_id(experiment for group in groups for experiment in group.experiments)
