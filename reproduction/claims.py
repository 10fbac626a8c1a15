"""Claims, targets and their verdicts: what every topic is judged with.

A claim is made of checks, each with an interval and a verdict, under one or several settings:

- "below": holds if the whole interval lies below 0, does not hold if it lies above, else undecided.
- "near": holds if the whole interval lies within 25 % of the other's mean regret, does not hold if it lies outside,
  else undecided. The margin is taken as known, though that mean is itself measured. Being far better is not near.
- slopes: hold if the whole interval is at most the slope of the bound, do not hold if it is more.

Fewer than three seeds decide nothing. Under one setting a claim holds if all its checks do, and does not as soon as one
does not. The claim as a whole has the verdict of its settings where they agree; it "depends on the settings" where it
holds under one and not under another; else it is undecided. A check that belongs to several settings is computed and
counted once. A target is a number that was set before anything was played; its verdict is met or not met.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd

from driftbandits._util.intervals import ConfidenceInterval
from driftbandits._util.markdown import markdown

IntervalVerdict = Literal["holds", "does not hold", "undecided"]
LEAST_SEEDS = 3  # two seeds give an interval, but one that rests on a single difference
CheckVerdict = Literal[IntervalVerdict, "not run"]
ClaimVerdict = Literal[CheckVerdict, "depends on the settings"]


def judge_below(interval: ConfidenceInterval, bound: float = 0.0) -> IntervalVerdict:
    """Whether the mean is less than `bound`: the whole interval is, or is more, or it cannot be said.

    >>> judge_below(ConfidenceInterval(-2.0, -3.0, -1.0, seeds=25))
    'holds'
    >>> judge_below(ConfidenceInterval(-2.0, -5.0, 1.0, seeds=25))
    'undecided'
    """
    if interval.seeds < LEAST_SEEDS:
        return "undecided"
    if interval.high < bound:
        return "holds"
    return "does not hold" if interval.low > bound else "undecided"


def judge_at_most(interval: ConfidenceInterval, bound: float) -> IntervalVerdict:
    """As `judge_below`, but an interval that just reaches `bound` is within it."""
    return "holds" if interval.seeds >= LEAST_SEEDS and interval.high <= bound else judge_below(interval, bound)


def judge_within(interval: ConfidenceInterval, margin: float) -> IntervalVerdict:
    """Whether the mean lies in [-margin, margin]: the whole interval does, or lies outside, or it cannot be said.

    >>> interval = ConfidenceInterval(2.0, 1.0, 3.0, seeds=25)
    >>> judge_within(interval, 5.0), judge_within(interval, 0.5)
    ('holds', 'does not hold')
    """
    if interval.seeds < LEAST_SEEDS:
        return "undecided"
    if interval.low >= -margin and interval.high <= margin:
        return "holds"
    return "does not hold" if interval.low > margin or interval.high < -margin else "undecided"


@dataclass(frozen=True)
class Check:
    """One computed statement.

    `settings` says under which it belongs to the claim; `estimate`, `low` and `high` are in `unit` ("regret" or
    "slope") and NaN where there is nothing to compute them from; `paper_seeds` is 0 where the paper has no experiment,
    but a theorem. `brief` is the statement in a few words.
    """

    claim: str
    settings: tuple[str, ...]
    statement: str
    estimate: float
    low: float
    high: float
    unit: str
    seeds: int
    paper_seeds: int
    verdict: CheckVerdict
    note: str
    brief: str = ""


@dataclass(frozen=True)
class SettingsVerdict:
    """What became of a claim under some settings: `settings` in words, and the checks that decide."""

    settings: str
    verdict: CheckVerdict
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper in our words, and what became of it."""

    id: str
    figure: str
    text: str
    checks: tuple[Check, ...]

    @property
    def by_settings(self) -> tuple[SettingsVerdict, ...]:
        """The verdict under each of its settings; those with the very same checks are one."""
        members: dict[tuple[int, ...], list[str]] = {}  # settings by the places of their checks
        for name in dict.fromkeys(name for check in self.checks for name in check.settings):
            places = tuple(place for place, check in enumerate(self.checks) if name in check.settings)
            members.setdefault(places, []).append(name)
        return tuple(self._under(names, [self.checks[place] for place in places]) for places, names in members.items())

    @staticmethod
    def _under(names: Sequence[str], checks: Sequence[Check]) -> SettingsVerdict:
        return SettingsVerdict(join_settings(names), _all_of(check.verdict for check in checks), tuple(checks))

    @property
    def verdict(self) -> ClaimVerdict:
        """What the checks say together; the rule is at the head of this module."""
        return _agree([found.verdict for found in self.by_settings])


def join_settings(names: Sequence[str]) -> str:
    """Settings in one phrase, without repeating what they have in common.

    >>> join_settings(["published against published rivals", "published against tuned rivals"])
    'published against published and tuned rivals'
    """
    halves = [name.partition(" against ") for name in names]
    ours, rivals = {first for first, _, _ in halves}, [last.removesuffix(" rivals") for _, _, last in halves]
    if len(names) > 1 and len(ours) == 1 and all(rivals):
        return f"{ours.pop()} against {' and '.join(rivals)} rivals"
    return "; ".join(names)


