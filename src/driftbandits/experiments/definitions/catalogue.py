"""The paper's experiments as literals, and the list of all experiments by id.

As published they have d = 10; the same at d = 2 and d = 3, where the kernel matters, end in `/d2` and `/d3`. SW-GPUCB
and WGPUCB play with the settings of the authors' files ("published") and with those found by an equal search
("tuned"); ADA-OPKB and ADA-OPNN as the paper writes them, and as the authors' code runs them ("published").

Evaluation seeds count from 0. Tuning seeds count from 1,000,000 and are never used for a figure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from driftbandits.errors import InputError, did_you_mean
from driftbandits.experiments.definitions.calibrated_opkb import CALIBRATED_GROUP
from driftbandits.experiments.definitions.growth import SWEEPS
from driftbandits.experiments.definitions.real_series import REAL
from driftbandits.experiments.definitions.specs import EVALUATION_SEEDS, Experiment, PolicySpec
from driftbandits.experiments.definitions.suite import SUITE
from driftbandits.experiments.definitions.tuned_settings import tuned_spec, tuned_specs
from driftbandits.experiments.definitions.yardstick import YARDSTICK

HORIZON = 10_000
FIFTY = tuple(range(50))  # the paper's seeds for the stationary bandit
NEURAL_SEEDS = 8  # a run of ADA-OPNN takes about a minute
OPNN_SEEDS = 20  # one of OPNN 20 seconds
OTHER_SEEDS = 10  # at d = 3 and d = 2, which the paper does not have: all kernel policies within ten minutes

ADA_OPKB = PolicySpec("ADA-OPKB", "AdaOPKB")
PUBLISHED = {"constants": "published", "variant": "published"}
ADA_OPKB_PUBLISHED = PolicySpec("ADA-OPKB (published)", "AdaOPKB", PUBLISHED)
OPKB = PolicySpec("OPKB", "OPKB")
ADA_OPNN = PolicySpec("ADA-OPNN", "AdaOPNN", seeds=NEURAL_SEEDS)
NEURAL_PUBLISHED = {"constants": "published_neural", "variant": "published", "learning_rate": 1e-8}
ADA_OPNN_PUBLISHED = PolicySpec("ADA-OPNN (published)", "AdaOPNN", NEURAL_PUBLISHED, seeds=NEURAL_SEEDS)
# Features that never move: as quick as a kernel, it stands for ADA-OPNN at the dimensions the paper does not have.
ADA_OPNN_INFINITE = PolicySpec("ADA-OPNN (infinite width)", "AdaOPNN", {"width": "infinite", "train": False})
# What the authors' code computes with its lambda = 20 and v = 0.01 is a correct GP-UCB with these (paper-notes, 3).
GPUCB_PUBLISHED = {"ridge": 0.05, "scale": 0.2}
SW_GPUCB_PUBLISHED = PolicySpec("SW-GPUCB (published)", "SlidingWindowGPUCB", {**GPUCB_PUBLISHED, "window": 3000})
SW_GPUCB_RETUNED = PolicySpec("SW-GPUCB (window 1000)", "SlidingWindowGPUCB", {**GPUCB_PUBLISHED, "window": 1000})
WGPUCB_PUBLISHED = PolicySpec("WGPUCB (published)", "WeightedGPUCB", {"ridge": 0.01, "scale": 0.5, "discount": 0.9996})
STATIONARY = {**NEURAL_PUBLISHED, "constants": {"preset": "published_neural", "c1": 0.3}}

SWITCHING = {"switching/1": "Environment 1: one switch", "switching/2": "Environment 2: two switches"}


def _rivals(dimension: int) -> tuple[PolicySpec, ...]:
    return (
        SW_GPUCB_PUBLISHED,
        tuned_spec("SW-GPUCB", dimension),
        WGPUCB_PUBLISHED,
        tuned_spec("WGPUCB", dimension),
    )


def _at(experiment: Experiment, dimension: int) -> Experiment:
    """The same in another dimension: neural policies at infinite width, WGPUCB with settings found there alone."""
    tuned = [p.label.removesuffix(" (tuned)") for p in experiment.policies if p.label.endswith(" (tuned)")]
    others = [p for p in experiment.policies if p.seeds is None and not p.label.endswith(" (tuned)")]
    return dataclasses.replace(
        experiment,
        id=f"{experiment.id}/d{dimension}",
        title=f"{experiment.title}, d = {dimension}",
        settings={**experiment.settings, "dimension": dimension},
        seeds=EVALUATION_SEEDS,
        policies=tuple(
            dataclasses.replace(policy, seeds=OTHER_SEEDS)
            for policy in (
                *(p for p in others if p is not WGPUCB_PUBLISHED),  # its settings are for d = 10, its runs take longest
                *(tuned_spec(label, dimension) for label in tuned),
                ADA_OPNN_INFINITE,
            )
        ),
    )


def _five(experiment: Experiment) -> Experiment:
    """The neural policies with the five weight matrices of the authors' code, where the text has three."""
    neural = [p for p in experiment.policies if p.seeds is not None]
    return dataclasses.replace(
        experiment,
        id=f"{experiment.id}/five",
        title=f"{experiment.title}, five weight matrices",
        policies=tuple(
            dataclasses.replace(p, label=f"{p.label}, five matrices", settings={**p.settings, "depth": 5}, seeds=None)
            for p in neural
        ),
    )


