"""`evaluate`: what another policy would have earned on the rounds of a log."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandits.blas_threads import one_blas_thread
from driftbandits.checks import check_probability, check_word
from driftbandits.errors import InputError, MissingExtraError
from driftbandits.logs import estimators, support
from driftbandits.logs.doubtful import doubtful_arms
from driftbandits.logs.estimators import ESTIMATORS, Estimator, Fit, Terms
from driftbandits.logs.log import Log
from driftbandits.logs.pieces import pieces_of
from driftbandits.logs.targets import Shares, Target, shares_of
from driftbandits.showing import counted, shown
from driftbandits.types import Bools, Floats

if TYPE_CHECKING:
    import pandas as pd

LEAST_EFFECTIVE_SIZE = 50.0
NO_NUMBERS = (math.nan, math.nan, math.nan, math.nan, math.nan)  # value, ends, anytime ends


@dataclass(frozen=True)
class Estimate:
    """The value of a target on some rows: mean reward per round, with its interval.

    All numbers but the sizes are NaN where the log cannot tell, and `verdict` says why; else it is empty.
    """

    label: str
    rows: int
    value: float
    low: float
    high: float
    anytime_low: float
    anytime_high: float
    effective_sample_size: float
    largest_weight: float
    verdict: str = ""


@dataclass(frozen=True, repr=False)
class Evaluation:
    """What a target would have earned per round, and the same for every part of the log.

    Of every estimate `low` and `high` are the ends of the interval for a log of a length fixed beforehand,
    `anytime_low` and `anytime_high` hold at every length at once (NaN without a declared range of rewards). `verdict`
    is empty, or says why the log cannot tell; all numbers are NaN then.

    Parameters
    ----------
    target : what was valued
    estimator : by which
    level : of the intervals
    whole : the estimate on the whole log
    parts : one estimate per part of the log, if parts were asked for
    notes : what must be known to read the numbers

    >>> from driftbandits.logs import Log
    >>> rows = {"round": range(200), "arm": [0, 1] * 100, "reward": [1, 0] * 100, "probability": [0.5] * 200}
    >>> found = evaluate(Log.read(rows), 0)
    >>> round(found.value, 1), found.verdict
    (1.0, '')
    """

    target: str
    estimator: str
    level: float
    whole: Estimate
    parts: tuple[Estimate, ...]
    notes: tuple[str, ...]

    @property
    def value(self) -> float:
        """Mean reward per round."""
        return self.whole.value

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.whole.low

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.whole.high

    @property
    def effective_sample_size(self) -> float:
        """How many rows logged by the target itself would tell as much."""
        return self.whole.effective_sample_size

    @property
    def verdict(self) -> str:
        """Why the log cannot tell, or nothing."""
        return self.whole.verdict

    @property
    def table(self) -> pd.DataFrame:
        """One row per part of the log, or one for all of it; needs pandas."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("pandas", extra="experiments", purpose="a table") from None
        return pd.DataFrame([vars(part) for part in self.parts or (self.whole,)])

    def __repr__(self) -> str:
        """The answer, one line per part, and what must be known."""
        lines = [f"{self.target}, by {self.estimator}: {_words(self.whole, self.level)}"]
        lines += [f"  {part.label}: {_words(part, self.level)}" for part in self.parts]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def _words(part: Estimate, level: float) -> str:
    if part.verdict:
        return part.verdict
    size = f"{counted(part.rows, 'row')}, effective {part.effective_sample_size:,.0f}"
    return f"{part.value:.4g} per round, {100 * level:g} % [{part.low:.4g}, {part.high:.4g}] ({size})"


