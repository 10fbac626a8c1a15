"""The policies of the study: labels, settings typed once, and settings found by search.

"Published" is what the authors ran: the settings of their files in what their code makes of them. Without that word
ADA-OPKB, OPKB, ADA-OPNN and OPNN are those of the paper's text, with constants that this library found for it. Networks
have three weight matrices in the text and five in that code, which also keeps features and design after a restart; its
Gram matrix is not scaled to k(x, x) <= 1. `settings/tuned.json` was made by `driftbandits tune
comparison`, `settings/tuned_linear.json` by `driftbandits tune linear`.

Every policy is played with every setting written out (FIRST_SETTINGS), so what was played does not follow the defaults
of the classes: a default may be improved later, and recorded results stay what they were. None stands for the rule that
the class documents for it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from driftbandits import policies
from driftbandits.errors import InputError
from driftbandits.experiments.specs import Experiment, PolicySpec

_PAPER_CONSTANTS = {
    "sigma": 168.0,
    "failure_probability": 1e-4,
    "c0": 8.89,
    "c1": 0.0507,
    "c2": 2.41,
    "c3": 0.0293,
    "c4": 0.0266,
    "scale": None,
}
_NEURAL_CONSTANTS = {
    "sigma": 740.0,
    "failure_probability": 1e-4,
    "c0": 1.63,
    "c1": 0.156,
    "c2": 7.16,
    "c3": 0.0507,
    "c4": 0.0113,
    "scale": None,
}
_OPKB = {"constants": _PAPER_CONSTANTS, "variant": "paper"}
_OPNN = {
    "width": 2048,
    "depth": 3,
    "steps": 100,
    "learning_rate": "auto",
    "weight_decay": 10.0,
    "train": True,
    "symmetric": False,
    "normalise": True,
    "device": None,
    "constants": _NEURAL_CONSTANTS,
    "variant": "paper",
}
_GPUCB = {"ridge": 0.05, "scale": 1.0, "noise": None, "bound": None, "failure_probability": 0.01, "beta": "ridge"}
_NEURAL_UCB = {
    **_GPUCB,
    "width": 100,
    "depth": 2,
    "steps": 100,
    "learning_rate": "auto",
    "every": 100,
    "symmetric": True,
    "device": None,
}
_PLAIN_UCB = {"switches": 1, "scale": 1.0, "noise": None}
FIRST_SETTINGS: dict[str, dict[str, Any]] = {
    "OPKB": _OPKB,
    "AdaOPKB": _OPKB,
    "OPNN": _OPNN,
    "AdaOPNN": _OPNN,
    "GPUCB": _GPUCB,
    "RestartGPUCB": {**_GPUCB, "period": None, "variation": 1.0},
    "SlidingWindowGPUCB": {**_GPUCB, "window": None, "variation": 1.0},
    "WeightedGPUCB": {**_GPUCB, "discount": None, "variation": 1.0, "width": "one_matrix"},
    "TimeVaryingGPUCB": {
        "rate": 3e-4,
        "ridge": None,
        "scale": 1.0,
        "noise": None,
        "failure_probability": 0.01,
        "beta": 1.0,
    },
    "EventTriggeredGPUCB": _GPUCB,
    "DetectionAugmentedGPUCB": {**_GPUCB, "cover": 10, "exploration": 0.3},
    "LinUCB": _GPUCB,
    "RestartLinUCB": {**_GPUCB, "period": None, "variation": 1.0},
    "SlidingWindowLinUCB": {**_GPUCB, "window": None, "variation": 1.0},
    "DiscountedLinUCB": {**_GPUCB, "discount": None, "variation": 1.0, "width": "two_matrix"},
    "LinearExp3": {"restart": None, "variation": 1.0, "kernel": False, "ridge": 0.05},
    "Master": {
        "base": "GPUCB",
        "mode": "practical",
        "length": None,
        "replay_scale": None,
        "tests": None,
        "c_rho": 1.0,
        "c1": 1.0,
        "c2": 1.0,
        "noise": None,
        "failure_probability": 0.01,
    },
    "BanditOverBandit": {
        "base": "SlidingWindowLinUCB",
        "candidates": None,
        "learner": "exp3",
        "block": None,
        "failure_probability": 0.01,
    },
    "NeuralUCB": _NEURAL_UCB,
    "SlidingWindowNeuralUCB": {**_NEURAL_UCB, "window": None, "variation": 1.0},
    "SlidingWindowUCB": {**_PLAIN_UCB, "window": None},
    "DiscountedUCB": {**_PLAIN_UCB, "discount": None},
    "GLRklUCB": {
        "divergence": "gaussian",
        "noise": None,
        "failure_probability": None,
        "threshold": "practical",
        "exploration": 0.1,
        "restart": "global",
        "test_every": 10,
        "split_every": 5,
        "scale": 1.0,
    },
    "Exp3S": {"switches": 1, "exploration": None, "share": None},
    "CalibratedOPKB": {"false_alarm": 0.1, "mode": "practical", "kernel": "auto", "order": "told"},
    "AutoBandit": {"kernel": "auto", "floor": 0.001, "rank": 100},
    "Uniform": {},
}
MASTER_BASE = {"beta": 1.0, "ridge": 0.05}  # of a GPUCB or LinUCB inside MASTER, in the place of their own
SIZES = ("window", "period", "discount", "restart")  # what BOB chooses for its base


def written_out(policy: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a policy, those of its base included: `settings`, and the first ones where they say nothing.

    A user's own class (`file.py:Class`) has no first settings, and is played with `settings` alone.

    >>> written_out("DiscountedUCB", {"discount": 0.99})
    {'switches': 1, 'scale': 1.0, 'noise': None, 'discount': 0.99}
    """
    every = {**FIRST_SETTINGS.get(policy, {}), **settings}
    if "base" not in every:
        return every
    base = FIRST_SETTINGS.get(every["base"], {})
    if policy == "Master" and "beta" in base:
        base = {**base, **MASTER_BASE}
    if policy == "BanditOverBandit":
        base = {name: value for name, value in base.items() if name not in SIZES}
    return {**every, "base_settings": {**base, **every.get("base_settings", {})}}