_PUBLISHED_FIGURES = (
    *(
        Experiment(
            id=name,
            title=title,
            environment=name,
            settings={"dimension": 10, "horizon": HORIZON},
            policies=(ADA_OPKB, ADA_OPKB_PUBLISHED, ADA_OPNN, ADA_OPNN_PUBLISHED, OPKB, *_rivals(10)),
        )
        for name, title in SWITCHING.items()
    ),
    Experiment(
        id="cosine/stationary",
        title="Stationary cosine bandit",
        environment="cosine/stationary",
        settings={"horizon": HORIZON},
        policies=(
            PolicySpec("OPNN", "OPNN", seeds=OPNN_SEEDS),
            PolicySpec("OPNN0", "OPNN", {"train": False}),
            PolicySpec("OPNN (published)", "OPNN", STATIONARY, seeds=OPNN_SEEDS),
            PolicySpec("OPNN0 (published)", "OPNN", {**STATIONARY, "train": False}),
            OPKB,
            PolicySpec("GPUCB (published)", "GPUCB", GPUCB_PUBLISHED),
            tuned_spec("GPUCB", 10),
        ),
        seeds=FIFTY,
    ),
    Experiment(
        id="cosine/slow",
        title="Slowly varying cosine bandit",
        environment="cosine/slow",
        settings={"horizon": HORIZON},
        policies=(
            ADA_OPKB,
            ADA_OPKB_PUBLISHED,
            # the authors told ADA-OPKB another length scale here, and here alone
            dataclasses.replace(
                ADA_OPKB_PUBLISHED,
                label="ADA-OPKB (published, length scale 1)",
                kernel={"name": "rbf", "length_scale": 1.0},
            ),
            ADA_OPNN,
            ADA_OPNN_PUBLISHED,
            *_rivals(10),
            SW_GPUCB_RETUNED,
        ),
    ),
)

PAPER: dict[str, Experiment] = {
    experiment.id: experiment
    for experiment in (
        *_PUBLISHED_FIGURES,
        *(_at(experiment, dimension) for dimension in (3, 2) for experiment in _PUBLISHED_FIGURES),
    )
}
FIVE: dict[str, Experiment] = {e.id: e for e in map(_five, _PUBLISHED_FIGURES)}
GROWTH: dict[str, Experiment] = {e.id: e for sweep in SWEEPS for e in sweep.experiments}
# Every policy with its tuned settings on the worlds of the paper, d = 10 and d = 2.
COMPARISON: dict[str, Experiment] = {
    experiment.id: experiment
    for experiment in (
        Experiment(
            id=f"comparison/{name}/d{dimension}",
            title=f"{title}, d = {dimension}",
            environment=name,
            settings={"dimension": dimension, "horizon": HORIZON},
            policies=tuned_specs(dimension),
        )
        for dimension in (10, 2)
        for name, title in {
            "switching/1": "One switch",
            "switching/2": "Two switches",
            "cosine/slow": "Slow drift",
        }.items()
    )
}
GROUPS: dict[str, dict[str, Experiment]] = {
    "paper": PAPER,
    "growth": GROWTH,
    "comparison": COMPARISON,
    "suite": SUITE,
    "real": REAL,
    "yardstick": YARDSTICK,
    "calibrated": CALIBRATED_GROUP,
    "five": FIVE,
}
EXPERIMENTS: dict[str, Experiment] = {name: e for group in GROUPS.values() for name, e in group.items()}
REPRODUCED = ("paper", "growth")  # what `reproduce` runs when nothing is named


def find_experiments(names: Sequence[str]) -> list[Experiment]:
    """Experiments by id, by group (`suite`), or by the beginning of an id (`switching`, `growth/rounds`), each once.

    >>> [experiment.id for experiment in find_experiments(["switching/2", "cosine/slow/d2"])]
    ['switching/2', 'cosine/slow/d2']
    """
    found: dict[str, Experiment] = {}
    for name in names:
        matches = _matches(name)
        if not matches:
            hint = did_you_mean(name, [*EXPERIMENTS, *GROUPS])
            raise InputError(
                f"no experiment is called {name!r}; {hint}groups: {', '.join(GROUPS)}; "
                f"all ids: driftbandits list experiments"
            )
        found.update(matches)
    return list(found.values())


def _matches(name: str) -> Mapping[str, Experiment]:
    if name in GROUPS:
        return GROUPS[name]
    if name in EXPERIMENTS:
        return {name: EXPERIMENTS[name]}
    # five matrices take hours: they are run when named, not because their id begins like others
    return {key: e for key, e in EXPERIMENTS.items() if key.startswith(f"{name}/") and key not in FIVE}


def quick(experiment: Experiment) -> Experiment:
    """A taste: two seeds, and trained networks 256 wide instead of 2,048."""
    return dataclasses.replace(
        experiment, policies=tuple(_narrow(p) for p in experiment.policies), seeds=experiment.seeds[:2]
    )


def full(experiment: Experiment) -> Experiment:
    """Every policy on all seeds of the paper, whatever a run takes."""
    return dataclasses.replace(
        experiment, policies=tuple(dataclasses.replace(p, seeds=None) for p in experiment.policies)
    )


def _narrow(policy: PolicySpec) -> PolicySpec:
    if policy.name not in ("OPNN", "AdaOPNN") or not policy.settings.get("train", True):
        return policy
    settings: Mapping[str, Any] = {**policy.settings, "width": 256}
    return dataclasses.replace(policy, settings=settings, seeds=None)
