"""What every world can do: give its means for any rounds in any order, and rewards under common noise.

First the checks of the arms, tables and masks that a world is built from.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits._util.checks import FLOAT_BYTES, as_float, as_floats, check_count, check_memory
from driftbandits._util.guard import one_blas_thread
from driftbandits._util.seeding import check_seed, stream
from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.contexts import Contexts
from driftbandits.environments.noise import Noise
from driftbandits.environments.truth import Piece, Truth, measure
from driftbandits.errors import InputError
from driftbandits.text import shown
from driftbandits.types import Bools, Floats, Ints, read_only


def check_arm_set(arms: ArmSet) -> ArmSet:
    """Give `arms` back if they are an ArmSet."""
    if not isinstance(arms, ArmSet):
        raise InputError(
            f"arms must be an ArmSet, got {type(arms).__name__}; wrap points as ArmSet(points, kernel=...)"
        )
    return arms


def check_finite(name: str, value: Any) -> float:
    """Give `value` as a float that is neither infinite nor NaN; it may be negative."""
    try:
        number = as_float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        raise InputError(f"{name} must be a finite number, got {shown(value)}")
    return number


def check_room(numbers: int, what: str) -> None:
    """Refuse a world that would keep more numbers than there is memory for."""
    check_memory(FLOAT_BYTES * numbers, what, cure="take a shorter horizon, fewer switches or fewer arms")


def check_mask(values: npt.ArrayLike, what: str, *, arms: int) -> Bools:
    """Give `values` as a read-only boolean copy of shape (T, arms) with an arm in every row."""
    mask = np.array(values, order="C")
    if mask.dtype != np.bool_ or mask.ndim != 2 or mask.shape[1] != arms or not len(mask):
        raise InputError(f"{what} must be booleans of shape (rounds, {arms}), got {mask.dtype} of shape {mask.shape}")
    if not mask.any(axis=1).all():
        empty = int(np.argmin(mask.any(axis=1)))
        raise InputError(f"{what} offers no arm in round {empty}; allow at least one, or leave the round out")
    return read_only(mask)  # type: ignore[no-any-return]


def check_array(
    values: npt.ArrayLike, what: str, *, shape: tuple[int | None, ...], where: Bools | None = None
) -> Floats:
    """Give `values` as a read-only float copy of this shape (None: any length above 0), finite (only `where`)."""
    try:
        array = np.array(as_floats(values), order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what} must be numbers in rows of equal length: {error}") from None
    fits = array.ndim == len(shape) and all(
        got > 0 and want in (None, got) for got, want in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted = tuple("any" if want is None else want for want in shape)
        raise InputError(f"{what} must have shape {wanted}, got {array.shape}")
    wrong = ~np.isfinite(array) if where is None else ~np.isfinite(array) & where
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        every = "every entry" if where is None else "every entry that is offered"
        raise InputError(f"{what}{list(place)} is {array[place]}; {every} must be a finite number")
    return read_only(array)  # type: ignore[no-any-return]


UNIFORMS_PER_STREAM = 4096  # changing it changes every simulated reward
LARGEST_TABLE = 2**20  # means held at once by the default implementations: 8 MiB


class Environment(ABC):
    """A world of N arms over T rounds, counted from 0, whose means and noise do not depend on who plays.

    The reward of round t is F^-1(u_t) for the noise distribution F with mean r_t(x_t); u_t comes from a
    stream that names the seed and the round only. So every policy meets the same problem and the same noise.

    A subclass gives `means` (a pure function of the rounds) and `_settings`; it may override `means_of`,
    `best` and `_pieces` where it knows a cheaper way, with the same numbers bit for bit; `allowed` where not every
    arm can be played in every round; and `observe` where a reward is not the noise's.

    Parameters
    ----------
    arms : ArmSet of N arms
    horizon : T, at least 1
    noise : distribution of rewards around their means
    mean_range : (low, high), an interval that holds every mean
    name : what tables and plots call this world

    Raises
    ------
    InputError
        For rounds outside [0, T) and for means the noise cannot serve.

    >>> from driftbandits.environments import GaussianNoise
    >>> class Tide(Environment):
    ...     '''Two arms that are good in turns.'''
    ...
    ...     def means(self, start, size=1):
    ...         self._check_rounds(start, size)
    ...         wave = 0.5 * np.sin(np.arange(start, start + size) / 10)
    ...         return np.stack([wave, -wave], axis=1)
    ...
    ...     def _settings(self):
    ...         return {"horizon": self.horizon}
    >>> arms, noise = ArmSet([[0.0], [1.0]]), GaussianNoise(0.1)
    >>> world = Tide(arms, horizon=100, noise=noise, mean_range=(-0.5, 0.5), name="tide")
    >>> world.best(1, 2).round(2).tolist(), world.segments
    ([0.05, 0.1], 100)
    """

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Means are the same however many threads BLAS has."""
        super().__init_subclass__(**keywords)
        for name in ("__init__", "means"):
            if name in vars(cls):
                setattr(cls, name, one_blas_thread(vars(cls)[name]))

    def __init__(self, arms: ArmSet, *, horizon: int, noise: Noise, mean_range: tuple[float, float], name: str) -> None:
        if not isinstance(noise, Noise):
            raise InputError(f"noise must be a Noise such as GaussianNoise(0.1), got {noise!r}")
        noise.check(*mean_range)
        self._arms = check_arm_set(arms)
        self._horizon = check_count("horizon", horizon)
        self._noise = noise
        self._mean_range = (float(mean_range[0]), float(mean_range[1]))
        self._name = str(name)

    @property
    def arms(self) -> ArmSet:
        """The arms."""
        return self._arms

    @property
    def horizon(self) -> int:
        """T, the number of rounds."""
        return self._horizon

    @property
    def noise(self) -> Noise:
        """Distribution of rewards around their means."""
        return self._noise

    @property
    def name(self) -> str:
        """What tables and plots call this world."""
        return self._name

    @property
    def mean_range(self) -> tuple[float, float]:
        """Interval that holds every mean; the smallest one where the means are known one by one."""
        return self._mean_range

    @property
    def reward_range(self) -> tuple[float, float]:
        """Interval that holds every reward; infinite where the noise is unbounded."""
        return self._noise.range(*self._mean_range)

    @abstractmethod
    def means(self, start: int, size: int = 1) -> Floats:
        """Mean rewards r_t(x) of some rounds; may be read-only.

        The value of an arm that is not offered means nothing and may be NaN.

        Parameters
        ----------
        start, size : the rounds start, ..., start + size - 1

        Returns
        -------
        array, shape (size, N)
        """

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Keyword settings after the arms, for the repr."""

    def allowed(self, start: int, size: int = 1) -> Bools | None:
        """Which arms some rounds offer, at least one each.

        Parameters
        ----------
        start, size : the rounds start, ..., start + size - 1

        Returns
        -------
        boolean array, shape (size, N), or None
            None, for whatever rounds, says that every arm is offered in all of them.
        """
        del start, size
        return None

    @property
    def contexts(self) -> Contexts | None:
        """What is known of the request of each round; None in worlds without requests."""
        return None

    def requests(self, start: int, size: int = 1) -> Any:
        """The contexts of some rounds, as `Contexts.read_many` takes them, in worlds that have `contexts`.

        Parameters
        ----------
        start, size : the rounds start, ..., start + size - 1

        Returns
        -------
        a table of contexts

        Raises
        ------
        InputError
            In worlds without.
        """
        raise InputError(f"{self.name} has no requests in rounds {start} to {start + size - 1}")

    def means_of(self, start: int, arms: npt.ArrayLike) -> Floats:
        """Means of the arms chosen in consecutive rounds.

        Parameters
        ----------
        start : the first round
        arms : numbers of the arms, one per round from there on, shape (n,)

        Returns
        -------
        array, shape (n,)
        """
        chosen = self._check_choice(start, arms)
        result = np.empty(len(chosen))
        for first, size in self._stretches(start, len(chosen)):
            here = slice(first - start, first - start + size)
            result[here] = self.means(first, size)[np.arange(size), chosen[here]]
        return result

    def best(self, start: int, size: int = 1) -> Floats:
        """Largest mean of an arm offered in each of some rounds.

        Parameters
        ----------
        start, size : the rounds start, ..., start + size - 1

        Returns
        -------
        array, shape (size,)
        """
        self._check_rounds(start, size)
        result = np.empty(size)
        for first, count in self._stretches(start, size):
            means, mask = self.means(first, count), self.allowed(first, count)
            best = means.max(axis=1) if mask is None else means.max(axis=1, where=mask, initial=-np.inf)
            result[first - start : first - start + count] = best
        return result

    def rewards(self, start: int, arms: npt.ArrayLike, seed: int) -> Floats:
        """Rewards of the arms chosen in consecutive rounds.

        Parameters
        ----------
        start : the first round
        arms : numbers of the arms, one per round from there on, shape (n,)
        seed : of the noise

        Returns
        -------
        array, shape (n,)
        """
        means = self.means_of(start, arms)
        return self.observe(start, np.asarray(arms, dtype=np.int64), means, uniforms(seed, start, len(means)))

    def observe(self, start: int, arms: npt.NDArray[Any], means: Floats, uniforms: Floats) -> Floats:
        """Rewards of arms offered in consecutive rounds, from their means and one uniform each.

        Not checked: this is the part of `rewards` that a simulation calls round by round.

        Parameters
        ----------
        start : the first round
        arms, means, uniforms : one per round from there on, each (n,)

        Returns
        -------
        array, shape (n,)
        """
        del start, arms
        return self._noise.sample(means, uniforms)

    @cached_property
    def truth(self) -> Truth:
        """How the world changes, measured once on first use."""
        return measure(self._pieces())

    @property
    def change_rounds(self) -> Ints:
        """First rounds (from 0) of each new reward function, shape (segments - 1,), read-only."""
        return self.truth.change_rounds

    @property
    def segments(self) -> int:
        """L_T: 1 + the number of changes."""
        return self.truth.segments

    @property
    def variation(self) -> float:
        """V_T: the sum over rounds of max_x |r_{t+1}(x) - r_t(x)|."""
        return self.truth.variation

    @property
    def best_arm_changes(self) -> int:
        """Least number of changes of arm that always playing a best one needs."""
        return self.truth.best_arm_changes

    def _pieces(self) -> Iterator[Piece]:
        for first, size in self._stretches(0, self._horizon):
            means, mask = self.means(first, size), self.allowed(first, size)
            yield np.arange(first, first + size), means if mask is None else np.where(mask, means, np.nan)

    def _stretches(self, start: int, size: int) -> Iterator[tuple[int, int]]:
        """Cut rounds into (first, size) of at most LARGEST_TABLE means each."""
        rows = max(1, LARGEST_TABLE // len(self._arms))
        for first in range(start, start + size, rows):
            yield first, min(rows, start + size - first)

    def _check_rounds(self, start: int, size: int) -> None:
        try:
            inside = min(operator.index(start), operator.index(size)) >= 0 and start + size <= self._horizon
        except TypeError:
            raise InputError(f"rounds must be whole numbers, got start {start!r} and size {size!r}") from None
        if not inside:
            raise InputError(
                f"{size} rounds from round {start} are not all in this world, which has rounds 0 to "
                f"{self._horizon - 1}; ask for fewer, or build it with a longer horizon"
            )

    def _check_choice(self, start: int, arms: npt.ArrayLike) -> npt.NDArray[np.integer[Any]]:
        chosen = np.asarray(arms)
        if chosen.ndim != 1 or (chosen.dtype.kind not in "iu" and chosen.size):
            raise InputError(f"arms must be a row of whole numbers, got {chosen.dtype} of shape {chosen.shape}")
        self._check_rounds(start, chosen.size)
        if chosen.size == 0:
            return chosen.astype(np.int64)
        # one round at a time is the live case, and two reductions would be most of its cost
        low, high = (chosen[0],) * 2 if chosen.size == 1 else (chosen.min(), chosen.max())
        if low < 0 or high >= len(self._arms):
            raise InputError(f"arm {int(low if low < 0 else high)} does not exist; arms are 0 to {len(self._arms) - 1}")
        mask = self.allowed(start, chosen.size)
        if mask is not None:
            self._check_offered(start, chosen, mask)
        return chosen

    @staticmethod
    def _check_offered(start: int, chosen: npt.NDArray[np.integer[Any]], mask: Bools) -> None:
        offered = mask[np.arange(chosen.size), chosen]
        if not offered.all():
            place = int(np.argmin(offered))
            raise InputError(
                f"arm {int(chosen[place])} is not offered in round {start + place}; ask with that round's "
                f"allowed({start + place})"
            )

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value!r}" for key, value in self._settings().items())
        return f"{type(self).__name__}({self._arms!r}, {settings}, noise={self._noise!r})"


class Shape(tuple[int, ...]):
    """Stands for an array in a repr.

    >>> Shape((3, 100))
    <3 x 100 array>
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{' x '.join(map(str, self))} array>"


