"""`evaluate`: what another policy would have earned on the rounds of a log.

What a log cannot tell: choices that the policy that logged would never have made.
A weight corrects for how seldom something was tried, and nothing corrects for what could not be: with the log of a
policy that never draws lots (an upper confidence bound, an A/B test after its end), weighted means are confidently
wrong. Three checks: rows whose probability is 1, or whose law has zeros where the target has none; weights, which are 1
on average if the probabilities are those that were drawn from; and whether choices so rare that the log has none of
them are much of what the target does: the weights that are there then sum to less, and look more even than they are.

A learning policy is valued by replay with rejection, which is honest only where nothing moves.
The policy decides; the log's rows are gone through until one has its arm and is accepted, with probability
(least probability of the log) / (probability of the row). Every row is then accepted with the same chance whatever arm
is waited for, so what the policy is told is what it would have seen. But the learner's rounds are further apart than
the log's: a world that moves would move faster for it. Learning policies in worlds that move are judged in the twin of
`advise`.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits._util.checks import check_probability, check_word
from driftbandits._util.guard import one_blas_thread
from driftbandits._util.machine import data_frame
from driftbandits._util.seeding import stream
from driftbandits.errors import InputError
from driftbandits.logs import estimators
from driftbandits.logs.changes import Piece, find_changes, pieces_of
from driftbandits.logs.estimators import ESTIMATORS, Estimator, Terms, local_variance
from driftbandits.logs.log import Log, suspicious_arms
from driftbandits.logs.requests import regress
from driftbandits.logs.targets import Shares, Target, shares_of
from driftbandits.policies import Policy
from driftbandits.policies.log_columns import requests_of
from driftbandits.text import counted, shown
from driftbandits.types import Bools, Floats

MOST_UNSUPPORTED = 0.01  # share of the target's choices, which biases its value by as much of the rewards' range
LEAST_FOUND = 0.9  # of the target's choices; one standard deviation of the mean weight is allowed for
_CERTAIN = 1.0 - 1e-9
_CLEAR_DEVIATIONS, _CLEAR_SHARE = 5.0, 0.05  # of the mean weight from 1


LEAST_EFFECTIVE_SIZE = 50.0
NO_NUMBERS = (math.nan, math.nan, math.nan, math.nan, math.nan)  # value, ends, anytime ends
LEAST_ACCEPTED = 500
_NOTE = "replay with rejection: holds while nothing moves, per round of the learner"


def certain(log: Log) -> Bools:
    """Rows in which the policy that logged had no choice although more than one arm was offered, shape (n,)."""
    several = len(log.names) > 1 if log.allowed is None else log.allowed.sum(axis=1) > 1
    return np.asarray((log.probability >= _CERTAIN) & several)


def unsupported(log: Log, shares: Shares) -> Floats:
    """Probability of the target's choices that could not be in the log, in every row, as far as it says; shape (n,)."""
    if shares.own:
        return np.zeros(len(log))
    if log.law is not None:
        return shares.mean_of((log.law == 0.0).astype(np.float64), np.arange(len(log)))
    return np.where(log.probability >= _CERTAIN, 1.0 - shares.of(log.arm), 0.0)


def refusal(missing: Floats) -> str:
    """Why rows with these unsupported probabilities cannot tell; empty where they can."""
    if not len(missing) or missing.mean() <= MOST_UNSUPPORTED:
        return ""
    rows = f"{np.count_nonzero(missing):,} of {counted(len(missing), 'row')}"
    return (
        f"this log cannot tell: in {rows} the policy that logged could not have done what the target does, and only a "
        f"model ('direct') would say anything of these"
    )


def rarity(weights: Floats, effective_size: float) -> str:
    """Why rows with these weights cannot tell: they stand for too little of what the target does; empty where not.

    >>> rarity(np.full(1_000, 0.7), 100.0)
    'this log cannot tell: its rows stand for 70 % of what the target does, and the rest is too rare to be in it'
    >>> rarity(np.full(1_000, 0.85), 100.0)
    ''
    """
    found = float(weights.mean())
    if found + 1.0 / math.sqrt(effective_size) >= LEAST_FOUND:
        return ""
    return (
        f"this log cannot tell: its rows stand for {100 * found:.0f} % of what the target does, and the rest is too "
        f"rare to be in it"
    )


