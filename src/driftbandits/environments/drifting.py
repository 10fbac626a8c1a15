"""Worlds that drift: a Gaussian process that forgets a fixed part of itself every round, and arms that go one way.

In the second all arms fall (rotting) or all rise, each at its own pace.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from driftbandits._util.checks import check_count, check_positive, check_probability, check_word
from driftbandits._util.seeding import check_seed, stream
from driftbandits.arms.arm_set import ArmSet
from driftbandits.environments.base import LARGEST_TABLE, check_arm_set, check_finite, check_room
from driftbandits.environments.noise import PAPER_NOISE, Noise
from driftbandits.environments.reward_functions import SphereWorld
from driftbandits.environments.switching import kernel_draw
from driftbandits.types import Floats, Ints, read_only

BLOCK_ROUNDS = 256  # from one checkpoint to the next; changing it changes the drawn worlds


class ForgettingDrift(SphereWorld):
    """Rewards that forget: f_{t+1} = sqrt(1 - rate) f_t + sqrt(rate) g_{t+1} with independent g ~ GP(0, k).

    Every f_t has law GP(0, k), and f_t(x), f_{t+l}(x) have correlation (1 - rate)^(l / 2). Means are squashed
    smoothly,

        r_t(x) = peak tanh(sd f_t(x) / peak) + offset,

    which keeps the order of the arms, is near sd f in the middle and never leaves (-peak, peak). The reward
    function changes every round: L_T = T.

    The process lives in feature space, f_t = Phi z_t with r numbers per round. The z at multiples of BLOCK_ROUNDS form
    a chain drawn from one stream; between two of them, z is an Ornstein-Uhlenbeck bridge from the block's own
    stream (a free path plus the conditional-mean correction that makes it end at the next checkpoint). So any
    round costs one block, in any order, and memory is O(T r / BLOCK_ROUNDS). The law is exactly that of the
    recursion.

    Parameters
    ----------
    arms : ArmSet of N arms
    horizon : T
    rate : part forgotten per round, in (0, 1); 0.999 for near independence
    seed : of the process; None draws one, shown by the repr
    sd : standard deviation of sd f_t(x) where k(x, x) = 1
    peak : bound of |r_t(x) - offset|
    noise : distribution of rewards around their means; by default the paper's
    offset : added to all means
    name : what tables and plots call this world

    Raises
    ------
    InputError
        For arms or numbers that do not fit, and a rate outside (0, 1).

    The model of time-varying GP bandits (Bogunovic, Scarlett, Cevher 2016), squashed.

    >>> world = ForgettingDrift.sample(seed=0, size=20, dimension=2, horizon=500, rate=0.01)
    >>> world.segments
    500
    >>> bool((world.means(300, 5)[2] == world.means(302)[0]).all())
    True
    """

    def __init__(
        self,
        arms: ArmSet,
        *,
        horizon: int,
        rate: float = 1e-3,
        seed: int | None = 0,
        noise: Noise = PAPER_NOISE,
        sd: float = 0.3,
        peak: float = 0.8,
        offset: float = 0.0,
        name: str = "forgetting",
    ) -> None:
        self._rate = check_probability("rate", rate)
        self._seed = check_seed(seed)
        self._sd = check_positive("sd", sd)
        self._peak = check_positive("peak", peak)
        self._offset = check_finite("offset", offset)
        mean_range = (self._offset - self._peak, self._offset + self._peak)
        super().__init__(arms, horizon=horizon, noise=noise, mean_range=mean_range, name=name)
        self._tile_rows = _rows_of_tile(len(arms))
        self._checkpoints = self._draw_checkpoints()
        self._last_block: tuple[int, Floats] | None = None
        self._last_tile: tuple[int, Floats] | None = None

    @property
    def seed(self) -> int:
        """Seed of the process."""
        return self._seed

    def means(self, start: int, size: int = 1) -> Floats:
        """Mean rewards, shape (size, N)."""
        self._check_rounds(start, size)
        result = np.empty((size, len(self._arms)))
        for here, rows in self._tiles(start, size):
            result[here] = rows
        return result

    def means_of(self, start: int, arms: npt.ArrayLike) -> Floats:
        """Means of the arms chosen in rounds start, start + 1, ..., shape (n,)."""
        chosen = self._check_choice(start, arms)
        result = np.empty(len(chosen))
        for here, rows in self._tiles(start, len(chosen)):
            result[here] = rows[np.arange(len(rows)), chosen[here]]
        return result

    def coefficients(self, block: int) -> Floats:
        """Process z_t, with f_t = Phi z_t, of all rounds of a block.

        Parameters
        ----------
        block : its number, from 0

        Returns
        -------
        array, shape (BLOCK_ROUNDS, r)
        """
        last = self._last_block  # one read: another thread may replace it meanwhile
        if last is not None and last[0] == block:
            return last[1]
        path = self._bridge(block)
        self._last_block = (block, path)
        return path

    def _tiles(self, start: int, size: int) -> Iterator[tuple[slice, Floats]]:
        """Means of rounds start, start + 1, ... tile by tile, with their places counted from `start`."""
        done = 0
        while done < size:
            tile, place = divmod(start + done, self._tile_rows)
            rows = self._tile(tile)[place : place + size - done]
            yield slice(done, done + len(rows)), rows
            done += len(rows)

    def _tile(self, tile: int) -> Floats:
        """Means of one tile of rounds; always all of it, as a product of another size may round otherwise."""
        last = self._last_tile
        if last is not None and last[0] == tile:
            return last[1]
        block, place = divmod(tile * self._tile_rows, BLOCK_ROUNDS)
        process = self.coefficients(block)[place : place + self._tile_rows] @ self._arms.features.T
        values: Floats = read_only(self._peak * np.tanh(process * (self._sd / self._peak)) + self._offset)
        self._last_tile = (tile, values)
        return values

    def _draw_checkpoints(self) -> Floats:
        """z at the first round of each block, to past the horizon: the chain of BLOCK_ROUNDS steps at once."""
        count = -(-self._horizon // BLOCK_ROUNDS) + 1
        check_room(count * self._arms.rank, f"the checkpoints of {self._horizon:,} rounds")
        chain = stream(self._seed, "rewards", "checkpoints").standard_normal((count, self._arms.rank))
        keep, add = np.sqrt(_kept(self._rate, BLOCK_ROUNDS)), np.sqrt(_lost(self._rate, BLOCK_ROUNDS))
        for number in range(1, count):
            chain[number] = keep * chain[number - 1] + add * chain[number]
        return chain

    def _bridge(self, block: int) -> Floats:
        """Path of z from one checkpoint to just before the next.

        With free path y and end point z', the bridge is y_t + (z' - y_B) cov(y_t, y_B) / var(y_B), given the
        start.
        """
        keep, add = np.sqrt(1.0 - self._rate), np.sqrt(self._rate)
        path = np.empty((BLOCK_ROUNDS + 1, self._arms.rank))
        path[0] = self._checkpoints[block]
        steps = add * stream(self._seed, "rewards", int(block)).standard_normal((BLOCK_ROUNDS, self._arms.rank))
        for step in range(BLOCK_ROUNDS):
            np.multiply(path[step], keep, out=path[step + 1])
            path[step + 1] += steps[step]
        ages = np.arange(BLOCK_ROUNDS + 1)
        gain = (
            np.sqrt(_kept(self._rate, BLOCK_ROUNDS - ages)) * _lost(self._rate, ages) / _lost(self._rate, BLOCK_ROUNDS)
        )
        path += gain[:, None] * (self._checkpoints[block + 1] - path[-1])
        return read_only(path[:-1])  # type: ignore[no-any-return]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last_block": None, "_last_tile": None}  # caches need not travel to workers


def _kept(rate: float, rounds: Any) -> Any:
    """(1 - rate)^rounds, the part of the variance that is left."""
    return np.exp(rounds * np.log1p(-rate))


def _lost(rate: float, rounds: Any) -> Any:
    """1 - (1 - rate)^rounds, exact for tiny rates."""
    return -np.expm1(rounds * np.log1p(-rate))


def _rows_of_tile(arms: int) -> int:
    """Largest power of two up to BLOCK_ROUNDS with at most LARGEST_TABLE means per tile."""
    rows = BLOCK_ROUNDS
    while rows > 1 and rows * arms > LARGEST_TABLE:
        rows //= 2
    return rows


class Trending(SphereWorld):
    """Rewards on straight lines: r_t(x) = r_0(x) - t g(x) / (T - 1) if arms fall, + if they rise, with g >= 0.

    r_0 and g are drawn from the kernel, g as an absolute value, so neighbours move alike; each has peak / 2 as its
    largest absolute value. The reward of an arm depends on the round and not on how often it was played: what the
    literature calls restless, where "rotting" often means that plays wear an arm out.

    Parameters
    ----------
    arms : ArmSet of N arms
    horizon : T
    kind : "falling" or "rising"
    seed : of the rewards; None draws one, shown by the repr
    peak : no reward has a larger absolute value; an arm moves by half of it at most
    noise : distribution of rewards around their means; by default the paper's
    name : what tables and plots call this world

    Raises
    ------
    InputError
        For numbers out of their ranges.

    n rounds cost O(n N); `variation` is peak / 2, up to rounding.

    >>> world = Trending.sample(seed=0, kind="falling", horizon=1_000)
    >>> bool((np.diff(world.means(0, 1_000), axis=0) <= 0).all()), round(world.variation, 9)
    (True, 0.4)
    """

    def __init__(
        self,
        arms: ArmSet,
        *,
        horizon: int,
        kind: Literal["falling", "rising"] = "falling",
        seed: int | None = 0,
        peak: float = 0.8,
        noise: Noise = PAPER_NOISE,
        name: str = "trending",
    ) -> None:
        self._kind = check_word("kind", kind, ("falling", "rising"))
        self._seed = check_seed(seed)
        self._peak = check_positive("peak", peak)
        check_arm_set(arms)
        self._first = kernel_draw(arms, stream(self._seed, "rewards", 0), peak=self._peak / 2)
        moved = np.abs(kernel_draw(arms, stream(self._seed, "rewards", 1), peak=self._peak / 2))
        rounds = check_count("horizon", horizon)
        self._slope: Floats = (moved if kind == "rising" else -moved) / max(rounds - 1, 1)
        ends = self._first + self._slope * (rounds - 1)
        mean_range = float(min(self._first.min(), ends.min())), float(max(self._first.max(), ends.max()))
        super().__init__(arms, horizon=rounds, noise=noise, mean_range=mean_range, name=name)

    @property
    def seed(self) -> int:
        """Seed of all that is drawn."""
        return self._seed

    def means(self, start: int, size: int = 1) -> Floats:
        """Mean rewards, shape (size, N)."""
        self._check_rounds(start, size)
        return self._at(np.arange(start, start + size)[:, None], slice(None))

    def means_of(self, start: int, arms: npt.ArrayLike) -> Floats:
        """Means of the arms chosen in rounds start, start + 1, ..., shape (n,)."""
        chosen = self._check_choice(start, arms)
        return self._at(np.arange(start, start + len(chosen)), chosen)

    def _at(self, rounds: Ints, arms: Any) -> Floats:
        low, high = self._mean_range
        moved = self._first[arms] + rounds * self._slope[arms]
        return np.asarray(np.clip(moved, low, high))  # rounding must not leave the range
