"""The paper's claims as data: who is compared with whom, where, when, and under which settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from driftbandits.experiments.definitions.best_sizes import (
    DISCOUNTS,
    PAPER_DISCOUNT,
    PAPER_WINDOW,
    SIZES_OF_DISCOUNTS,
    SIZES_OF_WINDOWS,
    WGPUCB_TUNED,
    WINDOWS,
    sized,
)
from driftbandits.experiments.definitions.ids import ENVIRONMENT_1, ENVIRONMENT_2, SLOW_COSINE, STATIONARY_COSINE
from driftbandits.experiments.definitions.paper import rival_rows
from driftbandits.experiments.definitions.rows import (
    ADA_OPKB,
    ADA_OPKB_PUBLISHED,
    ADA_OPKB_PUBLISHED_ON_DRIFT,
    ADA_OPNN,
    ADA_OPNN_PUBLISHED,
    GPUCB_PUBLISHED,
    OPKB,
    OPKB_PUBLISHED,
    OPNN,
    OPNN0,
    OPNN0_PUBLISHED,
    OPNN_PUBLISHED,
    SW_GPUCB_PUBLISHED,
    SW_GPUCB_RETUNED,
    WGPUCB_PUBLISHED,
)
from driftbandits.experiments.definitions.specs import PolicySpec


@dataclass(frozen=True)
class Comparison:
    """`first` against `second` in one experiment; `when` is the end of the run or just before the switch.

    It belongs to the claim under all its `settings`: a row with two labels, or one that rivals do not change, counts
    once.
    """

    settings: tuple[str, ...]
    experiment: str
    first: str
    second: str
    kind: Literal["below", "near"] = "below"
    when: Literal["end", "switch"] = "end"

    @property
    def brief(self) -> str:
        """In a few words."""
        return f"{self.first} {self.kind} {self.second}"


@dataclass(frozen=True)
class Statement:
    """A claim before any results: its comparisons."""

    id: str
    figure: str
    text: str
    comparisons: tuple[Comparison, ...]


# Under which settings a claim is checked: ours (the paper's text, or the authors' files), and the rivals' (the authors'
# files, or tuned).
TEXT, PUBLISHED = "paper's text", "published"
ADA_POLICIES = {
    TEXT: (ADA_OPKB.label, ADA_OPNN.label),
    PUBLISHED: (ADA_OPKB_PUBLISHED.label, ADA_OPNN_PUBLISHED.label),
}
ADA_POLICIES_ON_DRIFT = {
    **ADA_POLICIES,
    PUBLISHED: (ADA_OPKB_PUBLISHED_ON_DRIFT.label, ADA_OPNN_PUBLISHED.label),
}
TRAINED_AND_NOT = {TEXT: (OPNN.label, OPNN0.label), PUBLISHED: (OPNN_PUBLISHED.label, OPNN0_PUBLISHED.label)}
AGAINST_PUBLISHED, AGAINST_FAIR = "against published settings", "against the paper's text and tuned settings"
SAME_KERNEL = {TEXT: (OPNN.label, OPKB.label), PUBLISHED: (OPNN_PUBLISHED.label, OPKB_PUBLISHED.label)}


def _against(ours: str, kinds: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{ours} against {kind} rivals" for kind in kinds)


def _rivals(published: PolicySpec) -> dict[str, list[str]]:
    """The rows of a rival by label, each with the settings it stands for: published, tuned, or both."""
    kinds: dict[str, list[str]] = {}
    for kind, row in rival_rows(published).items():
        kinds.setdefault(row.label, []).append(kind)
    return kinds


def _with_rivals(
    policies: Mapping[str, tuple[str, str]], *rivals: PolicySpec
) -> Iterator[tuple[tuple[str, ...], tuple[str, str], str]]:
    """Every setting of ours with every row of the rivals: the settings it belongs to, our labels, the rival's label."""
    for ours, labels in policies.items():
        for published in rivals:
            for label, kinds in _rivals(published).items():
                yield _against(ours, kinds), labels, label


def _best(
    experiment: str, settings: str, row: PolicySpec, name: str, best: float, sizes: Sequence[float]
) -> list[Comparison]:
    """One size of a row against all others."""
    first = sized(row, name, best).label
    return [Comparison((settings,), experiment, first, sized(row, name, s).label) for s in sizes if s != best]