def doubt(weights: Floats) -> str:
    """What to say where weights are not 1 on average; empty where they are, up to chance."""
    if not len(weights):
        return ""
    away = abs(float(weights.mean()) - 1.0)
    if away <= max(_CLEAR_SHARE, _CLEAR_DEVIATIONS * math.sqrt(local_variance(weights)) / len(weights)):
        return ""
    return (
        f"weights are {weights.mean():.3g} on average and should be 1: are these the probabilities that arms were "
        f"drawn with, and could the target's arms be drawn at all?"
    )


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

    In every estimate, `low` and `high` are the ends of the interval for a log whose length was fixed beforehand;
    `anytime_low` and `anytime_high` hold at all lengths together (NaN without a declared range of rewards). `verdict`
    is empty, or says why the log cannot tell; all numbers are NaN then.

    Parameters
    ----------
    target : what was evaluated
    estimator : its name
    level : of the intervals
    whole : the estimate on the whole log
    parts : one estimate per part of the log, if parts were asked for
    notes : caveats for reading the numbers
    no_anytime : why `anytime_low` and `anytime_high` are NaN, or nothing

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
    no_anytime: str = ""

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
        """How many rows logged by the target itself would carry as much information."""
        return self.whole.effective_sample_size

    @property
    def verdict(self) -> str:
        """Why the log cannot tell, or nothing."""
        return self.whole.verdict

    @property
    def table(self) -> Any:
        """One row per part of the log, or one for all of it; needs pandas."""
        rows = [vars(part) for part in self.parts or (self.whole,)]
        return data_frame({name: [row[name] for row in rows] for name in rows[0]}, purpose="a table")

    def __repr__(self) -> str:
        """The answer, one line per part, with its caveats."""
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

    Valid where rewards change and for logs of policies that learn: terms are unbiased given the rows before. See
    `logs.estimators` for the estimators and their weaknesses.

    Parameters
    ----------
    log : from `Log.read`; rows without a reward are left out, which is valid only if rewards are missing at random
    target : an arm by name or position, a law of N probabilities, a function of a `Row` that gives an arm or a law,
        "best" (the best fixed arm: chosen on every other row, evaluated on the rest), "uniform", "log" (the logging
        policy, as a control), or a new learning policy: replayed by rejection sampling, if nothing changes. A policy
        with contexts that has played is asked for its law at each row's context, and learns nothing. Rows in which the
        target's arm is not offered are left out; a law is restricted to what is offered
    estimator : "dr", "ips", "snips", "clipped" or "direct"
    by : a number of windows, their ends (in rounds or times), "changes" (stretches between changes found in the log) or
        "segment"
    against : a second target; the value is the difference, paired on the same rows
    level : of the intervals

    Below an effective sample size of 50 there is no estimate: `verdict` says that this log cannot tell. Nor is there
    one (except with "direct") for actions that the logging policy could not have taken, or took too rarely: see this
    module's first lines.

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
    if _learns(target) or _learns(against):
        if against is not None:
            raise InputError("a learning policy is not compared with another target on the same rows; value each alone")
        found = replay(log, target, by=by, level=level)
    else:
        found = _Valuing(log, target, estimator, against, level).evaluation(by)
    return dataclasses.replace(found, notes=(*log.notes, *found.notes, *suspicious_arms(log)))


