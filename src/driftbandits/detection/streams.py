"""A detector by ranks: conformal martingales of laws, of cells of neighbouring arms, and of arms.

Conformal test martingales: evidence that a stream of numbers has changed, whatever their distribution.

If the numbers are independent draws from one law, the smoothed rank of each among those before it is uniform on
(0, 1), and ranks are independent of each other (`driftbandits.detection.ranks`). A bet on ranks whose factor is 1 on
average over (0, 1) then multiplies wealth without gain (`driftbandits.detection.bets`): wealth is a martingale, and by
Ville's inequality it ever reaches 1 / a with probability a at most. Nothing is assumed of the law, so there is no
assumption to violate. Time per number and memory are bounded, however long the stream.

Every law of the epoch has a stream: the residuals e = y - b(x) of the rounds that followed it, in its own block and in
replays, in the order told. Baseline and law are fixed before the first of them, x is drawn afresh, and which rounds
follow the law is decided before they are played: as long as nothing changes, a stream is a sequence of independent
draws of one distribution, whatever noise, kernel and policy. So is the part of it that fell on a cell, a fixed set of
arms; and so are the rewards of a single arm, whichever law drew it: the policy only decides when its next one comes.
So their ranks are a test:

numbers   of                            sees
|e|       a law, a law in a cell        a function that is another, there
e         a law, a law in a cell        rewards that moved up or down, there
y         an arm                        a single arm that changed, however seldom it is played

Every martingale has its own share of `false_alarm` and fires alone when its evidence reaches 1 / share, so that the
probability that any ever fires is at most the sum of the shares. (Their average would not do: each is a martingale in
the filtration of its own ranks only.)

Ranks are taken in the order in which rewards are learned. If how late a reward comes depends on itself or on its arm,
the order told is not one of independent draws; the order asked is (`Policy(order="asked")`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr

from driftbandits import state as states
from driftbandits._util.linalg import SLACK, first_largest, is_canonical
from driftbandits._util.seeding import generator_from_state, generator_state, same_stream
from driftbandits.detection.bets import POWERS, Bets, CutBets, OrderBets, PowerBets, stake_after
from driftbandits.detection.detector import LATEST, EpochSeen, Finding, ReplaySeen, Verdict
from driftbandits.detection.ranks import Ranked, Uniforms
from driftbandits.state.reader import ROUNDING
from driftbandits.types import Floats, Ints

SCORE_DIGITS = 9  # of residuals: equal ones are ties on every machine, whatever their last digits


class ConformalMartingale:
    """A stream with the evidence that it has changed, to larger numbers or, if `two_sided`, to smaller ones.

    `ordered` adds bets on order, and `cut` bets on shares, each with as much wealth as the powers have. `uniforms`
    draws what breaks ties among the first numbers once there are many; by default always the same.

    >>> from random import Random
    >>> draw = Random(0)
    >>> martingale = ConformalMartingale()
    >>> for t in range(200):
    ...     evidence = martingale.see(draw.gauss(0, 1), draw.random(), t)
    >>> evidence < 10  # nothing has changed
    True
    >>> for t in range(200, 220):
    ...     evidence = martingale.see(draw.gauss(4, 1), draw.random(), t)
    >>> evidence > 1e6, martingale.start()
    (True, 200)
    """

    def __init__(
        self, *, two_sided: bool = False, ordered: bool = False, cut: bool = False, uniforms: Uniforms | None = None
    ) -> None:
        self.numbers = Ranked() if uniforms is None else Ranked(uniforms)
        self.bets: dict[str, Bets] = {"powers": PowerBets(two_sided=two_sided)}
        if ordered:
            self.bets["orders"] = OrderBets()
        if cut:
            self.bets["cuts"] = CutBets()
        self._all = tuple(self.bets.values())
        self._share = 1.0 / len(self._all)

    def see(self, score: float, u: float, round_: int) -> float:
        """Take in the number of round `round_`, with `u` drawn from (0, 1); the evidence there is now."""
        before = self.numbers.count
        rank = self.numbers.see(score, u)
        evidence = 0.0
        for bets in self._all:
            evidence += bets.see(rank, before, round_)
        return evidence * self._share

    @property
    def evidence(self) -> float:
        """1 on average as long as nothing changes."""
        evidence = 0.0
        for bets in self._all:  # as in `see`: from Python 3.12 on, `sum` rounds differently
            evidence += bets.evidence
        return evidence * self._share

    def start(self) -> int:
        """Round at which the change seems to have come, by the bets that have won most."""
        return max(self._all, key=lambda bets: bets.evidence).start()

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        return {"numbers": self.numbers.export(), **{name: bets.export() for name, bets in self.bets.items()}}

    def load(self, state: states.Reader, *, rounds: int, largest: float) -> None:
        """Inverse of `export`, after `rounds` rounds, of numbers of at most `largest` in size."""
        self.numbers.load(state.reader("numbers"), most=rounds, largest=largest)
        with np.errstate(all="ignore"):
            for name, bets in self.bets.items():
                bets.load(state.reader(name), numbers=self.numbers.count, rounds=rounds)
            states.check(math.isfinite(self.evidence), "evidence of a stream")


_DIRECTIONS_PER_CELL = 4.0  # of the kernel
_ROWS_AT_ONCE = 1024
ABSOLUTE, SIGNED, REWARDS = "absolute residuals", "signed residuals", "rewards"


@dataclass(frozen=True)
class Place:
    """Where a martingale is: at a law, at a cell of a law, or (`law` -1) at an arm."""

    law: int
    cell: int = -1
    arm: int = -1
    score: str = REWARDS

    def __str__(self) -> str:
        if self.law < 0:
            return f"{self.score} of arm {self.arm}"
        where = "all arms" if self.cell < 0 else f"cell {self.cell}"
        return f"{self.score} of law {self.law}, {where}"


class Stream:
    """The martingales of one law: over all arms and cell by cell, each of |e| and of e."""

    def __init__(self, cells: Ints, share: float, uniforms: Uniforms | None = None) -> None:
        self.cells = cells
        number = int(cells.max()) + 1
        self.pairs = [
            (ConformalMartingale(uniforms=uniforms), ConformalMartingale(two_sided=True, uniforms=uniforms))
            for _ in range(number + 1)
        ]
        self._cell_of = cells.tolist()
        # half of the share for all arms together, half for the cells, and half of each for either score
        self.enough = [4.0 / share, *([4.0 * number / share] * number)]

    def see(self, arm: int, value: float, u: float, round_: int) -> tuple[int, str] | None:
        """Rank a residual; cell (-1: all arms) and score of a martingale that fires."""
        for cell in (-1, self._cell_of[arm]):
            absolute, signed = self.pairs[cell + 1]
            enough = self.enough[cell + 1]
            if absolute.see(abs(value), u, round_) >= enough:
                return cell, ABSOLUTE
            if signed.see(value, u, round_) >= enough:
                return cell, SIGNED
        return None


class Rewards(Protocol):
    """Rewards of some rounds, for every arm: how many and their sum, each (N,)."""

    @property
    def counts(self) -> Floats:
        """How many."""

    @property
    def sums(self) -> Floats:
        """Their sum."""


class Belief(Protocol):
    """Who knows the rewards of the epoch, and can say what moved."""

    def since(self, first_round: int) -> Rewards:
        """Rewards of the rounds from `first_round` on."""

    def mean_before(self, first_round: int) -> Floats:
        """What the rounds before `first_round` alone said of every arm's reward, (N,)."""


