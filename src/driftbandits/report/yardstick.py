"""AutoBandit against its yardstick: verdicts, the ratio in every world, and all policies in all worlds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from driftbandits.experiments.auto import LABEL
from driftbandits.experiments.judging import MOST_LOST, Judgement, Verdict, judge
from driftbandits.experiments.specs import Experiment
from driftbandits.experiments.yardstick import PAPER, SERIES
from driftbandits.plots.ratios import RatioRow, ratio_figure, ratio_rows
from driftbandits.report.desk import Block, Desk
from driftbandits.report.formats import NOTHING, number, with_error
from driftbandits.report.pictures import Picture, make_picture
from driftbandits.report.real import real_blocks
from driftbandits.report.suite import suite_blocks
from driftbandits.report.tables import Column, Entry, Table, columns
from driftbandits.report.worlds import experiment_block

RIVALS = ("window", "discount", "single", "gpucb")


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
    return Block(
        id="yardstick-judged",
        title=f"{subject}: targets, and every world with losses first",
        picture=_picture(desk, judgement, subject),
        tables=(_verdict_table(judgement.verdicts), _world_table(judgement, subject)),
    )


def _picture(desk: Desk, judgement: Judgement, subject: str) -> Picture | None:
    rows = ratio_rows(judgement.worlds)
    if not rows:
        return None
    return make_picture(
        [rows],
        lambda panels: ratio_figure(panels[0], limit=MOST_LOST, subject=subject, rival="tuned window"),
        _describe,
        caption=f"Mean final regret of {subject} over that of the sliding window tuned in the same world.",
        folder=desk.figures,
        name="yardstick",
    )


def _describe(rows: Sequence[RatioRow]) -> str:
    worst = rows[0]
    lost = sum(ratio > 1 for row in rows for ratio in row.ratios.values())
    of = sum(len(row.ratios) for row in rows)
    return f"Dots: {lost} of {of} ratios lie above 1; the largest is {max(worst.ratios.values()):.2f}, {worst.world}."


def _verdict_table(verdicts: Sequence[Verdict]) -> Table:
    rows = tuple(
        (Entry(v.target), Entry(_ratio(v.value)), Entry(_ratio(v.limit)), Entry(v.status), Entry(v.note))
        for v in verdicts
    )
    words = (Column("verdict", numeric=False), Column("of", numeric=False))
    return Table("Targets", (*columns("target", "measured", "at most"), *words), rows)


def _world_table(judgement: Judgement, subject: str) -> Table:
    rows = tuple(
        (
            Entry(str(row["world"])),
            Entry(with_error(row["regret"], row["standard_error"])),
            *(Entry(number(row[rival]), f"× {_ratio(row[f'over_{rival}'])}") for rival in RIVALS),
        )
        for row in judgement.worlds.to_dict("records")
    )
    heads = columns("world", subject, "tuned window", "tuned discount", judgement.single or NOTHING, "tuned GPUCB")
    return Table(f"Mean final regret; below each rival’s: {subject}’s over it", heads, rows)


def _ratio(value: float) -> str:
    return NOTHING if math.isnan(value) else number(value) if abs(value) >= 100 else f"{value:.2f}".replace("-", "−")