@one_blas_thread
def evaluate(
    log: Log,
    target: Target,
    *,
    estimator: Estimator = "dr",
    by: int | Sequence[float] | str | None = None,
    against: Target | None = None,
    level: float = 0.95,
) -> Evaluation:
    """What `target` would have earned per round on the rounds of a log, with an interval.

    Valid in worlds that move and for logs of policies that learn: terms are unbiased given the rows before. See
    `logs.estimators` for what each estimator is and is bad at.

    Parameters
    ----------
    log : from `Log.read`; rows without a reward are left out, which is honest only if rewards are missing at random
    target : an arm by name or position, a law of N probabilities, a function of a `Row` that gives an arm or a law,
        "best" (the best fixed arm: chosen on every other row, valued on the rest), "uniform", "log" (the policy that
        logged, as a control), or a new learning policy: replayed with rejection, for stretches where nothing moves.
        Where its arm is not offered, a row is left out; a law is restricted to what is offered
    estimator : "dr", "ips", "snips", "clipped" or "direct"
    by : a number of windows, their ends (in rounds or times), "changes" (stretches between changes found in the log) or
        "segment"
    against : a second target; the value is the difference, paired on the same rows
    level : of the intervals

    Below an effective sample size of 50 there is no number: `verdict` says that this log cannot tell. Neither is there
    one (but by "direct") for what the policy that logged could not have done, or did so seldom that the log has too
    little of it: see `logs.support`.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        For anything but a log, one without rewards, a target that does not fit it, and settings that do not exist.

    >>> import driftbandits as db
    >>> world = db.environments.create("switching/1", seed=0, horizon=2_000, switches=(1_000,), size=10)
    >>> log = db.logs.Log.read(db.simulate(db.Uniform(world.arms, seed=0), world, seed=0), arms=world.arms)
    >>> found = db.logs.evaluate(log, 3)
    >>> bool(found.low < world.means(0, 2_000)[:, 3].mean() < found.high)
    True
    """
    if not isinstance(log, Log):
        raise InputError(f"evaluate wants a Log, got {shown(log)} of type {type(log).__name__}; see Log.read")
    check_word("estimator", estimator, ESTIMATORS)
    check_probability("level", level)
    from driftbandits.policies import Policy

    if isinstance(target, Policy) or isinstance(against, Policy):
        from driftbandits.logs.replaying import replay

        if against is not None:
            raise InputError("a learning policy is not compared with another target on the same rows; value each alone")
        found = replay(log, target, by=by, level=level)
    else:
        found = _Valuing(log, target, estimator, against, level).evaluation(by)
    return dataclasses.replace(found, notes=(*found.notes, *doubtful_arms(log)))


