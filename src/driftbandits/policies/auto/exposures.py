"""Open decisions as data: what a decision without a reward says while its reward may still come.

A sale is known minutes or hours after the decision, "no sale" never, or when no sale can come any more. Waiting for the
slowest reward throws that time away; not waiting compares quick successes with no failures. So every decision counts as
a part of a failure that grows with its age, and a success is counted when it comes.

symbol  name       meaning
u                  age of a decision: rounds, or seconds where the caller has a clock
P       patience   age at which a decision is closed as missing; rewards may come later all the same
H       horizon    16 P, the age up to which they are waited for
F(u)    share      of the rewards that come by age H, those that have come by age u
N_a     exposure   sum of F(u) over all decisions of arm a, told or not
S_a                successes of arm a that have come: E[S_a] = chance N_a at every moment, if delays depend on neither
                   the arm nor the amount (Vernade, Cappe and Perchet 2017)

Decisions asked at about the same time form a cohort, whose width is at most an eighth of its age: some seventy cohorts
whatever the traffic. Exposures grow in steps, when `collect` is called: after asks, and after rewards told together,
but not between rewards told one by one, which may be a burst. A decision's exposure never shrinks, and is exactly 1
once it is older than H.

F is estimated from the delays of rewards that came. Young decisions can only show short delays, so it is the
product-limit estimate in reverse time (Kalbfleisch and Lawless 1991): with n_j delays in class j and R_j in classes up
to j, both among decisions older than class j, F_(j-1) = F_j (1 - n_j / R_j). Classes are a quarter octave wide. Before
the first delays F is log-uniform up to P, but for a fiftieth that comes later.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandits import state as states
from driftbandits.state.declared import Declared, Value, array, count, flag, listed, number
from driftbandits.state.reader import FARTHEST
from driftbandits.types import Floats, Ints

HORIZON = 16.0  # P
CLASSES = 57  # of delays: the first ends at P / 1024, and each a quarter octave further, up to H
_ENDS: Floats = 2.0 ** (np.arange(CLASSES) / 4.0 - 10.0)  # in units of P
_WIDTH = 8.0  # a cohort's age over its width, at least
_COHORTS_AT_FIRST = 256.0  # per P: no cohort is narrower, unless it is one decision
_PRIOR_DELAYS: Floats = 2.0 * np.where(_ENDS <= 1.0, 0.98 / 41, 0.02 / 16)  # the first guess of F is worth two rewards
_DELAYS_KEPT = 2_000.0  # rewards that are remembered of closed cohorts, about
_MOST_BETWEEN = 16  # asks and successes between two steps
_SILENCE = 0.125  # P without a success, after which that is learned
_UNTIL_TOLD = 2**62
_LEAST_EXPOSURE = 0.5  # of an arm, for a step to learn it where it had no success; or, if that is more,
_LEAST_GROWTH = 0.02  # of the exposure learned so far
LEAST_WEIGHT = 1e-6  # where a success comes without any new exposure
_MOST_CLOSED = 200_000  # closed decisions whose late rewards are still learned


class Collected(NamedTuple):
    """What has come to be known since the last step."""

    arms: Ints  # (u,), growing
    exposure: Floats  # (u,), growth of N_a
    told: list[tuple[int, float]]  # successes, as arm and reward


class Exposures(Declared):
    """Cohorts of decisions, the delays of their rewards, and what of both is still to be learned.

    >>> exposures = Exposures(2)
    >>> exposures.begin(now=0.0, patience=100.0, first_id=0)
    >>> for now in range(200):
    ...     _ = exposures.play([0], now, float(now))
    ...     if now >= 20:
    ...         _ = exposures.tell(now - 20, 0, 1.0, float(now))
    >>> exposures.estimate(199.0)
    >>> exposures.share(np.array([10.0, 40.0])).round(2).tolist()
    [0.01, 0.98]
    """

    def __init__(self, arms: int) -> None:
        self.active = False
        self.grows = False  # whether patience was not given, and grows with the delays
        self.patience = 0.0
        self.decisions = 0  # in cohorts so far
        self.since = 0  # first decision that is counted
        self.timed = False  # whether the caller has a clock
        self.now = 0.0
        self._stepped = 0.0  # when the last step was
        self._calls = 0  # asks and tells since then
        self._first: list[int] = []  # of every cohort, oldest first: its first decision, when it began and ended, what
        self._start: list[float] = []  # of its exposure was counted, delays of its rewards by class, and its arms with
        self._end: list[float] = []  # their plays
        self._exposed: list[float] = []
        self._delays: list[Ints] = []
        self._arms: list[Ints] = []
        self._counts: list[Ints] = []
        self._newest: dict[int, int] = {}  # arms and plays of the last cohort, which still grows
        self._complete: Floats = np.zeros(CLASSES)  # delays in cohorts that are older than H
        self._arrived: Floats = np.minimum(_PRIOR_DELAYS.cumsum() / 2.0, 1.0)  # F at the ends of the classes
        self._owed: Floats = np.zeros(arms)  # exposure not yet learned
        self._told: list[tuple[int, float]] = []  # successes not yet learned
        self._closed: Ints = np.zeros((0, 2), dtype=np.int64)  # id and arm of decisions closed as missing,
        self._recent: list[Ints] = []  # and of those closed after them

    def begin(self, *, now: float, patience: float, first_id: int, grows: bool = False) -> None:
        """Count decisions from `first_id` on."""
        self.active, self.patience, self.since, self.grows = True, patience, first_id, grows
        self.now = self._stepped = now

    def stop(self) -> None:
        """Count nothing any more, and forget what was counted."""
        timed, now = self.timed, self.now
        self.__init__(len(self._owed))  # type: ignore[misc]
        self.timed, self.now = timed, now

    # --- what happens ---------------------------------------------------------------------------------------------

    @property
    def left(self) -> int:
        """Asks until the next step, at least 1, if nothing is told meanwhile."""
        left = self._between() - self._calls
        if not self._told and not self.timed:
            left = max(left, math.ceil(self._stepped + _SILENCE * self.patience - self.now))
        elif not self._is_news(self.now):
            return _UNTIL_TOLD
        return max(left, 1)

    def _is_news(self, now: float) -> bool:
        """Whether a step has something to say: successes, or that there were none for long.

        Where rewards are told in bursts, a step in between would say that all arms have failed.
        """
        return bool(self._told) or now - self._stepped >= _SILENCE * self.patience

    def step_is_due(self) -> bool:
        """After rewards were told together."""
        return self._calls >= self._between() and bool(self._told)

    def _between(self) -> int:
        return _MOST_BETWEEN if self.timed else int(min(max(self.patience / 32.0, 1.0), _MOST_BETWEEN))

    def play(self, arms: Sequence[int], first_id: int, now: float) -> bool:
        """Decisions for these arms were asked, one after the other; whether a step is due."""
        for place, arm in enumerate(arms):
            time = now if self.timed else now + place
            if not self._first or time - self._start[-1] >= self.patience / _COHORTS_AT_FIRST:
                self._open_cohort(first_id + place, time)
            self._end[-1] = self.now = time
            self._newest[arm] = self._newest.get(arm, 0) + 1
            self._owed[arm] += self._exposed[-1]  # as the others of the cohort
        self.decisions += len(arms)
        self._calls += len(arms)
        return self._calls >= self._between() and self._is_news(self.now)

    def tell(self, ident: int, arm: int, reward: float, now: float) -> None:
        """A reward that is not `missing` has come. Of uncounted decisions it says nothing."""
        if ident < self.since:
            return
        self._told.append((arm, reward))
        cohort = bisect_right(self._first, ident) - 1
        if cohort >= 0:
            age = max(now - 0.5 * (self._start[cohort] + self._end[cohort]), 0.0)
            if self.grows and age > self.patience:
                self._rescale(1.5 * age)
            self._delays[cohort][min(int(np.searchsorted(_ENDS, age / self.patience)), CLASSES - 1)] += 1
        self._calls += 1

    def at(self, now: float, patience: float | None) -> bool:
        """The caller's clock; whether a step is due because time has passed."""
        self.timed, self.now = True, max(now, self.now)
        if self.active and patience is not None and patience != self.patience:
            self._rescale(patience)
        return self.active and self.now - self._stepped >= self.patience / 64.0 and self._is_news(self.now)

    def forget(self, ids: Ints, arms: Ints) -> None:
        """Nothing is known of these decisions: take back what was counted of them, or will be subtracted from it."""
        for ident, arm in zip(ids.tolist(), arms.tolist(), strict=True):
            cohort = bisect_right(self._first, ident) - 1
            if ident < self.since or cohort < 0 or arm < 0:
                continue
            if cohort == len(self._first) - 1:
                self._newest[arm] -= 1
                if not self._newest[arm]:
                    del self._newest[arm]
                self._seal_newest()
            else:
                place = np.flatnonzero(self._arms[cohort] == arm)
                self._counts[cohort][place] -= 1
                kept = self._counts[cohort] > 0
                self._arms[cohort], self._counts[cohort] = self._arms[cohort][kept], self._counts[cohort][kept]
            self._owed[arm] -= self._exposed[cohort]
            self.decisions -= 1

    def close(self, ids: Ints, arms: Ints) -> None:
        """Remember decisions that were closed as missing: their rewards may come late."""
        self._recent.append(np.stack([ids, arms], axis=1)[ids >= self.since])
        if len(self._recent) > 1_000 or len(ids) > 1_000:
            self._join_closed()

    def _join_closed(self) -> None:
        self._closed = np.concatenate([self._closed, *self._recent])[-_MOST_CLOSED:]
        self._recent = []

    def tell_late(self, ids: Ints, rewards: Floats, now: float) -> int:
        """Rewards of closed decisions; how many of them are learned. Each decision is forgotten with its reward."""
        self._join_closed()
        if not self.active or not len(self._closed):
            return 0
        order = np.argsort(self._closed[:, 0], kind="stable")
        places = order[np.minimum(np.searchsorted(self._closed[order, 0], ids), len(order) - 1)]
        known = self._closed[places, 0] == ids
        for place, reward in zip(places[known].tolist(), rewards[known].tolist(), strict=True):
            ident, arm = self._closed[place].tolist()
            if arm >= 0 and reward > -1.0 + 1e-9:
                self.tell(ident, arm, reward, now)
        self._closed = np.delete(self._closed, places[known], axis=0)
        return int(np.count_nonzero(known))

    def renumber(self, target: Ints, arms: int) -> None:
        """Arm a is target[a] now, -1 if it is gone; there are `arms` of them."""
        self._seal_newest()
        for cohort, numbers in enumerate(self._arms):
            now = target[numbers]
            self._arms[cohort], self._counts[cohort] = now[now >= 0], self._counts[cohort][now >= 0]
        self._read_newest()
        owed, self._owed = self._owed, np.zeros(arms)
        kept = target >= 0
        self._owed[target[kept]] = owed[kept]
        self._told = [(int(target[arm]), reward) for arm, reward in self._told if target[arm] >= 0]
        self._join_closed()
        offered = self._closed[:, 1] >= 0
        self._closed[offered, 1] = target[self._closed[offered, 1]]

    # --- steps ----------------------------------------------------------------------------------------------------

    def collect(self, now: float, learned: Floats) -> Collected:
        """Let exposures grow to what they are at this time, and give what is to be learned beside `learned`, (N,)."""
        self._stepped, self._calls = now, 0
        if self._first:
            self._seal_newest()
            self.estimate(now)
            ages = now - 0.5 * (np.array(self._start) + np.array(self._end))
            exposed = np.array(self._exposed)
            reached = np.maximum(
                np.where(now - np.array(self._end) >= HORIZON * self.patience, 1.0, self.share(ages)), exposed
            )
            self._expose(range(len(exposed)), reached - exposed)
            self._exposed = reached.tolist()
            self._retire(now)
        told, self._told = self._told, []
        due = self._owed >= np.maximum(_LEAST_EXPOSURE, _LEAST_GROWTH * learned)
        due[[arm for arm, _ in told]] = True
        arms = np.flatnonzero(due)
        exposure = np.maximum(self._owed[arms], LEAST_WEIGHT)
        self._owed[arms] = np.minimum(self._owed[arms], 0.0)  # below 0 after decisions were forgotten
        return Collected(arms, exposure, told)

    def share(self, ages: Floats) -> Floats:
        """F at these ages."""
        return np.interp(ages / self.patience, _ENDS, self._arrived)

    def estimate(self, now: float) -> None:
        """Estimate F from the delays of rewards that have come."""
        seen = self._complete + _PRIOR_DELAYS
        below = seen.cumsum()
        if self._first:
            ages = (now - 0.5 * (np.array(self._start) + np.array(self._end))) / self.patience
            delays = np.array(self._delays)
            older = ages[:, None] >= _ENDS
            seen = seen + (delays * older).sum(axis=0)
            below = below + (delays.cumsum(axis=1) * older).sum(axis=0)
        stays = 1.0 - (seen / below)[1:]
        self._arrived = np.append(np.cumprod(stays[::-1])[::-1], 1.0)

    def median(self) -> float:
        """The age by which half of the rewards have come."""
        return float(np.interp(0.5, self._arrived, _ENDS)) * self.patience

    # --- cohorts --------------------------------------------------------------------------------------------------

    def _open_cohort(self, first_id: int, time: float) -> None:
        self._seal_newest()
        self._newest = {}
        self._merge(time)
        self._first.append(first_id)
        self._start.append(time)
        self._end.append(time)
        self._exposed.append(0.0)
        self._delays.append(np.zeros(CLASSES, dtype=np.int64))
        self._arms.append(np.zeros(0, dtype=np.int64))
        self._counts.append(np.zeros(0, dtype=np.int64))

    def _seal_newest(self) -> None:
        """Put the plays of the cohort that still grows where those of the others are."""
        if self._first:
            arms = sorted(self._newest)
            self._arms[-1] = np.array(arms, dtype=np.int64)
            self._counts[-1] = np.array([self._newest[arm] for arm in arms], dtype=np.int64)

    def _read_newest(self) -> None:
        """Inverse of `_seal_newest`."""
        self._newest = dict(zip(self._arms[-1].tolist(), self._counts[-1].tolist(), strict=True)) if self._arms else {}

    def _merge(self, now: float) -> None:
        """Merge neighbours that are narrow for their age; the younger one is exposed as much as the older first."""
        cohort = 0
        while cohort + 1 < len(self._first):
            after = cohort + 1
            if self._end[after] - self._start[cohort] > (now - self._end[after]) / _WIDTH:
                cohort += 1
                continue
            reached = max(self._exposed[cohort], self._exposed[after])
            self._expose([cohort, after], np.array([reached - self._exposed[cohort], reached - self._exposed[after]]))
            arms, places = np.unique(np.concatenate([self._arms[cohort], self._arms[after]]), return_inverse=True)
            counts = np.concatenate([self._counts[cohort], self._counts[after]])
            self._arms[cohort] = arms
            self._counts[cohort] = np.bincount(places, counts, len(arms)).astype(np.int64)
            self._end[cohort], self._exposed[cohort] = self._end[after], reached
            self._delays[cohort] = self._delays[cohort] + self._delays[after]
            for part in self._parts():
                del part[after]

    def _expose(self, cohorts: Sequence[int], growth: Floats) -> None:
        """Let the exposure of these cohorts grow."""
        growing = [(cohort, more) for cohort, more in zip(cohorts, growth.tolist(), strict=True) if more > 0.0]
        if growing:
            arms = np.concatenate([self._arms[cohort] for cohort, _ in growing])
            plays = np.concatenate([more * self._counts[cohort] for cohort, more in growing])
            self._owed += np.bincount(arms, plays, len(self._owed))

    def _retire(self, now: float) -> None:
        """Drop cohorts that are older than H; their delays are remembered."""
        while self._first and now - self._end[0] >= HORIZON * self.patience:
            self._complete += self._delays[0]
            self._complete *= min(1.0, _DELAYS_KEPT / max(float(self._complete.sum()), 1.0))
            if len(self._first) == 1:
                self._newest = {}
            for part in self._parts():
                del part[0]

    def _parts(self) -> tuple[list[Any], ...]:
        return self._first, self._start, self._end, self._exposed, self._delays, self._arms, self._counts

    def _rescale(self, patience: float) -> None:
        """Another patience: delays move to the classes that they are in now."""
        ends = np.minimum(np.searchsorted(_ENDS, _ENDS * (self.patience / patience) - 1e-9), CLASSES - 1)
        self._complete = np.bincount(ends, self._complete, CLASSES).astype(np.float64)
        self._delays = [np.bincount(ends, delays, CLASSES).astype(np.int64) for delays in self._delays]
        self.patience = patience
        self.estimate(self.now)

    # --- state ----------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """Everything, the plays of all cohorts in one array each."""
        self._seal_newest()
        self._join_closed()
        return super().export()

    saved = (
        flag("active"),
        flag("grows"),
        number("patience", within=(0.0, None)),
        count("decisions"),
        count("since", high="rounds"),
        flag("timed"),
        number("now"),
        number("stepped"),
        count("calls"),
        listed("first", np.int64, None, within=("since", "rounds")),
        listed("start", np.float64, "first"),
        listed("end", np.float64, "first"),
        listed("exposed", np.float64, "first", within=(0.0, 1.0)),
        Value(
            "delays",
            lambda delays: np.array(delays, dtype=np.int64).reshape(-1, CLASSES),
            lambda state, key, _, found: list(state.array(key, np.int64, (found("first"), CLASSES))),
        ),
        Value("arms", lambda arms: _joined(arms), lambda state, key, *_: state.array(key, np.int64, (None,))),
        Value("counts", lambda counts: _joined(counts), lambda state, key, *_: state.array(key, np.int64, (None,))),
        array("complete", within=(0.0, 2 * _DELAYS_KEPT)),
        array("arrived", within=(0.0, 1.0)),
        array("owed", within=(-FARTHEST, FARTHEST)),
        Value(
            "told",
            lambda told: np.array(told, dtype=np.float64).reshape(-1, 2),
            lambda state, key, *_: [(int(a), r) for a, r in state.array(key, np.float64, (None, 2)).tolist()],
        ),
        array("closed", np.int64, (None, 2)),
    )

    def _check_state(self, *, rounds: int = 0, **known: Any) -> None:
        offered = len(self._owed)
        told = [arm for arm, _ in self._told]
        states.check(not self.active or self.patience > 0.0, "patience")
        states.check(all(0 <= arm < offered for arm in told), "told")
        states.check(all(abs(reward) <= 1.0 + 1e-9 for _, reward in self._told), "told")
        states.check(all((np.diff(part) >= 0).all() for part in (self._first, self._start, self._end)), "cohorts")
        states.check(all(start <= end for start, end in zip(self._start, self._end, strict=True)), "cohorts")
        states.check(bool((self._closed[:, 1] < offered).all() and (self._closed[:, 0] < rounds).all()), "closed")
        states.check(all(bool((part >= 0).all()) for part in self._delays), "delays")
        states.check(bool((np.diff(self._arrived) >= 0.0).all()), "arrived")
        arms, counts = _apart(self._arms), _apart(self._counts)
        fine = len(arms) == len(counts) == len(self._first) and [len(a) for a in arms] == [len(n) for n in counts]
        states.check(fine and all(bool(((a >= 0) & (a < offered)).all()) for a in arms), "arms of cohorts")
        states.check(all(bool((n > 0).all()) for n in counts), "plays of cohorts")
        self._arms, self._counts = arms, counts
        self._read_newest()
        states.check(sum(int(n.sum()) for n in counts) <= self.decisions <= rounds, "decisions")


def _joined(parts: list[Ints]) -> Ints:
    """Arrays one after the other, each before its numbers its length."""
    return np.array([value for part in parts for value in (len(part), *part.tolist())], dtype=np.int64)


def _apart(joined: Any) -> list[Ints]:
    """Inverse of `_joined`."""
    parts, at = [], 0
    while at < len(joined):
        stop = at + 1 + int(joined[at])
        states.check(at < stop <= len(joined), "cohorts")
        parts.append(np.array(joined[at + 1 : stop], dtype=np.int64))
        at = stop
    return parts