def uniforms(seed: int, start: int, size: int) -> Floats:
    """Uniform numbers in [0, 1) of some rounds, the same in any order: what all noise is made of.

    Round t has place t mod UNIFORMS_PER_STREAM in the stream (seed, "noise", t div UNIFORMS_PER_STREAM).

    Parameters
    ----------
    seed : of the noise
    start, size : the rounds start, ..., start + size - 1

    Returns
    -------
    array, shape (size,)

    Raises
    ------
    InputError
        For a seed that is None, and for rounds below 0.

    >>> bool((uniforms(0, 4000, 200)[150:] == uniforms(0, 4150, 50)).all())
    True
    """
    if seed is None:
        raise InputError("seed must be a number here, or no two calls would agree; got None")
    number = check_seed(seed)
    if start < 0 or size < 0:
        raise InputError(f"start and size must not be negative, got {start!r} and {size!r}")
    chunk, place = divmod(operator.index(start), UNIFORMS_PER_STREAM)  # a plain int: streams tell it from a numpy one
    if place + size <= UNIFORMS_PER_STREAM:
        return _noise_chunk(number, chunk)[place : place + size]
    check_memory(FLOAT_BYTES * size, f"the noise of {size:,} rounds", cure="ask for fewer rounds at a time")
    last = (start + size - 1) // UNIFORMS_PER_STREAM
    whole = np.concatenate([_noise_chunk(number, each) for each in range(chunk, last + 1)])
    return read_only(whole[place : place + size])  # type: ignore[no-any-return]


@lru_cache(maxsize=32)
def _noise_chunk(seed: int, chunk: int) -> Floats:
    return read_only(stream(seed, "noise", chunk).random(UNIFORMS_PER_STREAM))  # type: ignore[no-any-return]
