"""What AutoBandit is judged by: the suite with baselines that know more than it does, the paper's worlds, real series.

In every suite world play windows, discounts and GP-UCB tuned for that world and told its kernel and noise (the hard
opponents), every baseline with the one setting that was best over all worlds (the fair ones), and where the world
switches a GP-UCB that is told when (about the least that can be had). Settings come from tuning seeds alone. On the
paper's worlds ADA-OPKB is the opponent; on real series every baseline is, with its one setting and with those found on
environment 1.
"""

from __future__ import annotations

import dataclasses

from driftbandits.experiments.definitions.ids import (
    ENVIRONMENT_1,
    ENVIRONMENT_2,
    PAPER_TITLES,
    SLOW_COSINE,
    STATIONARY_PREFIX,
    YARDSTICK_PAPER_PREFIX,
    YARDSTICK_PREFIX,
)
from driftbandits.experiments.definitions.oracle_settings import oracle_settings, single_settings, tuned_here
from driftbandits.experiments.definitions.prior_knowledge import informed_spec, kernel_of
from driftbandits.experiments.definitions.real_series import REAL
from driftbandits.experiments.definitions.rows import ADA_OPKB, ADA_OPKB_PUBLISHED, AUTOBANDIT
from driftbandits.experiments.definitions.specs import HORIZON, Experiment, PolicySpec, by_id
from driftbandits.experiments.definitions.suite import SUITE, SUITE_SEEDS, suite_name

KNOWS_CHANGES_LABEL = "GPUCB told the changes"


def _in_suite(world: Experiment) -> Experiment:
    ada_opkb = dataclasses.replace(ADA_OPKB, kernel=kernel_of(world))
    policies = (AUTOBANDIT, *tuned_here(world), *_knows_changes(world), *single_settings(world), ada_opkb)
    return dataclasses.replace(world, id=YARDSTICK_PREFIX + suite_name(world), policies=policies, seeds=SUITE_SEEDS)


def _knows_changes(world: Experiment) -> tuple[PolicySpec, ...]:
    """GP-UCB that starts anew at every switch: the suite's are evenly spaced, so a period says when."""
    switches = world.settings.get("switches", [])
    if not switches:
        return ()
    still = f"{STATIONARY_PREFIX}d{world.settings['dimension']}"
    beta = oracle_settings()["worlds"][still]["GPUCB"]["settings"]["beta"]
    return (informed_spec(KNOWS_CHANGES_LABEL, "RestartGPUCB", {"period": switches[0], "beta": beta}, world),)


def _of_paper(name: str, environment: str, **settings: int) -> Experiment:
    return Experiment(
        id=YARDSTICK_PAPER_PREFIX + name,
        title=PAPER_TITLES[environment],
        environment=environment,
        settings={**settings, "horizon": HORIZON},
        policies=(AUTOBANDIT, ADA_OPKB, ADA_OPKB_PUBLISHED),
        seeds=SUITE_SEEDS,
    )


def _on_series(series: Experiment) -> Experiment:
    policies = (AUTOBANDIT, *single_settings(), *(p for p in series.policies if p != AUTOBANDIT))
    return dataclasses.replace(series, id=YARDSTICK_PREFIX + series.id, policies=policies)


YARDSTICK: dict[str, Experiment] = by_id(
    (
        *map(_in_suite, SUITE.values()),
        _of_paper("one-switch", ENVIRONMENT_1, dimension=10),
        _of_paper("two-switches", ENVIRONMENT_2, dimension=10),
        _of_paper("slow", SLOW_COSINE),
        *(_on_series(series) for series in REAL.values() if series.settings["copy"] == "as observed"),
    )
)
