"""`Policy`, the user's side of every policy: ask, tell, forget, law.

What authors write is in `algorithm`, inspection and saving are in `inspection` and `persistence`. Calls go downwards
from here: to the open decisions and the reorder buffer (`decisions`), the scale of rewards and their monitor
(`rewards`), the records (`records`), and the methods that the algorithm has implemented.

The law is a pure function of the state, and `ask` draws from it with exactly one uniform per round, so the recorded
probability cannot differ from the law used.

Public methods are `guarded`: one at a time, whatever thread they come from. Inside them, code that changes the state
is between `changing = True` and `changing = False` of the guard, and code that only computes is outside: an exception
between the two leaves the policy marked as half changed, and an exception elsewhere leaves it unchanged. Private
methods are called from inside, so they call one another and never the public ones.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
import numpy.typing as npt

from driftbandits._util.checks import check_count, check_positive, check_word
from driftbandits._util.guard import Guard, guarded
from driftbandits._util.seeding import check_seed, stream
from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.contexts import Contexts
from driftbandits.errors import HorizonError, InputError, RewardError, UnknownDecisionError
from driftbandits.policies.algorithm import FIRST_HORIZON, UNTIL_TOLD, check_steady, is_frozen
from driftbandits.policies.decisions import (
    GONE,
    OTHER_DECISION,
    Feedback,
    OpenDecisions,
    Renumbered,
    ReorderBuffer,
    Row,
    read_decisions,
)
from driftbandits.policies.inputs import check_size, read_allowed, read_ids, read_rewards, read_waiting, shown_waiting
from driftbandits.policies.inspection import Inspection
from driftbandits.policies.log_columns import LogLike, read_columns
from driftbandits.policies.persistence import Persistence
from driftbandits.policies.records import ChangeLog, HistoryLog, Plays, Snapshot
from driftbandits.policies.replay import Imposed, Imposition, play_log, read_imposition
from driftbandits.policies.rewards import RewardMonitor, read_range
from driftbandits.text import counted
from driftbandits.types import Bools, Change, Decision, Decisions, Floats, Ints, read_only

Asked = int | npt.ArrayLike | Decision | Decisions | Sequence[Decision]  # decisions that `ask` gave, or their ids


class Policy(Inspection, Persistence):
    """Base of all policies: `ask` for decisions, `tell` their rewards, at any time and in any order.

    Parameters
    ----------
    arms : the options to choose from
    horizon : number of rounds; None if unknown (a policy that needs it then starts anew at 1,024, 3,072, 7,168, ...
        rounds, each time for twice as many; ids, rounds and change records continue)
    seed : of all the policy's randomness; None draws one, kept as `seed`
    reward_range : (low, high), in the user's units; mapped to [-1, 1] inside. By default (-1, 1); experiments in a
        database and over HTTP (`db.live`) have (0, 1) by default
    out_of_range : "error" refuses a reward outside the range, "clip" moves it to the nearest end and counts it
    pending_limit : how many decisions without a reward are remembered, and how many rewards may wait for one; beyond it
        the oldest is dropped and counted
    order : "told" learns rewards as they are told; "asked" in the order of their rounds: a reward is held while an
        earlier decision is open, so that quick ones do not overtake slow ones, and learned as late as the slowest. By
        default "told", and with patience "asked", except in policies that learn from open decisions (`AutoBandit`)
    patience : rounds after which a decision whose reward has not come is closed as missing; None waits for ever. It
        needs `missing`
    missing : the reward of a decision that is closed without one: a number within the range (0.0 for "no sale"), or
        "forget" to leave it out, if silence says nothing about the reward. `expire` needs it too

    Raises
    ------
    InputError
        For a setting that does not exist, is of another kind than it should be, or is out of its range.

    Attributes
    ----------
    rounds : rounds asked so far; the next decision has this id
    pending : decisions that are open: asked, and neither told, forgotten, expired nor dropped
    held : rewards told that wait for earlier decisions (order="asked")
    clipped, dropped, forgotten, expired, late : counts of rewards moved into the range, decisions dropped by
        `pending_limit`, decisions forgotten, decisions closed as missing, and rewards that came after what they belong
        to was closed (they change nothing, unless `AutoBandit` counts open decisions)
    changes : the changes found, oldest first, the latest 10,000 of them
    changes_found : the number of all of them

    One policy may be used from any number of threads: a call waits until the one under way is over. A call that an
    exception (Ctrl-C, a time-out, MemoryError) ends in the middle of a change leaves a policy that refuses further
    calls and `save`; load the last saved state then. Copies (`copy`, `pickle`) are made from the state and are
    independent of the original: they continue as it would, bit for bit. So do forked processes, which therefore decide
    alike.

    >>> from driftbandits import ArmSet, AutoBandit
    >>> policy = AutoBandit(ArmSet([[9.0], [12.0]], names=["9 EUR", "12 EUR"]), reward_range=(0, 12), seed=0)
    >>> choice = policy.ask()
    >>> policy.tell(choice, 9.0)
    >>> policy.rounds, policy.pending
    (1, 0)
    """

    _imposition: Imposition | None = None  # what takes the place of draws, while `impose` runs

    def __init__(
        self,
        arms: ArmSet,
        *,
        horizon: int | None = None,
        seed: int | None = 0,
        reward_range: tuple[float, float] = (-1.0, 1.0),
        out_of_range: Literal["error", "clip"] = "error",
        pending_limit: int = 1_000_000,
        order: Literal["told", "asked"] | None = None,
        patience: int | None = None,
        missing: float | Literal["forget"] | None = None,
    ) -> None:
        self.arms = arms
        cure = "use horizon=None if it is unknown"
        self.horizon = None if horizon is None else check_count("horizon", horizon, cure=cure)
        self.seed = check_seed(seed)
        self._scale = read_range(reward_range)
        self.reward_range = (self._scale.low, self._scale.high)
        self.out_of_range = check_word("out_of_range", out_of_range, ("error", "clip"))
        waiting = read_waiting(order, patience, missing, self._scale, open_is_data=self.learns_open_decisions)
        self.order, self.patience, self.missing = waiting.order, waiting.patience, waiting.missing
        self._missing_value = waiting.value
        self._open_is_data = self.learns_open_decisions and self.order == "told" and self._missing_value == -1.0
        self.rounds = 0
        self._provenance = []
        self.clipped = 0
        self.forgotten = 0
        self.late = 0
        self.expired = 0
        self._pending = OpenDecisions(check_count("pending_limit", pending_limit))
        self._renumbered = Renumbered()
        self._change_log = ChangeLog()
        self._draws = stream(self.seed, "draws")
        self._version = 0
        self._phase_start = 0
        self._phase_length = 0
        self._cdf: tuple[Floats, Floats, int] | None = None
        self._checked = None
        watches = self.order == "told" and not self._open_is_data
        self._monitor = RewardMonitor(self._scale, watches_delays=watches, adapts=self._delays_depend)
        self._held = ReorderBuffer()
        self.listener: Callable[[UserWarning], None] | None = None  # gets warnings where nobody would see them
        self._plays = Plays(len(arms))
        self._history = HistoryLog(len(arms), kept=self._interval_kept)
        self._guard = Guard()

    # --- asking -------------------------------------------------------------------------------------------------

    @overload
    def ask(
        self, size: None = None, allowed: Any = None, *, context: Any = None, contexts: None = None
    ) -> Decision: ...
    @overload
    def ask(self, size: int, allowed: Any = None) -> Decisions: ...
    @overload
    def ask(self, size: None = None, allowed: Any = None, *, contexts: Any) -> Decisions: ...
    @guarded
    def ask(
        self, size: int | None = None, allowed: Any = None, *, context: Any = None, contexts: Any = None
    ) -> Decision | Decisions:
        """Decide the next round, or the next `size` rounds.

        `ask(size=n)` gives the same n decisions as n single asks with no reward told between them.

        Parameters
        ----------
        size : None for one Decision, a positive number for that many as columns
        allowed : arms that may be chosen: a boolean mask, indices or names; the law is restricted to them and
            renormalised (uniform over them if it has no mass there), and `probability` is that of the restricted law
        context : of the request, where the policy has `contexts`
        contexts : those of several requests, in the place of a size: a list, a DataFrame, columns by name, or an array

        Returns
        -------
        Decision, or Decisions where a size or contexts were given
            What to play: the arm, the probability it was drawn with, and the id that `tell` wants back.

        Raises
        ------
        HorizonError
            For more rounds than the horizon has left.
        InputError
            For a size below 1, and where `allowed` names no arm or one that does not exist.

        >>> from driftbandits import ArmSet, Uniform
        >>> policy = Uniform(ArmSet([[9.0], [12.0], [15.0]], names=["low", "mid", "high"]), seed=0)
        >>> policy.ask(allowed=["low"]).probability
        1.0
        >>> policy.ask(size=4).ids.tolist()
        [1, 2, 3, 4]
        """
        if self.contexts is not None or context is not None or contexts is not None:
            codes = self._read_requests(size, context, contexts)
            decisions = self._ask_for(codes, None if allowed is None else read_allowed(self.arms, allowed))
            return decisions if contexts is not None else next(iter(decisions))
        if size is None and allowed is None:
            return self._ask_one()
        mask = None if allowed is None else read_allowed(self.arms, allowed)
        if size is None:
            return next(iter(self._ask_many(1, mask)))
        return self._ask_many(check_size(size), mask)

    def _ask_many(self, count: int, mask: Bools | None) -> Decisions:
        """Decide `count` rounds, in stretches of one law each."""
        self._check_left(count)
        parts: list[Decisions] = []
        while count:
            parts.append(self._draw(count, mask))
            count -= len(parts[-1])
        return Decisions.joined(parts)

    def _read_requests(self, size: Any, context: Any, contexts: Any) -> Floats:
        """Codes of the contexts of one request or of several, (n, width)."""
        known = self._known_contexts()
        if size is not None or (context is None) == (contexts is None):
            raise InputError(
                f"each decision needs its context: pass context= for one, or contexts= for several in the place of a "
                f"size; {known!r}"
            )
        if contexts is None:
            return known.read(context)[None]
        codes = known.read_many(contexts)
        check_size(len(codes))
        return codes

    def _known_contexts(self) -> Contexts:
        if self.contexts is None:
            raise InputError(
                f"this {self._kind()} has no contexts; AutoBandit, DisjointLinUCB and DisjointLinThompson take them, "
                f"if built with contexts=db.Contexts(...)"
            )
        return self.contexts

    def _ask_for(self, codes: Floats, mask: Bools | None) -> Decisions:
        """Decide a round for each of these requests."""
        self._check_left(len(codes))
        parts = []
        for request in codes:
            with self._entered(request):
                parts.append(self._draw(1, mask))
        return Decisions.joined(parts)

    @contextlib.contextmanager
    def _entered(self, codes: Floats | None) -> Iterator[None]:
        """Let laws, draws and estimates be for one request meanwhile."""
        if codes is None:
            yield
            return
        self._enter(codes)
        try:
            yield
        finally:
            self._enter(None)

    def _codes_of(self, context: Any) -> Floats | None:
        return None if context is None else self._known_contexts().read(context)

    def _check_left(self, count: int) -> None:
        if self.horizon is not None and self.rounds + count > self.horizon:
            raise HorizonError(
                f"asked for {count} more after {self.rounds} of {counted(self.horizon, 'round')}; build the policy "
                f"with a larger horizon, or with horizon=None if it is unknown"
            )

    def _ask_one(self) -> Decision:
        """`_draw` for a single round without a mask, in plain numbers: the path of a live request.

        With 100 arms a round of ask and tell takes 9 us so, and 21 us by `_draw` (`Uniform`; `GPUCB` 23 and 51).
        """
        self._check_left(1)
        self._move()
        number, tag = self._stamp()
        weighed = self._weigh()
        self._guard.changing = True
        arm, probability = self._choose_one(weighed)
        if self._imposition is not None:
            arm, probability = self._imposition.take_one(arm, probability)
        names = self.arms.names
        decision = Decision(self.rounds, arm, probability, number, None if names is None else names[arm])
        self._pending.push(Row(decision.id, arm, number, tag, probability))
        self._plays.add(arm, decision.id)
        self.rounds += 1
        self._drawn([arm], True)
        if self.patience is not None or self._pending.fallen:
            self._close_old()
        self._guard.changing = False
        return decision

    def _weigh(self) -> npt.NDArray[Any]:
        """What a single round is drawn from: the law."""
        return self._fit(self._law())

    def _choose_one(self, weighed: npt.NDArray[Any]) -> tuple[int, float]:
        """One arm drawn from what `_weigh` gave, and its probability."""
        cdf, last = self._summed(weighed)
        arm = min(int(cdf.searchsorted(self._draws.random() * cdf[-1], side="right")), last)
        return arm, weighed.item(arm)

    def _draw(self, wanted: int, mask: Bools | None) -> Decisions:
        """Decide at most `wanted` rounds, all under one law."""
        self._move()
        law, removed = (self._law(), False) if mask is None else self._law_within(mask)
        self._fit(law)
        counted = self.counts_masked or not removed
        count = min(wanted, self._phase_left(), self._rounds_to_close(), self._quiet_now() if counted else wanted)
        number, tag = self._stamp_within(mask)
        laws = number + np.arange(count) if self._numbers_rounds else np.full(count, number)
        self._guard.changing = True
        arms, probabilities = self._take(law, count)
        ids = np.arange(self.rounds, self.rounds + count)
        self._pending.add(ids, arms, probabilities, laws, tag if counted else -1)
        self._plays.add_many(arms, ids)
        self.rounds += count
        self._drawn(arms.tolist(), counted)
        if self.patience is not None or self._pending.fallen:
            self._close_old()
        self._guard.changing = False
        return Decisions(ids, arms, probabilities, laws, self.arms.names)

    def _take(self, law: Floats, count: int) -> tuple[Ints, Floats]:
        """Arms drawn from `law`, or imposed in their place, and their probabilities."""
        arms = self._pick(law, count)
        return (arms, law[arms]) if self._imposition is None else self._imposition.take(arms, law)

    def _pick(self, law: Floats, count: int) -> Ints:
        """Arms drawn from `law`, one uniform each; an arm of probability 0 is never drawn."""
        cdf, last = self._summed(law)
        arms = cdf.searchsorted(self._draws.random(count) * cdf[-1], side="right")
        return np.asarray(np.minimum(arms, last), dtype=np.int64)

    def _summed(self, law: Floats) -> tuple[Floats, int]:
        """Partial sums of `law`, and its last arm of positive probability."""
        kept = self._cdf
        if kept is None or kept[0] is not law:
            last = len(law) - 1 if law[-1] > 0.0 else int(law.nonzero()[0][-1])
            kept = (law, law.cumsum(), last)
            self._cdf = kept if is_frozen(law) else None
        return kept[1], kept[2]

    @guarded
    def impose(
        self,
        arms: int | npt.ArrayLike,
        probabilities: float | npt.ArrayLike,
        allowed: Any = None,
        *,
        contexts: Any = None,
    ) -> Imposed:
        """Replay rounds that were drawn elsewhere: like `ask`, with the arms and their probabilities given.

        The policy makes its own draws and discards them. If they agree with what is given, its state is afterwards the
        same as after `ask`, bit for bit; otherwise `differing` counts it. Rewards are told to `decisions` as to those
        of `ask`. For replaying a journal, see `replay`; to start from a log of another policy, see `learn`.

        Parameters
        ----------
        arms : index of the arm played, or one per round
        probabilities : with which it was played, or one per round, in (0, 1]
        allowed : the arms that were allowed then, as in `ask`
        contexts : those of the requests, one per round, as in `ask`

        Returns
        -------
        Imposed
            The `decisions`; `differing`, the number of rounds in which the policy would have drawn another arm, or with
            a probability that differs by more than between machines; and the largest difference of a probability.

        Raises
        ------
        InputError
            For arms that do not exist or were not allowed, and probabilities outside (0, 1].
        HorizonError
            For more rounds than the horizon has left.

        >>> from driftbandits import ArmSet, Uniform
        >>> original, twin = (Uniform(ArmSet([[0.0], [1.0]]), seed=3) for _ in range(2))
        >>> choice = original.ask()
        >>> twin.impose(choice.arm, choice.probability).differing
        0
        """
        mask = None if allowed is None else read_allowed(self.arms, allowed)
        wanted = self.contexts is not None or contexts is not None
        if wanted:
            arms, probabilities = np.atleast_1d(arms), np.atleast_1d(probabilities)
        imposition = read_imposition(arms, probabilities, size=len(self.arms), mask=mask)
        codes = self._read_requests(None, None, contexts) if wanted else None
        if codes is not None and len(codes) != len(imposition):
            raise InputError(
                f"got {counted(len(codes), 'context')} for {counted(len(imposition), 'round')}; give one each"
            )
        self._imposition = imposition
        try:
            if codes is not None:
                decisions = self._ask_for(codes, mask)
            elif len(imposition) == 1 and mask is None:  # as journals have them by the thousand
                one = self._ask_one()
                decisions = Decisions(
                    ids=np.array([one.id]),
                    arms=np.array([one.arm]),
                    probabilities=np.array([one.probability]),
                    laws=np.array([one.law]),
                    arm_names=self.arms.names,
                )
            else:
                decisions = self._ask_many(len(imposition), mask)
        finally:
            self._imposition = None
        return Imposed(decisions, imposition.differing, imposition.largest)

    @guarded
    def learn(self, log: Mapping[str, Any] | LogLike) -> None:
        """Learn from a log, of this policy or of another, as if this new policy had played it (warm start).

        Policies that weight rewards by the law that drew them learn their own log in this way. The OPKB family uses a
        log of another policy as a first evaluation of the arms; the Exp3 family refuses it.

        Parameters
        ----------
        log : a `logs.Log`, a DataFrame, or a mapping of `arm`, `reward` and `probability` to columns of one length, and
            optionally of `round` or `time`, `told`, `segment`, `allowed` and, where this policy has contexts,
            `context.*`: see `log_columns`

        Raises
        ------
        InputError
            If the policy has played already, or for whatever is wrong with the log; the policy stays new.

        >>> from driftbandits import ArmSet, GPUCB
        >>> policy = GPUCB(ArmSet([[0.0], [1.0]], names=["low", "high"]), seed=0)
        >>> policy.learn({"arm": ["low", "high"] * 20, "reward": [0.1, 0.6] * 20, "probability": [0.5] * 40})
        >>> policy.rounds, policy.estimate().round(1).tolist()
        (40, [0.1, 0.6])
        """
        if self.rounds:
            raise InputError(
                f"a new policy learns from a log; this one has played {counted(self.rounds, 'round')}: build one anew"
            )
        columns = read_columns(self.arms, log, self.contexts)
        self._check_left(len(columns))
        known = np.flatnonzero(~np.isnan(columns.rewards))
        rewards, _ = self._inward(columns.rewards[known], np.ones(len(known), dtype=np.bool_))
        pupil = self._new_copy()
        foreign = play_log(pupil, columns, only_own=self._needs_own_law)
        if foreign is not None:
            pupil = self._new_copy()
            if not pupil._evaluate(len(columns), columns.arms[known], rewards, known):
                raise InputError(
                    f"{type(self).__name__} weighs rewards by the law that drew them, and row {foreign} of the log was "
                    f"not drawn from its law: it can learn from its own log only; AutoBandit takes any"
                )
        self._guard.changing = True
        vars(self).update({name: value for name, value in vars(pupil).items() if name not in ("_guard", "listener")})
        self._guard.changing = False

    def _new_copy(self) -> Self:
        copy = self.restore(self.arms, self._state())
        copy.listener = self.listener
        return copy

    @guarded
    def law(self, allowed: Any = None, *, context: Any = None) -> Floats:
        """Probabilities over all arms that the next `ask` will draw from. Reading them changes nothing.

        Parameters
        ----------
        allowed : the arms that may be chosen then, as in `ask`
        context : of the request, where the policy has `contexts`; without one, the mean over some of the latest

        Returns
        -------
        array, shape (N,)
            Read-only; it sums to 1.

        >>> from driftbandits import ArmSet, Uniform
        >>> Uniform(ArmSet([[0.0], [1.0], [2.0]])).law(allowed=[0, 2]).tolist()
        [0.5, 0.0, 0.5]
        """
        mask = None if allowed is None else read_allowed(self.arms, allowed)
        codes, ahead = self._codes_of(context), self._ahead()
        with ahead._entered(codes):
            law = ahead._law() if mask is None else ahead._law_within(mask)[0]
            return read_only(self._fit(law))  # type: ignore[no-any-return]

    @guarded
    def steady_rounds(self) -> int:
        """For how many rounds from now the law is certain to stay as it is, whatever rewards are told meanwhile.

        Returns
        -------
        int
            At least 1.
        """
        return self._steady_rounds()

    def _steady_rounds(self) -> int:
        ahead = self._ahead()
        return min(ahead._steady_now(), max(ahead._phase_left(), 1), ahead._rounds_of_patience())

    def _steady_now(self) -> int:
        return check_steady(self._steady(), policy=type(self).__name__)

    def _quiet_now(self) -> int:
        return check_steady(self._quiet_rounds(), policy=type(self).__name__, hook="_quiet_rounds")

    @guarded
    def estimate(self, *, context: Any = None) -> Floats:
        """Estimated reward of every arm.

        Parameters
        ----------
        context : of the request, where the policy has `contexts`; without one, the mean over the latest

        Returns
        -------
        array, shape (N,)
            In the user's units; the middle of the range for arms of which nothing is known.
        """
        codes, ahead = self._codes_of(context), self._ahead()
        with ahead._entered(codes):
            return self._scale.outward(ahead._checked_estimate())

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes found, oldest first, the latest 10,000 of them; `changes_found` is the number of all."""
        return self._change_log.latest()

    @property
    def changes_found(self) -> int:
        """Number of all changes found."""
        return self._change_log.found

    @property
    def pending(self) -> int:
        """Number of decisions that are open."""
        return len(self._pending)

    @property
    def held(self) -> int:
        """Number of rewards told that wait for earlier decisions."""
        return len(self._held)

    @property
    def dropped(self) -> int:
        """Number of decisions dropped by `pending_limit`."""
        return self._pending.dropped

    # --- telling ------------------------------------------------------------------------------------------------

    @guarded
    def tell(self, ids: Asked, rewards: float | npt.ArrayLike) -> None:
        """Tell the rewards of decisions: late, in any order, but only once each.

        An error changes nothing, for the whole call. Where `missing` is set, decisions may have been closed meanwhile:
        rewards of those are counted in `late` and change nothing.

        Parameters
        ----------
        ids : a Decision or Decisions that `ask` gave, or their ids. Decisions are checked: one that this policy did not
            make is refused. An id alone is trusted: after an older state was restored the same ids are given out
            anew, and a reward meant for a decision that is lost would be credited to another arm
        rewards : one reward, or one per decision, in the user's units

        Raises
        ------
        UnknownDecisionError
            For a decision that was never asked, was told already, or belongs to another policy.
        RewardError
            For a reward that is not a finite number, or outside `reward_range` with `out_of_range="error"`.
        InputError
            For another number of rewards than of decisions.

        >>> from driftbandits import ArmSet, Uniform
        >>> policy = Uniform(ArmSet([[0.0], [1.0]]), seed=0)
        >>> first, later = policy.ask(), policy.ask(size=3)
        >>> policy.tell(later, [0.1, 0.0, 0.4])
        >>> policy.tell(first.id, 0.2)
        >>> policy.pending
        0
        """
        row = self._single(ids, rewards)
        if row is not None:
            snapshot = self._take_snapshot() if self._history.left <= 0 else None
            scaled = self._scale.inward(float(rewards))  # type: ignore[arg-type]
            self._guard.changing = True
            self._pending.strike_found()
            self._record(snapshot, 1)
            self._monitor.see(scaled, scaled, 1, scaled == 0.0, scaled == 1.0)
            self._take_reward(row, scaled)
        else:
            where, numbers, good = self._locate(ids)
            values = read_rewards(rewards)
            if len(values) != len(numbers):
                raise InputError(
                    f"got {counted(len(values), 'reward')} for {counted(len(numbers), 'decision')}; give one each"
                )
            if not len(numbers):
                return
            inward, clipped = self._inward(values, good)
            closed, numbers, where = numbers[~good], numbers[good], where[good]
            order = np.argsort(numbers, kind="stable")
            snapshot = self._take_snapshot() if self._history.left <= 0 else None
            self._guard.changing = True
            if len(closed):
                learned = self._learn_late(closed, self._scale.inward(self._scale.clip(values[~good])))
                self._count_late(closed, learned=learned)
            if len(numbers):
                rows = self._pending.take(where[order])
                self._record(snapshot, len(inward))
                self._monitor.see_all(inward)
                if clipped:
                    self.clipped += clipped
                    lost = float(np.abs(self._scale.inward(values[good]) - inward).sum())
                    self._monitor.see_clipped(lost, clipped=self.clipped, told=self.rounds - len(self._pending))
                self._take_rewards(rows, inward[order])
        self._guard.changing = False
        self._settle()
        self._warn()

    def _single(self, given: Asked, reward: Any) -> Row | None:
        """One open decision, if this is its reward and in range: the path of a live request; None for the general.

        With 100 arms a round of ask and tell takes 9 us so, and 63 us in general (`Uniform`; `GPUCB` 23 and 79).
        """
        low, high = self.reward_range
        if not isinstance(reward, (float, int)) or not low <= reward <= high:
            return None
        if type(given) is int:
            return self._pending.seek(given)
        if type(given) is not Decision or type(given.id) is not int:
            return None
        if given.id < self._renumbered.since:  # its arm may have had another number
            return None
        row = self._pending.seek(given.id)
        if row is None:
            return None
        if not row.is_of(given):
            raise UnknownDecisionError(OTHER_DECISION.format(id=given.id))
        return row

    def _record(self, snapshot: Snapshot | None, count: int) -> None:
        """Keep a snapshot in the history, if one was due; `count` rewards are about to be learned."""
        if snapshot is not None:
            self._history.add(snapshot)
        self._history.left -= count

    def _locate(self, given: Asked) -> tuple[Ints, Ints, Bools]:
        """Where decisions stand in the table of open ones, their ids, and whether they are open.

        Refused unless all are; where `missing` is set, unless all were asked: some may have been closed meanwhile.
        """
        decisions = read_decisions(given)
        numbers = read_ids(given) if decisions is None else decisions.ids
        self._guard.changing = True
        self._pending.gather()
        self._guard.changing = False
        if self.missing is None:
            where, good = self._pending.find(numbers, asked=self.rounds), np.ones(len(numbers), dtype=np.bool_)
        else:
            self._pending.refuse_unasked(numbers, asked=self.rounds)
            where, good = self._pending.is_open(numbers)
        if decisions is not None:
            self._pending.compare(where[good], self._renumbered.translate(decisions.chosen(good)))
        return where, numbers, good

    @guarded
    def forget(self, ids: Asked) -> None:
        """Close decisions whose rewards will never come.

        Parameters
        ----------
        ids : decisions or their ids, as in `tell`

        Raises
        ------
        UnknownDecisionError
            For a decision that is not open; where `missing` is set, only for one that was never asked.
        """
        where, _, good = self._locate(ids)
        if not good.any():
            return
        self._guard.changing = True
        rows = self._pending.take(where[good])
        self._retract(rows)
        self._close_forgotten(rows)
        self.forgotten += int(np.count_nonzero(good))
        self._guard.changing = False
        self._settle()

    @guarded
    def expire(self, ids: Asked) -> None:
        """Close decisions as missing, by your own clock; `patience` counts rounds.

        They count as the policy's setting `missing` says: a number or "forget". Decisions that are closed already are
        left as they are.

        Parameters
        ----------
        ids : decisions or their ids, as in `tell`

        Raises
        ------
        InputError
            If the policy was built without `missing`.
        UnknownDecisionError
            For a decision that was never asked.
        """
        if self.missing is None:
            raise InputError(
                f"expire closes decisions as missing, and this policy was not told what that is worth; build it with "
                f"missing={self.reward_range[0]:g}, say, or missing='forget', or forget() them"
            )
        where, _, good = self._locate(ids)
        if not good.any():
            return
        self._guard.changing = True
        self._close_missing(self._pending.take(np.sort(where[good])))
        self._guard.changing = False
        self._settle()
        self._warn()

    @guarded
    def at(self, now: float, *, patience: float | None = None) -> None:
        """Set the time before asking and telling, if you close decisions by your own clock (`expire`).

        Policies that learn from open decisions (`AutoBandit`) then count the ages of decisions in seconds, not in
        rounds; others ignore it. Time never goes back: a time before the last one counts as the last one.

        Parameters
        ----------
        now : seconds since a start time of your choice, at least 0
        patience : seconds after which you will `expire` a decision; None if never

        Raises
        ------
        InputError
            For a time below 0 or not finite, and for patience that is not positive.
        """
        if type(now) is not float or not 0.0 <= now < math.inf:  # a live request comes with a plain float
            now = check_positive("now", now, zero=True, cure="give seconds from a fixed beginning")
        if patience is not None and (type(patience) is not float or not 0.0 < patience < math.inf):
            patience = check_positive("patience", patience, cure="None waits for ever")
        self._begin_once()
        self._guard.changing = True
        self._at(now, patience)
        self._guard.changing = False
        self._warn()

    def _inward(self, values: Floats, good: Bools) -> tuple[Floats, int]:
        """Rewards of the decisions that are open, on the internal scale, and how many of them had to be clipped."""
        if not np.isfinite(values).all():
            wrong = values[int(np.argmin(np.isfinite(values)))]
            raise RewardError(
                f"a reward is {wrong}; tell finite numbers, or forget() decisions whose reward is missing"
            )
        inside = self._scale.clip(values)
        if self.out_of_range == "error":
            self._scale.require_inside(values, inside)
        return self._scale.inward(inside[good]), int(np.count_nonzero((inside != values)[good]))

    # --- moving on ----------------------------------------------------------------------------------------------

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
        due = self._has_turns and self._due()
        return due or (self.horizon is None and self.rounds == self._phase_start + self._phase_length)

    def _move(self) -> None:
        """Get ready for the next ask: start, turn to the next law, or double the horizon."""
        self._begin_once()
        if self._due():
            self._guard.changing = True
            self._turn()
            self._guard.changing = False
        if self._phase_left() == 0 and self.horizon is None:
            self._begin(2 * self._phase_length)

    def _settle(self) -> None:
        """Once every reward is in, nothing can change what the next ask would do: do it now."""
        if not len(self._pending) and self._unsettled():
            self._move()

    def _ahead(self) -> Self:
        """This policy as the next ask will find it; a copy where rewards still pending may change that."""
        self._begin_once()
        if not self._unsettled():
            return self
        copy = self.restore(self.arms, self._state())
        copy._move()
        return copy

    # --- closing decisions, with a reward -------------------------------------------------------------------------

    def _take_reward(self, row: Row, reward: float) -> None:
        """Learn the reward of a decision that was struck out, or let it wait for earlier ones."""
        if self.order == "asked" and self._must_wait(row.id):
            self._held.hold([row], [reward])
            self._release_held()
            return
        if row.arm == GONE:
            self.late += 1
            return
        self._monitor.see_delay(row.id, row.arm, self.rounds - 1 - row.id, reward)
        self._version += 1
        self._learn_one(row, reward)

    def _must_wait(self, ident: int) -> bool:
        """Whether an earlier decision is open, or others that waited come first."""
        oldest = self._pending.oldest()
        return len(self._held) > 0 or (oldest is not None and oldest < ident)

    def _take_rewards(self, rows: npt.NDArray[np.void], rewards: Floats) -> None:
        """`_take_reward` for rows of the table, in the order of their ids."""
        if self.order == "told":
            self._monitor.see_delays(rows["id"], rows["arm"], rewards, rounds=self.rounds)
            self._learn_released(Feedback.of(rows, rewards))
        else:
            self._held.hold(rows.tolist(), rewards.tolist())
            self._release_held()

    def _release_held(self) -> None:
        """Learn what waited for decisions that are closed by now."""
        first_open = self._first_open()
        if self._held.first < first_open:
            self._learn_released(self._held.release(first_open))
        self._limit_held()

    def _learn_released(self, feedback: Feedback) -> None:
        """Learn rewards in order; those of arms that are no longer offered are counted only."""
        offered = feedback.arms != GONE
        if not offered.all():
            self.late += int(np.count_nonzero(~offered))
            feedback = feedback.chosen(offered)
        if len(feedback):
            self._version += 1
            self._learn(feedback)

    # --- closing decisions, without one --------------------------------------------------------------------------

    def _close_missing(self, rows: npt.NDArray[np.void]) -> None:
        """Close decisions that were struck out as missing; in the order of their ids."""
        self.expired += len(rows)
        if self._missing_value is None:
            self._close_forgotten(rows)
            self.forgotten += len(rows)
            return
        rows = rows[rows["arm"] != GONE]
        if len(rows):
            self._history.left -= len(rows)  # they are learned as rewards are, and where most are missing so is history
            self._take_rewards(rows, np.full(len(rows), self._missing_value))
        else:
            self._release_held()

    def _close_forgotten(self, rows: npt.NDArray[np.void]) -> None:
        """Close decisions that were struck out as forgotten."""
        self._lose(rows[rows["arm"] != GONE])
        self._release_held()

    def _close_old(self) -> None:
        """After rounds were asked: close what `pending_limit` dropped and what patience has run out for."""
        pending = self._pending
        if pending.fallen:
            self._close_forgotten(pending.pick_up())
        if self.patience is None:
            return
        last = self.rounds - 1 - self.patience
        oldest = pending.oldest()
        if oldest is not None and oldest <= last:
            pending.gather()
            self._close_missing(pending.take(pending.before(last + 1)))

    def _rounds_to_close(self) -> int:
        """For how many rounds from now at most the last one alone can close decisions that others wait for."""
        if self.order == "told" and self.patience is None:
            return UNTIL_TOLD
        left = self._pending.limit - len(self._pending) + 1
        if self.patience is not None:
            left = min(left, self._first_open() + self.patience - self.rounds + 1)
        return max(left, 1)

    def _rounds_of_patience(self) -> int:
        """How many rounds may be asked before anything is told, without a decision closing."""
        return UNTIL_TOLD if self.patience is None else max(self._first_open() + self.patience - self.rounds, 1)

    def _limit_held(self) -> None:
        """What is held has a limit too: beyond it, the decision that it waits for is dropped."""
        if len(self._held) > self._pending.limit:
            self._pending.drop_oldest()
            self._close_forgotten(self._pending.pick_up())
        if self._held.is_long():
            self._monitor.see_held(self._first_open(), len(self._held), self.patience)

    def _count_late(self, ids: Ints, *, learned: bool) -> None:
        """Count rewards of decisions that are closed; whether they are many is asked each time they have doubled."""
        before = self.late
        self.late += len(ids)
        if learned or self.late.bit_length() == before.bit_length():
            return
        forgotten = self.forgotten - (self.expired if self._missing_value is None else 0)
        low = self.reward_range[0]
        longer = "Call expire() later" if self.patience is None else f"Take a patience above {self.patience}"
        if self.order == "asked":
            longer += ": every reward then waits as long for the decisions asked before it"
        if not self.learns_open_decisions:
            longer += f". AutoBandit with missing={low:g} learns late rewards too, and waits for nothing"
        self._monitor.see_late(
            missed=min(self.late, self.expired),  # others are told twice, or of arms that are gone
            told=self.rounds - len(self._pending) - self.expired - forgotten - self._pending.dropped,
            after=self.rounds - 1 - int(ids[-1]),
            cure=longer,
        )

    def _warn(self) -> None:
        """Issue the collected warnings to the caller of a public method, or pass them to the listener."""
        notices, self._monitor.notices = self._monitor.notices, []
        for notice in notices:
            if self.listener is None:
                warnings.warn(notice, stacklevel=4)  # over the public method and its guard
            else:
                self.listener(notice)

    def __repr__(self) -> str:
        shown = {**self._shown(), **shown_waiting(self.order, self.patience, self.missing)}
        settings = "".join(f", {name}={value!r}" for name, value in shown.items())
        arms = counted(len(self.arms), "arm")
        return f"{self._kind()}({arms}, horizon={self.horizon}, seed={self.seed}{settings})"
