"""AutoBandit against its yardstick: verdicts, the ratio in every world, and all policies in all worlds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from driftbandits.experiments.definitions.ids import YARDSTICK_PAPER_PREFIX, YARDSTICK_REAL_PREFIX
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.experiments.definitions.targets import AUTOBANDIT_MOST_IN_WORST_CHANGING_WORLD
from driftbandits.experiments.judging.yardstick import AutoBanditJudgement
from driftbandits.plots.ratios import ratio_rows
from driftbandits.report.context import ReportContext
from driftbandits.report.formats import NOTHING
from driftbandits.report.judgements import ratio_picture, verdict_table, world_table
from driftbandits.report.real_series import real_series_blocks
from driftbandits.report.sections import Block
from driftbandits.report.suite import suite_blocks
from driftbandits.report.worlds import experiment_block


def yardstick_blocks(context: ReportContext, experiments: Sequence[Experiment]) -> list[Block]:
    """What was judged if the subject has played, then every policy in the suite, on the paper's worlds, on series."""
    judgement = context.judgements.of(AutoBanditJudgement)
    suite = [e for e in experiments if not e.id.startswith((YARDSTICK_PAPER_PREFIX, YARDSTICK_REAL_PREFIX))]
    return [
        *([] if judgement is None else [_judged(context, judgement)]),
        *(dataclasses.replace(block, id=f"yardstick-{block.id}") for block in suite_blocks(context, suite)),
        *(
            experiment_block(context, e)
            for e in context.begun([e for e in experiments if e.id.startswith(YARDSTICK_PAPER_PREFIX)])
        ),
        *real_series_blocks(context, [e for e in experiments if e.id.startswith(YARDSTICK_REAL_PREFIX)]),
    ]


def _judged(context: ReportContext, judgement: AutoBanditJudgement) -> Block:
    subject = judgement.subject
    heads = {
        "window": "tuned window",
        "discount": "tuned discount",
        "single": judgement.single or NOTHING,
        "gpucb": "tuned GPUCB",
    }
    return Block(
        id="yardstick-judged",
        title=f"{subject}: targets, and every world with losses first",
        picture=ratio_picture(
            context,
            ratio_rows(judgement.worlds, "over_window"),
            limit=AUTOBANDIT_MOST_IN_WORST_CHANGING_WORLD,
            subject=subject,
            rival="tuned window",
            caption=f"Mean final regret of {subject} over that of the sliding window tuned in the same world.",
            name="yardstick",
        ),
        tables=(verdict_table(judgement.verdicts), world_table(judgement.worlds, heads, subject=subject)),
    )