class Streams:
    """Half of `false_alarm` for the laws, of which law m has 1 / ((m + 1) (m + 2)), half for the arms.

    `cells` gives the cells of a law that begins: the number of its cell for every arm, shape (N,).
    """

    prompt = True

    def __init__(
        self,
        false_alarm: float,
        arms: int,
        generator: np.random.Generator,
        *,
        belief: Belief,
        cells: Callable[[], Ints],
    ) -> None:
        self._belief = belief
        self._cells = cells
        self._laws_share = 0.5 * false_alarm
        self._arm_enough = arms / (0.5 * false_alarm)
        self._generator = generator
        self.begin()

    def begin(self) -> None:
        """A new epoch begins: nothing is known of its laws and arms."""
        self._streams: list[Stream] = []
        self._arms: dict[int, ConformalMartingale] = {}
        self._fired: Place | None = None

    def draw_as(self, other: Streams) -> None:
        """Smooth ranks by the numbers that `other` would draw next."""
        self._generator = same_stream(other._generator)

    @property
    def fired(self) -> bool:
        """Whether a martingale has enough evidence."""
        return self._fired is not None

    def open(self, epoch: EpochSeen, first_round: int) -> None:
        """A law begins."""
        self._streams.append(self._stream(self._cells()))

    def _stream(self, cells: Ints) -> Stream:
        m = len(self._streams)
        return Stream(cells, self._laws_share / ((m + 1) * (m + 2)), self._uniforms)

    def _of_arm(self) -> ConformalMartingale:
        return ConformalMartingale(two_sided=True, ordered=True, cut=True, uniforms=self._uniforms)

    def _uniforms(self, count: int) -> Floats:
        return self._generator.random(count)

    def nats_to_fire(self, law: int, rounds: int) -> float:
        """What one bet of |e| over all arms, begun after so many rounds of a law, must win."""
        enough = 4.0 * (law + 1) * (law + 2) / self._laws_share
        return math.log(enough * len(POWERS) / stake_after(rounds))

    def see(self, law: int, arm: int, reward: float, value: float, round_: int) -> None:
        """A reward of the epoch and its residual; once something has fired, the rest belongs to the next."""
        value = round(value, SCORE_DIGITS)
        if self._fired is None:
            u = self._uniform()
            firing = self._streams[law].see(arm, value, u, round_)
            if firing is not None:
                self._fired = Place(law, firing[0], score=firing[1])
            else:
                self._see_arm(arm, reward, u, round_)

    def see_apart(self, arm: int, reward: float, round_: int) -> None:
        """A reward of an arm that no law of the epoch has drawn."""
        if self._fired is None:
            self._see_arm(arm, reward, self._uniform(), round_)

    def _see_arm(self, arm: int, reward: float, u: float, round_: int) -> None:
        if arm not in self._arms:
            self._arms[arm] = self._of_arm()
        if self._arms[arm].see(reward, u, round_) >= self._arm_enough:
            self._fired = Place(-1, arm=arm)

    def _uniform(self) -> float:
        return float(self._generator.random()) or 0.5  # 0 is not inside (0, 1)

    def verdict(self, epoch: EpochSeen, ended: Sequence[ReplaySeen]) -> Finding | None:
        """What fired, with its evidence and the round at which the change seems to have been."""
        place = self._fired
        if place is None:
            return None
        martingale = self._at(place)
        if place.law < 0:
            arms, enough = np.array([place.arm]), self._arm_enough
        else:
            stream = self._streams[place.law]
            arms = np.arange(len(stream.cells)) if place.cell < 0 else np.flatnonzero(stream.cells == place.cell)
            enough = stream.enough[place.cell + 1]
        verdict = Verdict(martingale.evidence, enough, tuple(arms.tolist()))
        return self._finding(martingale.start(), max(place.law, 0), verdict, str(place))

    def _finding(self, first_round: int, compared_with: int, verdict: Verdict, stream: str) -> Finding:
        """Of the arms watched, those played since: what was believed of them before, and the mean of their rewards."""
        recent = self._belief.since(first_round)
        arms: Ints = np.array(verdict.arms, dtype=np.int64)
        arms = arms[recent.counts[arms] > 0]
        return Finding(
            first_round=first_round,
            compared_with=compared_with,
            verdict=Verdict(verdict.statistic, verdict.threshold, tuple(arms.tolist())),
            before=self._belief.mean_before(first_round)[arms],
            after=recent.sums[arms] / recent.counts[arms],
            stream=stream,
            in_rewards=False,
        )

    def _at(self, place: Place) -> ConformalMartingale:
        if place.law < 0:
            return self._arms[place.arm]
        absolute, signed = self._streams[place.law].pairs[place.cell + 1]
        return signed if place.score == SIGNED else absolute

    # --- state --------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        place = self._fired
        return {
            "generator": generator_state(self._generator),
            "fired": [] if place is None else [place.law, place.cell, place.arm, place.score],
            "arms": [{"arm": arm, **martingale.export()} for arm, martingale in self._arms.items()],
            "streams": [
                {"cells": stream.cells.copy(), "pairs": [[one.export(), two.export()] for one, two in stream.pairs]}
                for stream in self._streams
            ],
        }

    def load(self, state: states.Reader, epoch: EpochSeen, under_way: Sequence[ReplaySeen], *, rounds: int) -> None:
        """Inverse of `export`."""
        size = len(epoch.laws[0])
        self._generator = generator_from_state(state.raw("generator"))
        self.begin()
        for item in state.readers("arms"):
            martingale = self._arms[item.integer("arm", high=size - 1)] = self._of_arm()
            martingale.load(item, rounds=rounds, largest=1.0)
        largest = [1.0 + (0.0 if b is None else float(np.abs(b).max())) for b in epoch.baselines]
        streams = list(state.readers("streams"))
        states.check(len(streams) == len(epoch.laws), "number of streams")
        for item, most in zip(streams, largest, strict=True):
            stream = self._stream(_read_cells(item, size))
            pairs = item.raw("pairs")
            states.check(isinstance(pairs, list) and len(pairs) == len(stream.pairs), "number of cells")
            for pair, saved in zip(stream.pairs, pairs, strict=True):
                states.check(isinstance(saved, list) and len(saved) == 2, "martingales of a cell")
                for martingale, values in zip(pair, saved, strict=True):
                    reader = states.Reader(values, "state.engine.detector.streams.pairs")
                    martingale.load(reader, rounds=rounds, largest=most)
            self._streams.append(stream)
        self._fired = self._read_place(state.raw("fired"))
        self._check_evidence()

    def _check_evidence(self) -> None:
        """Refuse evidence that would have fired and has not, or has fired and is too little."""
        pairs = [(two, enough) for s in self._streams for two, enough in zip(s.pairs, s.enough, strict=True)]
        watched = [(one, enough) for two, enough in pairs for one in two]
        watched += [(one, self._arm_enough) for one in self._arms.values()]
        fired = None if self._fired is None else self._at(self._fired)
        for one, enough in watched:
            share = one.evidence / enough
            states.check(share >= 1.0 - ROUNDING if one is fired else share <= 1.0 + ROUNDING, "evidence")
        if fired is None:
            for stream in self._streams:
                (whole, signed), *cells = stream.pairs
                numbers = [pair[0].numbers.count for pair in cells]
                states.check(whole.numbers.count == signed.numbers.count == sum(numbers), "residuals")

    def _read_place(self, saved: Any) -> Place | None:
        states.check(isinstance(saved, list) and len(saved) in (0, 4), "stream that fired")
        if not saved:
            return None
        law, cell, arm, score = saved
        states.check(all(isinstance(number, int) for number in (law, cell, arm)), "stream that fired")
        states.check(score in (ABSOLUTE, SIGNED, REWARDS), "score that fired")
        if law == -1:
            states.check(arm in self._arms, "arm that fired")
        else:
            states.check(law in range(len(self._streams)), "law that fired")
            states.check(cell + 1 in range(len(self._streams[law].pairs)), "cell that fired")
        return Place(law, cell, arm, score)


