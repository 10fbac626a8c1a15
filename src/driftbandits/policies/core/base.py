"""What every policy shares: drawing from declared laws, late rewards, masks, horizons and saved state.

A policy is a class with `_start`, `_law`, `_learn`, `_estimate`, `_export` and `_import`. The law is a pure function
of the state, and `ask` draws from it with exactly one uniform per round, so the recorded probability cannot differ from
the law used.

Public methods are `guarded`: one at a time, whatever thread they come from. Inside them, whatever changes the state
stands between `changing = True` and `changing = False` of the guard, and nothing that only computes does: an exception
that ends a call there leaves the policy marked as half changed, and anywhere else as it was. Hooks and private methods
are called from inside, so they call one another and never the public ones.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self, overload

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits.arms import ArmSet
from driftbandits.checks import check_count, check_path, check_word
from driftbandits.errors import (
    HorizonError,
    InputError,
    RewardError,
    RewardRangeWarning,
    UnknownDecisionError,
)
from driftbandits.policies.core import saving
from driftbandits.policies.core.changes import ChangeLog
from driftbandits.policies.core.guard import Guard, guarded
from driftbandits.policies.core.inputs import check_size, read_allowed, read_ids, read_rewards
from driftbandits.policies.core.laws import check_law, is_frozen, restrict
from driftbandits.policies.core.pending import OTHER_DECISION, Feedback, Pending, Row, read_decisions
from driftbandits.policies.core.scale import read_range
from driftbandits.policies.core.settings import check_settings
from driftbandits.policies.core.spread import Spread
from driftbandits.seeding import check_seed, stream
from driftbandits.types import Bools, Change, Decision, Decisions, Floats, Ints, read_only

FIRST_HORIZON = 1024  # horizon=None: policies that need one start with this and double it

Asked = int | npt.ArrayLike | Decision | Decisions | Sequence[Decision]  # decisions that `ask` gave, or their ids


class Policy(ABC):
    """Base of all policies: `ask` for decisions, `tell` their rewards, at any time and in any order.

    Parameters
    ----------
    arms : the options to choose from
    horizon : number of rounds; None if unknown (a policy that needs it then starts anew at 1,024, 3,072, 7,168, ...
        rounds with twice the length each time; ids, rounds and change records go on)
    seed : of all the policy's randomness; None draws one, kept as `seed`
    reward_range : (low, high), in the user's units; mapped to [-1, 1] inside
    out_of_range : "error" refuses a reward outside the range, "clip" moves it to the nearest end and counts it
    pending_limit : how many decisions without a reward are remembered; beyond it the oldest is dropped and counted

    Attributes
    ----------
    rounds : rounds asked so far; the next decision has this id
    pending : decisions asked and neither told nor forgotten
    clipped, dropped, forgotten, late : counts of rewards moved into the range, decisions dropped by `pending_limit`,
        decisions forgotten, and rewards that came after what they belong to was closed (they change nothing)
    changes : the changes found, oldest first, the latest 10,000 of them; changes_found : the number of all

    One policy may be used from any number of threads: a call waits until the one under way is over. A call that an
    exception (Ctrl-C, a time-out, MemoryError) ends in the middle of a change leaves the policy refusing to go on and
    to be saved; load the last saved state then. Copies (`copy`, `pickle`) are made through the state and go on by
    themselves, bit for bit; so do forked processes, which therefore decide alike.
    """

    needs_horizon: bool = False  # whether horizon=None means doubling
    counts_masked: bool = True  # whether a round whose mask removed mass advances the policy's clock

    def __new__(cls, *_arms: Any, **settings: Any) -> Self:
        """Refuse arms that are none, and settings that no constructor of the class knows, before one of them does."""
        for arms in (*_arms[:1], *([settings["arms"]] if "arms" in settings else [])):
            if not isinstance(arms, ArmSet):
                raise InputError(
                    f"arms must be an ArmSet, got {type(arms).__name__}; build one with ArmSet(points, kernel)"
                )
        check_settings(cls, settings)
        return super().__new__(cls)

    def __init__(
        self,
        arms: ArmSet,
        *,
        horizon: int | None = None,
        seed: int | None = 0,
        reward_range: tuple[float, float] = (-1.0, 1.0),
        out_of_range: Literal["error", "clip"] = "error",
        pending_limit: int = 1_000_000,
    ) -> None:
        self.arms = arms
        cure = "use horizon=None if it is unknown"
        self.horizon = None if horizon is None else check_count("horizon", horizon, cure=cure)
        self.seed = check_seed(seed)
        self._scale = read_range(reward_range)
        self.reward_range = (self._scale.low, self._scale.high)
        self.out_of_range = check_word("out_of_range", out_of_range, ("error", "clip"))
        self.rounds = 0
        self.clipped = 0
        self.forgotten = 0
        self.late = 0
        self._pending = Pending(check_count("pending_limit", pending_limit))
        self._change_log = ChangeLog()
        self._draws = stream(self.seed, "draws")
        self._version = 0
        self._phase_start = 0
        self._phase_length = 0  # 0: not started
        self._cdf: tuple[Floats, Floats, int] | None = None
        self._checked: Floats | None = None  # the latest law found to be one
        self._spread = Spread()
        self._guard = Guard()

    # --- what a policy writes -----------------------------------------------------------------------------------

    @abstractmethod
    def _start(self, horizon: int | None) -> None:
        """Begin with nothing learned, for `horizon` rounds (None: unknown and not needed)."""

    @abstractmethod
    def _law(self) -> Floats:
        """Probabilities over all arms for the next round: a pure function of the state."""

    @abstractmethod
    def _learn(self, feedback: Feedback) -> None:
        """Take in rewards, given in the order of their rounds."""

    @abstractmethod
    def _estimate(self) -> Floats:
        """Estimated reward of every arm on the internal scale."""

    @abstractmethod
    def _export(self) -> dict[str, Any]:
        """What `_start` and the rounds since have built, as JSON values and arrays."""

    @abstractmethod
    def _import(self, state: states.Reader) -> None:
        """Inverse of `_export`, checking every value."""

    def _learn_one(self, row: Row, reward: float) -> None:
        """Take in one reward; a policy may do better than wrapping it, with the same result to the bit."""
        self._learn(Feedback.single(row, reward))

    def _law_within(self, mask: Bools) -> tuple[Floats, bool]:
        """Law over the allowed arms, and whether the mask took any mass away."""
        return restrict(self._fit(self._law()), mask)

    def _steady(self) -> int:
        """For how many asked rounds the law is certain to stay, at least 1."""
        return 1

    def _stamp(self) -> tuple[int, int]:
        """Law number and tag to keep with the decisions of the present stretch."""
        return self._version, 0

    def _advance(self, count: int) -> None:  # noqa: B027  (a hook with a sensible default)
        """`count` rounds were asked under the present law."""

    def _drawn(self, arms: Sequence[int], counted: bool) -> None:
        """These arms were drawn under the present law, in rounds that advance the clock if `counted`."""
        if counted:
            self._advance(len(arms))

    def _lose(self, rows: npt.NDArray[np.void]) -> None:  # noqa: B027
        """The rewards of these decisions were forgotten and will never come."""

    def _due(self) -> bool:
        """Whether the next ask must first move on to another law, whatever is still pending."""
        return False

    def _turn(self) -> None:  # noqa: B027
        """Move on to the next law; called when `_due`."""

    def _settings(self) -> dict[str, Any]:
        """Settings of the subclass as JSON values."""
        return {}

    @classmethod
    def _read_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Inverse of `_settings`: keyword arguments for the constructor."""
        return dict(settings)

    # --- asking -------------------------------------------------------------------------------------------------

    @overload
    def ask(self, size: None = None, allowed: Any = None) -> Decision: ...
    @overload
    def ask(self, size: int, allowed: Any = None) -> Decisions: ...
    @guarded
    def ask(self, size: int | None = None, allowed: Any = None) -> Decision | Decisions:
        """Decide the next round, or the next `size` rounds.

        `ask(size=n)` gives the same n decisions as n single asks with no reward told between them.

        Parameters
        ----------
        size : None for one Decision, a positive number for that many as columns
        allowed : arms that may be chosen: a boolean mask, indices or names; the law is restricted to them and
            renormalised (uniform over them if it has no mass there), and `probability` is that of the restricted law
        """
        if size is None and allowed is None:
            return self._ask_one()
        count = 1 if size is None else check_size(size)
        mask = None if allowed is None else read_allowed(self.arms, allowed)
        self._check_left(count)
        parts: list[Decisions] = []
        left = count
        while left:
            parts.append(self._draw(left, mask))
            left -= len(parts[-1])
        if size is None:
            return next(iter(parts[0]))
        return Decisions.joined(parts)

    def _check_left(self, count: int) -> None:
        if self.horizon is not None and self.rounds + count > self.horizon:
            raise HorizonError(
                f"asked for {count} more after {self.rounds} of {self.horizon} rounds; build the policy with a larger "
                f"horizon, or with horizon=None if it is unknown"
            )

    def _ask_one(self) -> Decision:
        """`_draw` for a single round without a mask, in plain numbers: the path of a live request."""
        self._check_left(1)
        self._move()
        number, tag = self._stamp()
        weighed = self._weigh()
        self._guard.changing = True
        arm, probability = self._choose_one(weighed)
        decision = Decision(id=self.rounds, arm=arm, probability=probability, law=number)
        self._pending.push(Row(decision.id, arm, number, tag, probability))
        self.rounds += 1
        self._drawn([arm], True)
        self._guard.changing = False
        return decision

    def _weigh(self) -> npt.NDArray[Any]:
        """What a single round is drawn from: the law."""
        return self._fit(self._law())

    def _choose_one(self, weighed: npt.NDArray[Any]) -> tuple[int, float]:
        """One arm drawn from what `_weigh` gave, and its probability."""
        arm = int(self._pick(weighed, 1)[0])
        return arm, float(weighed[arm])

    def _fit(self, law: Floats) -> Floats:
        """The law, found to be one. A law kept from round to round is looked at once, if it cannot be written to."""
        if self._checked is not law:
            check_law(law, arms=len(self.arms), policy=type(self).__name__, now=self.rounds)
            self._checked = law if is_frozen(law) else None
        return law

    def _draw(self, wanted: int, mask: Bools | None) -> Decisions:
        """Decide at most `wanted` rounds, all under one law."""
        self._move()
        law, removed = (self._law(), False) if mask is None else self._law_within(mask)
        self._fit(law)
        counted = self.counts_masked or not removed
        count = min(wanted, self._phase_left(), self._steady() if counted else wanted)
        number, tag = self._stamp()
        self._guard.changing = True
        arms = self._pick(law, count)
        ids = np.arange(self.rounds, self.rounds + count)
        probabilities = law[arms]
        self._pending.add(ids, arms, probabilities, number, tag if counted else -1)
        self.rounds += count
        self._drawn(arms.tolist(), counted)
        self._guard.changing = False
        return Decisions(ids=ids, arms=arms, probabilities=probabilities, laws=np.full(count, number))

    def _pick(self, law: Floats, count: int) -> Ints:
        """Arms drawn from `law`, one uniform each; an arm of probability 0 is never drawn."""
        kept = self._cdf
        if kept is None or kept[0] is not law:
            kept = (law, law.cumsum(), int(law.nonzero()[0][-1]))
            self._cdf = kept if is_frozen(law) else None
        _, cdf, last = kept
        arms = cdf.searchsorted(self._draws.random(count) * cdf[-1], side="right")
        return np.asarray(np.minimum(arms, last), dtype=np.int64)

    @guarded
    def law(self) -> Floats:
        """Probabilities over all arms that the next `ask` will draw from, shape (N,). Asking for it changes nothing."""
        return read_only(self._fit(self._ahead()._law()))  # type: ignore[no-any-return]

    @guarded
    def steady_rounds(self) -> int:
        """For how many rounds from now the law is certain to stay as it is, whatever rewards are told meanwhile."""
        return self._steady_rounds()

    def _steady_rounds(self) -> int:
        ahead = self._ahead()
        return min(ahead._steady(), max(ahead._phase_left(), 1))

    @guarded
    def estimate(self) -> Floats:
        """Estimated reward of every arm, shape (N,), in the user's units; mid-range where nothing is told."""
        return self._scale.outward(self._ahead()._estimate())

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes found, oldest first; of more than 10,000 the latest, `changes_found` is the number of all."""
        return self._change_log.latest()

    @property
    def changes_found(self) -> int:
        """Number of all changes found."""
        return self._change_log.found

    @property
    def pending(self) -> int:
        """Number of decisions asked and neither told nor forgotten."""
        return len(self._pending)

    @property
    def dropped(self) -> int:
        """Number of decisions dropped by `pending_limit`."""
        return self._pending.dropped

    # --- telling ------------------------------------------------------------------------------------------------

    @guarded
    def tell(self, ids: Asked, rewards: float | npt.ArrayLike) -> None:
        """Tell the rewards of decisions, late, in any order, never twice.

        An unknown id, a reward that is not finite or one outside `reward_range` is an error that changes nothing,
        for the whole call.

        Parameters
        ----------
        ids : a Decision or Decisions that `ask` gave, or their ids. Decisions are checked: one that this policy did not
            make is refused. An id alone is trusted: after an older state was restored the same ids are given out
            anew, and a reward meant for a decision that is lost would be credited to another arm
        rewards : one reward, or one per decision, in the user's units
        """
        row = self._latest(ids, rewards)
        if row is not None:
            scaled = self._scale.inward(float(rewards))  # type: ignore[arg-type]
            self._guard.changing = True
            self._pending.pop_last()
            narrow = self._count_told(scaled, scaled, 1)
            self._learn_one(row, scaled)
        else:
            where, numbers = self._locate(ids)
            values = read_rewards(rewards)
            if len(values) != len(numbers):
                raise InputError(f"got {len(values)} rewards for {len(numbers)} decisions; give one each")
            if not len(numbers):
                return
            inward, clipped = self._inward(values)
            order = np.argsort(numbers, kind="stable")
            self._guard.changing = True
            rows = self._pending.take(where[order])
            self.clipped += clipped
            narrow = self._count_told(float(inward.min()), float(inward.max()), len(inward))
            self._learn(Feedback.of(rows, inward[order]))
        self._guard.changing = False
        self._settle()
        if narrow:
            self._warn_of_range()

    def _latest(self, given: Asked, reward: Any) -> Row | None:
        """The latest decision, if this is its reward and in range: the path of a live request; None for the general."""
        low, high = self.reward_range
        row = self._pending.last
        if row is None or not isinstance(reward, float) or not low <= reward <= high:
            return None
        if type(given) is Decision:
            if given.id != row.id:
                return None
            if (given.arm, given.law, given.probability) != (row.arm, row.law, row.probability):
                raise UnknownDecisionError(OTHER_DECISION.format(id=given.id))
            return row
        return row if type(given) is int and given == row.id else None

    def _count_told(self, least: float, most: float, count: int) -> bool:
        """Books about rewards that are about to be learned; whether they are known now to fill next to nothing."""
        self._version += 1
        return self._spread.see(least, most, count)

    def _locate(self, given: Asked) -> tuple[Ints, Ints]:
        """Where the decisions stand in the table of open ones, and their ids; refused unless all are open."""
        decisions = read_decisions(given)
        numbers = read_ids(given) if decisions is None else decisions.ids
        self._guard.changing = True
        self._pending.gather()
        self._guard.changing = False
        where = self._pending.find(numbers, asked=self.rounds)
        if decisions is not None:
            self._pending.compare(where, decisions)
        return where, numbers

    def _warn_of_range(self) -> None:
        low, high = self.reward_range
        least, most = self._scale.outward(np.array([self._spread.least, self._spread.most])).tolist()
        warnings.warn(
            f"rewards so far lie between {least:.6g} and {most:.6g}, which is less than a hundredth of "
            f"reward_range=({low:g}, {high:g}): differences between arms look like nothing in so wide a range; declare "
            f"one that the rewards fill",
            RewardRangeWarning,
            stacklevel=4,  # over tell and its guard, to whoever told
        )

    @guarded
    def forget(self, ids: Asked) -> None:
        """Say that the rewards of these decisions, given as in `tell`, will never come."""
        where, numbers = self._locate(ids)
        if not len(numbers):
            return
        self._guard.changing = True
        self._lose(self._pending.take(where))
        self.forgotten += len(numbers)
        self._guard.changing = False
        self._settle()

    def _inward(self, values: Floats) -> tuple[Floats, int]:
        """Rewards on the internal scale, and how many had to be clipped."""
        if not np.isfinite(values).all():
            wrong = values[int(np.argmin(np.isfinite(values)))]
            raise RewardError(
                f"a reward is {wrong}; tell finite numbers, or forget() decisions whose reward is missing"
            )
        inside = self._scale.clip(values)
        if self.out_of_range == "error":
            self._scale.require_inside(values, inside)
        return self._scale.inward(inside), int(np.count_nonzero(inside != values))

    # --- moving on ----------------------------------------------------------------------------------------------

    def _phase_left(self) -> int:
        return self._phase_start + self._phase_length - self.rounds

    def _begin_once(self) -> None:
        if not self._phase_length:
            self._begin(FIRST_HORIZON if self.horizon is None else self.horizon)

    def _begin(self, length: int) -> None:
        self._guard.changing = True
        self._phase_start = self.rounds
        self._version += 1
        if self.horizon is None and not self.needs_horizon:
            self._phase_length = 2**62  # one phase without end
            self._start(None)
        else:
            self._phase_length = length
            self._start(length)
        self._guard.changing = False

    def _unsettled(self) -> bool:
        return self._due() or (self._phase_left() == 0 and self.horizon is None)

    def _move(self) -> None:
        """Get ready for the next ask: start, turn to the next law, or double the horizon."""
        self._begin_once()
        if self._due():
            self._guard.changing = True
            self._turn()
            self._guard.changing = False
        if self._phase_left() == 0 and self.horizon is None:
            self._begin(2 * self._phase_length)

    @contextlib.contextmanager
    def _still_whole(self) -> Iterator[None]:
        """For what takes long inside `_turn` before it has changed anything: ended there, the policy is as it was."""
        self._guard.changing = False
        yield
        self._guard.changing = True

    def _settle(self) -> None:
        """Once every reward is in, nothing can change what the next ask would do: do it now."""
        if not len(self._pending) and self._unsettled():
            self._move()

    def _ahead(self) -> Self:
        """This policy as the next ask will find it; a copy where rewards still pending may change that."""
        self._begin_once()
        if not self._unsettled():
            return self
        copy = type(self).restore(self.arms, self._state())
        copy._move()
        return copy

    def _report_change(
        self,
        *,
        epoch: int,
        interval: tuple[int, int],
        statistic: float,
        threshold: float,
        arms: Sequence[int] = (),
        before: Sequence[float] | Floats = (),
        after: Sequence[float] | Floats = (),
        block: int = 0,
        compared_with: int = 0,
        forgot: str = "",
        stream: str = "",
    ) -> None:
        """Keep a record of a change found now; `before` and `after` are rewards of `arms` on the internal scale."""
        outward = self._scale.outward
        change = Change(
            round=self.rounds,
            epoch=epoch,
            block=block,
            interval=interval,
            compared_with=compared_with,
            statistic=statistic,
            threshold=threshold,
            arms=tuple(int(arm) for arm in arms),
            before=tuple(outward(float(reward)) for reward in before),
            after=tuple(outward(float(reward)) for reward in after),
            names=() if self.arms.names is None else tuple(self.arms.names[arm] for arm in arms),
            forgot=forgot,
            stream=stream,
        )
        self._change_log.add(change)

    # --- state --------------------------------------------------------------------------------------------------

    @guarded
    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on bit for bit: JSON values and arrays, no pickle."""
        return self._state()

    def _state(self) -> dict[str, Any]:
        return saving.export(self)

    @classmethod
    def restore(cls, arms: ArmSet, state: Mapping[str, Any]) -> Self:
        """A policy that goes on from `state` as the one that gave it would have.

        The state is checked whole first; StateError says what does not fit.
        """
        return saving.restore(cls, arms, state)

    @guarded
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to one file: to the side, read back and restored from, and only then put in its place."""
        check_path("save wants a path", path)
        states.write(path, self._state(), check=partial(type(self).restore, self.arms))

    @classmethod
    def load(cls, arms: ArmSet, path: str | os.PathLike[str], *, limit: int | None = states.LIMIT) -> Self:
        """Go on from a file written by `save`; one whose state would take more than `limit` bytes is refused."""
        check_path("load wants the arms and then a path", path)
        if limit is not None:
            check_count("limit", limit, cure="None reads a file of any size")
        return cls.restore(arms, states.read(path, limit=limit))

    def __copy__(self) -> Self:
        """A policy of its own that goes on from here, made through the state; the arms are shared."""
        return type(self).restore(self.arms, self.state_dict())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """As `copy`: arms never change."""
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.arms, self.state_dict())

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value!r}" for name, value in self._shown().items())
        return f"{type(self).__name__}({len(self.arms)} arms, horizon={self.horizon}, seed={self.seed}{settings})"

    def _shown(self) -> dict[str, Any]:
        """Settings to show in the repr."""
        return self._settings()


def _restore(kind: type[Policy], arms: ArmSet, state: Mapping[str, Any]) -> Policy:
    return kind.restore(arms, state)
