"""AutoBandit against its yardstick: verdicts, the ratio in every world, and all policies in all worlds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from driftbandits.experiments.definitions.autobandit import LABEL
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.experiments.definitions.yardstick import PAPER, SERIES
from driftbandits.experiments.judging.autobandit import MOST_LOST, Judgement, judge
from driftbandits.plots.ratios import ratio_rows
from driftbandits.report.context import Block, Desk
from driftbandits.report.formats import NOTHING
from driftbandits.report.judgements import ratio_picture, verdict_table, world_table
from driftbandits.report.real_series import real_blocks
from driftbandits.report.suite import suite_blocks
from driftbandits.report.worlds import experiment_block


def yardstick_blocks(desk: Desk, experiments: Sequence[Experiment], *, subject: str = LABEL) -> list[Block]:
    """What was judged if the subject has played, then every policy in the suite, on the paper's worlds, on series."""
    judgement = judge(desk.results.cells, references=desk.references, subject=subject)
    suite = [e for e in experiments if not e.id.startswith((PAPER, SERIES))]
    return [
        *([_judged(desk, judgement, subject)] if len(judgement.worlds) else []),
        *(dataclasses.replace(block, id=f"yardstick-{block.id}") for block in suite_blocks(desk, suite)),
        *(experiment_block(desk, e) for e in desk.begun([e for e in experiments if e.id.startswith(PAPER)])),
        *real_blocks(desk, [e for e in experiments if e.id.startswith(SERIES)]),
    ]


def _judged(desk: Desk, judgement: Judgement, subject: str) -> Block:
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
            desk,
            ratio_rows(judgement.worlds, "over_window"),
            limit=MOST_LOST,
            subject=subject,
            rival="tuned window",
            caption=f"Mean final regret of {subject} over that of the sliding window tuned in the same world.",
            name="yardstick",
        ),
        tables=(verdict_table(judgement.verdicts), world_table(judgement.worlds, heads, subject=subject)),
    )