def _learns(target: Target | None) -> bool:
    """Whether a target is a policy that is to learn from the log."""
    return isinstance(target, Policy) and (target.contexts is None or not target.rounds)


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
        fitted = estimator in ("dr", "direct")
        self.fit = estimators.predict(estimators.bin_rewards(self.log)) if fitted else None
        self.requests = None
        if self.fit is not None and estimator == "dr" and self.log.contexts is not None:
            self.requests = regress(self.log, self.log.contexts.scaled, estimators.residuals(self.log, self.fit.mean))
        self.terms = self._terms()
        self.missing = np.max([unsupported(self.log, own) for own in self._targets()], axis=0)
        self._doubt()

    def _targets(self) -> list[Shares]:
        return [shares for shares in (self.shares, self.against) if shares is not None]

    def _doubt(self) -> None:
        """Note what speaks against the weights; where the log is refused for it there is no need to."""
        if self.estimator == "direct":
            if refusal(self.missing[self.counted]):
                self.notes.append("nothing but the model speaks for arms that could not be played")
            if self.log.contexts is not None:
                self.notes.append("the model knows nothing of contexts: a target that uses them is seen without")
            return
        if not refusal(self.missing[self.counted]):
            log = self.log.take(self.counted)
            said = (doubt(estimators.weights_of(log, own.take(self.counted))) for own in self._targets())
            self.notes += [words for words in dict.fromkeys(said) if words]

    def _shares(self, target: Target) -> Shares:
        if isinstance(target, str) and target == "best" and target not in self.log.names:
            return self._best()
        shares, possible = shares_of(self.log, target)
        if isinstance(target, Policy):
            self.notes.append(f"{shares.name}: too good if it learned from rows of this log")
        if not possible.all():
            self.notes.append(f"{shares.name} not possible in {counted(int((~possible).sum()), 'row')}, left out")
        self.counted &= possible
        return shares

    def _best(self) -> Shares:
        """The best arm on even rows, to be evaluated on odd ones."""
        chosen = np.zeros(len(self.log), dtype=bool)
        chosen[::2] = True
        arm = best_arm(self.log.take(chosen))
        self.notes.append("chosen on every other row, valued on the rest")
        self.counted &= ~chosen
        shares, possible = shares_of(self.log, arm)
        self.counted &= possible
        return Shares(f"the best fixed arm, {self.log.names[arm]}", constant=shares.constant)

    def _terms(self) -> Terms:
        predicted = self.fit.mean if self.fit is not None and self.estimator == "dr" else None
        terms = estimators.terms_of(self.log, self.shares, self.estimator, predicted, self.requests)
        if self.against is None:
            return terms
        return terms - estimators.terms_of(self.log, self.against, self.estimator, predicted, self.requests)

    def evaluation(self, by: Any) -> Evaluation:
        """The whole, and every part."""
        parts = pieces_of(self.log, by)
        notes = [*self.notes, *([parts.note] if parts.note else [])]
        if self.estimator == "clipped" and self.log.reward_range is None:
            notes.append("the bias bound takes the rewards seen for their range")
        if self.estimator == "direct":
            notes.append("the interval is the model's own")
        no_anytime = "there is none for a difference of two targets" if self.against is not None else ""
        if self.log.reward_range is None:
            no_anytime = no_anytime or "it needs the range that rewards can have: reward_range, or --range LOW HIGH"
        if len(parts.pieces) > 1:
            notes.append(f"the intervals of the {len(parts.pieces)} parts hold together: each is wider for that")
        name = self.shares.name if self.against is None else f"{self.shares.name} less {self.against.name}"
        return Evaluation(
            target=name,
            estimator=self.estimator,
            level=self.level,
            whole=self.estimate("all rows", np.ones(len(self.log), dtype=bool)),
            parts=tuple(self.estimate(piece.label, piece.rows, len(parts.pieces)) for piece in parts.pieces),
            notes=tuple(notes),
            no_anytime=no_anytime,
        )

    def estimate(self, label: str, rows: Bools, number: int = 1) -> Estimate:
        """The value on some rows, one of a number of parts whose intervals hold together."""
        level = 1.0 - (1.0 - self.level) / number
        rows = rows & self.counted
        terms, log = self.terms.take(rows), self.log.take(rows)
        weights = [estimators.weights_of(log, own.take(rows)) for own in self._targets()]
        size = min(map(estimators.effective_size, weights))  # of two targets, that of the one with less overlap
        verdict = self._refusal(rows, weights, size)
        ends, anytime = NO_NUMBERS[:3], NO_NUMBERS[3:]
        if not verdict:
            ends = self._ends(terms, rows, level)
            if self.against is None:
                anytime = estimators.anytime_ends(log, terms.weights, level=level)
        return Estimate(label, len(log), *ends, *anytime, size, float(terms.weights.max(initial=0.0)), verdict)

    def _refusal(self, rows: Bools, weights: list[Floats], size: float) -> str:
        """Why these rows give no estimate; empty where they do."""
        weighted = self.estimator != "direct"
        if weighted and (unsupported_rows := refusal(self.missing[rows])):
            return unsupported_rows
        if size < LEAST_EFFECTIVE_SIZE:
            return (
                f"this log cannot tell: effective sample size {size:.0f} of {counted(len(weights[0]), 'row')}, below "
                f"{LEAST_EFFECTIVE_SIZE:.0f}"
            )
        rare = (rarity(own, estimators.effective_size(own)) for own in weights) if weighted else ()
        return next(filter(None, rare), "")

    def _ends(self, terms: Terms, rows: Bools, level: float) -> tuple[float, float, float]:
        known_laws = not self.shares.own and (self.against is None or not self.against.own)
        if self.estimator == "direct" and self.fit is not None and known_laws:
            own, other = (
                0.0 if one is None else estimators.bin_weights(self.log, one, self.fit.bins, rows)
                for one in (self.shares, self.against)
            )
            weights = np.asarray(own - other)
            return estimators.direct_ends(self.fit, weights, int(np.count_nonzero(rows)), level=level)
        if self.estimator != "snips":
            return estimators.mean_and_ends(terms, level=level)
        log = self.log.take(rows)
        own = estimators.weights_of(log, self.shares.take(rows))
        others = None if self.against is None else estimators.weights_of(log, self.against.take(rows))
        return estimators.self_normalised(log.reward, own, others, level=level)


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


