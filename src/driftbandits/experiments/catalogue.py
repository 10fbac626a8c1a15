"""The experiments as literals: which policies play which world, on which seeds.

Evaluation seeds count from 0. Tuning seeds count from 1,000,000 and are never used for a figure.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from driftbandits.errors import InputError
from driftbandits.policies import Constants, Variant

EVALUATION_SEEDS = tuple(range(25))
TUNING_SEEDS = tuple(range(1_000_000, 1_000_064))


@dataclass(frozen=True)
class PolicySpec:
    """A policy as a figure shows it: its label, registered name and settings; `seeds`: only the first so many."""

    label: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | None = None


@dataclass(frozen=True)
class Experiment:
    """A world by its registered name, the policies that play it, and the seeds."""

    id: str
    title: str
    environment: str
    settings: Mapping[str, Any]
    policies: tuple[PolicySpec, ...]
    seeds: tuple[int, ...] = EVALUATION_SEEDS


NEURAL_SEEDS = 8  # a run of ADA-OPNN takes a minute; one of OPNN, with a training a block and no restart, 20 seconds

ADA_OPKB = PolicySpec("ADA-OPKB", "AdaOPKB")
ADA_OPKB_PUBLISHED = PolicySpec(
    "ADA-OPKB (published)", "AdaOPKB", {"constants": Constants.published(), "variant": Variant.published()}
)
OPKB_PLAIN = PolicySpec("OPKB", "OPKB")
ADA_OPNN = PolicySpec("ADA-OPNN", "AdaOPNN", seeds=NEURAL_SEEDS)
ADA_OPNN_PUBLISHED = PolicySpec(
    "ADA-OPNN (published)",
    "AdaOPNN",
    {"constants": Constants.published_neural(), "variant": Variant.published(), "learning_rate": 1e-8},
    seeds=NEURAL_SEEDS,
)
# The authors' settings for the stationary cosine bandit; SW-GPUCB without a window is GPUCB.
STATIONARY = {
    "constants": Constants.published_neural(c1=0.3),
    "variant": Variant.published(),
    "learning_rate": 1e-8,
}
PUBLISHED_GPUCB = {"ridge": 0.05, "scale": 0.2}

EXPERIMENTS: dict[str, Experiment] = {
    experiment.id: experiment
    for experiment in (
        Experiment(
            id="switching/1",
            title="Environment 1: one switch",
            environment="switching/1",
            settings={"dimension": 10, "horizon": 10_000},
            policies=(ADA_OPKB, ADA_OPKB_PUBLISHED, ADA_OPNN, ADA_OPNN_PUBLISHED, OPKB_PLAIN),
        ),
        Experiment(
            id="switching/2",
            title="Environment 2: two switches",
            environment="switching/2",
            settings={"dimension": 10, "horizon": 10_000},
            policies=(ADA_OPKB, ADA_OPKB_PUBLISHED, ADA_OPNN, ADA_OPNN_PUBLISHED, OPKB_PLAIN),
        ),
        Experiment(
            id="cosine/stationary",
            title="Stationary cosine bandit",
            environment="cosine/stationary",
            settings={"horizon": 10_000},
            policies=(
                PolicySpec("OPNN", "OPNN"),
                PolicySpec("OPNN0", "OPNN", {"train": False}),
                PolicySpec("OPNN (published)", "OPNN", STATIONARY),
                PolicySpec("OPNN0 (published)", "OPNN", {**STATIONARY, "train": False}),
                OPKB_PLAIN,
                PolicySpec("GPUCB", "GPUCB", PUBLISHED_GPUCB),
            ),
        ),
        Experiment(
            id="cosine/slow",
            title="Slowly varying cosine bandit",
            environment="cosine/slow",
            settings={"horizon": 10_000},
            policies=(ADA_OPKB, ADA_OPKB_PUBLISHED, ADA_OPNN, ADA_OPNN_PUBLISHED),
        ),
    )
}

# The worlds on which all policies are compared, at every dimension of DIMENSIONS; settings come from `tuned.json`.
COMPARISON_WORLDS = {"switching/1": "one switch", "switching/2": "two switches", "cosine/slow": "slow drift"}
DIMENSIONS = (10, 2)


def comparison(dimension: int, policies: tuple[PolicySpec, ...]) -> list[Experiment]:
    """Every comparison world at one dimension, played by `policies`."""
    return [
        Experiment(
            id=f"{name}, d={dimension}",
            title=f"{title}, d = {dimension}",
            environment=name,
            settings={"dimension": dimension, "horizon": 10_000},
            policies=policies,
        )
        for name, title in COMPARISON_WORLDS.items()
    ]


def find_experiment(name: str) -> Experiment:
    """The experiment with this id.

    >>> find_experiment("switching/2").title
    'Environment 2: two switches'
    """
    if name not in EXPERIMENTS:
        near = difflib.get_close_matches(name, EXPERIMENTS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(f"no experiment is called {name!r}; {hint}known: {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]
