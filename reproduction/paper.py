"""The paper's figures: worlds, policies, claims and their chapters.

As published the worlds have d = 10; the same at d = 2 and d = 3, where the kernel matters, end in `/d2` and `/d3`.
SW-GPUCB, WGPUCB and GPUCB play with the settings of the authors' files ("published") and with those found by an equal
search ("tuned"), as one row where these are the same; ADA-OPKB, OPKB, ADA-OPNN and OPNN as the paper writes them, and
as the authors' code runs them ("published"). The window of SW-GPUCB is 3,000, as the text has it for all worlds; where
the files have 2,000, that is a row of its own ("the files'"). AutoBandit and CalibratedOPKB, which go beyond the paper,
play beside them. On tuning seeds there are also windows and discounts over the paper's grids: are those that it names
the best?

Two policies are compared by the mean of their difference over the seeds both have played; a seed fixes the world and
its noise, so the differences are paired. Their interval is Student's, at 95 %, one comparison at a time.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import pandas as pd

from driftbandits._util.intervals import t_interval
from driftbandits.experiments.results import Results
from driftbandits.experiments.seeds import EVALUATION, TUNING
from driftbandits.experiments.specs import HORIZON, Experiment, PolicySpec, cells_of
from driftbandits.report.blocks import Block, experiment_block
from reproduction.catalogue import (
    ADA_OPKB,
    ADA_OPKB_PUBLISHED,
    ADA_OPKB_PUBLISHED_ON_DRIFT,
    ADA_OPNN,
    ADA_OPNN_INFINITE,
    ADA_OPNN_ON_DRIFT,
    ADA_OPNN_PUBLISHED,
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
    SW_GPUCB_IN_FILES,
    SW_GPUCB_PUBLISHED,
    SW_GPUCB_RETUNED,
    WGPUCB_PUBLISHED,
    by_id,
    tuned_spec,
)
from reproduction.chapters import rankings_named
from reproduction.claims import Check, Claim, ClaimsJudgement, judge_below, judge_within, make_check
from reproduction.growth import GROWTH, SWEEPS, growth_claims, without_guests
from reproduction.spaces import DISCOUNTS, WINDOWS
from reproduction.sweeps import Sweep, sweeps_of
from reproduction.topic import Group, StudyContext

# The paper's four, by the names of their worlds.
ENVIRONMENT_1, ENVIRONMENT_2 = "switching/1", "switching/2"
STATIONARY_COSINE, SLOW_COSINE = "cosine/stationary", "cosine/slow"
PAPER_TITLES = {
    ENVIRONMENT_1: "Environment 1: one switch",
    ENVIRONMENT_2: "Environment 2: two switches",
    STATIONARY_COSINE: "Stationary cosine bandit",
    SLOW_COSINE: "Slowly varying cosine bandit",
}
FIGURE_SEEDS = EVALUATION.take(25)
STATIONARY_SEEDS = EVALUATION.take(50)  # the paper's for the stationary bandit
# At d = 3 and d = 2, which the paper does not have: all kernel policies within ten minutes.
SEEDS_IN_OTHER_DIMENSIONS = 10
PUBLISHED_DIMENSION = 10  # of the tuned rivals; the stationary bandit has d = 8, and nobody is tuned there
_ADAPTING = (ADA_OPKB, ADA_OPKB_PUBLISHED, ADA_OPNN, ADA_OPNN_PUBLISHED, OPKB)
# What the figures are about, and whom it is compared with, those with the settings of the authors' files.
_OF_THE_PAPER: Mapping[str, tuple[PolicySpec, ...]] = {
    ENVIRONMENT_1: _ADAPTING,
    ENVIRONMENT_2: _ADAPTING,
    STATIONARY_COSINE: (OPNN, OPNN0, OPNN_PUBLISHED, OPNN0_PUBLISHED, OPKB, OPKB_PUBLISHED),
    SLOW_COSINE: (
        ADA_OPKB,
        ADA_OPKB_PUBLISHED,
        ADA_OPKB_PUBLISHED_ON_DRIFT,
        ADA_OPNN_ON_DRIFT,
        ADA_OPNN_PUBLISHED,
    ),
}
_FORGETTING = (SW_GPUCB_PUBLISHED, WGPUCB_PUBLISHED)
_RIVALS: Mapping[str, tuple[PolicySpec, ...]] = {
    ENVIRONMENT_1: _FORGETTING,
    ENVIRONMENT_2: _FORGETTING,
    STATIONARY_COSINE: (GPUCB_PUBLISHED,),
    SLOW_COSINE: _FORGETTING,
}
BEYOND = (AUTOBANDIT, CALIBRATED_OPKB)
_RETUNED: Mapping[str, tuple[PolicySpec, ...]] = {SLOW_COSINE: (SW_GPUCB_RETUNED,)}
_IN_FILES: Mapping[str, tuple[PolicySpec, ...]] = dict.fromkeys((ENVIRONMENT_2, SLOW_COSINE), (SW_GPUCB_IN_FILES,))
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


def _rival_specs(name: str, dimension: int) -> list[PolicySpec]:
    every = [row for published in _RIVALS[name] for row in rival_rows(published, dimension).values()]
    return list({row.label: row for row in every}.values())


def _figure(name: str) -> Experiment:
    return Experiment(
        id=name,
        title=PAPER_TITLES[name],
        environment=name,
        settings={**_SETTINGS.get(name, {}), "horizon": HORIZON},
        policies=(
            *_OF_THE_PAPER[name],
            *_rival_specs(name, PUBLISHED_DIMENSION),
            *_IN_FILES.get(name, ()),
            *_RETUNED.get(name, ()),
            *BEYOND,
        ),
        seeds=STATIONARY_SEEDS if name == STATIONARY_COSINE else FIGURE_SEEDS,
    )


def _in_dimension(name: str, dimension: int) -> Experiment:
    """A figure in another dimension: neural policies at infinite width, WGPUCB with settings found there alone."""
    quick = [policy for policy in _OF_THE_PAPER[name] if policy.seeds is None]
    # WGPUCB's published settings are for d = 10, and its runs take longest
    rivals = [policy for policy in _rival_specs(name, dimension) if policy is not WGPUCB_PUBLISHED]
    rows = (*quick, *rivals, *_RETUNED.get(name, ()), ADA_OPNN_INFINITE, *BEYOND)
    figure = _figure(name)
    return dataclasses.replace(
        figure,
        id=f"{name}/d{dimension}",
        title=f"{figure.title}, d = {dimension}",
        settings={**figure.settings, "dimension": dimension},
        seeds=FIGURE_SEEDS,
        policies=tuple(dataclasses.replace(policy, seeds=SEEDS_IN_OTHER_DIMENSIONS) for policy in rows),
    )


_OTHER_DEPTH = {3: (5, "five"), 5: (3, "three")}


def _with_other_depth(experiment: Experiment) -> Experiment:
    """The text's networks with the five weight matrices of the authors' code, the authors' with the text's three."""
    return dataclasses.replace(
        experiment,
        id=f"{experiment.id}/five",
        title=f"{experiment.title}, five and three weight matrices",
        policies=tuple(map(_other_depth, (p for p in experiment.policies if p.seeds is not None))),
    )


def _other_depth(row: PolicySpec) -> PolicySpec:
    depth, word = _OTHER_DEPTH[row.settings["depth"]]
    settings = {**row.settings, "depth": depth}
    return dataclasses.replace(row, label=f"{row.label}, {word} matrices", settings=settings, seeds=None)


FIGURES: dict[str, Experiment] = by_id(map(_figure, _OF_THE_PAPER))
OTHER_DIMENSIONS: dict[int, dict[str, Experiment]] = {
    dimension: by_id(_in_dimension(name, dimension) for name in _OF_THE_PAPER) for dimension in (3, 2)
}
PAPER: dict[str, Experiment] = by_id(
    experiment for group in (FIGURES, *OTHER_DIMENSIONS.values()) for experiment in group.values()
)
FIVE_MATRICES: dict[str, Experiment] = by_id(map(_with_other_depth, FIGURES.values()))
PAPER_WINDOW, PAPER_DISCOUNT = 3_000, 0.9995
SIZES_OF_WINDOWS, SIZES_OF_DISCOUNTS = "sizes/windows", "sizes/discounts"
WGPUCB_TUNED = tuned_spec("WGPUCB", PUBLISHED_DIMENSION)


def sized(row: PolicySpec, setting: str, size: float) -> PolicySpec:
    """A row with this window or discount.

    >>> sized(SW_GPUCB_PUBLISHED, "window", 500).label
    'SW-GPUCB (published, window 500)'
    """
    label = f"{row.label.removesuffix(')')}, {setting} {size:g})"
    return dataclasses.replace(row, label=label, settings={**row.settings, setting: size})


def _experiment(name: str, title: str, rows: Sequence[PolicySpec]) -> Experiment:
    return Experiment(
        id=name,
        title=f"{PAPER_TITLES[ENVIRONMENT_1]}, {title}",
        environment=ENVIRONMENT_1,
        settings={"dimension": PUBLISHED_DIMENSION, "horizon": HORIZON},
        policies=tuple(rows),
        seeds=TUNING.take(16),
    )


BEST_SIZES: dict[str, Experiment] = by_id(
    (
        _experiment(SIZES_OF_WINDOWS, "windows", [sized(SW_GPUCB_PUBLISHED, "window", w) for w in WINDOWS]),
        _experiment(
            SIZES_OF_DISCOUNTS,
            "discounts",
            [sized(row, "discount", eta) for row in (WGPUCB_PUBLISHED, WGPUCB_TUNED) for eta in DISCOUNTS],
        ),
    )
)


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


# Under which settings a claim is checked: ours (the paper's text, or what the authors ran), and the rivals' (published:
# the authors' settings with the text's window; the files': with the window of their file of this very world; tuned).
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


def _rival_labels(published: PolicySpec, experiment: str) -> dict[str, list[str]]:
    """The rows of a rival in a world by label, each with the settings it stands for.

    Where a file has another window than the text, "the files'" settings are those of the files of that world.
    """
    rows = rival_rows(published)
    if experiment in _IN_FILES:
        rows["the files'"] = SW_GPUCB_IN_FILES if published is SW_GPUCB_PUBLISHED else published
    kinds: dict[str, list[str]] = {}
    for kind, row in rows.items():
        kinds.setdefault(row.label, []).append(kind)
    return kinds


def _with_rivals(
    experiment: str, policies: Mapping[str, tuple[str, str]], *rivals: PolicySpec
) -> Iterator[tuple[tuple[str, ...], tuple[str, str], str]]:
    """Every setting of ours with every row of the rivals: the settings it belongs to, our labels, the rival's label."""
    for ours, labels in policies.items():
        for published in rivals:
            for label, kinds in _rival_labels(published, experiment).items():
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
            for settings, labels, rival in _with_rivals(ENVIRONMENT_1, ADA_POLICIES, SW_GPUCB_PUBLISHED)
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
            for settings, labels, rival in _with_rivals(ENVIRONMENT_2, ADA_POLICIES, SW_GPUCB_PUBLISHED)
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
            for settings, (opkb, opnn), rival in _with_rivals(ENVIRONMENT_2, ADA_POLICIES, WGPUCB_PUBLISHED)
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
                for settings, (opnn, _), rival in _with_rivals(STATIONARY_COSINE, SAME_KERNEL, GPUCB_PUBLISHED)
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
            for settings, labels, rival in _with_rivals(
                SLOW_COSINE, ADA_POLICIES_ON_DRIFT, SW_GPUCB_PUBLISHED, WGPUCB_PUBLISHED
            )
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
                    label: tuple(
                        dict.fromkeys(AGAINST_FAIR if kind == "tuned" else AGAINST_PUBLISHED for kind in kinds)
                    )
                    for rival in (SW_GPUCB_PUBLISHED, WGPUCB_PUBLISHED)
                    for label, kinds in _rival_labels(rival, SLOW_COSINE).items()
                },
            }.items()
        ),
    ),
)
NEAR_MARGIN = 0.25  # of the other's mean regret: what the paper's "near" and "comparable" are taken to mean
ROUNDS_BEFORE_SWITCH = 3_000  # of environment 1
CLAIMED: dict[str, Experiment] = {**PAPER, **BEST_SIZES}  # what comparisons are made in