def _all_of(verdicts: Iterable[CheckVerdict]) -> CheckVerdict:
    """Verdict of a conjunction."""
    given = set(verdicts)
    if "does not hold" in given:
        return "does not hold"
    return given.pop() if len(given) == 1 else "undecided"


def _agree(verdicts: Sequence[CheckVerdict]) -> ClaimVerdict:
    """Verdict over several settings."""
    given = set(verdicts)
    if len(given) <= 1:
        return verdicts[0] if verdicts else "not run"
    return "depends on the settings" if {"holds", "does not hold"} <= given else "undecided"


def make_check(
    claim: str,
    settings: Sequence[str],
    statement: str,
    interval: ConfidenceInterval,
    verdict: CheckVerdict,
    *,
    unit: Literal["regret", "slope"],
    paper_seeds: int = 0,
    notes: Sequence[str] = (),
    brief: str = "",
) -> Check:
    """A check from its interval; that seeds are few is added to the notes."""
    seeds = interval.seeds
    few = [f"{seeds} of the paper's {paper_seeds} seeds"] if 0 < seeds < paper_seeds else []
    too_few = [f"fewer than {LEAST_SEEDS} seeds"] if 0 < seeds < LEAST_SEEDS else []
    return Check(
        claim=claim,
        settings=tuple(settings),
        statement=statement,
        estimate=interval.estimate,
        low=interval.low,
        high=interval.high,
        unit=unit,
        seeds=seeds,
        paper_seeds=paper_seeds,
        verdict=verdict,
        note="; ".join([*notes, *few, *too_few]),
        brief=brief or statement,
    )


@dataclass(frozen=True, eq=False, kw_only=True)  # tables have no single truth value to compare by
class Judgement:
    """What became of the targets and claims of a group; a judgement of one's own derives from it and has more fields.

    Parameters
    ----------
    verdicts : on targets
    claims : that were checked

    >>> @dataclass(frozen=True, eq=False)
    ... class Least(Judgement):
    ...     regret: float
    ...
    ...     def markdown(self) -> str:
    ...         return f"The least regret is {self.regret:.1f}."
    >>> Least(3.14159).markdown(), Least(3.14159).verdicts
    ('The least regret is 3.1.', ())
    """

    verdicts: tuple[TargetVerdict, ...] = ()
    claims: tuple[Claim, ...] = ()

    def markdown(self) -> str:
        """What a reader is told, as Markdown; empty where there is nothing to tell.

        Returns
        -------
        str
        """
        return ""

    @property
    def files(self) -> Mapping[str, str]:
        """Texts to write, by the name of the file; empty ones are not written."""
        return {}


TargetStatus = Literal["met", "not met", "not played", "reported"]
REPORTED_ONLY = math.nan  # the limit of what has no target


@dataclass(frozen=True)
class TargetVerdict:
    """One target: what was measured, the most it may be (NaN where it is only reported), and what it is taken over."""

    target: str
    value: float
    limit: float
    note: str

    @property
    def status(self) -> TargetStatus:
        """Whether it is met."""
        if math.isnan(self.value):
            return "not played"
        if math.isnan(self.limit):
            return "reported"
        return "met" if self.value <= self.limit else "not met"


def judge_worst_world(target: str, table: pd.DataFrame, column: str, limit: float) -> TargetVerdict:
    """The verdict on the largest of a column, by the world that has it; `table` has columns world and `column`."""
    largest = table.dropna(subset=[column]).nlargest(1, column).to_dict("records")
    if not largest:
        return TargetVerdict(target, math.nan, limit, "no such world")
    return TargetVerdict(target, float(largest[0][column]), limit, f"{largest[0]['world']}, of {len(table)}")


def verdict_lines(verdicts: Sequence[TargetVerdict]) -> list[str]:
    """The verdicts as lines of a Markdown table."""
    lines = ["| target | measured | at most | verdict | of |", "|---|---:|---:|---|---|"]
    for verdict in verdicts:
        value, limit = _number(verdict.value), _number(verdict.limit)
        target, note = markdown(verdict.target), markdown(verdict.note)
        lines.append(f"| {target} | {value} | {limit} | **{verdict.status}** | {note} |")
    return lines


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def with_standard_error(regret: float, standard_error: float) -> str:
    """A mean regret and its standard error, which one seed does not have.

    >>> with_standard_error(1234.5, 9.8), with_standard_error(1234.5, math.nan)
    ('1,234 ± 10', '1,234')
    """
    return f"{regret:,.0f}" + ("" if math.isnan(standard_error) else f" ± {standard_error:.0f}")


