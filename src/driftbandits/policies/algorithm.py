"""What an author of a policy writes: the methods to implement, the optional ones, and the helpers they may call.

Six methods must be written: `_start`, `_law`, `_learn`, `_estimate`, `_export` and `_import`. The others have defaults
that suit most policies; `docs/extending.md` has complete examples. They are called from inside the public methods
of `Policy`, which hold its lock, so they call one another and the helpers here, never a public method.
"""

from __future__ import annotations

import contextlib
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits._util.guard import Guard, one_blas_thread
from driftbandits._util.seeding import stream
from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.contexts import Contexts
from driftbandits.errors import InputError, LawError
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.decisions import Feedback, OpenDecisions, ReorderBuffer, Row
from driftbandits.policies.inputs import check_settings, own_settings, signature_of, whole_docstring
from driftbandits.policies.records import ChangeLog
from driftbandits.policies.rewards import Dependence, RewardScale
from driftbandits.state.declared import Value, declared, read, write
from driftbandits.state.reader import told_at_most
from driftbandits.text import counted, shown
from driftbandits.types import ARMS_CHANGED, Bools, Change, Floats, Ints


class Family(StrEnum):
    """Families of policies, in the order in which legends list them."""

    NOTHING_TO_SET = "nothing to set"
    OPTIMISATION = "optimisation (OPKB)"
    NEURAL = "neural"
    GAUSSIAN_PROCESS = "Gaussian process"
    WRAPPER = "wrappers (MASTER, BOB)"
    LINEAR = "linear"
    PLAIN = "plain, no features"
    OTHER = "other"


TOLERANCE = 1e-6  # by which the sum may be off


def is_frozen(law: npt.NDArray[Any]) -> bool:
    """Whether nobody can write to the law: neither to the array nor to one that it is a view of.

    >>> law = np.array([0.5, 0.5])
    >>> view = law.view()
    >>> view.flags.writeable = False
    >>> is_frozen(view)
    False
    """
    part: Any = law
    while isinstance(part, np.ndarray):
        if part.flags.writeable:
            return False
        part = part.base
    return part is None


def freeze(law: Floats) -> Floats:
    """The law, made read-only: it may be kept from round to round and is checked once."""
    law.flags.writeable = False
    return law


def check_law(law: Any, *, arms: int, policy: str, now: int) -> None:
    """Refuse what is not a probability vector over the arms, naming the policy and the fault.

    >>> check_law(np.array([0.5, 0.5]), arms=2, policy="Mine", now=7)
    >>> check_law(np.array([0.5, np.nan]), arms=2, policy="Mine", now=7)
    Traceback (most recent call last):
    ...
    driftbandits.errors.LawError: the law of Mine in round 7 has a probability of nan at arm 1; nothing was decided in
    it
    """
    if isinstance(law, np.ndarray) and law.shape == (arms,) and law.dtype == np.float64:
        total = np.add.reduce(law)
        if abs(total - 1.0) <= TOLERANCE and law.item(law.argmin()) >= 0.0:  # a NaN makes the sum one
            return
    raise LawError(f"the law of {policy} in round {now} {_fault(law, arms)}; nothing was decided in it")


def _fault(law: Any, arms: int) -> str:
    if not isinstance(law, np.ndarray):
        return f"is a {type(law).__name__}, not a NumPy array of shape ({arms},)"
    if law.shape != (arms,):
        return f"has shape {law.shape}, not ({arms},)"
    if law.dtype != np.float64:
        return f"has entries of type {law.dtype}, not float64"
    unfit = ~(np.isfinite(law) & (law >= 0.0))
    if unfit.any():
        arm = int(unfit.argmax())
        return f"has a probability of {law[arm]:.6g} at arm {arm}"
    return f"sums to {law.sum():.9g}, not to 1"


def check_estimate(values: Any, *, arms: int, policy: str, now: int) -> Floats:
    """The estimate as an array; refuse what is not one finite number per arm, naming the policy.

    >>> check_estimate([0.5, 0], arms=2, policy="Mine", now=7)
    array([0.5, 0. ])
    >>> check_estimate(0.5, arms=2, policy="Mine", now=7)
    Traceback (most recent call last):
    ...
    driftbandits.errors.InputError: _estimate of Mine gave 0.5 in round 7; it must give one finite number per arm, ...
    """
    try:
        estimate = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        estimate = np.empty(0)
    if estimate.shape != (arms,) or not np.isfinite(estimate).all():
        raise InputError(
            f"_estimate of {policy} gave {shown(values)} in round {now}; it must give one finite number per arm, shape "
            f"({arms},)"
        )
    return estimate


