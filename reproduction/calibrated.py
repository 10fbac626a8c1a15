"""CalibratedOPKB against ADA-OPKB in every world, false alarms where nothing changes, delays after one change.

Worlds: the suite and the paper's, against ADA-OPKB with tuned, published and proven constants, and AutoBandit. All but
AutoBandit, which asks for nothing, are told the kernel they are told in the suite.

Alarms: nothing ever changes, so every restart is false, and `false_alarm` bounds the share of runs that have one.
Rewards are light- and heavy-tailed and 0 or 1, and the length scale is four times too long or too short and believed.
A run with a false alarm has at least one change found, however many; the interval of their share is Clopper and
Pearson's, which covers at least 95 %.

Delays: one change halfway, of several kinds. Its size is by how much rewards move: that of the best arm when rewards
flip, those of all arms when the level shifts. Other kinds have none. A change counts as found if anything was reported
after it, so false alarms after it count too; a delay is that of the first report.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from driftbandits._util.intervals import share_interval
from driftbandits._util.markdown import csv, markdown
from driftbandits.experiments.results import Results
from driftbandits.experiments.seeds import EVALUATION
from driftbandits.experiments.specs import CLIP_REWARDS, HORIZON, Experiment
from driftbandits.report.blocks import NOTHING, Block, ReportTable, TableEntry, columns, experiment_block, number
from driftbandits.report.pictures import Picture, make_picture
from driftbandits.text import counted
from reproduction.autobandit import YARDSTICK, YARDSTICK_PAPER_PREFIX, kernel_of
from reproduction.catalogue import (
    ADA_OPKB,
    ADA_OPKB_PUBLISHED,
    ADA_OPKB_THEORY,
    AUTOBANDIT,
    CALIBRATED_OPKB,
    CALIBRATED_OPKB_THEORY,
    by_id,
)
from reproduction.chapters import ratio_picture, verdict_table, world_table
from reproduction.claims import (
    REPORTED_ONLY,
    Judgement,
    TargetVerdict,
    geometric_mean,
    judge_worst_world,
    ratio_columns,
    ratio_table,
    shared_runs,
    verdict_lines,
    with_standard_error,
)
from reproduction.figures import DelayPanel, delay_figure, delay_key, delay_panels, ratio_rows
from reproduction.suite import STATIONARY_PREFIX, SUITE, suite_name
from reproduction.topic import Group, StudyContext

CALIBRATED_PREFIX = "calibrated/"
CALIBRATED_PAPER_PREFIX = f"{CALIBRATED_PREFIX}paper/"
CALIBRATED_ALARMS_PREFIX = f"{CALIBRATED_PREFIX}alarms/"
CALIBRATED_DELAYS_PREFIX = f"{CALIBRATED_PREFIX}delays/"
CALIBRATED_OPKB_MOST_OVER_ADA_OPKB = 0.5  # in the worst world with changes
CALIBRATED_OPKB_MOST_RUNS_WITH_FALSE_ALARM = 0.1  # the default of the policy's `false_alarm`
KERNEL_POLICIES = (CALIBRATED_OPKB, CALIBRATED_OPKB_THEORY, ADA_OPKB, ADA_OPKB_PUBLISHED, ADA_OPKB_THEORY)
PAPER_SEEDS = EVALUATION.take(25)
ALARM_SEEDS = EVALUATION.take(200)
ALARM_DIMENSIONS = (2, 10)
DELAY_SEEDS = EVALUATION.take(20)
DELAY_HORIZON = 6_000
DELAY_CHANGE = 3_000


@dataclass(frozen=True)
class StationaryCondition:
    """A stationary world: its title and settings, those of every policy in it, and a wrong length scale, if any."""

    title: str
    world: Mapping[str, Any] = field(default_factory=dict)
    common: Mapping[str, Any] = field(default_factory=dict)
    wrong_length_scale: float | None = None


STATIONARY_CONDITIONS: dict[str, StationaryCondition] = {
    "gaussian": StationaryCondition("Gaussian noise", {"noise": {"name": "gaussian", "sd": 0.1}}, CLIP_REWARDS),
    "student-t": StationaryCondition(
        "Student's t noise, 2.5 degrees of freedom",
        {"noise": {"name": "student_t", "scale": 0.1, "df": 2.5}},
        CLIP_REWARDS,
    ),
    "bernoulli": StationaryCondition(
        "rewards 0 or 1",
        {"noise": {"name": "bernoulli"}, "offset": 0.5, "peak": 0.4},
        {"reward_range": [0.0, 1.0]},
    ),
    "too-long": StationaryCondition("length scale 4 times too long", wrong_length_scale=0.8),
    "too-short": StationaryCondition("length scale 4 times too short", wrong_length_scale=0.05),
}
# The peak that gives a change of each size: a flip moves the best arm by 2 peak, a level all arms by peak / 2.
PEAKS_BY_SIZE: dict[str, dict[float, float]] = {
    "flip": {1.6: 0.8, 0.8: 0.4, 0.4: 0.2, 0.2: 0.1},
    "level": {0.4: 0.8, 0.2: 0.4, 0.1: 0.2, 0.05: 0.1},
}
KINDS_WITHOUT_SIZE = ("redraw", "partial", "hidden")


def _in_suite(world: Experiment) -> Experiment:
    informed = tuple(dataclasses.replace(policy, kernel=kernel_of(world)) for policy in KERNEL_POLICIES)
    return dataclasses.replace(world, id=CALIBRATED_PREFIX + suite_name(world), policies=(*informed, AUTOBANDIT))


def _of_paper(world: Experiment) -> Experiment:
    """The yardstick's, on all seeds that ADA-OPKB plays in the paper's figures."""
    name = CALIBRATED_PAPER_PREFIX + world.id.removeprefix(YARDSTICK_PAPER_PREFIX)
    return dataclasses.replace(world, id=name, policies=(*KERNEL_POLICIES, AUTOBANDIT), seeds=PAPER_SEEDS)


def _stationary(name: str, dimension: int) -> Experiment:
    condition = STATIONARY_CONDITIONS[name]
    policies = [CALIBRATED_OPKB]
    if condition.wrong_length_scale is not None:
        kernel = {"name": "rbf", "length_scale": condition.wrong_length_scale}
        given = {**CALIBRATED_OPKB.settings, "kernel": "given"}
        policies = [dataclasses.replace(CALIBRATED_OPKB, settings=given, kernel=kernel)]
    if name == "gaussian" and dimension == 2:
        policies.append(CALIBRATED_OPKB_THEORY)
    return Experiment(
        id=f"{CALIBRATED_ALARMS_PREFIX}{name}/d{dimension}",
        title=f"Nothing changes, {condition.title}, d = {dimension}",
        environment="switching",
        settings={"switches": [], **condition.world, "dimension": dimension, "horizon": HORIZON},
        policies=tuple(policies),
        seeds=ALARM_SEEDS,
        common=condition.common,
    )


def _one_change(kind: str, size: float | None = None) -> Experiment:
    peak = {} if size is None else {"peak": PEAKS_BY_SIZE[kind][size]}
    return Experiment(
        id=f"{CALIBRATED_DELAYS_PREFIX}{kind}" if size is None else f"{CALIBRATED_DELAYS_PREFIX}{kind}-{size:g}",
        title=f"One {kind}" if size is None else f"One {kind} by {size:g}",
        environment="switching",
        settings={"kind": kind, "switches": [DELAY_CHANGE], **peak, "dimension": 2, "horizon": DELAY_HORIZON},
        policies=(CALIBRATED_OPKB, ADA_OPKB, AUTOBANDIT),
        seeds=DELAY_SEEDS,
    )


CALIBRATED_GROUP: dict[str, Experiment] = by_id(
    (
        *map(_in_suite, SUITE.values()),
        *(_of_paper(world) for world in YARDSTICK.values() if world.id.startswith(YARDSTICK_PAPER_PREFIX)),
        *(_stationary(name, dimension) for dimension in ALARM_DIMENSIONS for name in STATIONARY_CONDITIONS),
        *(_one_change(kind, size) for kind, sizes in PEAKS_BY_SIZE.items() for size in sizes),
        *map(_one_change, KINDS_WITHOUT_SIZE),
    )
)
# The labels of rivals by the columns they have.
RIVALS = {
    "ada_opkb": ADA_OPKB.label,
    "published": ADA_OPKB_PUBLISHED.label,
    "auto": AUTOBANDIT.label,
    "theory_constants": ADA_OPKB_THEORY.label,
    "theory_mode": CALIBRATED_OPKB_THEORY.label,
}
WORLD_COLUMNS = ratio_columns(tuple(RIVALS))
ALARM_COLUMNS = ("condition", "policy", "runs", "with_alarm", "share", "low", "high")
DELAY_COLUMNS = (
    "change",
    "kind",
    "size",
    "policy",
    "runs",
    "found",
    "share_found",
    "lower_quartile",
    "median",
    "upper_quartile",
)


@dataclass(frozen=True, eq=False)
class CalibratedOPKBJudgement(Judgement):
    """What became of the targets.

    `worlds` has the WORLD_COLUMNS, the largest regret over ADA-OPKB first; `alarms` the ALARM_COLUMNS, one row per
    condition and policy; `delays` the DELAY_COLUMNS, one row per change and policy, of those found alone.
    """

    subject: str
    worlds: pd.DataFrame
    alarms: pd.DataFrame
    delays: pd.DataFrame

    def markdown(self) -> str:
        """Verdicts, then delays, then every world, as tables to read."""
        return calibrated_opkb_markdown(self)

    @property
    def files(self) -> Mapping[str, str]:
        """The tables to read, and every table that has rows."""
        tables = {"": self.worlds, "-alarms": self.alarms, "-delays": self.delays}
        texts = {f"calibrated{ending}.csv": "" if table.empty else csv(table) for ending, table in tables.items()}
        return {"calibrated.md": self.markdown(), **texts}

    @property
    def empty(self) -> bool:
        """Whether nothing of it was played."""
        return self.worlds.empty and self.alarms.empty and self.delays.empty


def judge_calibrated_group(results: Results) -> CalibratedOPKBJudgement | None:
    """CalibratedOPKB in what was played of its group; None where that is nothing."""
    judgement = judge_calibrated_opkb(results.cells)
    return None if judgement.empty else judgement


def judge_calibrated_opkb(cells: pd.DataFrame, *, subject: str = CALIBRATED_OPKB.label) -> CalibratedOPKBJudgement:
    """Judge the policy called `subject` by the cells of results."""
    played = shared_runs(
        cells[~cells["experiment"].str.startswith((CALIBRATED_ALARMS_PREFIX, CALIBRATED_DELAYS_PREFIX))],
        CALIBRATED_PREFIX,
        subject,
    )
    worlds = ratio_table(played, RIVALS, prefix=CALIBRATED_PREFIX, subject=subject)
    alarms = alarm_table(cells)
    verdicts = (*_over_worlds(worlds), *_false_alarms(alarms))
    return CalibratedOPKBJudgement(subject, worlds, alarms, delay_table(cells), verdicts=verdicts)


def alarm_table(cells: pd.DataFrame) -> pd.DataFrame:
    """One row per condition and policy: the share of runs with a false alarm, and its interval."""
    stationary = cells[cells["experiment"].str.startswith(CALIBRATED_ALARMS_PREFIX)]
    rows = []
    for (name, policy), group in stationary.groupby(["experiment", "policy"], sort=False):
        runs, alarmed = len(group), int((group["false_alarms"] > 0).sum())
        share = share_interval(alarmed, runs)
        condition = str(name).removeprefix(CALIBRATED_ALARMS_PREFIX)
        rows.append((condition, policy, runs, alarmed, share.estimate, share.low, share.high))
    return pd.DataFrame(rows, columns=list(ALARM_COLUMNS))


def delay_table(cells: pd.DataFrame) -> pd.DataFrame:
    """One row per change and policy: how many runs found it, and quartiles of their delays; NaN where none has."""
    changing = cells[cells["experiment"].str.startswith(CALIBRATED_DELAYS_PREFIX)]
    rows = []
    for (name, policy), group in changing.groupby(["experiment", "policy"], sort=False):
        kind, _, size = str(name).removeprefix(CALIBRATED_DELAYS_PREFIX).partition("-")
        delays = [delay for run in group["delays"] for delay in run]
        quartiles = np.quantile(delays, (0.25, 0.5, 0.75)) if delays else (math.nan,) * 3
        change = f"{kind} by {size}" if size else kind
        found = (len(group), len(delays), len(delays) / len(group))
        rows.append((change, kind, float(size or "nan"), policy, *found, *map(float, quartiles)))
    return pd.DataFrame(rows, columns=list(DELAY_COLUMNS))


def _over_worlds(worlds: pd.DataFrame) -> list[TargetVerdict]:
    stationary = worlds["world"].str.startswith(STATIONARY_PREFIX)
    still, changing = worlds[stationary], worlds[~stationary]
    most = CALIBRATED_OPKB_MOST_OVER_ADA_OPKB
    return [
        judge_worst_world("worst world with changes, over ADA-OPKB", changing, "over_ada_opkb", most),
        judge_worst_world("worst stationary world, over ADA-OPKB", still, "over_ada_opkb", REPORTED_ONLY),
        judge_worst_world(
            f"worst world with changes, over {ADA_OPKB_PUBLISHED.label}", changing, "over_published", REPORTED_ONLY
        ),
        *(
            TargetVerdict(
                f"over {RIVALS[rival]}",
                geometric_mean(worlds[f"over_{rival}"].dropna()),
                REPORTED_ONLY,
                f"geometric mean over {worlds[rival].count()} worlds",
            )
            for rival in ("ada_opkb", "published", "auto", "theory_mode")
        ),
    ]


def _false_alarms(alarms: pd.DataFrame) -> list[TargetVerdict]:
    return [
        TargetVerdict(
            f"share of runs with a false alarm, {row['condition']}, {row['policy']}",
            row["share"],
            CALIBRATED_OPKB_MOST_RUNS_WITH_FALSE_ALARM,
            f"{row['with_alarm']} of {row['runs']} runs; 95 % interval {row['low']:.3f} to {row['high']:.3f}",
        )
        for row in alarms.to_dict("records")
    ]


def calibrated_opkb_markdown(judgement: CalibratedOPKBJudgement) -> str:
    """Verdicts, then delays, then every world, as tables to read; those with nothing in them are left out."""
    lines = verdict_lines(judgement.verdicts)
    if not judgement.delays.empty:
        lines += ["", *_delay_lines(judgement.delays)]
    if not judgement.worlds.empty:
        lines += ["", *_world_lines(judgement.worlds, judgement.subject)]
    return "\n".join(lines) + "\n"


def _delay_lines(delays: pd.DataFrame) -> list[str]:
    lines = ["| change | policy | found | median delay of those, rounds | quartiles |", "|---|---|---:|---:|---:|"]
    for row in delays.to_dict("records"):
        quartiles = f"{row['median']:,.0f} | {row['lower_quartile']:,.0f} to {row['upper_quartile']:,.0f}"
        delay = quartiles if row["found"] else "– | –"
        lines.append(
            f"| {markdown(row['change'])} | {markdown(row['policy'])} | {row['found']} of {row['runs']} | {delay} |"
        )
    return lines


def _world_lines(worlds: pd.DataFrame, subject: str) -> list[str]:
    lines = [
        f"Mean final regret, and in brackets that of {subject} over it.",
        "",
        f"| world | {subject} ± s.e. | {' | '.join(RIVALS.values())} |",
        f"|---|---:|{'---:|' * len(RIVALS)}",
    ]
    for row in worlds.to_dict("records"):
        own = with_standard_error(row["regret"], row["standard_error"])
        rivals = " | ".join(_beside(row[rival], row[f"over_{rival}"]) for rival in RIVALS)
        lines.append(f"| {markdown(row['world'])} | {own} | {rivals} |")
    return lines


def _beside(regret: float, ratio: float) -> str:
    return "–" if math.isnan(regret) else f"{regret:,.0f} ({ratio:.2f})"


NO_ENTRY = TableEntry(NOTHING)


def calibrated_opkb_blocks(context: StudyContext, experiments: Sequence[Experiment]) -> list[Block]:
    """What was judged if anything was, then delays, then the paper's worlds."""
    judgement = context.judgements.of(CalibratedOPKBJudgement)
    return [
        *([] if judgement is None else _judgement_blocks(context, judgement)),
        *(
            experiment_block(context, e)
            for e in context.begun([e for e in experiments if e.id.startswith(CALIBRATED_PAPER_PREFIX)])
        ),
    ]


