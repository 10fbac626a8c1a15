"""Which experiments belong to which chapter of the page, and in what order a reader wants them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from driftbandits.experiments.definitions.catalogue import FIVE_MATRICES, GROWTH, PAPER
from driftbandits.experiments.definitions.growth import Sweep
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.report.calibrated_opkb import calibrated_opkb_blocks
from driftbandits.report.context import ReportContext
from driftbandits.report.rankings import ranking_blocks
from driftbandits.report.real_series import real_series_blocks
from driftbandits.report.sections import Block, Section
from driftbandits.report.suite import HEAT_STEPS, suite_blocks
from driftbandits.report.sweeps import growth_blocks
from driftbandits.report.worlds import experiment_block
from driftbandits.report.yardstick import yardstick_blocks

FIGURE_NUMBERS = {"switching/1": "1a", "switching/2": "1b", "cosine/stationary": "2a", "cosine/slow": "2b"}
DIMENSIONS = (3, 2)

Blocks = Callable[[ReportContext, Sequence[Experiment]], Sequence[Block]]


@dataclass(frozen=True)
class Chapter:
    """A chapter that a page may have: its title, its lead, and how its blocks are made from its experiments."""

    id: str
    title: str
    lead: str
    blocks: Blocks


def make_chapters(context: ReportContext) -> list[Section]:
    """All chapters that hold anything."""
    groups = sort_experiments(context.results.experiments, context.sweeps)
    sections = [
        Section(chapter.id, chapter.title, chapter.lead, tuple(chapter.blocks(context, groups[chapter.id])))
        for chapter in CHAPTERS
        if groups[chapter.id]
    ]
    return [section for section in sections if section.blocks]


def sort_experiments(experiments: Sequence[Experiment], sweeps: Sequence[Sweep]) -> dict[str, list[Experiment]]:
    """Experiments by chapter; whatever belongs to none of ours is the user's own.

    >>> sort_experiments([Experiment("mine", "Mine", "switching/1", {}, ())], ())["own"][0].id
    'mine'
    """
    groups: dict[str, list[Experiment]] = {chapter.id: [] for chapter in CHAPTERS}
    swept = {e.id for sweep in sweeps for e in sweep.experiments}
    for experiment in experiments:
        groups[_chapter_of(experiment.id, swept)].append(experiment)
    return groups


def _chapter_of(name: str, swept: set[str]) -> str:
    if name in FIGURE_NUMBERS:
        return "figures"
    if name in PAPER:
        return name.rpartition("/")[2]
    if name in swept or name in GROWTH:
        return "growth"
    if name in FIVE_MATRICES:
        return "five"
    first = name.partition("/")[0]
    return first if first in ("comparison", "suite", "real", "yardstick", "calibrated") else "own"


def _figures(context: ReportContext, experiments: Sequence[Experiment]) -> tuple[Block, ...]:
    begun = sorted(context.begun(experiments), key=lambda e: FIGURE_NUMBERS[e.id])
    return tuple(experiment_block(context, e, title=f"Figure {FIGURE_NUMBERS[e.id]}. {e.title}") for e in begun)


def _growth(context: ReportContext, experiments: Sequence[Experiment]) -> tuple[Block, ...]:
    """Sweeps with any of these experiments; single points that no sweep holds stand for themselves."""
    here = {e.id for e in experiments}
    swept = {e.id for sweep in context.sweeps for e in sweep.experiments}
    held = [sweep for sweep in context.sweeps if here & {e.id for e in sweep.experiments}]
    return (*growth_blocks(context, held), *_plain(context, [e for e in experiments if e.id not in swept]))


def _plain(context: ReportContext, experiments: Sequence[Experiment]) -> tuple[Block, ...]:
    return tuple(experiment_block(context, experiment) for experiment in context.begun(experiments))


CHAPTERS = (
    Chapter(
        "figures",
        "The paper’s figures",
        "The worlds of the paper’s figures, as published (d = 10; the stationary bandit d = 8). Solid lines are the "
        "algorithms as the paper’s text has them and rivals tuned by an equal search; dashed lines are the published "
        "settings.",
        _figures,
    ),
    *(
        Chapter(
            f"d{d}",
            f"The same worlds at d = {d}",
            "At d = 10 the kernel matrix is nearly the identity: no arm tells much about another, so the paper’s "
            f"worlds hardly test a kernel. Here are the same worlds at d = {d}, where it matters. ADA-OPNN plays at "
            "infinite width, where its features never move.",
            _plain,
        )
        for d in DIMENSIONS
    ),
    Chapter(
        "growth",
        "Table 1: how fast regret grows",
        "The paper bounds the regret of ADA-OPKB by its rates in the rounds T, the segments L_T and the variation V_T "
        "(Table 1). Along a sweep of one of them, with both axes logarithmic, a rate is a slope.",
        _growth,
    ),
    Chapter(
        "comparison",
        "All policies, tuned alike",
        "Every policy, each with settings found by the same search on environment 1 in the same dimension.",
        ranking_blocks,
    ),
    Chapter(
        "suite",
        "A wider suite of worlds",
        "A wider range of worlds. Every policy keeps the settings found for it on environment 1, so most worlds are "
        "new to it. Below each regret: how many times the best one of its world it is. Darker is worse, in steps at × "
        + ", ".join(f"{step:g}" for step in HEAT_STEPS)
        + "; the best is "
        "bold. Means are over worlds that all policies have played.",
        suite_blocks,
    ),
    Chapter(
        "real",
        "Real data",
        "Bandits made from real series. Replicates start at different rounds of the same series, so they overlap and "
        "their standard errors are too small. Turnover is the share of rounds in which another arm was played than in "
        "the round before.",
        real_series_blocks,
    ),
    Chapter(
        "yardstick",
        "AutoBandit and its yardstick",
        "What AutoBandit, with one setting and told nothing, is judged by. “Tuned here” are settings found for that "
        "very world on tuning seeds, “one setting” those found over all worlds; both are told kernel and noise. "
        "On real series nobody knows the noise, and all baselines take it for a tenth of half the reward range.",
        yardstick_blocks,
    ),
    Chapter(
        "calibrated",
        "CalibratedOPKB: worlds, false alarms, delays",
        "ADA-OPKB without constants, and with alarms whose probability is set: in the suite and the paper’s worlds "
        "against ADA-OPKB (tuned, published, with the constants of the proofs) and AutoBandit, the kernel told to all "
        "but the last; in stationary worlds, where at most a tenth of all runs may ever have an alarm, whatever the "
        "noise and however wrong the kernel; and on single changes.",
        calibrated_opkb_blocks,
    ),
    Chapter(
        "five",
        "Five weight matrices",
        "The neural policies with the five weight matrices of the authors’ code, where the text has three.",
        _plain,
    ),
    Chapter("own", "Experiments of your own", "", _plain),
)