def check_interval(ends: Any, *, arms: int, policy: str, now: int) -> Floats:
    """Both ends as one array (2, N); refuse what is not two finite numbers per arm, naming the policy.

    >>> check_interval(([0.5, 0], [1, 1]), arms=2, policy="Mine", now=7).tolist()
    [[0.5, 0.0], [1.0, 1.0]]
    """
    try:
        interval = np.array(ends, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        interval = np.empty(0)
    if interval.shape != (2, arms) or not np.isfinite(interval).all():
        raise InputError(
            f"_interval of {policy} gave {shown(ends)} in round {now}; it must give lower and upper ends, two "
            f"arrays of one finite number per arm, shape ({arms},)"
        )
    return interval


def check_steady(rounds: Any, *, policy: str, hook: str = "_steady") -> int:
    """The number of rounds for which a law stays; less than one would never end."""
    try:
        count = operator.index(rounds)
    except TypeError:
        count = 0
    if count < 1:
        raise InputError(f"{hook} of {policy} gave {shown(rounds)}; it must give a whole number from 1")
    return count


def restrict(law: Floats, mask: Bools) -> tuple[Floats, bool]:
    """Law given that the arm is allowed, and whether the mask took any mass away.

    >>> restrict(np.array([0.5, 0.25, 0.25]), np.array([False, True, True]))
    (array([0. , 0.5, 0.5]), True)
    """
    kept = np.where(mask, law, 0.0)
    if not law[~mask].any():
        return law, False
    total = kept.sum()
    return (kept / total if total > 0 else mask / mask.sum()), True


class OneByOne(ABC):
    """For a policy that learns rewards one after the other, by `_learn_one`."""

    @abstractmethod
    def _learn_one(self, row: Row, reward: float) -> None:
        """Take in one reward."""

    def _learn(self, feedback: Feedback) -> None:
        """Take in rewards, given in the order of their rounds."""
        for row, reward in feedback.rows():
            self._learn_one(row, reward)


FIRST_HORIZON = 1024  # horizon=None: policies that need one start with this and double it
UNTIL_TOLD = 2**62  # rounds for which a law stays that moves with rewards alone


class Algorithm(ABC):
    """What a policy is made of; `Policy` adds what users call.

    >>> from driftbandits import SlidingWindowGPUCB
    >>> str(SlidingWindowGPUCB.family), SlidingWindowGPUCB.reports_changes
    ('Gaussian process', False)
    """

    family: ClassVar[str] = Family.OTHER
    reports_changes: ClassVar[bool] = False
    behaviour: ClassVar[int] = 1  # one more where it plays differently than before with the same settings
    needs_horizon: bool = False  # whether horizon=None means doubling
    learns_open_decisions: ClassVar[bool] = False  # whether a decision without a reward is data, see `auto.exposures`
    counts_masked: bool = True  # whether a round whose mask removed mass advances the policy's clock
    _interval_kept: int = 2  # rows that snapshots keep of the interval
    _numbers_rounds: bool = False  # whether the number that `_stamp` gives a law is that of the round

    _has_turns: ClassVar[bool]  # whether its law moves on by `_due` and `_turn`
    _needs_own_law: bool = False  # whether rewards are weighed by the law that drew them, so that no other will do

    contexts: Contexts | None = None  # what is known of each request
    arms: ArmSet
    horizon: int | None
    seed: int
    order: Literal["told", "asked"]
    rounds: int  # asked so far
    late: int  # rewards that came too late to be learned
    _scale: RewardScale  # from the user's units to [-1, 1] and back
    _pending: OpenDecisions
    _held: ReorderBuffer
    _change_log: ChangeLog
    _version: int  # grows with every reward that is learned
    _phase_start: int
    _phase_length: int  # 0: not started
    _checked: Floats | None  # the latest law that was checked
    _guard: Guard

    @classmethod
    def trains(cls, settings: Mapping[str, Any]) -> bool:
        """Whether a policy with these settings trains a network, and so takes long.

        Parameters
        ----------
        settings : those of the class, by name

        Returns
        -------
        bool
        """
        del settings
        return False

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Show the whole constructor in help and editors, and what each of its settings is; it computes as calls do."""
        super().__init_subclass__(**keywords)
        cls._has_turns = cls._due is not Algorithm._due
        if "__init__" in vars(cls):
            cls.__init__ = one_blas_thread(vars(cls)["__init__"])  # type: ignore[method-assign]
        signature = signature_of(cls)
        cls.__signature__ = signature  # type: ignore[attr-defined]
        cls.__doc__ = whole_docstring(cls, signature.parameters)

    def __new__(cls, *given: Any, **settings: Any) -> Self:
        """Refuse what no constructor of the class takes, before one of a base does so less clearly."""
        for arms in (*given[:1], *([settings["arms"]] if "arms" in settings else [])):
            if not isinstance(arms, ArmSet):
                raise InputError(
                    f"arms must be an ArmSet, got {type(arms).__name__}; build one with ArmSet(points, kernel)"
                )
        check_settings(cls, given, settings)
        return super().__new__(cls)

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

    def _quiet_rounds(self) -> int:
        """For how many asked rounds the law is certain to stay while no reward is told, at least 1.

        Used only inside `ask(size)`: a law that moves with rewards alone may say UNTIL_TOLD.
        """
        return check_steady(self._steady(), policy=type(self).__name__)

    def _stamp(self) -> tuple[int, int]:
        """Law number and tag to keep with the decisions of the present stretch."""
        return self._version, 0

    def _stamp_within(self, mask: Bools | None) -> tuple[int, int]:
        """`_stamp` for rounds in which only the arms of `mask` are allowed (None: all)."""
        return self._stamp()

    def _interval(self) -> tuple[Floats, Floats] | None:
        """Lower and upper ends of intervals that hold every arm's mean reward with 95 %, on the internal scale.

        None, the default, is for policies that do not know how far off their estimates may be.
        """
        return None

    def _glimpse(self, arms: Ints) -> Sequence[Floats]:
        """What a snapshot keeps of these arms: their estimates, and what `_interval_from` finds their intervals from.

        By default the ends of the intervals. Snapshots are taken while rewards are told: a policy that takes long to
        find the estimates and intervals of all arms finds those of a few here, or leaves the rest to `_interval_from`.
        """
        estimate, interval = self._checked_estimate(), self._checked_interval()
        return [estimate[arms], *(() if interval is None else interval[:, arms])]

    def _interval_from(self, estimate: Floats, kept: Floats) -> tuple[Floats, Floats]:
        """Intervals from what snapshots kept: from n estimates, and `_interval_kept` rows of n numbers."""
        return kept[0], kept[1]

    def _carried_tags(self, tags: Ints, change: ArmsChange) -> Ints:
        """The tags of decisions that are open, where the arms change."""
        return tags

    def _advance(self, count: int) -> None:
        """`count` rounds were asked under the present law."""

    def _drawn(self, arms: Sequence[int], counted: bool) -> None:
        """These arms were drawn under the present law, in rounds that advance the clock if `counted`."""
        if counted:
            self._advance(len(arms))

    def _enter(self, codes: Floats | None) -> None:
        """The request that the next law, draw, estimate and interval are for, as codes of its context; None: no more.

        Only where the policy has `contexts`.
        """

    def _lose(self, rows: npt.NDArray[np.void]) -> None:
        """The rewards of these decisions were forgotten and will never come."""

    def _retract(self, rows: npt.NDArray[np.void]) -> None:
        """The caller forgot these open decisions: what they say by being open does not count."""

    def _at(self, now: float, patience: float | None) -> None:
        """The caller's clock, in seconds, and after how many a decision is closed as missing."""

    def _delays_depend(self, found: Dependence) -> str | None:
        """How late rewards come depends on what they are; what the policy has done about it, None if nothing."""
        return None

    def _learn_late(self, ids: Ints, rewards: Floats) -> bool:
        """Rewards of decisions that were closed as missing; whether such rewards are learned."""
        return False

    def _evaluate(self, rounds: int, arms: Ints, rewards: Floats, ids: Ints) -> bool:
        """Where `_needs_own_law`: start from the log of another policy as a first evaluation; whether that works."""
        return False

    def _carry(self, old: Self, change: ArmsChange) -> None:
        """Go on where `old` stands, with the arms of `change`; called in the place of `_start` or `_import`.

        The books (rounds, ids, open decisions, counters) are those of `old` already, with the new numbers of arms. By
        default a start with nothing learned, of which a record is kept.
        """
        self._start_with_arms(change)

    def _due(self) -> bool:
        """Whether the next ask must first move on to another law, whatever is still pending."""
        return False

    def _turn(self) -> None:
        """Move on to the next law; called when `_due`."""

    def _settings(self) -> dict[str, Any]:
        """Settings of the subclass as JSON values."""
        return {name: self._setting(name) for name in own_settings(type(self))}

    def _setting(self, name: str) -> Any:
        """One of them; by default the attribute that is called as it is."""
        if not hasattr(self, name):
            raise InputError(
                f"{type(self).__name__} has a setting {name!r} but no attribute of that name, so it cannot be saved; "
                f"keep it as self.{name} in __init__, or write _settings"
            )
        return getattr(self, name)

    @classmethod
    def _read_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Inverse of `_settings`: keyword arguments for the constructor."""
        return dict(settings)

    def _shown(self) -> dict[str, Any]:
        """Settings to show in the repr."""
        return self._settings()

    # --- what hooks may call ------------------------------------------------------------------------------------

    def _generator(self, purpose: str, number: int | None = None) -> np.random.Generator:
        """A generator for the next round, or for the decision or step called `number`, at its beginning each time.

        The numbers follow from the seed, the purpose and the number alone, so hooks may draw from it and stay pure
        functions of the state: called once or ten times, in a batch or round by round, in this policy or in one
        restored from its state, they get the same numbers. A law sampled anew in every round takes the default; what is
        drawn for a reward takes the id of its decision.
        """
        return stream(self.seed, "hooks", purpose, self.rounds if number is None else number)

    def _first_open(self) -> int:
        """The earliest decision whose reward may still come; where all are closed, the next one."""
        oldest = self._pending.oldest()
        return self.rounds if oldest is None else oldest

    def _awaited(self) -> npt.NDArray[np.void]:
        """All decisions that may still be learned from: those open, and those whose rewards wait; oldest first."""
        if not len(self._held):
            return self._pending.rows()
        return np.sort(np.concatenate([self._pending.rows(), self._held.rows()]), order="id")

    def _start_with_arms(self, change: ArmsChange, epoch: int = 0) -> None:
        """Begin with nothing learned because arms have changed, and keep a record of that."""
        self._start(None if self.horizon is None and not self.needs_horizon else self._phase_length)
        gone, come = len(change.dropped), len(change.added)
        self._change_log.add(
            Change(
                round=self.rounds,
                epoch=epoch,
                block=0,
                interval=(self.rounds, self.rounds),
                compared_with=0,
                statistic=0.0,
                threshold=0.0,
                arms=(),
                before=(),
                after=(),
                forgot=f"all it knew: {counted(come, 'arm')} came and {counted(gone, 'arm')} went",
                stream=ARMS_CHANGED,
            )
        )

    def _phase_left(self) -> int:
        return self._phase_start + self._phase_length - self.rounds

    def _fit(self, law: Floats) -> Floats:
        """The law, checked. A law kept from round to round is checked once, if it cannot be written to."""
        if law is None or self._checked is not law:
            check_law(law, arms=len(self.arms), policy=type(self).__name__, now=self.rounds)
            self._checked = law if is_frozen(law) else None
        return law

    def _checked_estimate(self) -> Floats:
        """The estimates, checked."""
        return check_estimate(self._estimate(), arms=len(self.arms), policy=type(self).__name__, now=self.rounds)

    def _checked_interval(self) -> Floats | None:
        """Both ends of the intervals, shape (2, N), checked."""
        found = self._interval()
        if found is None:
            return None
        return check_interval(found, arms=len(self.arms), policy=type(self).__name__, now=self.rounds)

    @contextlib.contextmanager
    def _still_whole(self) -> Iterator[None]:
        """For what takes long inside `_turn` before it has changed anything: ended there, the policy is as it was."""
        self._guard.changing = False
        yield
        self._guard.changing = True

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
        odds: float = 0.0,
        part: str = "",
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
            odds=odds,
            part=part,
        )
        self._change_log.add(change)


class DeclaredState(Algorithm):
    """For a policy that declares what it saves, in `_saved` and those of its bases, in place of writing how."""

    _saved: ClassVar[tuple[Value, ...]] = ()

    def _prepare_state(self) -> None:
        """Make what a state is read into, from the settings and the arms alone."""

    def _check_state(self) -> None:
        """Refuse values that cannot belong together; derive what is not saved."""

    def _export(self) -> dict[str, Any]:
        return write(declared(type(self)), self)

    def _import(self, state: states.Reader) -> None:
        self._prepare_state()
        read(declared(type(self)), self, state, {})
        self._check_state()

    def _most_told(self, since: int = 0) -> int:
        """How many rewards of rounds from `since` on can have been told."""
        return max(told_at_most(self.rounds, self._pending.rows(), since=since), 0)
