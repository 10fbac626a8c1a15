"""CalibratedOPKB against ADA-OPKB: targets, every world, delays after one change, and the paper's worlds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from driftbandits.experiments.definitions.ids import CALIBRATED_PAPER_PREFIX, CALIBRATED_PREFIX
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.experiments.definitions.targets import CALIBRATED_OPKB_MOST_OVER_ADA_OPKB
from driftbandits.experiments.judging.calibrated_opkb import RIVALS, CalibratedOPKBJudgement
from driftbandits.plots.delays import DelayPanel, delay_figure, delay_key, delay_panels
from driftbandits.plots.ratios import ratio_rows
from driftbandits.report.context import ReportContext
from driftbandits.report.formats import NOTHING, number
from driftbandits.report.judgements import ratio_picture, verdict_table, world_table
from driftbandits.report.pictures import Picture, make_picture
from driftbandits.report.sections import Block
from driftbandits.report.tables import ReportTable, TableEntry, columns
from driftbandits.report.worlds import experiment_block
from driftbandits.showing import counted

NO_ENTRY = TableEntry(NOTHING)


def calibrated_opkb_blocks(context: ReportContext, experiments: Sequence[Experiment]) -> list[Block]:
    """What was judged if anything was, then delays, then the paper's worlds."""
    judgement = context.judgements.of(CalibratedOPKBJudgement)
    return [
        *([] if judgement is None else _judgement_blocks(context, judgement)),
        *(
            experiment_block(context, e)
            for e in context.begun([e for e in experiments if e.id.startswith(CALIBRATED_PAPER_PREFIX)])
        ),
    ]


def _judgement_blocks(context: ReportContext, judgement: CalibratedOPKBJudgement) -> list[Block]:
    return [
        *([] if judgement.worlds.empty and judgement.alarms.empty else [_judged(context, judgement)]),
        *([] if judgement.delays.empty else [_delays(context, judgement.delays)]),
    ]


def _judged(context: ReportContext, judgement: CalibratedOPKBJudgement) -> Block:
    subject = judgement.subject
    worlds = judgement.worlds
    in_suite = worlds[~worlds["world"].str.startswith(CALIBRATED_PAPER_PREFIX.removeprefix(CALIBRATED_PREFIX))]
    beside = () if worlds.empty else (world_table(worlds, RIVALS, subject=subject),)
    return Block(
        id="calibrated-judged",
        title=f"{subject}: targets, and every world with losses first",
        picture=ratio_picture(
            context,
            ratio_rows(in_suite, "over_ada_opkb"),
            limit=CALIBRATED_OPKB_MOST_OVER_ADA_OPKB,
            subject=subject,
            rival="ADA-OPKB",
            caption=f"Mean final regret of {subject} over that of ADA-OPKB, tuned, in the same world of the suite.",
            name="calibrated",
        ),
        tables=(verdict_table(judgement.verdicts), *beside),
    )


def _delays(context: ReportContext, delays: pd.DataFrame) -> Block:
    return Block(
        id="calibrated-delays",
        title="How soon one change is found",
        picture=_delay_picture(context, delays),
        tables=(_delay_table(delays),),
    )


def _delay_picture(context: ReportContext, delays: pd.DataFrame) -> Picture:
    both = delay_panels(delays)
    return make_picture(
        both,
        lambda panels, *, legend: delay_figure(panels, palette=context.palette, legend=legend),
        _describe,
        key=delay_key(both, palette=context.palette),
        caption="One change in the middle of a run at d = 2, of the size by which it moves the reward of the best arm "
        "(flip) or of every arm (level). Delays are of runs that found it: no dot where none did.",
        folder=context.figures,
        name="calibrated-delays",
    )


def _describe(panel: DelayPanel) -> str:
    ranges = []
    for policy, dots in panel.dots.items():
        values = [dot.value for dot in dots if not math.isnan(dot.value)]
        if values:
            least, most = (f"{end:.0%}" if panel.shares else number(end) for end in (min(values), max(values)))
            ranges.append(f"{policy} {least} to {most}")
    return f"{panel.title}, over {counted(len(panel.changes), 'change')}: {'; '.join(ranges)}."


def _delay_table(delays: pd.DataFrame) -> ReportTable:
    policies = list(dict.fromkeys(delays["policy"]))
    found = {(row["change"], row["policy"]): row for row in delays.to_dict("records")}
    rows = []
    for change in dict.fromkeys(delays["change"]):
        here = [found.get((change, policy)) for policy in policies]
        entries = [
            TableEntry(number(row["median"]), f"{row['found']} of {row['runs']}") if row else NO_ENTRY for row in here
        ]
        rows.append((TableEntry(str(change)), *entries))
    caption = "Median delay in rounds, of the runs that found the change; below: how many did"
    return ReportTable(caption, columns("change", *map(str, policies)), tuple(rows))