def part_arms(features: Floats, dimension: float) -> Ints:
    """Cells of neighbours, about `dimension` / 4 of them, as the number of its cell for every arm, shape (N,).

    Centres are taken one by one, each the arm farthest from all before; an arm belongs to the nearest.

    >>> part_arms(np.array([[0.0], [0.1], [1.0], [0.9]]), 8.0).tolist()
    [0, 0, 1, 1]
    """
    number = min(max(1, math.ceil(dimension / _DIRECTIONS_PER_CELL)), len(features))
    cells: Ints = np.zeros(len(features), dtype=np.int64)
    nearest = _distances(features, 0)
    slack = SLACK * float(nearest.max()) if is_canonical() else 0.0
    for cell in range(1, number):
        centre = first_largest(nearest, slack=slack)
        if nearest[centre] <= slack:  # all arms are copies of centres
            break
        distance = _distances(features, centre)
        closer = distance < nearest - slack
        cells[closer] = cell
        nearest[closer] = distance[closer]
    return cells


def _distances(features: Floats, centre: int) -> Floats:
    """Squared distances of all arms from one, shape (N,), in pieces that stay in the cache."""
    distances = np.empty(len(features))
    room = np.empty((min(_ROWS_AT_ONCE, len(features)), features.shape[1]))  # one for all: it takes long to come by
    for start in range(0, len(features), _ROWS_AT_ONCE):
        piece = features[start : start + _ROWS_AT_ONCE]
        away = np.subtract(piece, features[centre], out=room[: len(piece)])
        np.square(away, out=away).sum(axis=1, out=distances[start : start + _ROWS_AT_ONCE])
    return distances


