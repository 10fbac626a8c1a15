"""Sizes beyond which a run would not end, or not fit into memory; refused before anything of that size is built.

What worlds and policies themselves take, they check against the memory there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driftbandits.environments import Environment
from driftbandits.errors import InputError
from driftbandits.experiments.definitions.seeds import MOST_RUNS_PER_EXPERIMENT, PLAY_FEWER_SEEDS
from driftbandits.experiments.definitions.specs import Cell, Experiment
from driftbandits.experiments.running.cost import cost_of
from driftbandits.memory import check_memory
from driftbandits.showing import shown

MOST_ROUNDS_PER_RUN = 10**8  # an hour of the quickest policy
TRACE_BYTES_PER_ROUND = 36
MOST_ARMS = 10**5  # where the kernel tells every arm from every other, their features take 80 GB already
SECONDS_PER_YEAR = 365.25 * 24 * 3600
MOST_YEARS_ON_ONE_CORE = 10

PLAY_IN_STRETCHES = "play it in stretches from Python: simulate(policy, world, rounds=...)"


def check_sizes(what: str, settings: Mapping[str, Any]) -> None:
    """Refuse settings of a registered world that no machine could build or play."""
    _check_rounds(what, _whole(settings, "horizon"))
    _check_arms(what, _whole(settings, "size"))


def check_world(what: str, world: Environment) -> None:
    """Refuse a world, of a user's own say, that is too large to be played."""
    _check_rounds(what, world.horizon)
    _check_arms(what, len(world.arms))


def check_cost(experiment: Experiment) -> None:
    """Refuse an experiment that would take years, by an estimate of its cost."""
    runs, seconds = 0, 0.0
    for policy in experiment.policies:
        own = len(experiment.seeds) if policy.seeds is None else min(policy.seeds, len(experiment.seeds))
        runs += own
        seconds += own * cost_of(Cell(experiment.environment, experiment.settings, policy, 0))
    if runs > MOST_RUNS_PER_EXPERIMENT:
        raise InputError(
            f"{experiment.id} has {runs:,} runs, more than {MOST_RUNS_PER_EXPERIMENT:,}; {PLAY_FEWER_SEEDS}"
        )
    years = seconds / SECONDS_PER_YEAR
    if years > MOST_YEARS_ON_ONE_CORE:
        raise InputError(
            f"{experiment.id} would take about {years:,.0f} years on one core, more than {MOST_YEARS_ON_ONE_CORE}; "
            f"use a shorter horizon, or {PLAY_FEWER_SEEDS}"
        )


def _check_rounds(what: str, rounds: int) -> None:
    if rounds > MOST_ROUNDS_PER_RUN:
        most = f"{MOST_ROUNDS_PER_RUN:,} in one run"
        raise InputError(f"{what} has {shown(rounds)} rounds, more than {most}; {PLAY_IN_STRETCHES}")
    trace = f"what happens in the {rounds:,} rounds of {what}"
    check_memory(TRACE_BYTES_PER_ROUND * rounds, trace, cure=PLAY_IN_STRETCHES)


def _check_arms(what: str, arms: int) -> None:
    if arms > MOST_ARMS:
        raise InputError(f"{what} has {shown(arms)} arms, more than {MOST_ARMS:,}; use fewer, a sample of them say")


def _whole(settings: Mapping[str, Any], name: str) -> int:
    """A setting that is a whole number; 0 for any other, which the world itself refuses or explains."""
    value = settings.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
