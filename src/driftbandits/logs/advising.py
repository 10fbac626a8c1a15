"""`advise`: does the world of a log move, how much, does adapting pay, and what to do."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from driftbandits._util.checks import check_probability
from driftbandits._util.guard import one_blas_thread
from driftbandits._util.progress import progress_bar
from driftbandits._util.seeding import check_seed, stream
from driftbandits.errors import InputError
from driftbandits.logs import changes as log_changes
from driftbandits.logs import twins as worlds
from driftbandits.logs.changes import Changes, LogChange
from driftbandits.logs.contexts import ContextGain, context_gain
from driftbandits.logs.estimators import Bins, bin_rewards
from driftbandits.logs.log import Log, cell_count, cell_name, cells_of, clock_words, merged, suspicious_arms
from driftbandits.logs.movement import Movement, Season
from driftbandits.logs.recommendation import Recommendation, recommend
from driftbandits.logs.twins import TWINS, Fitted, Regrets, play_twins, steps_of, twin_of
from driftbandits.logs.variation import Variation, variation
from driftbandits.text import counted, label, shown
from driftbandits.types import Floats

LEAST_ROWS = 300
LEAST_ROWS_PER_ARM = 10
_MOST_CHANGES_NAMED = 4
_MOST_ARMS_NAMED = 3
_KEPT_WEIGHT = 1e-3  # of a hypothesis, below which it is not sampled
_BAND_SAMPLES = 60
_SECONDS_PER_DAY = 86_400.0
CALENDAR = "A rhythm of the calendar is best told to a policy: log the weekday or the hour as segment."
_LEAST_PLAYS = 3  # of an arm on either side of a change, to be named
_CLEAR_DEVIATIONS = 4.0
_DOUBTFUL = 0.0  # log of the evidence that something moves, from which on "nothing moves" would be said too lightly


@dataclass(frozen=True)
class AdvisedChange:
    """A change in the log's clock (rounds, or seconds).

    When, between which ends, since when it shows, and what moved.
    """

    when: float
    low: float
    high: float
    found: float
    arms: tuple[str, ...]
    common: bool
    words: str


@dataclass(frozen=True)
class Beliefs:
    """What the log says of all cells: bins, hypotheses with their weights, and means with bands (3, bins, cells).

    `log` is the one it is of, without segments where these were too many; `names` are those of the cells.
    """

    log: Log
    names: tuple[str, ...]
    bins: Bins
    fitted: tuple[Fitted, ...]
    weights: Floats
    paths: Floats

    def weight_of(self, kind: str) -> float:
        """That the world stands "still", "drifts" or "switches"."""
        return float(sum(w for w, one in zip(self.weights, self.fitted, strict=True) if one.hypothesis.kind == kind))


@dataclass(frozen=True, repr=False)
class Advice:
    """The answers, in this order: `verdict` and `changes`, how much, `regrets` in the twins, `recommendation`.

    `str(advice)` says them in a few sentences, `save` writes the page and the files.

    Parameters
    ----------
    log : the log
    verdict : whether rewards change, in a sentence
    moves : True or False; None where this log cannot tell
    changes : the changes found
    least_changes : how many changes are certain, up to false alarms
    variation : how much the world moves, or None
    season : a periodic pattern, approximately, or None
    beliefs : what is believed of rewards over time, or None
    regrets : the regret of policies in the twins, or None
    recommendation : the policy to use and why, or None
    false_alarm : probability that a change is reported although nothing moves
    notes : what of the log was left out, and which arms may be slips
    movement : how rewards move, and how sure that is, or None
    contexts : whether a policy that sees the columns `context.*` would have earned more, or None without such columns

    >>> log = Log.read({"round": [0, 1], "arm": ["a", "b"], "reward": [1, 0], "probability": [0.5, 0.5]})
    >>> advice = advise(log)
    >>> advice.moves is None, advice.recommendation is None
    (True, True)
    """

    log: Log
    verdict: str
    moves: bool | None
    changes: tuple[AdvisedChange, ...]
    least_changes: int
    variation: Variation | None
    season: Season | None
    beliefs: Beliefs | None
    regrets: Regrets | None
    recommendation: Recommendation | None
    false_alarm: float
    notes: tuple[str, ...] = ()
    movement: Movement | None = None
    contexts: ContextGain | None = None

    @property
    def gradual(self) -> bool:
        """Whether rewards change all the time rather than at times."""
        return self.movement is not None and self.movement.kind in ("drifts", "rhythm")

    def __repr__(self) -> str:
        """The answers as a few sentences."""
        return "\n".join(self.sentences())

    def sentences(self) -> list[str]:
        """One sentence per answer.

        Returns
        -------
        list of str
        """
        said = [self.verdict, *(change.words for change in self.changes[:_MOST_CHANGES_NAMED])]
        if self.recommendation is not None:
            advice = self.recommendation
            said += [advice.why, *([] if self.contexts is None else [self.contexts.words]), advice.words()]
            if self.season is not None:
                said.append(CALENDAR)
            if advice.waiting is not None:
                said.append(advice.waiting.words)
        return [*said, *(f"Note: {note}" for note in self.notes)]

    def save(self, path: str | os.PathLike[str]) -> tuple[str, ...]:
        """Write the page, and beside it what `driftbandits run` and the service read.

        Parameters
        ----------
        path : of the page

        Returns
        -------
        tuple of str
            The paths of all files.

        Raises
        ------
        MissingExtraError
            Without the extra `experiments`, which draws the page.
        """
        from driftbandits.logs.page import save

        return save(self, path)


@one_blas_thread
def advise(
    log: Log,
    *,
    false_alarm: float = 0.05,
    twins: int = TWINS,
    seed: int = 0,
    show: bool = False,
    first: Callable[[Advice], None] | None = None,
) -> Advice:
    """Say whether rewards change in a log, how much, and whether a policy that adapts would earn more.

    Whether and how rewards change is decided by Bayes factors (see `logs.movement`); how much, by a Gaussian process on
    300 bins; whether adapting pays, by letting policies play in twins: `twins` worlds sampled from its posterior. If
    the log is too short, it says so and recommends nothing.

    Parameters
    ----------
    log : from `Log.read`; if its arms were given as an `ArmSet`, rewards of similar arms count too
    false_alarm : probability that a change is reported although nothing changes
    twins : number of worlds in which policies play; more make intervals shorter
    seed : of everything random
    show : whether to show progress on standard error
    first : called before any twin is played, with what is known by then: whether rewards change, when, and how much

    Returns
    -------
    Advice

    Raises
    ------
    InputError
        For anything but a log, and a probability outside (0, 1).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> arm, noise = rng.integers(0, 3, 60), rng.normal(0, 0.1, 60)
    >>> rows = {"round": range(60), "arm": arm, "reward": 0.2 * arm + noise, "probability": np.full(60, 1 / 3)}
    >>> advise(Log.read(rows))
    This log cannot tell whether its world moves: 60 rows with a reward, and at least 300 are needed.
    """
    if not isinstance(log, Log):
        raise InputError(f"advise wants a Log, got {shown(log)} of type {type(log).__name__}; see Log.read")
    check_probability("false_alarm", false_alarm)
    seed = check_seed(seed)
    known = log.take(log.known)
    short = too_short(known)
    if short:
        verdict = f"This log cannot tell whether its world moves: {short}."
        return Advice(log, verdict, None, (), 0, None, None, None, None, None, false_alarm, _notes(log))
    steps = 3 + steps_of(merged(known), twins)
    with progress_bar(steps, "advise", show=show) as advance:
        found = _advise(known, log, false_alarm, twins, seed, advance, first or (lambda _: None))
    return dataclasses.replace(found, notes=_notes(log))


def _notes(log: Log) -> tuple[str, ...]:
    missing = len(log) - int(np.count_nonzero(log.known))
    left = f"{counted(missing, 'row')} without a reward left out; honest only if they are missing at random"
    return (*log.notes, *([left] if missing else []), *suspicious_arms(log))


def too_short(log: Log) -> str:
    """Why a log, all of whose rewards are known, cannot tell; empty where it can."""
    size = len(log.names)
    if len(log) < LEAST_ROWS:
        return f"{counted(len(log), 'row')} with a reward, and at least {LEAST_ROWS} are needed"
    if log.arms is not None:
        return ""
    if len(log) < LEAST_ROWS_PER_ARM * size:
        rows = f"{counted(len(log), 'row')} for {counted(size, 'arm')}"
        return f"{rows}, and at least {LEAST_ROWS_PER_ARM} times as many rows as arms are needed"
    plays = np.bincount(log.arm, minlength=size)
    if np.count_nonzero(plays) < 2:
        return "only one arm was ever played"
    never = int(np.count_nonzero(plays == 0))
    if 2 * never > size:
        return f"{never} of {counted(size, 'arm')} were never played, and nothing is known of what arms have in common"
    return ""


def _advise(
    log: Log,
    told: Log,
    false_alarm: float,
    twins: int,
    seed: int,
    advance: Callable[[], None],
    first: Callable[[Advice], None],
) -> Advice:
    found = diagnose(log, false_alarm=false_alarm, seed=seed, advance=advance)
    first(found)
    beliefs = found.beliefs
    if beliefs is None:
        return found
    own, weights = beliefs.log, beliefs.weights
    regrets = play_twins(own, beliefs.bins, beliefs.fitted, weights, twins=twins, seed=seed, advance=advance)
    chosen = recommend(own, regrets, twin_of(log, beliefs.fitted[0].noise), told)
    return dataclasses.replace(found, regrets=regrets, recommendation=chosen)


def diagnose(
    log: Log, *, false_alarm: float = 0.05, seed: int = 0, advance: Callable[[], None] = lambda: None
) -> Advice:
    """Whether the world of a log, all of whose rewards are known, moves, how and how much; no twin is played."""
    found = log_changes.find_changes(log, false_alarm=false_alarm)
    advance()
    beliefs = _believe(log, found, seed)
    advance()
    ends = [0, *(change.row for change in found.changes), len(log)]
    changes = tuple(_change(log, change, ends[k], ends[k + 2]) for k, change in enumerate(found.changes))
    moved = variation(log, seed=seed)
    advance()
    doubtful = found.movement.kind == "still" and found.movement.evidence > _DOUBTFUL
    return Advice(
        log=log,
        verdict=_verdict(log, changes, found.movement, beliefs, false_alarm),
        moves=None if doubtful else found.movement.kind != "still",
        changes=changes,
        least_changes=len(changes),
        variation=moved,
        season=found.movement.season,
        beliefs=beliefs,
        regrets=None,
        recommendation=None,
        false_alarm=false_alarm,
        movement=found.movement,
        contexts=context_gain(log),
    )


def _believe(log: Log, found: Changes, seed: int) -> Beliefs:
    """Weigh all hypotheses, then keep those with weight, whole."""
    log = merged(log)
    bins = bin_rewards(log, most=worlds.BINS)
    fresh = sorted({int(bins.of_row[change.row]) for change in found.changes} - {0})
    tried = [worlds.fit(bins, one, keep=False) for one in worlds.hypotheses(log, found.movement, fresh)]
    weights = worlds.weights_of(tried)
    kept = np.flatnonzero(weights >= _KEPT_WEIGHT)
    fitted = tuple(worlds.fit(bins, tried[k].hypothesis) for k in kept)
    share = weights[kept] / weights[kept].sum()
    paths = worlds.bands(bins, fitted, share, stream(seed, "bands"), _BAND_SAMPLES)
    ends = np.quantile(paths, (0.025, 0.975), axis=0)
    names = tuple(cell_name(log, cell) for cell in range(bins.cells))
    return Beliefs(log, names, bins, fitted, share, np.stack([ends[0], paths.mean(axis=0), ends[1]]))


def _change(log: Log, change: LogChange, since: int, until: int) -> AdvisedChange:
    """A change in the log's clock and in words; the worlds on either side last from row `since` and to row `until`."""
    clock = log.clock
    moved = _moved(log, change, since, until)
    when, low, high, found = (float(clock[row]) for row in (change.row, *change.interval, change.found))
    named = "; ".join(
        f"{label(name)} {'rose' if after > before else 'fell'} from {before:.3g} to {after:.3g}"
        for name, before, after in moved[:_MOST_ARMS_NAMED]
    )
    more = f", and {len(moved) - _MOST_ARMS_NAMED} more" if len(moved) > _MOST_ARMS_NAMED else ""
    what = f"{named}{more}" if moved else "several arms, none clearly by itself"
    words = (
        f"Around {clock_words(log, when)} (95 %: {_plain(log, low)} to {_plain(log, high)}) rewards changed: {what}. "
        f"It shows from {clock_words(log, found)} on."
    )
    names = tuple(name for name, *_ in moved)
    return AdvisedChange(when, low, high, found, names, change.common or len(names) > len(log.names) // 2, words)


def _plain(log: Log, when: float) -> str:
    return clock_words(log, when).removeprefix("round ").removeprefix("time ")


def _moved(log: Log, change: LogChange, since: int, until: int) -> list[tuple[str, float, float]]:
    """Arms whose means before and after differ by more than four standard errors, and those with evidence."""
    cells, rows = cells_of(log), np.arange(len(log))
    number = cell_count(log)
    sums = []
    for part in ((rows >= since) & (rows < change.row), (rows >= change.row) & (rows < until)):
        own, reward = cells[part], log.reward[part]
        count = np.bincount(own, minlength=number).astype(np.float64)
        mean = np.bincount(own, weights=reward, minlength=number) / np.maximum(count, 1)
        spread = np.bincount(own, weights=np.square(reward - mean[own]), minlength=number)
        sums.append((count, mean, spread))
    (n1, m1, s1), (n2, m2, s2) = sums
    able = (n1 >= _LEAST_PLAYS) & (n2 >= _LEAST_PLAYS)
    variance = float((s1 + s2).sum()) / max(float(n1.sum() + n2.sum()) - 2.0 * number, 1.0)
    error = np.sqrt(variance * (1.0 / np.maximum(n1, 1) + 1.0 / np.maximum(n2, 1))) + 1e-12
    deviations = np.where(able, (m2 - m1) / error, 0.0)
    named = np.abs(deviations) > _CLEAR_DEVIATIONS
    if not change.common:
        named[list(change.cells)] |= able[list(change.cells)]
    order = np.argsort(-np.abs(deviations))
    return [(cell_name(log, int(k)), float(m1[k]), float(m2[k])) for k in order if named[k]]


def _verdict(
    log: Log, changes: tuple[AdvisedChange, ...], movement: Movement, beliefs: Beliefs, false_alarm: float
) -> str:
    """The first sentence."""
    if movement.kind == "rhythm" and movement.season is not None:
        return f"The world moves with a rhythm: a period of about {_period(log, movement.season)}."
    if movement.kind == "still":
        return _unmoved(log, movement.evidence, false_alarm)
    if movement.kind == "drifts":
        rate = max(zip(beliefs.weights, beliefs.fitted, strict=True), key=lambda pair: pair[0])[1]
        step = np.sqrt(rate.noise * rate.hypothesis.rate * len(log))
        rows = counted(len(log), "row")
        return f"The world drifts: an arm's reward moves by about {step:.2g} over the {rows} of the log."
    if len(changes) == 1:
        return f"The world changed once, around {clock_words(log, changes[0].when)}."
    when = ", ".join(_plain(log, change.when) for change in changes[:_MOST_CHANGES_NAMED])
    unit = "rounds " if log.time is None else ""
    more = f" and {len(changes) - _MOST_CHANGES_NAMED} more" if len(changes) > _MOST_CHANGES_NAMED else ""
    return f"The world changed {len(changes)} times, around {unit}{when}{more}."


def _unmoved(log: Log, evidence: float, false_alarm: float) -> str:
    """No movement is certain; where there is some evidence for one, the log is too short to be sure."""
    size = f"{counted(len(log.names), 'arm')} over {counted(len(log), 'row')}"
    if evidence <= _DOUBTFUL:
        return f"Nothing moves as far as this log can tell: no change in {size} (false alarm {100 * false_alarm:g} %)."
    return (
        f"This log cannot tell whether its world moves: its rewards are {np.exp(evidence):.2g} times as likely if "
        f"something moves, which is too little to be sure after {size}."
    )


def _period(log: Log, season: Season) -> str:
    """The period, and how well the log determines it."""
    dates = log.time is not None and log.time[0] > 1e8
    size = _SECONDS_PER_DAY if dates and season.period > _SECONDS_PER_DAY else 3_600.0 if dates else 1.0
    parts = (part / size for part in (season.period, season.low, season.high))
    period, low, high = (f"{part:,.0f}" if part >= 100 else f"{part:.3g}" for part in parts)
    unit = " rounds" if log.time is None else "" if not dates else " hours" if size == 3_600.0 else " days"
    return f"{period}{unit}, between {low} and {high}"
