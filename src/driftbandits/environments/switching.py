"""Worlds that jump: any functions in pieces, rewards drawn from a kernel by a seed, and problems of SMPyBandits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from driftbandits._util.checks import check_count, check_positive, check_word
from driftbandits._util.seeding import check_seed, stream
from driftbandits.arms.arm_set import ArmSet
from driftbandits.environments.base import Environment, Shape, check_arm_set, check_array, check_finite, check_room
from driftbandits.environments.noise import PAPER_NOISE, BernoulliNoise, Noise, usual_noise
from driftbandits.environments.reward_functions import SphereWorld
from driftbandits.environments.truth import Piece
from driftbandits.errors import InputError
from driftbandits.text import counted
from driftbandits.types import Floats, read_only


class Piecewise(Environment):
    """Mean rewards constant between switches: r_t = values[s] in rounds switches[s-1] <= t < switches[s].

    Parameters
    ----------
    arms : ArmSet of N arms
    values : array, shape (S, N)
        One reward vector per segment.
    horizon : T, the number of rounds
    switches : S - 1 rising rounds in [1, T)
        Each is the first round of the next segment.
    noise : distribution of rewards around their means; default `usual_noise` of them
    name : what tables and plots call this world

    Raises
    ------
    InputError
        For switches that do not rise or lie outside the rounds, and values of another shape.

    Memory is O(S N), and n rounds cost O(n), whatever N.

    >>> arms = ArmSet([[0.0], [1.0]])
    >>> world = Piecewise(arms, [[0.0, 0.5], [0.75, 0.5]], horizon=1_000_000, switches=(300,))
    >>> world.means(299, 2)
    array([[0.  , 0.5 ],
           [0.75, 0.5 ]])
    >>> world.variation
    0.75
    """

    def __init__(
        self,
        arms: ArmSet,
        values: npt.ArrayLike,
        *,
        horizon: int,
        switches: Sequence[int] = (),
        noise: Noise | None = None,
        name: str = "piecewise",
    ) -> None:
        self._switches = check_switches(switches, check_count("horizon", horizon))
        shape = (len(self._switches) + 1, len(check_arm_set(arms)))
        table = check_array(values, "values (one row per segment)", shape=shape)
        self._values = table
        self._best: Floats = read_only(table.max(axis=1))
        self._starts = [0, *self._switches]
        mean_range = (float(table.min()), float(table.max()))
        chosen = usual_noise(*mean_range) if noise is None else noise
        super().__init__(arms, horizon=horizon, noise=chosen, mean_range=mean_range, name=name)

    @property
    def switches(self) -> tuple[int, ...]:
        """First round of each segment but the first."""
        return self._switches

    @property
    def values(self) -> Floats:
        """Reward vector of each segment, shape (S, N), read-only."""
        return self._values

    def means(self, start: int, size: int = 1) -> Floats:
        """Mean rewards, shape (size, N)."""
        self._check_rounds(start, size)
        parts = [
            np.broadcast_to(self._values[s], (stop - first, len(self._arms)))
            for s, first, stop in self._overlaps(start, start + size)
        ]
        return np.concatenate(parts)

    def means_of(self, start: int, arms: npt.ArrayLike) -> Floats:
        """Means of the arms chosen in rounds start, start + 1, ..., shape (n,)."""
        chosen = self._check_choice(start, arms)
        stop = start + len(chosen)
        parts = [
            self._values[s].take(chosen[first - start : last - start]) for s, first, last in self._overlaps(start, stop)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def best(self, start: int, size: int = 1) -> Floats:
        """Largest mean of each round, shape (size,)."""
        self._check_rounds(start, size)
        overlaps = self._overlaps(start, start + size)
        return np.concatenate([np.full(stop - first, self._best[s]) for s, first, stop in overlaps])

    def _overlaps(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        """Segments that meet rounds start to stop - 1, as (segment, first, last + 1); never empty."""
        segment = bisect_right(self._starts, start) - 1
        if segment == len(self._switches) or stop <= self._switches[segment]:
            return [(segment, start, stop)]
        ends = [start, *(end for end in self._switches[segment:] if end < stop), stop]
        return [(segment + i, first, last) for i, (first, last) in enumerate(pairwise(ends))]

    def _pieces(self) -> Iterator[Piece]:
        for start, row in zip(self._starts, self._values, strict=True):
            yield np.array([start]), row[None, :]

    def _settings(self) -> dict[str, Any]:
        return {"values": Shape(self._values.shape), "horizon": self._horizon, "switches": self._switches}


def check_switches(switches: Sequence[int], horizon: int) -> tuple[int, ...]:
    """Give switches as a tuple of strictly rising rounds in [1, horizon)."""
    given = tuple(check_count("a switch", switch) for switch in switches)
    for before, after in pairwise(given):
        if before >= after:
            raise InputError(f"switches must rise, but {before} comes before {after}; sort them and drop repeats")
    if given and given[-1] >= horizon:
        raise InputError(
            f"the switch at round {given[-1]} is outside the horizon of {counted(horizon, 'round')}; drop it"
        )
    return given


class SeededSwitches(Piecewise, SphereWorld):
    """Rewards drawn by a seed, with a change of some kind at each of `switches`."""

    _kind: str
    _seed: int

    def _check_changes(
        self,
        arms: ArmSet,
        *,
        horizon: int,
        switches: Sequence[int],
        kind: str,
        kinds: Sequence[str],
        seed: int | None,
    ) -> tuple[int, ...]:
        """Keep kind and seed, and give the switches, once all of them and the arms are known to be usable."""
        self._kind = check_word("kind", kind, kinds)
        self._seed = check_seed(seed)
        rounds = check_switches(switches, check_count("horizon", horizon))
        check_arm_set(arms)
        return rounds

    @classmethod
    def sample(cls, *, switches: Sequence[int] = (3000,), **settings: Any) -> Self:
        """World on drawn arms, with one switch unless others are given; of `SwitchingKernel` the paper's environment 1.

        `settings` are those of the class, and of `SphereWorld.sample` or, for a linear world, `LinearWorld.sample`.

        Parameters
        ----------
        switches : rounds in which it changes
        settings : those of the class, and of `SphereWorld.sample` or, for a linear world, `LinearWorld.sample`

        Returns
        -------
        a world of this class
        """
        return super().sample(switches=switches, **settings)

    @property
    def seed(self) -> int:
        """Seed of all that is drawn."""
        return self._seed

    def _settings(self) -> dict[str, Any]:
        return SphereWorld._settings(self)


SwitchKind = Literal["flip", "redraw", "partial", "hidden", "level", "recurring", "bump", "upset"]
REGIMES = 3  # that a "recurring" world goes through in turn


class SwitchingKernel(SeededSwitches):
    """Rewards drawn from the kernel, r ~ N(0, K) scaled to max |r| = peak, with changes at `switches`.

    The draw of segment s is Phi z with z standard normal from the stream (seed, "rewards", s). At a switch:

    - "flip": r becomes -r, as in the paper's experiments; the second switch flips back.
    - "redraw": a new, independent draw.
    - "partial": a new draw replaces r on the ceil(share N) arms nearest to a random arm (itself included);
      the others keep their value. The new function is not smooth across the border.
    - "hidden": every best arm keeps its value, and a far arm becomes better, so nothing changes for a player
      who only looks at the best arm. A centre c is drawn from the half of the arms farthest from the best arm
      b; arms nearer to c than to b move to (1 - w) r(x) + w h, with weight w = k(x, c) / k(c, c) cut to [0,
      1], so that c itself has h. To leave room, the first draw has max |r| = peak / 2, and the s-th of n
      switches raises to h = (1 + s / n) peak / 2.
    - "level": all arms move by the same amount, up by peak / 2 and down again in turns, from a first draw with
      max |r| = peak / 2. The order of the arms stays: a change that should cost nothing.
    - "recurring": three draws in turn, so that every regime comes back.
    - "bump": all arms pay 0 but for a bump of this height around one arm, drawn anew each time, as in the hard
      instances of lower bounds.
    - "upset": the best and the worst arm change places, all others stay: what an adversary would do to a player who
      has given up the worst.

    Distances are Euclidean, between points. `offset` is added to all means in the end (0.5 for Bernoulli
    rewards).

    Parameters
    ----------
    arms : ArmSet of N arms
    horizon : T
    switches : rising rounds in [1, T), each the first of a new function; () is a stationary kernel bandit
    kind : what happens at each switch
    seed : of the rewards; None draws one, shown by the repr
    peak : largest |r(x)|
    share : part of the arms a "partial" switch changes, in (0, 1]
    noise : distribution of rewards around their means; by default the paper's
    offset : added to all means
    name : what tables and plots call this world

    Raises
    ------
    InputError
        For switches that do not rise or lie outside the rounds, and numbers out of their ranges.

    Equal to section 6 of the paper with the authors' settings for `sample(seed=...)`. With d = 10 and a
    length scale of 0.2 the kernel matrix is nearly the identity, so that setting hardly tests the kernel; d =
    2 and 3 do.

    >>> world = SwitchingKernel.sample(seed=3, horizon=10_000, switches=(1500, 5000))
    >>> world.change_rounds, world.segments, round(world.variation, 12)
    (array([1500, 5000]), 3, 3.2)
    >>> bool((world.means(0) == world.means(9_999)).all())
    True
    """

    def __init__(
        self,
        arms: ArmSet,
        *,
        horizon: int,
        switches: Sequence[int] = (),
        kind: SwitchKind = "flip",
        seed: int | None = 0,
        noise: Noise = PAPER_NOISE,
        peak: float = 0.8,
        share: float = 0.25,
        offset: float = 0.0,
        name: str = "switching",
    ) -> None:
        rounds = self._check_changes(
            arms, horizon=horizon, switches=switches, kind=kind, kinds=get_args(SwitchKind), seed=seed
        )
        self._peak = check_positive("peak", peak)
        self._share = check_positive("share", share)
        if share > 1:
            raise InputError(f"share must lie in (0, 1], got {share!r}")
        self._offset = check_finite("offset", offset)
        values = _offset_values(self._draw_segments(arms, len(rounds)), self._offset)
        super().__init__(arms, values, horizon=horizon, switches=rounds, noise=noise, name=name)

    def _draw_segments(self, arms: ArmSet, switches: int) -> Floats:
        """Reward vectors of all segments, before the offset, shape (switches + 1, N)."""
        first_peak = self._peak / 2 if self._kind in ("hidden", "level") and switches else self._peak
        check_room((switches + 1) * len(arms), f"the rewards of {switches + 1:,} segments")
        first = stream(self._seed, "rewards", 0)
        bumps = self._kind == "bump"
        rows = [_bump(arms, first, height=self._peak) if bumps else kernel_draw(arms, first, peak=first_peak)]
        for segment in range(1, switches + 1):
            generator = stream(self._seed, "rewards", segment)
            if self._kind == "flip":
                rows.append(-rows[-1])
            elif self._kind == "level":
                rows.append(rows[0] + self._peak / 2 * (segment % 2))
            elif self._kind == "redraw":
                rows.append(kernel_draw(arms, generator, peak=self._peak))
            elif self._kind == "recurring":
                regime = segment % REGIMES
                rows.append(rows[regime] if regime < segment else kernel_draw(arms, generator, peak=self._peak))
            elif self._kind == "bump":
                rows.append(_bump(arms, generator, height=self._peak))
            elif self._kind == "upset":
                rows.append(_upset(rows[-1]))
            elif self._kind == "partial":
                fresh = kernel_draw(arms, generator, peak=self._peak)
                rows.append(_replace_region(rows[-1], fresh, arms, generator, share=self._share))
            else:
                height = self._peak * (1 + segment / switches) / 2
                rows.append(_raise_far_arm(rows[-1], arms, generator, height=height))
        return np.array(rows)


def kernel_draw(arms: ArmSet, generator: np.random.Generator, *, peak: float) -> Floats:
    """One draw of N(0, K) as Phi z, scaled so that its largest absolute value is `peak`, shape (N,).

    >>> arms = ArmSet([[0.0], [1.0]])
    >>> float(abs(kernel_draw(arms, stream(0, "doc"), peak=0.8)).max())
    0.8
    """
    draw = arms.features @ generator.standard_normal(arms.rank)
    largest = np.abs(draw).max()
    scaled: Floats = draw / largest * peak  # the largest entry is exactly +-1 before it is scaled
    return scaled


def _bump(arms: ArmSet, generator: np.random.Generator, *, height: float) -> Floats:
    """Around an arm, as high as the kernel says of its neighbours."""
    own = arms.features[int(generator.integers(len(arms)))]
    return np.asarray(height * np.maximum(arms.features @ own / float(own @ own), 0.0))


def _upset(old: Floats) -> Floats:
    values = old.copy()
    best, worst = int(old.argmax()), int(old.argmin())
    values[[best, worst]] = old[[worst, best]]
    return values


def _offset_values(values: Floats, offset: float) -> Floats:
    return values + offset if offset else values


def _squared_distances(arms: ArmSet, centre: int) -> Floats:
    squares: Floats = np.square(arms.points - arms.points[centre]).sum(axis=1)
    return squares


def _replace_region(
    old: Floats, fresh: Floats, arms: ArmSet, generator: np.random.Generator, *, share: float
) -> Floats:
    centre = int(generator.integers(len(arms)))
    count = int(np.ceil(share * len(arms)))
    distances = _squared_distances(arms, centre)
    distances[centre] = -1.0  # before its duplicates
    region = np.argsort(distances, kind="stable")[:count]
    values = old.copy()
    values[region] = fresh[region]
    return values


def _raise_far_arm(old: Floats, arms: ArmSet, generator: np.random.Generator, *, height: float) -> Floats:
    best = int(old.argmax())
    from_best = _squared_distances(arms, best)
    far = np.argsort(from_best, kind="stable")[len(arms) // 2 :]
    far = far[(from_best[far] > 0) & (old[far] < old[best])]
    if far.size == 0:
        raise InputError(
            f"kind='hidden' needs arms apart from the best one, got {counted(len(arms), 'arm')}; add some or use 'flip'"
        )
    centre = int(far[generator.integers(far.size)])
    own = arms.features[centre]
    weights = np.clip(arms.features @ own / max(float(own @ own), np.finfo(float).tiny), 0.0, 1.0)
    weights[_squared_distances(arms, centre) >= from_best] = 0.0
    weights[old == old[best]] = 0.0  # every best arm keeps its value
    weights[centre] = 1.0
    values: Floats = np.where(weights > 0, (1.0 - weights) * old + weights * height, old)
    return values


# Of SMPyBandits (Besson 2018), by number: where segments begin, as shares of the horizon, and the means of each.
# 3 is of Mukherjee and Maillard (2019), 5 of Cao, Wen, Kveton and Xie (2019), after Yahoo!'s clicks.
_FIFTHS = (0.0, 0.2, 0.4, 0.6, 0.8)
PROBLEMS: dict[int, tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]] = {
    0: (_FIFTHS, ((0.1, 0.2), (0.1, 0.3), (0.5, 0.3), (0.4, 0.3), (0.3, 0.9))),
    1: (_FIFTHS, ((0.3, 0.5, 0.9), (0.3, 0.2, 0.9), (0.3, 0.2, 0.1), (0.7, 0.2, 0.1), (0.7, 0.5, 0.1))),
    2: (_FIFTHS, ((0.4, 0.5, 0.9), (0.5, 0.4, 0.7), (0.6, 0.3, 0.5), (0.7, 0.2, 0.3), (0.8, 0.1, 0.1))),
    3: ((0.0, 0.25, 0.5, 0.75), ((0.1, 0.2, 0.9), (0.4, 0.9, 0.1), (0.5, 0.1, 0.2), (0.2, 0.2, 0.3))),
    4: (
        (0.0, 0.5, 0.625, 0.75, 0.875),
        ((0.1, 0.5, 0.9), (0.3, 0.4, 0.1), (0.5, 0.3, 0.2), (0.7, 0.4, 0.3), (0.1, 0.5, 0.2)),
    ),
    5: (
        tuple(k / 9 for k in range(9)),
        (
            (0.071, 0.041, 0.032, 0.030, 0.020, 0.011),
            (0.055, 0.053, 0.032, 0.030, 0.008, 0.011),
            (0.040, 0.063, 0.032, 0.030, 0.008, 0.011),
            (0.040, 0.042, 0.043, 0.030, 0.008, 0.011),
            (0.030, 0.032, 0.055, 0.030, 0.008, 0.011),
            (0.030, 0.032, 0.020, 0.030, 0.008, 0.021),
            (0.020, 0.022, 0.020, 0.045, 0.008, 0.021),
            (0.020, 0.022, 0.020, 0.057, 0.008, 0.011),
            (0.020, 0.022, 0.034, 0.057, 0.022, 0.011),
        ),
    ),
}


class SMPyBanditsProblem(Piecewise, SphereWorld):
    """A non-stationary problem of SMPyBandits: two to six arms with 0/1 rewards, whose means jump at given shares.

    Arms have nothing in common, and nothing is drawn but the noise.

    Parameters
    ----------
    problem : its number there, 0 to 5
    horizon : T; switches come at the same shares of it
    name : what tables and plots call this world

    Raises
    ------
    InputError
        For another number, and a horizon that is too short for the segments.

    >>> world = SMPyBanditsProblem(1, horizon=2_000)
    >>> world.change_rounds, world.means(0)
    (array([ 400,  800, 1200, 1600]), array([[0.3, 0.5, 0.9]]))
    """

    def __init__(self, problem: int = 1, *, horizon: int = 10_000, name: str = "smpybandits") -> None:
        if problem not in PROBLEMS:
            raise InputError(f"problem must be one of {', '.join(map(str, PROBLEMS))}, got {problem!r}")
        self._problem = problem
        starts, values = PROBLEMS[problem]
        rounds = check_count("horizon", horizon, least=len(starts))
        arms = ArmSet.separate([f"arm {number}" for number in range(len(values[0]))])
        switches = [int(share * rounds) for share in starts[1:]]
        super().__init__(arms, values, horizon=rounds, switches=switches, noise=BernoulliNoise(), name=name)

    @classmethod
    def sample(cls, *, seed: int | None = 0, horizon: int = 10_000, **settings: Any) -> Self:
        """The problem; a seed draws nothing but the noise of a run.

        Parameters
        ----------
        seed : not needed
        horizon : T
        settings : those of the class

        Returns
        -------
        a world of this class
        """
        check_seed(seed)
        return cls(horizon=horizon, **settings)

    def _settings(self) -> dict[str, Any]:
        return {"problem": self._problem, "horizon": self._horizon}
