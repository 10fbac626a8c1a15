"""Bandits from real series, with their controls; start offsets are the replicates.

What a policy gains by adapting it must lose on the shuffled copy. Nothing is tuned on these series: policies keep the
settings found on environment 1 at d = 2, where points are as few-dimensional as here.
"""

from __future__ import annotations

from driftbandits import datasets
from driftbandits.experiments.definitions.ids import REAL_PREFIX, YARDSTICK_PREFIX
from driftbandits.experiments.definitions.rows import ADA_OPKB, ADA_OPKB_PUBLISHED, AUTOBANDIT
from driftbandits.experiments.definitions.specs import CLIP_REWARDS, Experiment, PolicySpec, by_id
from driftbandits.experiments.definitions.tuned_settings import tuned_spec

TUNED_POLICIES = (
    "GPUCB",
    "SW-GPUCB",
    "WGPUCB",
    "TV-GP-UCB",
    "GPUCB+MASTER",
    "D-UCB (plain)",
    "GLR-klUCB (plain)",
    "Uniform",
)
SERIES_POLICIES = (
    AUTOBANDIT,
    ADA_OPKB,
    ADA_OPKB_PUBLISHED,
    *(PolicySpec(label, (found := tuned_spec(label, 2)).name, found.settings) for label in TUNED_POLICIES),
)
SERIES_TITLES = {
    "flights": "Flights: 30 destinations from New York, 2013",
    "digits": "Digits: 42 configurations of a classifier",
    "stocks": "Stocks: 36 of New York (negative control)",
}
REWARD_RANGES = {"flights": [-1.0, 1.0], "digits": [0.0, 1.0], "stocks": [-1.0, 1.0]}


def _experiment(name: str, copy: str) -> Experiment:
    observed = copy == "as observed"
    # the semi-real copy adds residuals to a smoothed truth, which may leave the recorded range
    clip = CLIP_REWARDS if copy == "semi-real" else {}
    return Experiment(
        id=f"{REAL_PREFIX}{name}" if observed else f"{REAL_PREFIX}{name}/{copy}",
        title=SERIES_TITLES[name] if observed else f"{SERIES_TITLES[name]}, {copy}",
        environment=f"{REAL_PREFIX}{name}",
        settings={"copy": copy},
        policies=SERIES_POLICIES,
        seeds=tuple(range(datasets.OFFSETS)),
        common={"reward_range": REWARD_RANGES[name], **clip},
    )


REAL: dict[str, Experiment] = by_id(_experiment(name, copy) for name in datasets.names() for copy in datasets.COPIES)


def is_real(experiment: Experiment) -> bool:
    """Whether it is one of these, or one of the yardstick on the same series."""
    return experiment.id.removeprefix(YARDSTICK_PREFIX) in REAL