def check_claims(results: Results, *, sweeps: Sequence[Sweep] = SWEEPS) -> list[Claim]:
    """Every claim of the paper, checked against what was played; what was not is "not run".

    >>> from driftbandits.experiments.results import collect
    >>> [claim.id for claim in check_claims(collect([], []))]
    ['F1a-1', 'F1a-2', 'F1a-3', 'F1a-4', 'F1b-1', 'F1b-2', 'F2a-1', 'F2a-2', 'F2b-1', 'F2b-2', 'T1', 'T2', 'T3']
    """
    played = _Played(results)
    claims = [
        Claim(s.id, s.figure, s.text, tuple(_compare(s.id, comparison, played) for comparison in s.comparisons))
        for s in STATEMENTS
    ]
    return [*claims, *growth_claims(results, sweeps)]


class _Played:
    """Regrets by experiment and policy, as series over seeds."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self.experiments = {experiment.id: experiment for experiment in results.experiments}

    @cached_property
    def _final(self) -> dict[tuple[str, str], pd.Series[float]]:
        groups = self._results.cells.groupby(["experiment", "policy"], sort=False)
        return {(str(e), str(p)): group.set_index("seed")["regret"] for (e, p), group in groups}

    @cached_property
    def _before_switch(self) -> pd.DataFrame:
        curves = self._results.curves
        return curves[(curves["experiment"] == ENVIRONMENT_1) & (curves["round"] <= ROUNDS_BEFORE_SWITCH)]

    def regrets(self, comparison: Comparison, label: str) -> pd.Series[float]:
        """Regret of a policy on each seed it has played."""
        if comparison.when == "end":
            return self._final.get((comparison.experiment, label), pd.Series(dtype="float64"))
        here = self._before_switch[self._before_switch["policy"] == label]
        return here.sort_values("round").groupby("seed")["regret"].last()

    def moment(self, comparison: Comparison) -> str:
        """When the regret is taken, in words. Between checkpoints nothing is made up: after the switch all differs."""
        if comparison.when == "end":
            experiment = self.experiments.get(comparison.experiment, CLAIMED[comparison.experiment])
            return f"regret after {experiment.settings.get('horizon', HORIZON):,} rounds"
        if self._before_switch.empty:
            return f"regret just before the switch in round {ROUNDS_BEFORE_SWITCH:,}"
        last = int(self._before_switch["round"].max())
        return f"regret after {last:,} rounds, the last checkpoint before the switch in round {ROUNDS_BEFORE_SWITCH:,}"

    @cached_property
    def _keys(self) -> dict[str, dict[str, str]]:
        return {name: _keys_of(experiment) for name, experiment in self.experiments.items() if name in CLAIMED}

    def altered(self, comparison: Comparison) -> list[str]:
        """Which of the two policies did not play as the catalogue has it."""
        given, paper = self._keys[comparison.experiment], _keys_of(CLAIMED[comparison.experiment])
        return [label for label in (comparison.first, comparison.second) if given.get(label) != paper.get(label)]


def _keys_of(experiment: Experiment) -> dict[str, str]:
    """What every policy of an experiment plays, by label."""
    return {cell.policy.label: cell.key for cell in cells_of(dataclasses.replace(experiment, seeds=(0,)))}


def _compare(claim: str, comparison: Comparison, played: _Played) -> Check:
    first, second = (played.regrets(comparison, label) for label in (comparison.first, comparison.second))
    seeds = first.index.intersection(second.index)
    interval = t_interval((first.loc[seeds] - second.loc[seeds]).to_numpy())
    margin = NEAR_MARGIN * float(second.loc[seeds].mean()) if len(seeds) else math.nan
    sense = "below 0" if comparison.kind == "below" else f"within {NEAR_MARGIN:.0%} of that of {comparison.second}"
    statement = f"{comparison.first} minus {comparison.second}, {played.moment(comparison)}: {sense}"
    paper_seeds = len(CLAIMED[comparison.experiment].seeds)
    if not len(seeds):
        return make_check(
            claim,
            comparison.settings,
            statement,
            interval,
            "not run",
            unit="regret",
            paper_seeds=paper_seeds,
            brief=comparison.brief,
        )
    notes = [
        *([f"margin ±{margin:,.0f}"] if comparison.kind == "near" else []),
        *(f"{label} not as in the catalogue" for label in played.altered(comparison)),
    ]
    return make_check(
        claim,
        comparison.settings,
        statement,
        interval,
        judge_below(interval) if comparison.kind == "below" else judge_within(interval, margin),
        unit="regret",
        paper_seeds=paper_seeds,
        notes=notes,
        brief=comparison.brief,
    )


def judge_claims(results: Results) -> ClaimsJudgement | None:
    """The paper's claims, if anything they are about has been played."""
    if {*CLAIMED, *GROWTH}.isdisjoint(results.cells["experiment"]):
        return None
    sweeps = sweeps_of(results.experiments, SWEEPS)
    return ClaimsJudgement("claims.md", claims=tuple(check_claims(results, sweeps=without_guests(sweeps))))