def replay(log: Log, policy: Policy, *, by: Any, level: float) -> Evaluation:
    """The mean reward of a new policy over the rows it accepts; with by="changes", a new one for every stretch."""
    if policy.rounds:
        played = counted(policy.rounds, "round")
        raise InputError(f"a policy that is replayed must be new; this one has played {played}")
    if len(policy.arms) != len(log.names):
        raise InputError(f"the policy has {counted(len(policy.arms), 'arm')} and the log {len(log.names)}")
    if log.allowed is not None:
        raise InputError("a log whose rounds do not offer every arm cannot be replayed")
    if by not in (None, "changes"):
        raise InputError("a learning policy is valued by='changes', a new one for every stretch, or on the whole log")
    log = log.take(log.known)
    if by is None:
        whole = _estimate(log, policy, Piece("all rows", np.ones(len(log), dtype=bool)), level, check=True)
        return Evaluation(repr(policy), "replay", level, whole, (), (_NOTE,))
    parts = tuple(_estimate(log, policy, piece, level, check=False) for piece in pieces_of(log, by).pieces)
    empty = Estimate("all rows", len(log), *NO_NUMBERS, math.nan, math.nan, "a world that moves: see its stretches")
    return Evaluation(repr(policy), "replay", level, empty, parts, (_NOTE,))


def _estimate(log: Log, policy: Policy, piece: Piece, level: float, *, check: bool) -> Estimate:
    rows = log.take(piece.rows)
    refused = _refusal(rows, check=check)
    rewards = np.empty(0) if refused else _accepted(rows, policy)
    if not refused and len(rewards) < LEAST_ACCEPTED:
        least = float(rows.probability.min())
        refused = (
            f"this log cannot tell: {counted(len(rewards), 'row')} accepted, below {LEAST_ACCEPTED} (its smallest "
            f"probability is {least:.2g})"
        )
    if refused:
        return Estimate(piece.label, len(rows), *NO_NUMBERS, float(len(rewards)), math.nan, refused)
    ends = estimators.mean_and_ends(Terms(rewards, rewards, rewards), level=level)
    return Estimate(
        piece.label, len(rows), *ends, *NO_NUMBERS[3:], float(len(rewards)), float(1.0 / rows.probability.min())
    )


def _refusal(log: Log, *, check: bool) -> str:
    """Why a log cannot be replayed: arms were certain, so that others would never be accepted, or its world moves."""
    rows = int(np.count_nonzero(certain(log)))
    if rows > MOST_UNSUPPORTED * len(log):
        return f"this log cannot tell: in {rows:,} of {counted(len(log), 'row')} the policy that logged had no choice"
    found = find_changes(log) if check else None
    if found is None or found.movement.kind == "still":
        return ""
    first = f" (first at row {found.changes[0].row})" if found.changes else ""
    return (
        f"this log cannot tell: its world moves{first}, and replay with rejection "
        f"holds only while nothing does; value stretches with by='changes', or see the twin of advise"
    )


def _accepted(log: Log, policy: Policy) -> Floats:
    """Rewards of the rows that a copy of the policy accepts, in order."""
    learner = copy.deepcopy(policy)
    draws = stream(0, "replay")
    kept = draws.random(len(log)) * log.probability < log.probability.min()
    if learner.contexts is not None:
        return _accepted_requests(log.take(kept), learner, draws)
    rewards: list[float] = []
    decision = learner.ask()
    for arm, reward in zip(log.arm[kept].tolist(), log.reward[kept].tolist(), strict=True):
        if arm == decision.arm:
            learner.tell(decision.id, reward)
            rewards.append(reward)
            decision = learner.ask()
    return np.array(rewards)


def _accepted_requests(log: Log, learner: Policy, draws: np.random.Generator) -> Floats:
    """The same of a policy with contexts, which draws an arm for each row; only what is accepted changes it."""
    columns = log.columns(learner.arms)
    requests = requests_of(learner.contexts, columns)  # type: ignore[arg-type]
    rewards: list[float] = []
    for arm, reward, context in zip(columns["arm"].tolist(), log.reward.tolist(), requests, strict=True):
        law = learner.law(context=context)
        if arm == draws.choice(len(law), p=law):
            learner.tell(learner.impose(arm, law[arm], contexts=[context]).decisions, reward)
            rewards.append(reward)
    return np.array(rewards)
