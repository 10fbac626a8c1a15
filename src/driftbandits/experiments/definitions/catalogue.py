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
from driftbandits.experiments.definitions.ids import (
    ENVIRONMENT_1,
    ENVIRONMENT_2,
    PAPER_TITLES,
    SLOW_COSINE,
    STATIONARY_COSINE,
)
from driftbandits.experiments.definitions.real_series import REAL
from driftbandits.experiments.definitions.rows import (
    ADA_OPKB,
    ADA_OPKB_PUBLISHED,
    ADA_OPKB_PUBLISHED_ON_DRIFT,
    ADA_OPNN,
    ADA_OPNN_INFINITE,
    ADA_OPNN_PUBLISHED,
    GPUCB_PUBLISHED,
    OPKB,
    OPNN,
    OPNN0,
    OPNN0_PUBLISHED,
    OPNN_PUBLISHED,
    SW_GPUCB_PUBLISHED,
    SW_GPUCB_RETUNED,
    TUNED_ENDING,
    WGPUCB_PUBLISHED,
)
from driftbandits.experiments.definitions.seeds import EVALUATION_SEEDS
from driftbandits.experiments.definitions.specs import HORIZON, Experiment, PolicySpec, by_id
from driftbandits.experiments.definitions.suite import SUITE
from driftbandits.experiments.definitions.tuned_settings import tuned_spec, tuned_specs
from driftbandits.experiments.definitions.yardstick import YARDSTICK

STATIONARY_SEEDS = tuple(range(50))  # the paper's for the stationary bandit
# At d = 3 and d = 2, which the paper does not have: all kernel policies within ten minutes.
SEEDS_IN_OTHER_DIMENSIONS = 10


def _rivals(dimension: int) -> tuple[PolicySpec, ...]:
    return (
        SW_GPUCB_PUBLISHED,
        tuned_spec("SW-GPUCB", dimension),
        WGPUCB_PUBLISHED,
        tuned_spec("WGPUCB", dimension),
    )


def _at(experiment: Experiment, dimension: int) -> Experiment:
    """The same in another dimension: neural policies at infinite width, WGPUCB with settings found there alone."""
    tuned = [p.label.removesuffix(TUNED_ENDING) for p in experiment.policies if p.label.endswith(TUNED_ENDING)]
    others = [p for p in experiment.policies if p.seeds is None and not p.label.endswith(TUNED_ENDING)]
    return dataclasses.replace(
        experiment,
        id=f"{experiment.id}/d{dimension}",
        title=f"{experiment.title}, d = {dimension}",
        settings={**experiment.settings, "dimension": dimension},
        seeds=EVALUATION_SEEDS,
        policies=tuple(
            dataclasses.replace(policy, seeds=SEEDS_IN_OTHER_DIMENSIONS)
            for policy in (
                *(p for p in others if p is not WGPUCB_PUBLISHED),  # its settings are for d = 10, its runs take longest
                *(tuned_spec(label, dimension) for label in tuned),
                ADA_OPNN_INFINITE,
            )
        ),
    )


def _with_five_matrices(experiment: Experiment) -> Experiment:
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
            title=PAPER_TITLES[name],
            environment=name,
            settings={"dimension": 10, "horizon": HORIZON},
            policies=(ADA_OPKB, ADA_OPKB_PUBLISHED, ADA_OPNN, ADA_OPNN_PUBLISHED, OPKB, *_rivals(10)),
        )
        for name in (ENVIRONMENT_1, ENVIRONMENT_2)
    ),
    Experiment(
        id=STATIONARY_COSINE,
        title=PAPER_TITLES[STATIONARY_COSINE],
        environment=STATIONARY_COSINE,
        settings={"horizon": HORIZON},
        policies=(
            OPNN,
            OPNN0,
            OPNN_PUBLISHED,
            OPNN0_PUBLISHED,
            OPKB,
            GPUCB_PUBLISHED,
            tuned_spec("GPUCB", 10),
        ),
        seeds=STATIONARY_SEEDS,
    ),
    Experiment(
        id=SLOW_COSINE,
        title=PAPER_TITLES[SLOW_COSINE],
        environment=SLOW_COSINE,
        settings={"horizon": HORIZON},
        policies=(
            ADA_OPKB,
            ADA_OPKB_PUBLISHED,
            ADA_OPKB_PUBLISHED_ON_DRIFT,
            ADA_OPNN,
            ADA_OPNN_PUBLISHED,
            *_rivals(10),
            SW_GPUCB_RETUNED,
        ),
    ),
)

PAPER: dict[str, Experiment] = by_id(
    (
        *_PUBLISHED_FIGURES,
        *(_at(experiment, dimension) for dimension in (3, 2) for experiment in _PUBLISHED_FIGURES),
    )
)
FIVE_MATRICES: dict[str, Experiment] = by_id(map(_with_five_matrices, _PUBLISHED_FIGURES))
GROWTH: dict[str, Experiment] = by_id(experiment for sweep in SWEEPS for experiment in sweep.experiments)
# Every policy with its tuned settings on the worlds of the paper, d = 10 and d = 2.
COMPARISON: dict[str, Experiment] = by_id(
    Experiment(
        id=f"comparison/{name}/d{dimension}",
        title=f"{title}, d = {dimension}",
        environment=name,
        settings={"dimension": dimension, "horizon": HORIZON},
        policies=tuned_specs(dimension),
    )
    for dimension in (10, 2)
    for name, title in {
        ENVIRONMENT_1: "One switch",
        ENVIRONMENT_2: "Two switches",
        SLOW_COSINE: "Slow drift",
    }.items()
)
GROUPS: dict[str, dict[str, Experiment]] = {
    "paper": PAPER,
    "growth": GROWTH,
    "comparison": COMPARISON,
    "suite": SUITE,
    "real": REAL,
    "yardstick": YARDSTICK,
    "calibrated": CALIBRATED_GROUP,
    "five": FIVE_MATRICES,
}
EXPERIMENTS: dict[str, Experiment] = {name: e for group in GROUPS.values() for name, e in group.items()}
DEFAULT_GROUPS = ("paper", "growth")  # what `reproduce` plays when nothing is named


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
    return {key: e for key, e in EXPERIMENTS.items() if key.startswith(f"{name}/") and key not in FIVE_MATRICES}


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