OF_THE_PAPER = frozenset({"OPKB", "AdaOPKB", "OPNN", "AdaOPNN"})  # the paper's own algorithms


# How a label ends: says where the settings come from.
PUBLISHED_ENDING = " (published)"
TUNED_ENDING = " (tuned)"  # found by equal search on environment 1
PUBLISHED_AND_TUNED_ENDING = " (published, tuned)"  # the search found what was published
THEORY_ENDING = " (theory)"  # what the analysis asks for
TUNED_HERE_ENDING = " (tuned here)"  # found in the very world that is played
ONE_SETTING_ENDING = " (one setting)"  # found over all worlds of the suite


def _row(
    policy: type[policies.Policy],
    settings: Mapping[str, Any] | None = None,
    *,
    ending: str = "",
    seeds: int | None = None,
) -> PolicySpec:
    name = policy.__name__
    return PolicySpec(policies.policy_label(policy) + ending, name, written_out(name, settings or {}), seeds=seeds)


AUTOBANDIT = _row(policies.AutoBandit, {"kernel": "auto"})  # is told neither kernel nor noise
CALIBRATED_OPKB = _row(policies.CalibratedOPKB)
CALIBRATED_OPKB_THEORY = _row(policies.CalibratedOPKB, {"mode": "theory"}, ending=" (theory mode)")
PUBLISHED = {"constants": "published", "variant": "published"}
OPKB = _row(policies.OPKB)
OPKB_PUBLISHED = _row(policies.OPKB, PUBLISHED, ending=PUBLISHED_ENDING)
ADA_OPKB = _row(policies.AdaOPKB)
ADA_OPKB_PUBLISHED = _row(policies.AdaOPKB, PUBLISHED, ending=PUBLISHED_ENDING)
# The authors told ADA-OPKB another length scale on slow drift, and there alone.
ADA_OPKB_PUBLISHED_ON_DRIFT = dataclasses.replace(
    ADA_OPKB_PUBLISHED,
    label=f"{policies.policy_label(policies.AdaOPKB)} (published, length scale 1)",
    kernel={"name": "rbf", "length_scale": 1.0},
)
# The optimal design for 4,000 to 8,000 of 10,000 rounds, by dimension, then one law to the end.
ADA_OPKB_THEORY = _row(policies.AdaOPKB, {"constants": "theory"}, ending=" (theory constants)")
NEURAL_PUBLISHED = {
    "constants": "published_neural",
    "variant": {"preset": "published", "after_restart": "kept_features"},
    "learning_rate": 1e-8,
    "normalise": False,
    "depth": 5,
}
# How many seeds at full width are played in an hour; the text's ADA-OPNN restarts often on slow drift.
ADA_OPNN = _row(policies.AdaOPNN, seeds=8)
ADA_OPNN_ON_DRIFT = dataclasses.replace(ADA_OPNN, seeds=3)
ADA_OPNN_PUBLISHED = _row(policies.AdaOPNN, NEURAL_PUBLISHED, ending=PUBLISHED_ENDING, seeds=4)
# Features that never move: as quick as a kernel, it stands for ADA-OPNN at the dimensions the paper does not have.
ADA_OPNN_INFINITE = _row(policies.AdaOPNN, {"width": "infinite", "train": False}, ending=" (infinite width)")
OPNN_PUBLISHED_SETTINGS = {**NEURAL_PUBLISHED, "constants": "published_stationary"}
OPNN = _row(policies.OPNN, seeds=12)
OPNN_INFINITE = _row(policies.OPNN, {"width": "infinite", "train": False}, ending=" (infinite width)")
OPNN_NARROW = _row(policies.OPNN, {"width": 256}, ending=" (m=256)", seeds=10)  # trained, a second or two per run
OPNN_PUBLISHED = _row(policies.OPNN, OPNN_PUBLISHED_SETTINGS, ending=PUBLISHED_ENDING, seeds=6)
# OPNN0 is the paper's name for OPNN with features that are not trained.
OPNN0 = _row(policies.OPNN, {"train": False}, ending="0")
OPNN0_PUBLISHED = _row(policies.OPNN, {**OPNN_PUBLISHED_SETTINGS, "train": False}, ending=f"0{PUBLISHED_ENDING}")
# What the authors' code computes with its lambda = 20 and v = 0.01 is a correct GP-UCB with this ridge and scale.
GPUCB_PUBLISHED_SETTINGS = {"ridge": 0.05, "scale": 0.2}
GPUCB_PUBLISHED = _row(policies.GPUCB, GPUCB_PUBLISHED_SETTINGS, ending=PUBLISHED_ENDING)
SW_GPUCB_PUBLISHED = _row(
    policies.SlidingWindowGPUCB, {**GPUCB_PUBLISHED_SETTINGS, "window": 3000}, ending=PUBLISHED_ENDING
)
# The window of their files of two switches and of slow drift, where the text has 3,000.
SW_GPUCB_IN_FILES = _row(
    policies.SlidingWindowGPUCB,
    {**GPUCB_PUBLISHED_SETTINGS, "window": 2000},
    ending=" (published, window 2000)",
)
# The authors set this window for slow drift.
SW_GPUCB_RETUNED = _row(
    policies.SlidingWindowGPUCB, {**GPUCB_PUBLISHED_SETTINGS, "window": 1000}, ending=" (window 1000)"
)
# Their width does not divide by sqrt(lambda), and takes the largest gain there can be instead of that of the data.
WGPUCB_PUBLISHED = _row(
    policies.WeightedGPUCB,
    {
        "ridge": 0.01,
        "scale": 0.5,
        "discount": 0.9996,
        "beta": "authors",
        "bound": 0.8,
        "noise": 0.1,
        "failure_probability": 1e-4,
    },
    ending=PUBLISHED_ENDING,
)
SETTINGS_FOLDER = Path(__file__).parent / "settings"
COMPARISON_FILE = "tuned.json"  # found on environment 1
PAPER_FILE = "tuned_paper.json"  # found on the grids of the paper's section 6, to compare with
LINEAR_FILE = "tuned_linear.json"  # found on the linear world with one switch