FIGURE_NUMBERS = {ENVIRONMENT_1: "1a", ENVIRONMENT_2: "1b", STATIONARY_COSINE: "2a", SLOW_COSINE: "2b"}


def figure_blocks(context: StudyContext, experiments: Sequence[Experiment]) -> list[Block]:
    """One block per figure, in the order of their numbers."""
    begun = sorted(context.begun(experiments), key=lambda e: FIGURE_NUMBERS[e.id])
    return [experiment_block(context, e, title=f"Figure {FIGURE_NUMBERS[e.id]}. {e.title}") for e in begun]


def sizes_blocks(context: StudyContext, experiments: Sequence[Experiment]) -> list[Block]:
    """The chapter of windows and discounts."""
    return rankings_named("sizes", context, experiments)


PAPER_FIGURES = Group(
    name="paper",
    title="The paper’s figures",
    lead="The worlds of the paper’s figures (d = 10; the stationary bandit d = 8). Algorithms stand as the paper’s "
    "text has them, rivals as an equal search tuned them; “published” is what the authors ran. AutoBandit and "
    "CalibratedOPKB go beyond the paper.",
    experiments=tuple(FIGURES.values()),
    judge=judge_claims,
    blocks=figure_blocks,
    played="always",
    anchor="figures",
)
PAPER_IN_OTHER_DIMENSIONS = tuple(
    Group(
        name=f"paper/d{d}",
        title=f"The same worlds at d = {d}",
        lead="At d = 10 the kernel matrix is nearly the identity: no arm tells much about another, so the paper’s "
        f"worlds hardly test a kernel. Here are the same worlds at d = {d}, where it matters. ADA-OPNN plays at "
        "infinite width, where its features never move.",
        experiments=tuple(members.values()),
        judge=judge_claims,
        played="always",
        anchor=f"d{d}",
    )
    for d, members in OTHER_DIMENSIONS.items()
)
PAPER_SIZES = Group(
    purpose=TUNING,
    name="paper/sizes",
    title="The sizes found on environment 1",
    lead="The paper calls a window of 3,000 and a discount of 0.9995 the best on environment 1. Here are those of "
    "its grids on tuning seeds, which no figure uses.",
    experiments=tuple(BEST_SIZES.values()),
    judge=judge_claims,
    blocks=sizes_blocks,
    played="always",
    anchor="sizes",
)
FIVE_WEIGHT_MATRICES = Group(
    name="five",
    title="Five weight matrices",
    lead="The neural policies with the five weight matrices of the authors’ code, where the text has three.",
    experiments=tuple(FIVE_MATRICES.values()),
    played="in full",
)