def shared_runs(cells: pd.DataFrame, prefix: str, subject: str) -> pd.DataFrame:
    """Runs of experiments that begin with `prefix`, on seeds that all policies there have played, the subject too."""
    here = cells[cells["experiment"].str.startswith(prefix)]
    kept = []
    for _, group in here.groupby("experiment", sort=False):
        policies = group["policy"].nunique()
        whole = group.groupby("seed")["policy"].transform("nunique") == policies
        if subject in set(group["policy"]):
            kept.append(group[whole])
    return pd.concat(kept) if kept else here.iloc[:0]


def ratio_columns(rivals: Sequence[str]) -> tuple[str, ...]:
    """Columns of a `ratio_table`.

    >>> ratio_columns(["window"])
    ('world', 'seeds', 'regret', 'standard_error', 'window', 'over_window')
    """
    return ("world", "seeds", "regret", "standard_error", *rivals, *(f"over_{rival}" for rival in rivals))


def ratio_table(cells: pd.DataFrame, rivals: Mapping[str, str], *, prefix: str, subject: str) -> pd.DataFrame:
    """One row per world: the subject's mean final regret, that of each rival, its own over it; the worst loss first.

    `rivals` names the columns by the rivals' labels. Losses are over the first of them; one that has not played in a
    world has NaN there.
    """
    rows = []
    for name, group in cells.groupby("experiment", sort=False):
        means = group.groupby("policy")["regret"].mean()
        own = group.loc[group["policy"] == subject, "regret"]
        regrets = {rival: means.get(label, math.nan) for rival, label in rivals.items()}
        rows.append(
            {
                "world": str(name).removeprefix(prefix),
                "seeds": len(own),
                "regret": own.mean(),
                "standard_error": own.sem(),
                **regrets,
                **{f"over_{rival}": own.mean() / regret for rival, regret in regrets.items()},
            }
        )
    columns = ratio_columns(list(rivals))
    table = pd.DataFrame(rows, columns=list(columns)).astype(dict.fromkeys(columns[2:], float))
    return table.sort_values(f"over_{next(iter(rivals))}", ascending=False, kind="stable", ignore_index=True)


def geometric_mean(ratios: pd.Series[float]) -> float:
    """The geometric mean, NaN of nothing.

    >>> round(geometric_mean(pd.Series([0.5, 2.0])), 6)
    1.0
    """
    return float(np.exp(np.log(ratios).mean())) if len(ratios) else math.nan


MOST_CHECKS_NAMED = 4  # of a claim under one setting, in a row of a table


@dataclass(frozen=True, eq=False)
class ClaimsJudgement(Judgement):
    """Claims, also those that nothing was played for; `file` is where their tables are written."""

    file: str

    def markdown(self) -> str:
        """Three tables, of the claims that something was played for."""
        played = [claim for claim in self.claims if claim.verdict != "not run"]
        return claims_markdown(played) if played else ""

    @property
    def files(self) -> Mapping[str, str]:
        """The same."""
        return {self.file: self.markdown()}


def claims_markdown(claims: Sequence[Claim]) -> str:
    """Three tables to read: the verdict on every claim, what holds under which settings, and every check.

    >>> print(claims_markdown([Claim("F1", "1", "Something.", ())]).splitlines()[2])
    | F1 | 1 | Something. | **not run** |  |
    """
    lines = ["| claim | figure | what it says | verdict | checks |", "|---|---|---|---|---|"]
    lines += [f"| {c.id} | {c.figure} | {c.text} | **{c.verdict}** | {_counts(c.checks)} |" for c in claims]
    lines += ["", "| claim | under which settings | verdict | what holds |", "|---|---|---|---|"]
    lines += [
        f"| {claim.id} | {found.settings} | **{found.verdict}** | {_each(found.checks)} |"
        for claim in claims
        for found in claim.by_settings
    ]
    lines += ["", "| claim | settings | statement | estimate [95 % interval] | seeds | verdict | note |"]
    lines += ["|---|---|---|---:|---:|---|---|"]
    lines += [
        f"| {c.claim} | {join_settings(c.settings)} | {c.statement} | {_shown(c)} | {c.seeds or '–'} | {c.verdict} "
        f"| {c.note} |"
        for claim in claims
        for c in claim.checks
    ]
    return "\n".join(lines) + "\n"


def _each(checks: Sequence[Check]) -> str:
    """What became of every check, or how many have which verdict where they are many."""
    if len(checks) > MOST_CHECKS_NAMED:
        return _counts(checks)
    return "; ".join(f"{check.brief}: {check.verdict}" for check in checks)


def _counts(checks: Sequence[Check]) -> str:
    verdicts = [check.verdict for check in checks]
    return ", ".join(f"{verdicts.count(v)} {v}" for v in get_args(CheckVerdict) if v in verdicts)


def _shown(check: Check) -> str:
    form = "{:.2f}" if check.unit == "slope" else "{:,.0f}"
    if math.isnan(check.estimate):
        return "–"
    estimate = form.format(check.estimate)
    if math.isnan(check.low):
        return estimate
    return f"{estimate} [{form.format(check.low)}, {form.format(check.high)}]"
