"""Health of an experiment: one sentence per trouble, with the cure, so that a broken pipeline is no changed world.

Rules rest on counts, and say so. Those that compare shares do it with tests whose chance of a false alarm is below one
in a million per check: a sentence on the page is read as a fact.
"""

from __future__ import annotations

import math

import numpy as np

from driftbandits.live.definition import Definition
from driftbandits.policies import find_policy
from driftbandits.service.series import Point, Recent, Series
from driftbandits.text import label

ENOUGH = 50  # rewards before anything is said of them
EXPECTED_REWARDS = 14.0  # missing ones: e^-14 is one in a million
DEVIATIONS = 5.0  # of a normal variable: less than one in a million
FALL = 0.7  # of the share before; a smaller fall is not worth a sentence
FALL_WHERE_MISSING_COUNTS = 0.1  # there silence is an outcome, and its share moves with the world
LEAST_SHARE_OF_RANGE = 0.01
FAR_ABOVE = 10.0  # times as many decisions as the others' middle
MANY_DECISIONS = 1_000


def sentences(definition: Definition, series: Series, newest: Recent, *, patience: float | None) -> list[str]:
    """Every problem that the journal shows."""
    found = [
        _silence(series, newest),
        _all_equal(series),
        _falling_share(series, newest, patience),
        _narrow(definition, series),
        _delay_depends(definition, newest, patience),
    ]
    return [sentence for sentence in found if sentence]


def _silence(series: Series, newest: Recent) -> str:
    """No rewards for a long time although decisions are made."""
    decisions = sum(point.decisions for point in series.points)
    rewards = sum(point.rewards for point in series.points)
    if not rewards:
        if decisions > 100 and not any(point.expired for point in series.points):
            return (
                f"no reward has come yet for {decisions:,} decisions: send them with POST .../rewards "
                f'{{"id": ..., "reward": ...}}, and check that ids are kept until then'
            )
        return ""
    before = decisions - newest.decisions_since
    expected = newest.decisions_since * rewards / max(before, 1)
    slow = 5.0 * float(np.quantile(newest.delays, 0.99)) if len(newest.delays) else 0.0
    if rewards >= ENOUGH and expected > EXPECTED_REWARDS and newest.seconds_since > slow:
        return (
            f"no reward for {_duration(newest.seconds_since)}, while {newest.decisions_since:,} decisions went out and "
            f"about {expected:,.0f} rewards should have come: check that the program that sends rewards still runs"
        )
    return ""


def _all_equal(series: Series) -> str:
    told = [point for point in series.points if point.rewards]
    count = sum(point.rewards for point in told)
    if count < ENOUGH:
        return ""
    least, most = min(point.least for point in told), max(point.most for point in told)
    expired = any(point.expired for point in told) and series.missing is not None and series.missing != least
    if least != most or expired:
        return ""
    return (
        f"all {count:,} rewards are {least:g}, so nothing is known of failures: send those too, or make the experiment "
        f"anew with patience and missing, so that silence counts"
    )


