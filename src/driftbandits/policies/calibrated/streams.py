"""The change detector of `CalibratedOPKB`: what is left of rewards when their law's baseline is taken off.

Every law of the epoch has a stream: the residuals e = y - b(x) of the rounds that followed it, in its own block and in
replays, in the order told. Baseline and law are fixed before the first of them, x is drawn afresh, and which rounds
follow the law is decided before they are played: as long as nothing changes, a stream is a sequence of independent
draws of one distribution, whatever noise, kernel and policy. So its ranks are a test (see `driftbandits.conformal`):

score       which rounds            sees
|e|         all                     a function that is another
e           all                     a level that moved
|e|, e      those of a cell         a change of few arms, and of arms that are seldom played

Cells part the arms into groups of neighbours. Every martingale has its own share of `false_alarm` and fires alone when
its evidence reaches 1 / share, so that the probability that any ever fires is at most the sum of the shares. (Their
average would not do: each is a martingale in the filtration of its own ranks only.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from driftbandits.conformal import BETS, ConformalMartingale
from driftbandits.policies import state as states
from driftbandits.policies.detectors import Found
from driftbandits.policies.epoch import Epoch, OpenReplay
from driftbandits.seeding import generator_from_state, generator_state
from driftbandits.types import Floats, Ints, Verdict

_CELL = 4.0  # directions of the kernel a cell


class Stream:
    """The martingales of one law: `everywhere` and one pair a cell, each of |e| and of e."""

    def __init__(self, cells: Ints, false_alarm: float) -> None:
        self.cells = cells
        number = int(cells.max()) + 1
        self.pairs = [_Pair() for _ in range(number + 1)]  # everywhere, then cell by cell
        self._of = (cells + 1).tolist()
        # half of the law's share for everywhere, half for the cells, and half of each for either score
        self._enough = [4.0 / false_alarm, *([4.0 * number / false_alarm] * number)]

    def see(self, arm: int, value: float, u: float, round_: int) -> tuple[int, bool] | None:
        """Rank a residual; the place and the score (signed or not) of a martingale that fires."""
        for place in (0, self._of[arm]):
            pair, enough = self.pairs[place], self._enough[place]
            if pair.size.see(abs(value), u, round_) >= enough:
                return place, False
            if pair.signed.see(value, u, round_) >= enough:
                return place, True
        return None

    def threshold(self, place: int) -> float:
        """Evidence at which the martingales of a place fire."""
        return self._enough[place]


class _Pair:
    def __init__(self) -> None:
        self.size = ConformalMartingale()
        self.signed = ConformalMartingale(two_sided=True)


class Streams:
    """The detector: a stream a law, law m with false_alarm / ((m + 1) (m + 2)) of the probability."""

    prompt = True

    def __init__(self, false_alarm: float, generator: np.random.Generator) -> None:
        self.cells: Ints = np.zeros(1, dtype=np.int64)  # of the laws to come
        self._false_alarm = false_alarm
        self._generator = generator
        self._streams: list[Stream] = []
        self._fired: tuple[int, int, bool] | None = None

    @property
    def fired(self) -> bool:
        """Whether a martingale has enough evidence."""
        return self._fired is not None

    def begin(self) -> None:
        """A new epoch begins, with no stream."""
        self._streams = []
        self._fired = None

    def open(self, epoch: Epoch) -> None:
        """A law begins."""
        self._streams.append(self._stream(self.cells))

    def _stream(self, cells: Ints) -> Stream:
        m = len(self._streams)
        return Stream(cells, self._false_alarm / ((m + 1) * (m + 2)))

    def see(self, law: int, arm: int, value: float, round_: int) -> None:
        """A residual of the epoch; once something has fired, the rest belongs to the next."""
        if self._fired is None:
            u = float(self._generator.random()) or 0.5  # 0 is not inside (0, 1)
            firing = self._streams[law].see(arm, value, u, round_)
            if firing is not None:
                self._fired = (law, *firing)

    def verdict(self, epoch: Epoch, ended: Sequence[OpenReplay]) -> Found | None:
        """What fired, with its evidence and the round at which the change seems to have been."""
        if self._fired is None:
            return None
        law, place, signed = self._fired
        stream = self._streams[law]
        pair = stream.pairs[place]
        martingale = pair.signed if signed else pair.size
        arms = np.arange(len(stream.cells)) if place == 0 else np.flatnonzero(stream.cells == place - 1)
        where = "all arms" if place == 0 else f"cell {place - 1} ({len(arms)} arms)"
        return Found(
            first_round=martingale.start(),
            compared_with=law,
            verdict=Verdict(martingale.evidence, stream.threshold(place), tuple(arms.tolist())),
            before=np.zeros(len(arms)),
            after=np.zeros(len(arms)),
            stream=f"{'signed' if signed else 'absolute'} residuals of law {law}, {where}",
        )

    # --- state --------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        return {
            "cells": self.cells.copy(),
            "generator": generator_state(self._generator),
            "fired": [] if self._fired is None else [*map(int, self._fired)],
            "streams": [
                {
                    "cells": stream.cells.copy(),
                    "pairs": [{"size": p.size.export(), "signed": p.signed.export()} for p in stream.pairs],
                }
                for stream in self._streams
            ],
        }

    def load(self, state: states.Reader, epoch: Epoch) -> None:
        """Inverse of `export`."""
        size = len(epoch.laws[0])
        self.cells = _read_cells(state, size)
        self._generator = generator_from_state(state.raw("generator"))
        self.begin()
        for item in state.readers("streams"):
            stream = self._stream(_read_cells(item, size))
            kept = list(item.readers("pairs"))
            states.check(len(kept) == len(stream.pairs), "number of cells")
            for pair, saved in zip(stream.pairs, kept, strict=True):
                _load(pair.size, saved.reader("size"))
                _load(pair.signed, saved.reader("signed"))
            self._streams.append(stream)
        states.check(len(self._streams) == len(epoch.laws), "number of streams")
        fired = state.raw("fired")
        if fired:
            law, place, signed = fired
            states.check(0 <= law < len(self._streams) and 0 <= place < len(self._streams[law].pairs), "stream fired")
            self._fired = (law, place, bool(signed))


def part_arms(features: Floats, dimension: float) -> Ints:
    """Cells of neighbours, about `dimension` / 4 of them, as the number of its cell for every arm, shape (N,).

    Centres are taken one by one, each the arm farthest from all before; an arm belongs to the nearest.
    """
    number = min(max(1, math.ceil(dimension / _CELL)), len(features))
    cells: Ints = np.zeros(len(features), dtype=np.int64)
    nearest = np.square(features - features[0]).sum(axis=1)
    for cell in range(1, number):
        centre = int(nearest.argmax())
        if nearest[centre] <= 0.0:  # all arms are copies of centres
            break
        distance = np.square(features - features[centre]).sum(axis=1)
        closer = distance < nearest
        cells[closer] = cell
        nearest[closer] = distance[closer]
    return cells


def _read_cells(state: states.Reader, size: int) -> Ints:
    cells: Ints = state.array("cells", np.int64, (size,))
    states.check(bool((cells >= 0).all() and (cells < size).all()), "cells")
    return cells


def _load(martingale: ConformalMartingale, state: states.Reader) -> None:
    scores = state.array("scores", np.float64, (None,))
    ranks = state.array("ranks", np.float64, (len(scores),))
    rounds = state.array("rounds", np.int64, (len(scores),))
    wealth = state.array("wealth", np.float64, (len(BETS) * (2 if martingale.two_sided else 1),))
    states.check(bool((np.diff(scores) >= 0).all()), "residuals")
    states.check(bool((ranks > 0).all() and (ranks < 1).all() and (wealth >= 0).all()), "ranks and their evidence")
    martingale.load(scores, ranks, rounds.tolist(), wealth)