@lru_cache
def tuned_settings(file: str = COMPARISON_FILE) -> dict[str, Any]:
    """What the file holds: for every dimension ("d=10") and label the policy's name, settings and score."""
    found: dict[str, Any] = json.loads((SETTINGS_FOLDER / file).read_text())
    return found


def tuned_spec(label: str, dimension: int, *, file: str = COMPARISON_FILE) -> PolicySpec:
    """The policy called `label` with the settings found for it in this dimension.

    >>> tuned_spec("SW-GPUCB", 2).label
    'SW-GPUCB (tuned)'
    """
    found = tuned_settings(file).get(f"d={dimension}", {})
    if label not in found:
        raise InputError(f"no tuned settings for {label!r} at d = {dimension}; known: {', '.join(found)}")
    return _spec(label + TUNED_ENDING, found[label])


def tuned_specs(dimension: int) -> tuple[PolicySpec, ...]:
    """All policies of the comparison with the settings found for this dimension, under their plain labels."""
    found = tuned_settings()[f"d={dimension}"]
    return tuple(_spec(label, entry) for label, entry in found.items())


def _spec(label: str, entry: Mapping[str, Any]) -> PolicySpec:
    return PolicySpec(label, entry["policy"], written_out(entry["policy"], entry["settings"]))


def by_id(experiments: Iterable[Experiment]) -> dict[str, Experiment]:
    """The experiments by their ids, in order."""
    return {experiment.id: experiment for experiment in experiments}


QUICK_SEEDS, QUICK_WIDTH = 2, 256
NARROW_SEEDS = 6  # of networks while they are as narrow


def quick(experiment: Experiment) -> Experiment:
    """For a short run: two seeds, and trained networks 256 wide instead of 2,048, as the title says then."""
    return dataclasses.replace(with_networks_narrow(experiment), seeds=experiment.seeds[:QUICK_SEEDS])


def with_networks_narrow(experiment: Experiment) -> Experiment:
    """All but trained networks as it is; these 256 wide and on six seeds."""
    policies = tuple(_narrow(policy) for policy in experiment.policies)
    if policies == experiment.policies:
        return experiment
    return dataclasses.replace(experiment, title=f"{experiment.title} (networks {QUICK_WIDTH} wide)", policies=policies)


def full(experiment: Experiment) -> Experiment:
    """Every policy on all seeds of the paper, whatever a run takes."""
    return dataclasses.replace(
        experiment, policies=tuple(dataclasses.replace(p, seeds=None) for p in experiment.policies)
    )


def _narrow(policy: PolicySpec) -> PolicySpec:
    if policy.name not in ("OPNN", "AdaOPNN") or not policy.settings.get("train", True):
        return policy
    settings: Mapping[str, Any] = {**policy.settings, "width": QUICK_WIDTH}
    return policy if settings == policy.settings else dataclasses.replace(policy, settings=settings, seeds=NARROW_SEEDS)
