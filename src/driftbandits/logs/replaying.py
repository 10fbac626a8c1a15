"""A learning policy valued on a log by replay with rejection: honest only where nothing moves.

The policy decides; the log's rows are gone through until one has its arm and is accepted, with probability
(least probability of the log) / (probability of the row). Every row is then accepted with the same chance whatever arm
is waited for, so what the policy is told is what it would have seen. But the learner's rounds are further apart than
the log's: a world that moves would move faster for it. Learning policies in worlds that move are judged in the twin of
`advise`.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from driftbandits.errors import InputError
from driftbandits.logs.estimators import local_variance
from driftbandits.logs.evaluating import NO_NUMBERS, Estimate, Evaluation
from driftbandits.logs.log import Log
from driftbandits.logs.movement import find_changes
from driftbandits.logs.pieces import Piece, pieces_of
from driftbandits.logs.support import MOST_UNSUPPORTED, certain
from driftbandits.policies import Policy
from driftbandits.seeding import stream
from driftbandits.showing import counted
from driftbandits.types import Floats

LEAST_ACCEPTED = 500
_NOTE = "replay with rejection: holds while nothing moves, per round of the learner"


def replay(log: Log, policy: Policy, *, by: Any, level: float) -> Evaluation:
    """The mean reward of a new policy over the rows it accepts; with by="changes", a new one for every stretch."""
    if policy.rounds:
        raise InputError(
            f"a policy that is replayed must be new; this one has played {counted(policy.rounds, 'round')}"
        )
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
    from scipy.special import ndtri

    rows = log.take(piece.rows)
    refused = _no_choice(rows) or (_refusal(rows) if check else "")
    rewards = np.empty(0) if refused else _accepted(rows, policy)
    if not refused and len(rewards) < LEAST_ACCEPTED:
        least = float(rows.probability.min())
        refused = (
            f"this log cannot tell: {counted(len(rewards), 'row')} accepted, below {LEAST_ACCEPTED} (its smallest "
            f"probability is {least:.2g})"
        )
    if refused:
        return Estimate(piece.label, len(rows), *NO_NUMBERS, float(len(rewards)), math.nan, refused)
    value = float(rewards.mean())
    half = float(ndtri(0.5 + 0.5 * level)) * math.sqrt(local_variance(rewards)) / len(rewards)
    largest = float(1.0 / rows.probability.min())
    ends = (value, value - half, value + half, math.nan, math.nan)
    return Estimate(piece.label, len(rows), *ends, float(len(rewards)), largest)


def _no_choice(log: Log) -> str:
    """A row whose arm was certain is never there for a learner that waits for another."""
    rows = int(np.count_nonzero(certain(log)))
    if rows <= MOST_UNSUPPORTED * len(log):
        return ""
    return f"this log cannot tell: in {rows:,} of {counted(len(log), 'row')} the policy that logged had no choice"


def _refusal(log: Log) -> str:
    changes = find_changes(log)
    if not changes:
        return ""
    return (
        f"this log cannot tell: its world moves (first found at row {changes[0].found}), and replay with rejection "
        f"holds only while nothing does; value stretches with by='changes', or see the twin of advise"
    )


def _accepted(log: Log, policy: Policy) -> Floats:
    """Rewards of the rows that a copy of the policy accepts, in order."""
    learner = copy.deepcopy(policy)
    kept = stream(0, "replay").random(len(log)) * log.probability < log.probability.min()
    rewards: list[float] = []
    decision = learner.ask()
    for arm, reward in zip(log.arm[kept].tolist(), log.reward[kept].tolist(), strict=True):
        if arm == decision.arm:
            learner.tell(decision.id, reward)
            rewards.append(reward)
            decision = learner.ask()
    return np.array(rewards)