def _read_cells(state: states.Reader, size: int) -> Ints:
    cells: Ints = state.array("cells", np.int64, (size,))
    states.check(bool((cells >= 0).all() and (cells < size).all()), "cells")
    return cells


_NODES = 64  # of the quadrature over the noise


def rounds_by_ranks(size: float, nats_to_fire: Callable[[int], float]) -> int:
    """Least rounds before and after a change of `size` standard deviations of the noise, over its time and the bets.

    `nats_to_fire` gives the evidence that a bet begun after so many rounds needs.
    """
    draws, likely = np.polynomial.hermite_e.hermegauss(_NODES)  # of the noise, and how likely each is
    likely /= likely.sum()
    sides = 2.0 * ndtr(-np.abs(draws + size)), ndtr(-(draws + size))
    needed = LATEST + 1
    for before in np.unique(np.geomspace(8, 10**9, 300).astype(np.int64)).tolist():
        if before >= needed:
            break
        nats = nats_to_fire(before)
        for tails, more in zip(sides, (0.0, math.log(2.0)), strict=True):  # of e, large and small ones are bet on
            log_ranks = float(likely @ np.log((before * tails + 0.5) / (before + 1)))
            for power in POWERS:
                gain = math.log(power) + (power - 1.0) * log_ranks
                if gain > 0:
                    needed = min(needed, before + math.ceil((nats + more) / gain))
    return needed
