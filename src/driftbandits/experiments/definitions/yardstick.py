"""What AutoBandit is judged by: the suite with baselines that know more than it does, the paper's worlds, real series.

In every suite world play windows, discounts and GP-UCB tuned for that world and told its kernel and noise (the hard
opponents), every baseline with the one setting that was best over all worlds (the fair ones), and where the world
switches a GP-UCB that is told when (about the least that can be had). Settings come from tuning seeds alone. On the
paper's worlds ADA-OPKB is the opponent; on real series every baseline is, with its one setting and with those found on
environment 1.
"""

from __future__ import annotations

import dataclasses

from driftbandits.experiments.definitions.autobandit import AUTO
from driftbandits.experiments.definitions.oracle_settings import oracle_settings, single_settings, tuned_here
from driftbandits.experiments.definitions.prior_knowledge import kernel_of, told_spec
from driftbandits.experiments.definitions.real_series import REAL
from driftbandits.experiments.definitions.specs import Experiment, PolicySpec
from driftbandits.experiments.definitions.suite import HORIZON, SEEDS, SUITE

PREFIX = "yardstick/"
PAPER = "yardstick/paper/"
SERIES = "yardstick/real/"
TOLD_CHANGES = "GPUCB told the changes"
ADA_OPKB = PolicySpec("ADA-OPKB", "AdaOPKB")
ADA_OPKB_PUBLISHED = PolicySpec("ADA-OPKB (published)", "AdaOPKB", {"constants": "published", "variant": "published"})


def _in_suite(world: Experiment) -> Experiment:
    name = world.id.removeprefix("suite/")
    ada_opkb = dataclasses.replace(ADA_OPKB, kernel=kernel_of(world))
    policies = (*AUTO, *tuned_here(world), *_told_changes(world), *single_settings(world), ada_opkb)
    return dataclasses.replace(world, id=PREFIX + name, policies=policies, seeds=SEEDS)


def _told_changes(world: Experiment) -> tuple[PolicySpec, ...]:
    """GP-UCB that starts anew at every switch: the suite's are evenly spaced, so a period says when."""
    switches = world.settings.get("switches", [])
    if not switches:
        return ()
    still = f"stationary/d{world.settings['dimension']}"
    beta = oracle_settings()["worlds"][still]["GPUCB"]["settings"]["beta"]
    return (told_spec(TOLD_CHANGES, "RestartGPUCB", {"period": switches[0], "beta": beta}, world),)


def _of_paper(name: str, title: str, environment: str, **settings: int) -> Experiment:
    return Experiment(
        id=PAPER + name,
        title=title,
        environment=environment,
        settings={**settings, "horizon": HORIZON},
        policies=(*AUTO, ADA_OPKB, ADA_OPKB_PUBLISHED),
        seeds=SEEDS,
    )


def _on_series(series: Experiment) -> Experiment:
    policies = (*AUTO, *single_settings(), *(p for p in series.policies if p not in AUTO))
    return dataclasses.replace(series, id=PREFIX + series.id, policies=policies)


YARDSTICK: dict[str, Experiment] = {
    experiment.id: experiment
    for experiment in (
        *map(_in_suite, SUITE.values()),
        _of_paper("one-switch", "Environment 1: one switch", "switching/1", dimension=10),
        _of_paper("two-switches", "Environment 2: two switches", "switching/2", dimension=10),
        _of_paper("slow", "Slowly varying cosine bandit", "cosine/slow"),
        *(_on_series(series) for series in REAL.values() if series.settings["copy"] == "as observed"),
    )
}
