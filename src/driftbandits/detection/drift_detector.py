"""A change detector for any stream of independent numbers, with a bound on false alarms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits._util.checks import as_float, check_probability
from driftbandits._util.seeding import check_seed, generator_from_state, generator_state, stream
from driftbandits.detection.ranks import Ranked
from driftbandits.detection.wagers import WORDS, Wagers
from driftbandits.errors import InputError, StateError
from driftbandits.text import shown

FORMAT = 4  # 3 had other bets
EXACT = 10_000  # numbers that are ranked exactly
_DRAWN_AT_ONCE = 512  # uniforms
_PLAIN = (int, bool, np.float64)  # kinds that need no second look


class DriftDetector:
    """Detects changes in a stream of numbers of any distribution.

    A conformal test martingale. As long as numbers are independent draws from one distribution, or exchangeable, the
    smoothed rank of each among those before is uniform and independent of the others, and bets on ranks gain nothing
    on average. It alarms when `evidence` reaches 1 / `false_alarm`, which by Ville's inequality has probability
    `false_alarm` at most **in a stream of any length**; nothing is assumed of the numbers, so there is no assumption to
    violate. After an alarm it starts anew at the next update, with the same promise.

    It sees rises and falls, and numbers that spread or gather. It is called as river's detectors are: `update(x)`, then
    `drift_detected`. A number takes a few microseconds and memory stays below 2 MB however long the stream: the first
    10,000 numbers are ranked exactly, later ones to within a fifth of their distance from the ends (see
    `detection/ranks.py`; the promise stays exact).

    Bad at: dependent numbers (a slow wave counts as a change); a change within the first dozen numbers,
    where no rank is extreme; rare events, where only their frequency tells (a rate of 0.02 that trebles is mostly
    missed in a thousand numbers).

    Parameters
    ----------
    false_alarm : probability that it ever alarms although nothing changes, from start or alarm on
    seed : of the uniforms that break ties and smooth ranks; None draws one, kept as `seed`

    Raises
    ------
    InputError
        For a probability outside (0, 1), and a seed that is none.

    >>> from random import Random
    >>> draw, detector = Random(0), DriftDetector(false_alarm=0.01)
    >>> for t in range(400):
    ...     if detector.update(draw.gauss(0.0 if t < 300 else 2.0, 1.0)):
    ...         print(f"alarm at {t}: numbers {detector.kind} since about {detector.since}")
    alarm at 321: numbers rose since about 299
    """

    def __init__(self, false_alarm: float = 0.01, seed: int | None = 0) -> None:
        self.false_alarm = check_probability("false_alarm", false_alarm)
        self.seed = check_seed(seed)
        self._threshold = 1.0 / self.false_alarm
        self._generator = stream(self.seed, "drift detector")
        self._updates = 0
        self._alarms = 0
        self._since: int | None = None
        self._kind = ""
        self._drift_detected = False
        self._draw()
        self._begin()

    def _draw(self) -> None:
        """Uniforms for the next numbers, drawn in blocks: one by one they would cost as much as all the rest."""
        self._before_drawing = generator_state(self._generator)
        self._uniforms: list[float] = (1.0 - self._generator.random(_DRAWN_AT_ONCE)).tolist()  # none is 0
        self._used = 0

    def _begin(self) -> None:
        self._start = self._updates
        self._ranks = Ranked(exact=EXACT)
        self._wagers = Wagers()

    def update(self, x: float) -> bool:
        """Take in the next number.

        Parameters
        ----------
        x : a finite number

        Returns
        -------
        bool
            True if with it the stream is found to have changed.

        Raises
        ------
        InputError
            For what is no finite number; leave missing ones out.
        """
        number = x if type(x) is float else float(x) if type(x) in _PLAIN else _number(x)
        if not math.isfinite(number):
            raise InputError(f"a drift detector takes finite numbers, got {shown(x)}; leave missing ones out")
        if self._drift_detected:
            self._drift_detected = False
            self._begin()
        used = self._used
        if used == _DRAWN_AT_ONCE:
            self._draw()
            used = 0
        self._used = used + 1
        rank = self._ranks.see(number, self._uniforms[used])
        self._updates += 1
        if self._wagers.see(rank) < self._threshold:
            return False
        self._drift_detected = True
        self._alarms += 1
        self._since, self._kind = self._start + self._wagers.begun, self._wagers.kind
        return True

    @property
    def drift_detected(self) -> bool:
        """Whether the last update was an alarm."""
        return self._drift_detected

    @property
    def since(self) -> int | None:
        """The update, counted from 0, at which the change last found seems to have come; None before any alarm."""
        return self._since

    @property
    def kind(self) -> str:
        """What the numbers did at the last alarm: "rose", "fell", "spread" or "gathered"; empty before any."""
        return self._kind

    @property
    def evidence(self) -> float:
        """Evidence for a change, as odds: at most 1 on average as long as nothing changes."""
        return self._wagers.evidence

    @property
    def updates(self) -> int:
        """Numbers taken in so far."""
        return self._updates

    @property
    def alarms(self) -> int:
        """Alarms so far."""
        return self._alarms

    def clone(self) -> DriftDetector:
        """A new detector with the same settings, as river's trees and forests require.

        Returns
        -------
        DriftDetector
        """
        return DriftDetector(self.false_alarm, seed=self.seed)

    def __repr__(self) -> str:
        """Settings, and the numbers seen so far."""
        found = f", {self._alarms} alarms" if self._alarms else ""
        return f"DriftDetector(false_alarm={self.false_alarm:g}, seed={self.seed}; {self._updates} updates{found})"

    def state_dict(self) -> dict[str, Any]:
        """Everything that is needed to go on.

        Returns
        -------
        dict
            JSON values and arrays; `restore` goes on from it bit for bit.
        """
        return {
            "format": FORMAT,
            "false_alarm": self.false_alarm,
            "seed": str(self.seed),  # up to 128 bits
            "generator": self._before_drawing,
            "updates": self._updates,
            "alarms": self._alarms,
            "start": self._start,
            "since": -1 if self._since is None else self._since,
            "kind": self._kind,
            "drift_detected": self._drift_detected,
            "ranks": self._ranks.export(),
            "wagers": self._wagers.export(),
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> DriftDetector:
        """Restore a detector from its `state_dict`.

        Parameters
        ----------
        state : what `state_dict` gave

        Returns
        -------
        DriftDetector

        Raises
        ------
        StateError
            If anything in the state does not fit.

        >>> detector = DriftDetector()
        >>> _ = [detector.update(x) for x in (0.3, 0.1, 0.4)]
        >>> again = DriftDetector.restore(detector.state_dict())
        >>> again.update(0.2) == detector.update(0.2) and again.evidence == detector.evidence
        True
        """
        reader = states.Reader(state)
        written = reader.integer("format")
        if written != FORMAT:
            raise StateError(f"the state of a drift detector has format {written}, this version reads {FORMAT}")
        detector = cls(check_probability("state.false_alarm", reader.number("false_alarm")), seed=_seed(reader))
        detector._import(reader)
        return detector

    def _import(self, reader: states.Reader) -> None:
        self._generator = generator_from_state(reader.raw("generator"))
        self._draw()
        self._updates = reader.integer("updates")
        self._used = (self._updates - 1) % _DRAWN_AT_ONCE + 1 if self._updates else 0
        self._alarms = reader.integer("alarms", high=self._updates)
        self._start = reader.integer("start", high=self._updates)
        since = reader.integer("since", low=-1, high=max(self._updates - 1, -1))
        self._since = None if since < 0 else since
        self._kind = reader.text("kind")
        self._drift_detected = reader.flag("drift_detected")
        self._ranks.load(reader.reader("ranks"), most=self._updates, largest=math.inf)
        self._wagers.load(reader.reader("wagers"))
        self._check_parts()

    def _check_parts(self) -> None:
        """Refuse parts that cannot belong together."""
        numbers = self._updates - self._start
        states.check(self._ranks.count == numbers == self._wagers.numbers, "numbers since the last start")
        found = self._alarms > 0
        states.check((self._since is not None) == found, "time of the last change")
        states.check(self._kind in (WORDS if found else ("",)), "kind of the last change")
        alarm = self._wagers.evidence >= self._threshold
        states.check(self._drift_detected == alarm, "alarm")


def _number(x: Any) -> float:
    try:
        return float(as_float(x))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"a drift detector takes numbers, got {shown(x)} of type {type(x).__name__}") from None


def _seed(reader: states.Reader) -> int:
    text = reader.text("seed")
    if not (text.isascii() and text.isdecimal() and len(text) <= 39):
        raise StateError(f"state.seed must be digits, got {shown(text)}")
    return check_seed(int(text))