STATEMENTS: tuple[Statement, ...] = (
    Statement(
        "F1a-1",
        "1a",
        "On environment 1, SW-GPUCB has lost less than ADA-OPKB and ADA-OPNN by the time of the switch.",
        tuple(
            Comparison(settings, ENVIRONMENT_1, rival, label, when="switch")
            for settings, labels, rival in _with_rivals(ADA_POLICIES, SW_GPUCB_PUBLISHED)
            for label in labels
        ),
    ),
    Statement(
        "F1a-2",
        "1a",
        "On environment 1, ADA-OPKB has less regret in the end than ADA-OPNN.",
        tuple(Comparison((ours,), ENVIRONMENT_1, opkb, opnn) for ours, (opkb, opnn) in ADA_POLICIES.items()),
    ),
    Statement(
        "F1a-3",
        "1a",
        f"On environment 1, {PAPER_WINDOW:,} is the best window of SW-GPUCB.",
        tuple(_best(SIZES_OF_WINDOWS, "published and tuned", SW_GPUCB_PUBLISHED, "window", PAPER_WINDOW, WINDOWS)),
    ),
    Statement(
        "F1a-4",
        "1a",
        f"On environment 1, {PAPER_DISCOUNT} is the best discount of WGPUCB.",
        tuple(
            comparison
            for settings, row in {PUBLISHED: WGPUCB_PUBLISHED, "tuned": WGPUCB_TUNED}.items()
            for comparison in _best(SIZES_OF_DISCOUNTS, settings, row, "discount", PAPER_DISCOUNT, DISCOUNTS)
        ),
    ),
    Statement(
        "F1b-1",
        "1b",
        "With settings from environment 1, SW-GPUCB has more regret on environment 2 than ADA-OPKB and ADA-OPNN.",
        tuple(
            Comparison(settings, ENVIRONMENT_2, label, rival)
            for settings, labels, rival in _with_rivals(ADA_POLICIES, SW_GPUCB_PUBLISHED)
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
            for settings, (opkb, opnn), rival in _with_rivals(ADA_POLICIES, WGPUCB_PUBLISHED)
            for comparison in (
                Comparison(settings, ENVIRONMENT_2, opkb, rival),
                Comparison(settings, ENVIRONMENT_2, rival, opnn, kind="near"),
            )
        ),
    ),
    Statement(
        "F2a-1",
        "2a",
        "On the stationary cosine bandit, training helps: OPNN has less regret than OPNN0.",
        tuple(Comparison((ours,), STATIONARY_COSINE, opnn, opnn0) for ours, (opnn, opnn0) in TRAINED_AND_NOT.items()),
    ),
    Statement(
        "F2a-2",
        "2a",
        "On the stationary cosine bandit, OPNN has about as much regret as GPUCB and OPKB.",
        (
            *(
                Comparison(settings, STATIONARY_COSINE, opnn, rival, kind="near")
                for settings, (opnn, _), rival in _with_rivals(SAME_KERNEL, GPUCB_PUBLISHED)
            ),
            *(
                Comparison(_against(ours, ("published", "tuned")), STATIONARY_COSINE, opnn, opkb, kind="near")
                for ours, (opnn, opkb) in SAME_KERNEL.items()
            ),
        ),
    ),
    Statement(
        "F2b-1",
        "2b",
        "On slow drift, ADA-OPKB and ADA-OPNN have less regret than SW-GPUCB and WGPUCB with settings from "
        "environment 1.",
        tuple(
            Comparison(settings, SLOW_COSINE, label, rival)
            for settings, labels, rival in _with_rivals(ADA_POLICIES_ON_DRIFT, SW_GPUCB_PUBLISHED, WGPUCB_PUBLISHED)
            for label in labels
        ),
    ),
    Statement(
        "F2b-2",
        "2b",
        "On slow drift, SW-GPUCB with its window set to 1000 for it has the least regret of all.",
        tuple(
            Comparison(settings, SLOW_COSINE, SW_GPUCB_RETUNED.label, other)
            for other, settings in {
                **dict.fromkeys(
                    (
                        *ADA_POLICIES_ON_DRIFT[PUBLISHED],
                        ADA_POLICIES[PUBLISHED][0],  # on its usual kernel too: the claim is about all
                    ),
                    (AGAINST_PUBLISHED,),
                ),
                **dict.fromkeys(ADA_POLICIES[TEXT], (AGAINST_FAIR,)),
                **{
                    label: tuple({"published": AGAINST_PUBLISHED, "tuned": AGAINST_FAIR}[kind] for kind in kinds)
                    for rival in (SW_GPUCB_PUBLISHED, WGPUCB_PUBLISHED)
                    for label, kinds in _rivals(rival).items()
                },
            }.items()
        ),
    ),
)
