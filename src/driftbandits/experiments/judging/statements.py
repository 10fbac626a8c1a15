"""The paper's claims as data: who is compared with whom, where, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from driftbandits.experiments.definitions.ids import ENVIRONMENT_1, ENVIRONMENT_2, SLOW_COSINE, STATIONARY_COSINE
from driftbandits.experiments.definitions.rows import (
    ADA_OPKB,
    ADA_OPKB_PUBLISHED,
    ADA_OPKB_PUBLISHED_ON_DRIFT,
    ADA_OPNN,
    ADA_OPNN_PUBLISHED,
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
from driftbandits.policies import SlidingWindowGPUCB, WeightedGPUCB


@dataclass(frozen=True)
class Comparison:
    """`first` against `second` in one experiment; `when` is the end of the run or just before the switch."""

    variant: str
    experiment: str
    first: str
    second: str
    kind: Literal["below", "near"] = "below"
    when: Literal["end", "switch"] = "end"


@dataclass(frozen=True)
class Statement:
    """A claim before any results: its comparisons."""

    id: str
    figure: str
    text: str
    comparisons: tuple[Comparison, ...]


SW_GPUCB, WGPUCB = SlidingWindowGPUCB.label, WeightedGPUCB.label
# Under which settings a claim is checked: ours (the paper's text, or the authors' files), and the rivals' (the authors'
# files, or tuned).
TEXT, PUBLISHED, TUNED = "paper's text", "published", "tuned"
RIVAL_SETTINGS = (PUBLISHED, TUNED)
ADA_POLICIES = {
    TEXT: (ADA_OPKB.label, ADA_OPNN.label),
    PUBLISHED: (ADA_OPKB_PUBLISHED.label, ADA_OPNN_PUBLISHED.label),
}
ADA_POLICIES_ON_DRIFT = {
    **ADA_POLICIES,
    PUBLISHED: (ADA_OPKB_PUBLISHED_ON_DRIFT.label, ADA_OPNN_PUBLISHED.label),
}
TRAINED_AND_NOT = {TEXT: (OPNN.label, OPNN0.label), PUBLISHED: (OPNN_PUBLISHED.label, OPNN0_PUBLISHED.label)}


def _with_rivals(policies: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, tuple[str, str], str]]:
    """Every setting of ours with every one of the rivals: what it is called, our labels, the rivals' setting."""
    for ours, labels in policies.items():
        for rivals in RIVAL_SETTINGS:
            yield f"{ours} against {rivals} rivals", labels, rivals


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        "F1a-1",
        "1a",
        "On environment 1, SW-GPUCB has lost less than ADA-OPKB and ADA-OPNN by the time of the switch.",
        tuple(
            Comparison(variant, ENVIRONMENT_1, f"{SW_GPUCB} ({rivals})", label, when="switch")
            for variant, labels, rivals in _with_rivals(ADA_POLICIES)
            for label in labels
        ),
    ),
    Statement(
        "F1a-2",
        "1a",
        "On environment 1, ADA-OPKB has less regret in the end than ADA-OPNN.",
        tuple(Comparison(ours, ENVIRONMENT_1, opkb, opnn) for ours, (opkb, opnn) in ADA_POLICIES.items()),
    ),
    Statement(
        "F1b-1",
        "1b",
        "With settings from environment 1, SW-GPUCB has more regret on environment 2 than ADA-OPKB and ADA-OPNN.",
        tuple(
            Comparison(variant, ENVIRONMENT_2, label, f"{SW_GPUCB} ({rivals})")
            for variant, labels, rivals in _with_rivals(ADA_POLICIES)
            for label in labels
        ),
    ),
    Statement(
        "F1b-2",
        "1b",
        "With settings from environment 1, WGPUCB has more regret on environment 2 than ADA-OPKB, and about as much "
        "as ADA-OPNN.",
        tuple(
            comparison
            for variant, (opkb, opnn), rivals in _with_rivals(ADA_POLICIES)
            for comparison in (
                Comparison(variant, ENVIRONMENT_2, opkb, f"{WGPUCB} ({rivals})"),
                Comparison(variant, ENVIRONMENT_2, f"{WGPUCB} ({rivals})", opnn, kind="near"),
            )
        ),
    ),
    Statement(
        "F2a-1",
        "2a",
        "On the stationary cosine bandit, training helps: OPNN has less regret than OPNN0.",
        tuple(Comparison(ours, STATIONARY_COSINE, opnn, opnn0) for ours, (opnn, opnn0) in TRAINED_AND_NOT.items()),
    ),
    Statement(
        "F2a-2",
        "2a",
        "On the stationary cosine bandit, OPNN has about as much regret as GPUCB and OPKB.",
        tuple(
            Comparison(variant, STATIONARY_COSINE, opnn, rival, kind="near")
            for variant, (opnn, _), rivals in _with_rivals(TRAINED_AND_NOT)
            for rival in (f"GPUCB ({rivals})", OPKB.label)  # OPKB has one setting, and stands in both
        ),
    ),
    Statement(
        "F2b-1",
        "2b",
        "On slow drift, ADA-OPKB and ADA-OPNN have less regret than SW-GPUCB and WGPUCB with settings from "
        "environment 1.",
        tuple(
            Comparison(variant, SLOW_COSINE, label, f"{rival} ({rivals})")
            for variant, labels, rivals in _with_rivals(ADA_POLICIES_ON_DRIFT)
            for label in labels
            for rival in (SW_GPUCB, WGPUCB)
        ),
    ),
    Statement(
        "F2b-2",
        "2b",
        "On slow drift, SW-GPUCB with its window set to 1000 for it has the least regret of all.",
        tuple(
            Comparison(variant, SLOW_COSINE, SW_GPUCB_RETUNED.label, other)
            for variant, others in {
                "against published settings": (
                    *ADA_POLICIES_ON_DRIFT[PUBLISHED],
                    ADA_POLICIES[PUBLISHED][0],  # on its usual kernel too: the claim is about all
                    SW_GPUCB_PUBLISHED.label,
                    WGPUCB_PUBLISHED.label,
                ),
                "against the paper's text and tuned settings": (
                    *ADA_POLICIES[TEXT],
                    f"{SW_GPUCB}{TUNED_ENDING}",
                    f"{WGPUCB}{TUNED_ENDING}",
                ),
            }.items()
            for other in others
        ),
    ),
)