class _Valuing:
    """One evaluation under way: the rows that count, targets as probabilities, terms."""

    def __init__(self, log: Log, target: Target, estimator: Estimator, against: Target | None, level: float) -> None:
        self.notes: list[str] = []
        known = log.known
        if not known.any():
            raise InputError("no reward of the log is known, so nothing can be valued")
        if not known.all():
            missing = counted(len(log) - int(np.count_nonzero(known)), "row")
            self.notes.append(f"{missing} without a reward left out; honest only if they are missing at random")
        self.log = log if known.all() else log.take(known)
        self.level, self.estimator = level, estimator
        self.counted = np.ones(len(self.log), dtype=bool)
        self.shares = self._shares(target)
        self.against = None if against is None else self._shares(against)
        self.fit = estimators.fit(self.log) if estimator in ("dr", "direct") else None
        self.terms = self._terms()
        self.missing = np.max([support.unsupported(self.log, own) for own in self._targets()], axis=0)
        self._doubt()

    def _targets(self) -> list[Shares]:
        return [shares for shares in (self.shares, self.against) if shares is not None]

    def _doubt(self) -> None:
        """Note what speaks against the weights; where the log is refused for it there is no need to."""
        if self.estimator == "direct":
            if support.refusal(self.missing[self.counted]):
                self.notes.append("nothing but the model speaks for arms that could not be played")
            return
        if not support.refusal(self.missing[self.counted]):
            log = self.log.take(self.counted)
            said = (support.doubt(estimators.weights_of(log, own.take(self.counted))) for own in self._targets())
            self.notes += [words for words in dict.fromkeys(said) if words]

    def _shares(self, target: Target) -> Shares:
        if isinstance(target, str) and target == "best" and target not in self.log.names:
            return self._best()
        shares, possible = shares_of(self.log, target)
        if not possible.all():
            self.notes.append(f"{shares.name} not possible in {counted(int((~possible).sum()), 'row')}, left out")
        self.counted &= possible
        return shares

    def _best(self) -> Shares:
        """The arm that did best on even rows; odd ones value it."""
        chosen = np.zeros(len(self.log), dtype=bool)
        chosen[::2] = True
        arm = best_arm(self.log.take(chosen))
        self.notes.append("chosen on every other row, valued on the rest")
        self.counted &= ~chosen
        shares, possible = shares_of(self.log, arm)
        self.counted &= possible
        return Shares(f"the best fixed arm, {self.log.names[arm]}", constant=shares.constant)

    def _terms(self) -> Terms:
        predicted = self.fit.predictions.mean if self.fit is not None and self.estimator == "dr" else None
        terms = estimators.terms_of(self.log, self.shares, self.estimator, predicted)
        if self.against is None:
            return terms
        return terms - estimators.terms_of(self.log, self.against, self.estimator, predicted)

    def evaluation(self, by: Any) -> Evaluation:
        """The whole, and every part."""
        parts = pieces_of(self.log, by)
        notes = [*self.notes, *([parts.note] if parts.note else [])]
        if self.estimator == "clipped" and self.log.reward_range is None:
            notes.append("the bias bound takes the rewards seen for their range")
        if self.estimator == "direct":
            notes.append("the interval is the model's own")
        name = self.shares.name if self.against is None else f"{self.shares.name} less {self.against.name}"
        return Evaluation(
            target=name,
            estimator=self.estimator,
            level=self.level,
            whole=self.estimate("all rows", np.ones(len(self.log), dtype=bool)),
            parts=tuple(self.estimate(piece.label, piece.rows) for piece in parts.pieces),
            notes=tuple(notes),
        )

    def estimate(self, label: str, rows: Bools) -> Estimate:
        """The value on some rows."""
        rows = rows & self.counted
        terms = self.terms.take(rows)
        size = self._effective_size(rows)
        largest = float(terms.weights.max(initial=0.0))
        number = int(np.count_nonzero(rows))
        refused = "" if self.estimator == "direct" else support.refusal(self.missing[rows])
        if refused:
            return Estimate(label, number, *NO_NUMBERS, size, largest, refused)
        if size < LEAST_EFFECTIVE_SIZE:
            verdict = (
                f"this log cannot tell: effective sample size {size:.0f} of {counted(number, 'row')}, below "
                f"{LEAST_EFFECTIVE_SIZE:.0f}"
            )
            return Estimate(label, number, *NO_NUMBERS, size, largest, verdict)
        rare = "" if self.estimator == "direct" else self._rarity(rows)
        if rare:
            return Estimate(label, number, *NO_NUMBERS, size, largest, rare)
        ends = self._ends(terms, rows)
        anytime = (math.nan, math.nan)
        if self.against is None:
            anytime = estimators.anytime_ends(self.log.take(rows), terms.weights, level=self.level)
        return Estimate(label, number, *ends, *anytime, size, largest)

    def _effective_size(self, rows: Bools) -> float:
        """Of the target, or of the worse covered of two."""
        log = self.log.take(rows)
        return min(estimators.effective_size(estimators.weights_of(log, own.take(rows))) for own in self._targets())

    def _rarity(self, rows: Bools) -> str:
        """Why choices that are too rare to be in the log keep it from telling; of the first target that has such."""
        log = self.log.take(rows)
        every = [estimators.weights_of(log, own.take(rows)) for own in self._targets()]
        return next(filter(None, (support.rarity(own, estimators.effective_size(own)) for own in every)), "")

    def _ends(self, terms: Terms, rows: Bools) -> tuple[float, float, float]:
        known_laws = not self.shares.own and (self.against is None or not self.against.own)
        if self.estimator == "direct" and self.fit is not None and known_laws:
            weights = self._bin_weights(self.fit, rows)
            return estimators.direct_ends(self.fit, weights, int(np.count_nonzero(rows)), level=self.level)
        if self.estimator != "snips":
            return estimators.mean_and_ends(terms, level=self.level)
        log = self.log.take(rows)
        own = estimators.weights_of(log, self.shares.take(rows))
        if self.against is None:
            return estimators.self_normalised(log.reward, own, level=self.level)
        others = estimators.weights_of(log, self.against.take(rows))
        return estimators.self_normalised_difference(log.reward, own, others, level=self.level)

    def _bin_weights(self, fit: Fit, rows: Bools) -> Floats:
        weights = estimators.bin_weights(self.log, self.shares, fit.bins, rows)
        if self.against is None:
            return weights
        return weights - estimators.bin_weights(self.log, self.against, fit.bins, rows)


def best_arm(log: Log) -> int:
    """The arm whose rewards, weighed by `snips`, were best; arms seen too seldom to tell are left out.

    Every known row counts for one arm only, so all are added up at once.
    """
    size = len(log.names)
    weights = 1.0 / log.probability
    total = np.bincount(log.arm, weights=weights, minlength=size)
    squares = np.bincount(log.arm, weights=np.square(weights), minlength=size)
    sums = np.bincount(log.arm, weights=weights * log.reward, minlength=size)
    effective = np.divide(np.square(total), squares, out=np.zeros(size), where=squares > 0)
    able = effective >= 0.5 * LEAST_EFFECTIVE_SIZE
    if not able.any():
        raise InputError(
            f"no arm was played often enough to be called the best: the most often played has an effective size of "
            f"{effective.max():.0f} in half of the log"
        )
    return int(np.where(able, sums / np.where(able, total, 1.0), -np.inf).argmax())
