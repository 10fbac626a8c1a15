"""The paper's experiments as literals, and what is made of them: other dimensions, other depths.

As published they have d = 10; the same at d = 2 and d = 3, where the kernel matters, end in `/d2` and `/d3`. SW-GPUCB,
WGPUCB and GPUCB play with the settings of the authors' files ("published") and with those found by an equal search
("tuned"), as one row where these are the same; ADA-OPKB, OPKB, ADA-OPNN and OPNN as the paper writes them, and as the
authors' code runs them ("published"). AutoBandit and CalibratedOPKB, which go beyond the paper, play beside them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from driftbandits.experiments.definitions.ids import (
    ENVIRONMENT_1,
    ENVIRONMENT_2,
    PAPER_TITLES,
    SLOW_COSINE,
    STATIONARY_COSINE,
)
from driftbandits.experiments.definitions.rows import (
    ADA_OPKB,
    ADA_OPKB_PUBLISHED,
    ADA_OPKB_PUBLISHED_ON_DRIFT,
    ADA_OPNN,
    ADA_OPNN_INFINITE,
    ADA_OPNN_PUBLISHED,
    ADA_OPNN_SEEDS_ON_DRIFT,
    AUTOBANDIT,
    CALIBRATED_OPKB,
    GPUCB_PUBLISHED,
    OPKB,
    OPKB_PUBLISHED,
    OPNN,
    OPNN0,
    OPNN0_PUBLISHED,
    OPNN_PUBLISHED,
    PUBLISHED_AND_TUNED_ENDING,
    PUBLISHED_ENDING,
    SW_GPUCB_PUBLISHED,
    SW_GPUCB_RETUNED,
    WGPUCB_PUBLISHED,
)
from driftbandits.experiments.definitions.seeds import EVALUATION_SEEDS
from driftbandits.experiments.definitions.specs import HORIZON, Experiment, PolicySpec, by_id
from driftbandits.experiments.definitions.tuned_settings import tuned_spec

STATIONARY_SEEDS = tuple(range(50))  # the paper's for the stationary bandit
# At d = 3 and d = 2, which the paper does not have: all kernel policies within ten minutes.
SEEDS_IN_OTHER_DIMENSIONS = 10
PUBLISHED_DIMENSION = 10  # of the tuned rivals; the stationary bandit has d = 8, and nobody is tuned there

_ADAPTING = (ADA_OPKB, ADA_OPKB_PUBLISHED, ADA_OPNN, ADA_OPNN_PUBLISHED, OPKB)
_NETWORKS_ON_DRIFT = tuple(
    dataclasses.replace(row, seeds=ADA_OPNN_SEEDS_ON_DRIFT) for row in (ADA_OPNN, ADA_OPNN_PUBLISHED)
)
# What the figures are about, and whom it is compared with, those with the settings of the authors' files.
_OF_THE_PAPER: Mapping[str, tuple[PolicySpec, ...]] = {
    ENVIRONMENT_1: _ADAPTING,
    ENVIRONMENT_2: _ADAPTING,
    STATIONARY_COSINE: (OPNN, OPNN0, OPNN_PUBLISHED, OPNN0_PUBLISHED, OPKB, OPKB_PUBLISHED),
    SLOW_COSINE: (ADA_OPKB, ADA_OPKB_PUBLISHED, ADA_OPKB_PUBLISHED_ON_DRIFT, *_NETWORKS_ON_DRIFT),
}
_FORGETTING = (SW_GPUCB_PUBLISHED, WGPUCB_PUBLISHED)
_RIVALS: Mapping[str, tuple[PolicySpec, ...]] = {
    ENVIRONMENT_1: _FORGETTING,
    ENVIRONMENT_2: _FORGETTING,
    STATIONARY_COSINE: (GPUCB_PUBLISHED,),
    SLOW_COSINE: _FORGETTING,
}
_BEYOND = (AUTOBANDIT, CALIBRATED_OPKB)
_RETUNED: Mapping[str, tuple[PolicySpec, ...]] = {SLOW_COSINE: (SW_GPUCB_RETUNED,)}
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    ENVIRONMENT_1: {"dimension": PUBLISHED_DIMENSION},
    ENVIRONMENT_2: {"dimension": PUBLISHED_DIMENSION},
}


def rival_rows(published: PolicySpec, dimension: int = PUBLISHED_DIMENSION) -> dict[str, PolicySpec]:
    """A rival by where its settings come from: one row under both keys where the search found what was published.

    >>> {kind: row.label for kind, row in rival_rows(SW_GPUCB_PUBLISHED).items()}
    {'published': 'SW-GPUCB (published, tuned)', 'tuned': 'SW-GPUCB (published, tuned)'}
    """
    name = published.label.removesuffix(PUBLISHED_ENDING)
    tuned = tuned_spec(name, dimension)
    if tuned.settings == published.settings:
        tuned = published = dataclasses.replace(published, label=name + PUBLISHED_AND_TUNED_ENDING)
    return {"published": published, "tuned": tuned}


def _rivals(name: str, dimension: int) -> list[PolicySpec]:
    every = [row for published in _RIVALS[name] for row in rival_rows(published, dimension).values()]
    return list({row.label: row for row in every}.values())


def _figure(name: str) -> Experiment:
    return Experiment(
        id=name,
        title=PAPER_TITLES[name],
        environment=name,
        settings={**_SETTINGS.get(name, {}), "horizon": HORIZON},
        policies=(*_OF_THE_PAPER[name], *_rivals(name, PUBLISHED_DIMENSION), *_RETUNED.get(name, ()), *_BEYOND),
        seeds=STATIONARY_SEEDS if name == STATIONARY_COSINE else EVALUATION_SEEDS,
    )


def _in_dimension(name: str, dimension: int) -> Experiment:
    """A figure in another dimension: neural policies at infinite width, WGPUCB with settings found there alone."""
    quick = [policy for policy in _OF_THE_PAPER[name] if policy.seeds is None]
    # WGPUCB's published settings are for d = 10, and its runs take longest
    rivals = [policy for policy in _rivals(name, dimension) if policy is not WGPUCB_PUBLISHED]
    rows = (*quick, *rivals, *_RETUNED.get(name, ()), ADA_OPNN_INFINITE, *_BEYOND)
    figure = _figure(name)
    return dataclasses.replace(
        figure,
        id=f"{name}/d{dimension}",
        title=f"{figure.title}, d = {dimension}",
        settings={**figure.settings, "dimension": dimension},
        seeds=EVALUATION_SEEDS,
        policies=tuple(dataclasses.replace(policy, seeds=SEEDS_IN_OTHER_DIMENSIONS) for policy in rows),
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


FIGURES: dict[str, Experiment] = by_id(map(_figure, _OF_THE_PAPER))
OTHER_DIMENSIONS: dict[int, dict[str, Experiment]] = {
    dimension: by_id(_in_dimension(name, dimension) for name in _OF_THE_PAPER) for dimension in (3, 2)
}
PAPER: dict[str, Experiment] = by_id(
    experiment for group in (FIGURES, *OTHER_DIMENSIONS.values()) for experiment in group.values()
)
FIVE_MATRICES: dict[str, Experiment] = by_id(map(_with_five_matrices, FIGURES.values()))