def _falling_share(series: Series, newest: Recent, patience: float | None) -> str:
    """Share of decisions that ever get a reward: the last fifth of those old enough, against all before."""
    usual = 5.0 * float(np.quantile(newest.delays, 0.95)) if len(newest.delays) else 0.0
    ripe = usual if patience is None else patience
    end = (series.points[-1].end / 1e6 - ripe) if series.points else 0.0
    old = [point for point in series.points if point.end / 1e6 <= end]
    cut = max(len(old) * 4 // 5, 1)
    (made, told), (made_now, told_now) = _shares(old[:cut]), _shares(old[cut:])
    if told < ENOUGH or not made_now:
        return ""
    before, now = told / made, told_now / made_now
    pooled = (told + told_now) / (made + made_now)
    deviation = math.sqrt(max(pooled * (1.0 - pooled), 1e-12) * (1.0 / made + 1.0 / made_now))
    limit = FALL if series.missing is None else FALL_WHERE_MISSING_COUNTS
    if now < limit * before and before - now > DEVIATIONS * deviation:
        return (
            f"of the decisions of late {now:.1%} got a reward, of those before {before:.1%}: if the world did not "
            f"change so much, rewards get lost on their way, or come later than they did; compare what was sent with "
            f"the journal (GET .../events)"
        )
    return ""


def _shares(points: list[Point]) -> tuple[int, int]:
    return sum(point.decisions - point.forgotten for point in points), sum(point.rewards for point in points)


def _narrow(definition: Definition, series: Series) -> str:
    told = [point for point in series.points if point.rewards]
    if sum(point.rewards for point in told) < ENOUGH:
        return ""
    worth = [series.missing] if series.missing is not None and any(p.expired for p in series.points) else []
    least = min([point.least for point in told] + worth)
    most = max([point.most for point in told] + worth)
    low, high = definition.reward_range
    if least == most or (most - least) >= LEAST_SHARE_OF_RANGE * (high - low):
        return ""
    return (
        f"rewards lie between {least:.4g} and {most:.4g}, less than a hundredth of the declared range {low:g} to "
        f"{high:g}: differences between arms drown; make the experiment anew with the true range"
    )


def _delay_depends(definition: Definition, newest: Recent, patience: float | None) -> str:
    """Whether good rewards take longer or shorter than bad ones, by ranks; with patience that does no harm."""
    if patience is not None or len(newest.rewards) < 2 * ENOUGH:
        return ""
    middle = float(np.median(newest.rewards))
    high = newest.rewards > middle if (newest.rewards > middle).any() else newest.rewards >= middle
    many, few = int(high.sum()), int((~high).sum())
    if min(many, few) < ENOUGH // 2:
        return ""
    ranks = np.empty(len(high))
    ranks[np.argsort(newest.delays, kind="stable")] = np.arange(1, len(high) + 1)
    deviation = math.sqrt(many * few * (many + few + 1) / 12.0)
    distance = (float(ranks[high].sum()) - many * (many + few + 1) / 2.0) / deviation
    slow, quick = (float(np.median(newest.delays[which])) for which in (high, ~high))
    if abs(distance) < DEVIATIONS or max(slow, quick) < 1.0 or abs(slow - quick) < 0.2 * max(slow, quick):
        return ""
    word = "later" if slow > quick else "sooner"
    return (
        f"high rewards come {word} than low ones (in the middle after {_duration(slow)} and {_duration(quick)}), so "
        f"what is known of the latest decisions is one-sided: make the experiment anew with patience and missing; "
        f"{_learned_then(definition)}"
    )


def _learned_then(definition: Definition) -> str:
    if find_policy(definition.policy).learns_open_decisions and definition.contexts is None:
        return f"with missing={definition.reward_range[0]:g} decisions without a reward then count by their age"
    return "rewards are then learned in the order of the decisions, as late as patience"


def of_mode(mode: str, trouble: str) -> list[str]:
    """The fallback answers."""
    if mode == "paused":
        return ["paused: the fallback answers, and nothing is explored; resume when whatever it was is over"]
    if mode == "fallback":
        return [f"the fallback decides, for the policy stopped ({trouble}); restart the experiment to learn anew"]
    return []


def of_storage(failure: tuple[float, str] | None) -> list[str]:
    """The last transaction failed; `failure` has the seconds since then, and why."""
    if failure is None:
        return []
    return [
        f"nothing can be stored: the last transaction failed {_duration(failure[0])} ago ({failure[1]}); requests get "
        f"503 until the database can be written to, so look at its disk and its log"
    ]


def of_ending_keys(ending: list[tuple[str, float]]) -> list[str]:
    """Keys that end soon: their programs get 401 then."""
    return [
        f"the key {label(name)} ends in {_duration(86_400.0 * days)}: make a new one with driftbandits keys rotate ID, "
        f"and give it to its program"
        for name, days in sorted(ending, key=lambda one: one[1])[:3]
    ]


def of_keys(decisions: dict[str, int], names: dict[str, str]) -> list[str]:
    """Decisions of one key far above the others; counted since the server's start."""
    if len(decisions) < 2:
        return []
    top = max(decisions, key=lambda key: decisions[key])
    others = sorted(count for key, count in decisions.items() if key != top)
    middle = others[len(others) // 2]
    if decisions[top] < MANY_DECISIONS or decisions[top] < FAR_ABOVE * max(middle, 1):
        return []
    return [
        f"the key {label(names.get(top, top))} asked for {decisions[top]:,} decisions, the others for {middle:,} in "
        f"the middle: check whether its program asks in a loop, and whether it sends rewards"
    ]


def _duration(seconds: float) -> str:
    for size, name in ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.3g} seconds"
