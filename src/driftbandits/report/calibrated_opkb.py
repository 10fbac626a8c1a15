"""CalibratedOPKB against ADA-OPKB: targets, every world, delays after one change, and the paper's worlds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from driftbandits.experiments.definitions.calibrated_opkb import LABEL, PAPER, PREFIX
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.experiments.judging.calibrated_opkb import (
    MOST_OF_ADA_OPKB,
    RIVALS,
    CalibrationJudgement,
    judge_calibration,
)
from driftbandits.plots.delays import DelayPanel, delay_figure, delay_panels
from driftbandits.plots.ratios import ratio_rows
from driftbandits.report.context import Block, Desk
from driftbandits.report.formats import NOTHING, number
from driftbandits.report.judgements import ratio_picture, verdict_table, world_table
from driftbandits.report.pictures import Picture, make_picture
from driftbandits.report.tables import Entry, Table, columns
from driftbandits.report.worlds import experiment_block

NONE = Entry(NOTHING)


def calibrated_blocks(desk: Desk, experiments: Sequence[Experiment], *, subject: str = LABEL) -> list[Block]:
    """What was judged if anything was, then delays, then the paper's worlds."""
    judgement = judge_calibration(desk.results.cells, subject=subject)
    return [
        *([] if judgement.worlds.empty and judgement.alarms.empty else [_judged(desk, judgement, subject)]),
        *([] if judgement.delays.empty else [_delays(desk, judgement.delays)]),
        *(experiment_block(desk, e) for e in desk.begun([e for e in experiments if e.id.startswith(PAPER)])),
    ]


def _judged(desk: Desk, judgement: CalibrationJudgement, subject: str) -> Block:
    worlds = judgement.worlds
    in_suite = worlds[~worlds["world"].str.startswith(PAPER.removeprefix(PREFIX))]
    beside = () if worlds.empty else (world_table(worlds, RIVALS, subject=subject),)
    return Block(
        id="calibrated-judged",
        title=f"{subject}: targets, and every world with losses first",
        picture=ratio_picture(
            desk,
            ratio_rows(in_suite, "over_ada_opkb"),
            limit=MOST_OF_ADA_OPKB,
            subject=subject,
            rival="ADA-OPKB",
            caption=f"Mean final regret of {subject} over that of ADA-OPKB, tuned, in the same world of the suite.",
            name="calibrated",
        ),
        tables=(verdict_table(judgement.verdicts), *beside),
    )


def _delays(desk: Desk, delays: pd.DataFrame) -> Block:
    return Block(
        id="calibrated-delays",
        title="How soon one change is found",
        picture=_delay_picture(desk, delays),
        tables=(_delay_table(delays),),
    )


def _delay_picture(desk: Desk, delays: pd.DataFrame) -> Picture:
    return make_picture(
        delay_panels(delays),
        lambda panels: delay_figure(panels, palette=desk.palette),
        _describe,
        caption="One change in the middle of a run at d = 2, of the size by which it moves the reward of the best arm "
        "(flip) or of every arm (level). Delays are of runs that found it: no dot where none did.",
        folder=desk.figures,
        name="calibrated-delays",
    )


def _describe(panel: DelayPanel) -> str:
    ranges = []
    for policy, dots in panel.dots.items():
        values = [dot.value for dot in dots if not math.isnan(dot.value)]
        if values:
            least, most = (f"{end:.0%}" if panel.shares else number(end) for end in (min(values), max(values)))
            ranges.append(f"{policy} {least} to {most}")
    return f"{panel.title}, over {len(panel.changes)} changes: {'; '.join(ranges)}."


def _delay_table(delays: pd.DataFrame) -> Table:
    policies = list(dict.fromkeys(delays["policy"]))
    found = {(row["change"], row["policy"]): row for row in delays.to_dict("records")}
    rows = []
    for change in dict.fromkeys(delays["change"]):
        here = [found.get((change, policy)) for policy in policies]
        entries = [Entry(number(row["median"]), f"{row['found']} of {row['runs']}") if row else NONE for row in here]
        rows.append((Entry(str(change)), *entries))
    caption = "Median delay in rounds, of the runs that found the change; below: how many did"
    return Table(caption, columns("change", *map(str, policies)), tuple(rows))
