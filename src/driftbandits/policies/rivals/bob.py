"""Bandit over bandit (Cheung, Simchi-Levi and Zhu 2019): Exp3 over blocks chooses the setting of a forgetting policy.

symbol    name             meaning
H_B       block            rounds of a block; the base starts anew at each
J         candidates       values of the base's setting: floor(H_B^(j / D)), j = 0..D = ceil(ln H_B)
n_B                        number of blocks, ceil(T / H_B)
p         probabilities    of the candidates, for the present block
x                          1/2 + (sum of the block's rewards) / (2 H_B), in [0, 1]
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, Unpack

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits._util.checks import check_count, check_probability, check_word
from driftbandits._util.guard import guarded
from driftbandits._util.seeding import same_stream, stream
from driftbandits.arms import ArmSet
from driftbandits.design import information_gain
from driftbandits.errors import InputError, StateError
from driftbandits.policies.algorithm import Family, OneByOne
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.base import Policy
from driftbandits.policies.decisions import Row
from driftbandits.policies.gp.forgetting import SlidingWindowGPUCB
from driftbandits.policies.inputs import CommonSettings
from driftbandits.policies.rivals.exp3 import LinearExp3
from driftbandits.policies.rivals.nested import Exp3, NestingPolicy, find_base, read_settings
from driftbandits.policies.window import SizedPolicy
from driftbandits.state.declared import count, generator, number, read, write
from driftbandits.state.reader import ROUNDING, told_at_most
from driftbandits.text import shown
from driftbandits.types import Floats, read_only

SETTINGS = ("window", "period", "discount", "restart")  # what a base may forget by
_MOST_CANDIDATES = 10_000  # a policy is built for each of them


def block_length(*, horizon: int, dimension: float) -> int:
    """H_B = floor(d sqrt(T)), in [1, T].

    >>> block_length(horizon=10_000, dimension=10)
    1000
    """
    return min(max(math.floor(dimension * math.sqrt(horizon)), 1), horizon)


def size_candidates(block: int) -> tuple[int, ...]:
    """J = {floor(H_B^(j / D)) : j = 0..D}, D = ceil(ln H_B), in exact arithmetic.

    >>> size_candidates(1000)
    (1, 2, 7, 19, 51, 138, 372, 1000)
    """
    steps = math.ceil(math.log(block))
    return tuple(sorted({_floor_power(block, j, steps) for j in range(steps + 1)} | {block}))


def _floor_power(base: int, numerator: int, denominator: int) -> int:
    """floor(base^(numerator / denominator)), free of rounding."""
    if denominator == 0:
        return 1
    power = base**numerator
    guess: int = math.floor(base ** (numerator / denominator))
    while (guess + 1) ** denominator <= power:
        guess += 1
    while guess**denominator > power:
        guess -= 1
    return guess


@dataclass
class _PastBlock:
    """A block that is over with rewards to come: its rounds, what was chosen from which law, and the rewards so far."""

    start: int
    stop: int
    chosen: int
    law: Floats
    total: float


class BanditOverBandit(OneByOne, NestingPolicy):
    """Plays a forgetting policy in blocks, anew each time, with a window (or period, or discount) chosen by Exp3.

    Its purpose is to need no V_T. At T = 10,000 and d = 10 a linear base has 10 blocks for 8 candidates: Exp3
    learns next to nothing, and this is a policy with a random window of at most 1,000 rounds.

    Its defaults are not enough for 10,000 rounds, since many of the windows that the theory tries are only a few rounds
    long: tell it `candidates` that could do, such as (200, 800).

    Parameters
    ----------
    base : a policy class with `window`, `period`, `discount` or `restart`, or the name of one; the authors' is
        `SlidingWindowLinUCB`, for rewards that are linear in the points
    candidates : values of that setting; default the sizes floor(H_B^(j / D)), for a discount 1 - 1 / size
    learner : "exp3" or "exp3p"
    block : H_B; default floor(d sqrt(T)), for LinearExp3 floor(sqrt(T d log N)). On a kernel d is
        max(1, round(2 gain(T) / log(1 + T / lambda))) (our choice: no source gives one)
    base_settings : further settings of the base, in the user's units
    failure_probability : delta of exp3p
    others : see `Policy`

    With horizon=None it starts anew at doubling horizons.

    A block's reward is the sum of what has been told when the next block begins, as if the missing were mid-range;
    what comes later is counted in `late`, and so is what comes too late for the base. With order="asked" a block is
    learned from when the next one begins after its rewards are there. The last block may be short; nothing is learned
    from it. Cost per round: that of the base.

    >>> policy = BanditOverBandit(ArmSet([[0.0], [0.5], [1.0]]), base="SlidingWindowLinUCB", horizon=100, seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    >>> policy.block, policy.candidates
    (10, (1, 2, 4, 10))
    """

    family = Family.WRAPPER
    needs_horizon = True

    def __init__(
        self,
        arms: ArmSet,
        *,
        base: type[Policy] | str = SlidingWindowGPUCB,
        candidates: Sequence[float] | None = None,
        learner: Literal["exp3", "exp3p"] = "exp3",
        block: int | None = None,
        base_settings: Mapping[str, Any] | None = None,
        failure_probability: float = 0.01,
        **common: Unpack[CommonSettings],
    ) -> None:
        super().__init__(arms, **common)
        self.base = find_base(base, Policy)  # type: ignore[type-abstract]
        self.setting = _varied(self.base)
        self.base_settings = read_settings(base_settings)
        if self.setting in self.base_settings:
            raise InputError(f"{self.setting!r} is what the blocks choose; give its values as candidates=...")
        self.learner = check_word("learner", learner, ("exp3", "exp3p"))
        self.failure_probability = check_probability("failure_probability", failure_probability)
        self._given_block = None if block is None else check_count("block", block)
        self._given_candidates = None if candidates is None else _read_candidates(candidates)
        for candidate in self._given_candidates or (0.5 if self.setting == "discount" else 1,):
            self._build(candidate, 1)  # refuses unusable settings now
        self.counts_masked, self._numbers_rounds = self.base.counts_masked, self.base._numbers_rounds
        self._needs_own_law = self.base._needs_own_law
        self._coins = stream(self.seed, "candidates")
        self._law_base = 0

    @property
    @guarded
    def block(self) -> int:
        """Rounds of a block."""
        self._begin_once()
        return self._block

    @property
    @guarded
    def candidates(self) -> tuple[float, ...]:
        """Values of the base's setting, ascending unless given."""
        self._begin_once()
        return self._candidates

    @property
    @guarded
    def probabilities(self) -> Floats:
        """Chances of the candidates in the present block, shape (M,)."""
        self._begin_once()
        return read_only(self._exp3.probabilities)  # type: ignore[no-any-return]

    @property
    @guarded
    def candidate(self) -> float:
        """Value of the base's setting in the present block."""
        self._begin_once()
        return self._candidates[self._chosen]

    # --- blocks -------------------------------------------------------------------------------------------------

    def _start(self, horizon: int | None) -> None:
        if horizon is None:
            raise StateError("BanditOverBandit needs a horizon")
        if self._phase_start:  # a longer horizon: numbers of laws go on
            self._law_base += self._inner._stamp()[0] + 1
        block = self._default_block(horizon) if self._given_block is None else min(self._given_block, horizon)
        self._prepare(horizon, block)
        self._past: list[_PastBlock] = []  # order="asked"
        self._new_block()

    def _prepare(self, horizon: int, block: int) -> None:
        self._block = block
        self._candidates = self._given_candidates or _default_candidates(self.setting, block)
        self._exp3 = Exp3(
            len(self._candidates),
            rounds=math.ceil(horizon / block),
            learner=self.learner,
            failure_probability=self.failure_probability,
        )

    def _default_block(self, horizon: int) -> int:
        probe = self._build(0.5 if self.setting == "discount" else 1, 1)
        on_points = getattr(probe, "_linear", None) or getattr(probe, "kernel", None) is False
        dimension: float = self.arms.dimension
        if not on_points:
            ridge = float(getattr(probe, "ridge", 1.0))
            gain = information_gain(self.arms, horizon=horizon, sigma=ridge)  # twice the gain of the half convention
            dimension = max(1, round(gain / math.log1p(horizon / ridge)))
        if isinstance(probe, LinearExp3):
            dimension = math.sqrt(dimension * math.log(max(len(self.arms), 2)))
        return block_length(horizon=horizon, dimension=dimension)

    def _build(self, candidate: float, horizon: int) -> Policy:
        return self._new_base(self.base, {**self.base_settings, self.setting: candidate}, horizon=horizon)

    def _new_block(self) -> None:
        self._chosen = self._choose()
        self._block_start = self.rounds
        self._length = min(self._block, self._phase_left())
        self._position = 0
        self._total = 0.0
        self._inner = self._build(self._candidates[self._chosen], self._reach())
        self._inner._begin_once()

    def _reach(self) -> int:
        """Rounds the base may come to play: beyond the block where masked rounds do not count."""
        return max(self._phase_start + self._phase_length - self._block_start, 1)

    def _choose(self) -> int:
        """One uniform per block, from a stream of its own."""
        cumulative = np.cumsum(self._exp3.probabilities)
        place = np.searchsorted(cumulative, self._coins.random() * cumulative[-1], side="right")
        return int(min(place, len(cumulative) - 1))

    # --- the hooks of Policy: the base plays --------------------------------------------------------------------

    @property
    def _playing(self) -> Policy:
        return self._inner

    def _left(self) -> int:
        return self._length - self._position

    def _stamp(self) -> tuple[int, int]:
        number, tag = self._inner._stamp()
        return self._law_base + number, tag

    def _steady(self) -> int:
        return max(min(self._inner._steady(), self._left()), 1)

    def _drawn(self, arms: Sequence[int], counted: bool) -> None:
        self._follow_base(self._inner, arms, counted)
        if counted:
            self._position += len(arms)

    def _due(self) -> bool:
        return self._block_over() or self._inner._due()

    def _block_over(self) -> bool:
        return self._position >= self._length and self._phase_left() > 0

    def _turn(self) -> None:
        if self._block_over():
            law = self._exp3.probabilities  # as when it was chosen: blocks are learned from right before a choice
            self._past.append(_PastBlock(self._block_start, self.rounds, self._chosen, law, self._total))
            self._learn_blocks()
            self._law_base += self._inner._stamp()[0] + 1
            self._new_block()
        else:
            self._turn_base(self._inner)

    def _learn_blocks(self) -> None:
        """Learn from the blocks whose rewards are there; in the order told, from what has come by now."""
        known = self.rounds if self.order == "told" else self._first_open()
        for item in self._past:
            if item.stop <= known:
                share = 0.5 + item.total / (2.0 * self._block)
                self._exp3.update(item.chosen, min(max(share, 0.0), 1.0), item.law)
        self._past = [item for item in self._past if item.stop > known]

    def _learn_one(self, row: Row, reward: float) -> None:
        if row.tag == -1:  # a mask had removed mass, for a base that does not count such rounds
            return
        if row.id < self._block_start:
            self._learn_past(row.id, reward)
            return
        self._total += reward
        own = Row(row.id - self._block_start, row.arm, row.law - self._law_base, row.tag, row.probability)
        self._teach_base(self._inner, own, reward)

    def _learn_past(self, ident: int, reward: float) -> None:
        """A reward of a block that is over."""
        for item in self._past:
            if item.start <= ident < item.stop:
                item.total += reward
                return
        self.late += 1

    def _lose(self, rows: npt.NDArray[np.void]) -> None:
        own = rows[rows["id"] >= self._block_start].copy()
        own["id"] -= self._block_start
        own["law"] -= self._law_base
        self._inner._lose(own)

    # --- state --------------------------------------------------------------------------------------------------

    def _carry(self, old: Self, change: ArmsChange) -> None:
        """A new start with bases on the new arms; the numbers of laws go on."""
        self._coins = same_stream(old._coins)
        self._inner, self._law_base = old._inner, old._law_base
        if not self._phase_start:  # else `_start` does so
            self._law_base += self._inner._stamp()[0] + 1
        self._start_with_arms(change)

    def _setting(self, name: str) -> Any:
        if name == "candidates":
            return None if self._given_candidates is None else list(self._given_candidates)
        return super()._setting("_given_block" if name == "block" else name)

    _saved = (
        generator("coins"),
        count("chosen"),
        count("block_start", low="phase_start", high="rounds"),
        count("length", low=1),
        count("position", high="length"),
        number("total"),
        count("law_base"),
    )

    def _export(self) -> dict[str, Any]:
        return {
            **write(self._saved, self),
            "block": self._block,
            "log_weights": self._exp3.log_weights.copy(),
            "past": [dataclasses.asdict(item) for item in self._past],
            "base": self._export_base(self._inner),
        }

    def _import(self, state: states.Reader) -> None:
        self._prepare(self._phase_length, state.integer("block", low=1, high=self._phase_length))
        read(self._saved, self, state, {})
        self._exp3.log_weights = state.array("log_weights", np.float64, (len(self._candidates),))
        states.check(abs(float(self._exp3.log_weights.max())) <= ROUNDING, "weights of the candidates")
        states.check(self._chosen < len(self._candidates), "chosen")
        played = self.rounds - self._block_start
        states.check(
            self._length == min(self._block, self._reach()) and self._position <= played, "length of the block"
        )
        most = told_at_most(self.rounds, self._pending.rows(), since=self._block_start)
        states.check(abs(self._total) <= (1.0 + ROUNDING) * most, "rewards of the block")
        self._past = [self._read_past(item) for item in state.readers("past")]
        starts = [item.start for item in self._past]
        states.check(starts == sorted(set(starts)) and (self.order == "asked" or not starts), "blocks that are over")
        self._inner = self._build(self._candidates[self._chosen], self._reach())
        self._load_base(self._inner, state.reader("base"))
        states.check(self._inner.rounds == played, "rounds of the base")
        open_ids = self._awaited()["id"]
        self._check_base_untold(self._inner, open_ids[open_ids >= self._block_start] - self._block_start)

    def _read_past(self, state: states.Reader) -> _PastBlock:
        start = state.integer("start", low=self._phase_start, high=self._block_start)
        stop = state.integer("stop", low=start, high=self._block_start)
        law = state.law("law", len(self._candidates))
        total = state.number("total")
        states.check(abs(total) <= (1.0 + ROUNDING) * (stop - start) and bool((law > 0.0).all()), "block that is over")
        return _PastBlock(start, stop, state.integer("chosen", high=len(law) - 1), law, total)


def _varied(base: type[Policy]) -> str:
    if not issubclass(base, SizedPolicy):
        raise InputError(f"base must forget by one of {', '.join(SETTINGS)}, and {base.__name__} has none of them")
    return base._size_name


def _default_candidates(setting: str, block: int) -> tuple[float, ...]:
    sizes = size_candidates(block)
    if setting == "discount":  # memory 1 / (1 - discount); a memory of one round would be no discount at all
        return tuple(1.0 - 1.0 / size for size in sizes if size > 1) or (0.5,)
    return sizes


def _read_candidates(candidates: Any) -> tuple[float, ...]:
    given = tuple(candidates) if isinstance(candidates, (list, tuple, np.ndarray)) else ()
    if not given or len(set(given)) != len(given):
        raise InputError(f"candidates must be a list of different values, at least one, got {shown(candidates)}")
    if len(given) > _MOST_CANDIDATES:
        raise InputError(f"candidates must be at most {_MOST_CANDIDATES:,} values, got {len(given):,}; ten are usual")
    return tuple(value.item() if isinstance(value, np.generic) else value for value in given)
