"""All groups of experiments in the order of the chapters, how they are found by name, judged, and played in passes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.results import Results
from driftbandits.experiments.specs import Experiment
from reproduction.autobandit import AUTOBANDIT_YARDSTICK
from reproduction.calibrated import CALIBRATED_OPKB_GROUP
from reproduction.catalogue import by_id, with_networks_narrow
from reproduction.comparison import TUNED_COMPARISON
from reproduction.growth import GROWTH_OF_REGRET
from reproduction.linear import LINEAR_BANDITS, LINEAR_TABLE_1
from reproduction.paper import (
    BEYOND,
    ENVIRONMENT_1,
    ENVIRONMENT_2,
    FIVE_WEIGHT_MATRICES,
    PAPER_FIGURES,
    PAPER_IN_OTHER_DIMENSIONS,
    PAPER_SIZES,
    SIZES_OF_DISCOUNTS,
    SIZES_OF_WINDOWS,
    SLOW_COSINE,
)
from reproduction.passes import Pass
from reproduction.real_data import REAL_SERIES
from reproduction.real_suite import REAL_SUITE_GROUP
from reproduction.suite import SUITE_OF_WORLDS
from reproduction.topic import Group, Judgements

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
    REAL_SUITE_GROUP,
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
    """Experiments by ids, groups (`suite`), or beginnings of ids (`switching`, `growth/rounds`), each once.

    Raises InputError for a name that nothing has, with the nearest one.

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
                "reproduction.EXPERIMENTS"
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


def judge(results: Results) -> Judgements:
    """Judge results: the paper's claims, and the targets of every group.

    >>> from driftbandits.experiments.results import collect
    >>> judge(collect([], []))
    Judgements(each=())
    """
    judges = dict.fromkeys(group.judge for group in GROUPS if group.judge is not None)
    given = [judgement(results) for judgement in judges]
    return Judgements(tuple(judgement for judgement in given if judgement is not None))


FIRST_PASS, LAST_PASS = "five claims, and figures 1a, 1b and 2b", "everything"
# What the first pass plays, on how many of its seeds: fixed before anything was judged by them. Fewer leave F1a-3
# undecided; what goes beyond the paper can wait.
FIRST_SEEDS: Mapping[str, int] = {
    ENVIRONMENT_1: 8,
    ENVIRONMENT_2: 8,
    SLOW_COSINE: 8,
    SIZES_OF_WINDOWS: 16,
    SIZES_OF_DISCOUNTS: 6,
}


@dataclass(frozen=True)
class Step:
    """What a pass adds: groups by name, on their first `seeds` (None: all), their networks narrow or at full width."""

    title: str
    groups: tuple[str, ...]
    seeds: int | None = None
    wide: bool = False


# Between the first pass and the last: six seeds are all that the rivals of the sweeps play.
STEPS = (
    Step("growth of regret, six seeds", ("growth", "linear/growth"), seeds=6),
    Step("all rows of the paper's figures, networks at full width", ("paper", "paper/sizes"), wide=True),
)


def standard_passes() -> tuple[Pass, ...]:
    """The passes of what is played when nothing is named; the last has it all as it is defined."""
    names = default_groups()
    groups = [group for group in GROUPS if any(group.is_part_of(name) for name in names)]
    return make_passes(groups, STEPS, FIRST_SEEDS)


def make_passes(groups: Sequence[Group], steps: Sequence[Step], first: Mapping[str, int]) -> tuple[Pass, ...]:
    """The `first` experiments on so many seeds, one pass per step, and last everything as it is defined."""
    return (
        Pass(FIRST_PASS, _after(groups, [], first)),
        *(Pass(step.title, _after(groups, steps[: k + 1], first)) for k, step in enumerate(steps)),
        Pass(LAST_PASS, tuple(experiment for group in groups for experiment in group.experiments)),
    )


def _after(groups: Sequence[Group], steps: Sequence[Step], first: Mapping[str, int]) -> tuple[Experiment, ...]:
    """What there is after these steps: of a group that none of them names, what the first pass has."""
    found: list[Experiment] = []
    for group in groups:
        own = [step for step in steps if group.name in step.groups]
        if own:
            sharp = group.experiments if own[-1].wide else map(with_networks_narrow, group.experiments)
            found += [dataclasses.replace(experiment, seeds=experiment.seeds[: own[-1].seeds]) for experiment in sharp]
        else:
            found += [_headline(e, first[e.id]) for e in group.experiments if e.id in first]
    return tuple(found)


def _headline(experiment: Experiment, seeds: int) -> Experiment:
    """The paper's own policies and their rivals on the first seeds, trained networks narrow."""
    policies = tuple(policy for policy in experiment.policies if policy not in BEYOND)
    return with_networks_narrow(dataclasses.replace(experiment, policies=policies, seeds=experiment.seeds[:seeds]))
