"""Sizes beyond which a run would not end, or not fit into memory; refused before anything of that size is built.

What worlds and policies themselves take, they check against the memory there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driftbandits.environments import Environment
from driftbandits.errors import InputError
from driftbandits.experiments.definitions.specs import Cell, Experiment
from driftbandits.experiments.running.cost import work_of
from driftbandits.memory import check_memory
from driftbandits.showing import shown

MOST_ROUNDS = 10**8  # of one run: an hour of the quickest policy
ROUND_BYTES = 36  # of a round in a trace
MOST_ARMS = 10**5  # where the kernel tells every arm from every other, their features take 80 GB already
MOST_RUNS = 10**6  # of one experiment: each is a file
YEAR = 365.25 * 24 * 3600
MOST_YEARS = 10  # on one core

STRETCHES = "play it in stretches from Python: simulate(policy, world, rounds=...)"
PARTS = "play some of its seeds at a time, as in seeds: [0, 1, 2]"


def check_seed_count(count: int) -> int:
    """Give `count` back if so many seeds can be played."""
    if count > MOST_RUNS:
        raise InputError(f"seeds must be at most {MOST_RUNS:,}, got {shown(count)}; {PARTS}")
    return count


def check_sizes(what: str, settings: Mapping[str, Any]) -> None:
    """Refuse settings of a registered world that no machine could build or play."""
    _check_rounds(what, _whole(settings, "horizon"))
    _check_arms(what, _whole(settings, "size"))


def check_world(what: str, world: Environment) -> None:
    """Refuse a world, of a user's own say, that is too large to be played."""
    _check_rounds(what, world.horizon)
    _check_arms(what, len(world.arms))


def check_work(experiment: Experiment) -> None:
    """Refuse an experiment that would take years, by an estimate of the work."""
    runs, seconds = 0, 0.0
    for policy in experiment.policies:
        own = len(experiment.seeds) if policy.seeds is None else min(policy.seeds, len(experiment.seeds))
        runs += own
        seconds += own * work_of(Cell(experiment.environment, experiment.settings, policy, 0))
    if runs > MOST_RUNS:
        raise InputError(f"{experiment.id} has {runs:,} runs, more than {MOST_RUNS:,}; {PARTS}")
    if seconds > MOST_YEARS * YEAR:
        raise InputError(
            f"{experiment.id} would take about {seconds / YEAR:,.0f} years on one core, more than {MOST_YEARS}; use a "
            f"shorter horizon, or {PARTS}"
        )


def _check_rounds(what: str, rounds: int) -> None:
    if rounds > MOST_ROUNDS:
        raise InputError(f"{what} has {shown(rounds)} rounds, more than {MOST_ROUNDS:,} in one run; {STRETCHES}")
    check_memory(ROUND_BYTES * rounds, f"what happens in the {rounds:,} rounds of {what}", cure=STRETCHES)


def _check_arms(what: str, arms: int) -> None:
    if arms > MOST_ARMS:
        raise InputError(f"{what} has {shown(arms)} arms, more than {MOST_ARMS:,}; use fewer, a sample of them say")


def _whole(settings: Mapping[str, Any], name: str) -> int:
    """A setting that is a whole number; 0 for any other, which the world itself refuses or explains."""
    value = settings.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