def _judgement_blocks(context: StudyContext, judgement: CalibratedOPKBJudgement) -> list[Block]:
    return [
        *([] if judgement.worlds.empty and judgement.alarms.empty else [_judged(context, judgement)]),
        *([] if judgement.delays.empty else [_delays(context, judgement.delays)]),
    ]


def _judged(context: StudyContext, judgement: CalibratedOPKBJudgement) -> Block:
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


def _delays(context: StudyContext, delays: pd.DataFrame) -> Block:
    return Block(
        id="calibrated-delays",
        title="How soon one change is found",
        picture=_delay_picture(context, delays),
        tables=(_delay_table(delays),),
    )


def _delay_picture(context: StudyContext, delays: pd.DataFrame) -> Picture:
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


CALIBRATED_OPKB_GROUP = Group(
    name="calibrated",
    title="CalibratedOPKB: worlds, false alarms, delays",
    lead="ADA-OPKB without constants, and with alarms whose probability is set: in the suite and the paper’s worlds "
    "against ADA-OPKB (tuned, published, with the constants of the proofs) and AutoBandit, the kernel told to all "
    "but the last; in stationary worlds, where at most a tenth of all runs may ever have an alarm, whatever the "
    "noise and however wrong the kernel; and on single changes.",
    experiments=tuple(CALIBRATED_GROUP.values()),
    judge=judge_calibrated_group,
    blocks=calibrated_opkb_blocks,
)
