"""The rows of the table: what one seed measures, and what is asked of all seeds together.

A row is a function of the seed that gives numbers by name, and a list of questions about these: what is measured, in
words, and whether it is as asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import driftbandits as db
from benchmarks.live.segments import regrets
from benchmarks.live.shop import MIDDLE, PRICES, RATES, ROUNDS, Delay, Played, options, play
from benchmarks.live.thompson import BetaThompson
from driftbandits.policies import Policy
from driftbandits.types import Floats

Numbers = Mapping[str, float]
LATE = Delay(success=500, failure=500)
QUICK_SUCCESS = Delay(success=20, failure=500)
PLAYS_TO_NOTICE = 3_000
MOST_CHANGES = 0.1  # per run
FALSE_ALARM = 0.1  # promised by CalibratedOPKB, per run
LEAST_EFFECT = 0.02  # an arm has left the law when it has less than this of the plays


@dataclass(frozen=True)
class Question:
    """What is asked of the numbers of all seeds: `measure` gives one number, which `holds` judges."""

    asked: str
    measure: Callable[[Sequence[Numbers]], float]
    holds: Callable[[float], bool]


@dataclass(frozen=True)
class Row:
    """One condition, what one seed gives there, and what is asked."""

    condition: str
    play: Callable[[int], Numbers]
    questions: tuple[Question, ...]


# --- questions ------------------------------------------------------------------------------------------------------


def _mean(name: str) -> Callable[[Sequence[Numbers]], float]:
    return lambda found: float(np.mean([numbers[name] for numbers in found]))


def _ratio(name: str, other: str) -> Callable[[Sequence[Numbers]], float]:
    return lambda found: sum(numbers[name] for numbers in found) / sum(numbers[other] for numbers in found)


def at_most(asked: str, most: float, measure: Callable[[Sequence[Numbers]], float]) -> Question:
    return Question(f"{asked}: at most {most:g}", measure, lambda value: value <= most)


def at_least(asked: str, least: float, measure: Callable[[Sequence[Numbers]], float]) -> Question:
    return Question(f"{asked}: at least {least:g}", measure, lambda value: value >= least)


def few_changes(policy: str) -> Question:
    return at_most(f"{policy}, changes recorded per run", MOST_CHANGES, _mean(f"{policy} changes"))


def much_of_thompson(policy: str, least: float) -> Question:
    return at_least(f"{policy}, share of Thompson's reward", least, _ratio(policy, "Thompson"))


# --- players --------------------------------------------------------------------------------------------------------


def _auto(seed: int, **settings: Any) -> Policy:
    return db.AutoBandit(options(), seed=seed, **{"reward_range": (0.0, 1.0), **settings})


def _calibrated(seed: int, **settings: Any) -> Policy:
    return db.CalibratedOPKB(options(), seed=seed, horizon=ROUNDS, **{"reward_range": (0.0, 1.0), **settings})


def _thompson(seed: int, **settings: Any) -> Policy:
    return BetaThompson(options(), seed=seed, **{"reward_range": (0.0, 1.0), **settings})


def _still(_now: int) -> Floats:
    return RATES


def _numbers(name: str, played: Played) -> dict[str, float]:
    return {name: played.share(), f"{name} changes": float(len(played.changes))}


# --- rows -----------------------------------------------------------------------------------------------------------


def _in_the_shop(delay: Delay) -> Callable[[int], Numbers]:
    def found(seed: int) -> Numbers:
        return {
            **_numbers("AutoBandit", play(_auto(seed), _still, seed=seed, delay=delay)),
            **_numbers("CalibratedOPKB", play(_calibrated(seed), _still, seed=seed, delay=delay)),
            **_numbers("Thompson", play(_thompson(seed), _still, seed=seed, delay=delay)),
        }

    return found


def _by_patience(seed: int) -> Numbers:
    patient = _auto(seed, patience=600, missing=0.0)
    return {
        **_numbers("AutoBandit", play(patient, _still, seed=seed, delay=QUICK_SUCCESS)),
        "AutoBandit, all late": play(_auto(seed), _still, seed=seed, delay=LATE).share(),
    }


def _halving(seed: int) -> Numbers:
    """Whether the change was noticed in time, and how many records are of something else."""
    best = int(RATES.argmax())
    fallen = np.where(np.arange(len(RATES)) == best, RATES / 2.0, RATES)
    played = play(_auto(seed), lambda now: RATES if now < MIDDLE else fallen, seed=seed)
    mine = np.flatnonzero(played.arms == best)
    mine = mine[mine >= MIDDLE]
    limit = int(mine[PLAYS_TO_NOTICE - 1]) if len(mine) >= PLAYS_TO_NOTICE else ROUNDS
    recorded = any(MIDDLE < change <= limit for change in played.changes)
    left = float(np.mean(played.arms[-2_000:] == best)) < LEAST_EFFECT or len(mine) < PLAYS_TO_NOTICE
    wrong = sum(change <= MIDDLE for change in played.changes) + max(sum(c > MIDDLE for c in played.changes) - 1, 0)
    return {"noticed": float(recorded or left), "recorded": float(recorded), "wrong": float(wrong)}


def _priced(delay: Delay) -> Callable[[int], Numbers]:
    def found(seed: int) -> Numbers:
        span = (0.0, float(PRICES.max()))
        auto = _auto(seed, reward_range=span)
        thompson = _thompson(seed, reward_range=span, values=tuple(PRICES.tolist()))
        return {
            **_numbers("AutoBandit", play(auto, _still, seed=seed, delay=delay, prices=PRICES)),
            **_numbers("Thompson", play(thompson, _still, seed=seed, delay=delay, prices=PRICES)),
        }

    return found


def _new_arm(seed: int) -> Numbers:
    """The share of rounds 11,000 to 12,000 that the new arm has, and whether anything of the others was forgotten."""
    more = options(len(RATES) + 1)
    new, rates = len(RATES), np.append(RATES, 2.0 * RATES.max())
    gaps: list[float] = []

    def turn(policy: Any) -> Policy:
        before = policy.estimate()
        extended: Policy = policy.with_arms(_with_one_more(policy.arms, more))
        gaps.append(float(np.abs(extended.estimate()[:new] - before).max()))
        return extended

    played = play(_auto(seed), lambda now: RATES if now < MIDDLE else rates, seed=seed, turns={MIDDLE: turn})
    share = float(np.mean(played.arms[11_000:12_000] == new))
    return {"won": float(share > 0.5), "share": share, "forgotten": gaps[0]}


def _with_one_more(arms: db.ArmSet, more: db.ArmSet) -> db.ArmSet:
    """The old points under their names, and one more beyond them."""
    step = float(arms.points[1, 0] - arms.points[0, 0])
    points = np.vstack([arms.points, arms.points[-1:] + step])
    return db.ArmSet(points, names=list(more.names or ()))


def _segments(seed: int) -> Numbers:
    return regrets(seed)


def _over_the_better(found: Sequence[Numbers]) -> float:
    sums = {name: sum(numbers[name] for numbers in found) for name in found[0]}
    return sums["crossed"] / min(sums["one per segment"], sums["one for all"])


ROWS: dict[str, Row] = {
    "still": Row(
        "nothing changes, rewards at once",
        _in_the_shop(Delay()),
        (
            few_changes("AutoBandit"),
            much_of_thompson("AutoBandit", 0.95),
            at_most("CalibratedOPKB, changes recorded per run", FALSE_ALARM, _mean("CalibratedOPKB changes")),
        ),
    ),
    "late": Row(
        "nothing changes, all rewards 500 rounds late",
        _in_the_shop(LATE),
        (
            much_of_thompson("AutoBandit", 0.95),
            few_changes("AutoBandit"),
            much_of_thompson("CalibratedOPKB", 0.85),
        ),
    ),
    "patience": Row(
        "nothing changes, success told after 20 rounds, failure after 500; patience 600, missing 0",
        _by_patience,
        (
            at_least(
                "AutoBandit, share of what it earns if all are late", 0.9, _ratio("AutoBandit", "AutoBandit, all late")
            ),
            few_changes("AutoBandit"),
        ),
    ),
    "halving": Row(
        "the best arm's rate halves at round 10,000, rewards at once",
        _halving,
        (
            at_least("runs with a record, or the arm left, within 3,000 plays of it", 0.9, _mean("noticed")),
            at_most("wrong records per run", 0.0, _mean("wrong")),
        ),
    ),
    "prices": Row(
        "prices: rewards 0 or the price, at once",
        _priced(Delay()),
        (few_changes("AutoBandit"), much_of_thompson("AutoBandit", 0.95)),
    ),
    "prices-late": Row(
        "prices: rewards 0 or the price, 500 rounds late",
        _priced(LATE),
        (much_of_thompson("AutoBandit", 0.95), few_changes("AutoBandit")),
    ),
    "new-arm": Row(
        "an arm twice as good as the best is added at round 10,000",
        _new_arm,
        (
            at_least("runs in which it has more than half of rounds 11,000 to 12,000", 0.8, _mean("won")),
            at_most("largest change of an old arm's estimate when it is added", 1e-6, _mean("forgotten")),
        ),
    ),
    "segments": Row(
        "5 segments of 20 options that share half of their structure",
        _segments,
        (at_most("regret of the crossed policy over the better of the two others", 0.8, _over_the_better),),
    ),
}
