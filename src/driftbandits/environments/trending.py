"""Worlds in which every arm goes one way: all fall (rotting) or all rise, each at its own pace."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from driftbandits._util.checks import check_count, check_positive, check_word
from driftbandits._util.seeding import check_seed, stream
from driftbandits.arms.arm_set import ArmSet
from driftbandits.environments.checks import check_arm_set
from driftbandits.environments.noise import PAPER_NOISE, Noise
from driftbandits.environments.reward_functions import SphereWorld
from driftbandits.environments.switching import kernel_draw
from driftbandits.types import Floats, Ints


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

    def _settings(self) -> dict[str, Any]:
        return {"horizon": self._horizon, "kind": self._kind, "seed": self._seed, "peak": self._peak}
